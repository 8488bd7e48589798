//! As fast as the transport allows.

use super::Setting;
use crate::mistake::Problem;
use crate::read::table;
use crate::schema::SOME_BYTES;
use crate::stored::as_written;
use tcplab_units::Bytes;

table! {
    /// Sends as fast as the transport allows.
    pub struct Bulk {
        /// How much: "1 MB". Without a size it sends until the experiment ends.
        pub size: Option<Bytes> = None,
        /// How much the application hands over in one call: "512 B". It makes the next call when the
        /// one before has returned. Without it, the send buffer is always as full as it can be.
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
