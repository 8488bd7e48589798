//! What every step of a connection takes place in.

use crate::settings::Settings;
use tcplab_units::Time;

/// The time of a step, and the settings of the connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub now: Time,
    pub settings: &'a Settings,
}
