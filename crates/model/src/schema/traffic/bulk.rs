//! Bulk transfer.

use super::Setting;
use crate::mistake::Problem;
use crate::read::table;
use crate::schema::SOME_BYTES;
use crate::stored::as_written;
use tcplab_units::Bytes;

table! {
    /// Sends as fast as the transport allows.
    pub struct Bulk {
        /// The amount of data: "1 MB". By default the flow sends until the experiment ends.
        pub size: Option<Bytes> = None,
        /// The data of one write call: "512 B". The next call follows when the previous one has
        /// returned. By default the send buffer is always as full as possible.
        pub write: Option<Bytes> [SOME_BYTES] = None,
    }
}

as_written!(Bulk);

impl Bulk {
    #[expect(clippy::unnecessary_wraps, reason = "other kinds of traffic have mistakes")]
    pub(super) fn plan(&self, _setting: &Setting<'_>) -> Result<Self, Problem> {
        Ok(self.clone())
    }
}
