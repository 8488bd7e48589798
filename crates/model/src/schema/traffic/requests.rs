//! Questions and answers.

use super::Setting;
use crate::mistake::Problem;
use crate::read::table;
use crate::schema::AT_LEAST_ONE;
use crate::stored::as_written;
use tcplab_units::{Bytes, Duration};

table! {
    /// Asks, is answered, thinks, and asks again, over one connection. Answers flow from `from` to
    /// `to`.
    pub struct Requests {
        /// The size of a question: "400 B".
        pub request: Bytes = Bytes(400),
        /// The size of an answer: "20 kB".
        pub response: Bytes,
        /// The time from the arrival of a question to the first byte of its answer: "20 ms".
        pub server_time: Duration = Duration::ZERO,
        /// The time from an answer to the next question: "1 s".
        pub think: Duration = Duration::ZERO,
        /// How many questions: 100. Without a number they go on until the experiment ends.
        pub requests: Option<u64> [AT_LEAST_ONE] = None,
    }
}

as_written!(Requests);

impl Requests {
    #[expect(clippy::unnecessary_wraps, reason = "other kinds of traffic have mistakes")]
    pub(super) fn plan(&self, _setting: &Setting<'_>) -> Result<Self, Problem> {
        Ok(self.clone())
    }
}
