//! The context of a step: its time, and the settings of the connection.

use crate::settings::Settings;
use tcplab_units::Time;

/// Passed to every step that needs time and settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub now: Time,
    pub settings: &'a Settings,
}
