//! Requests and responses.

use super::Setting;
use crate::mistake::Problem;
use crate::read::table;
use crate::schema::AT_LEAST_ONE;
use crate::stored::as_written;
use tcplab_units::{Bytes, Duration};

table! {
    /// Requests and responses over one connection, with think times. Responses flow from `from` to
    /// `to`.
    pub struct Requests {
        /// The size of a request: "400 B".
        pub request: Bytes = Bytes(400),
        /// The size of a response: "20 kB".
        pub response: Bytes,
        /// The time from the arrival of a request to the first byte of the response: "20 ms".
        pub server_time: Duration = Duration::ZERO,
        /// The think time from a response to the next request: "1 s".
        pub think: Duration = Duration::ZERO,
        /// The number of requests: 100. By default requests continue until the experiment ends.
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
