//! The schedules of datagrams.

use tcplab_model::schema::{Gaps, UdpPlan};
use tcplab_pace::{Pace, Times};

/// The schedule of the flow called `name` in a run with this seed.
pub fn pace(udp: &UdpPlan, seed: u64, name: &str) -> Pace {
    Pace {
        seed,
        name: format!("datagrams {name}"),
        gap: udp.gap,
        is_random: udp.gaps == Gaps::Poisson,
        packets: udp.packets,
        periods: udp.periods.clone(),
    }
}

/// The times of the schedule.
pub fn times<'a>(udp: &'a UdpPlan, seed: u64, name: &str) -> Times<'a> {
    pace(udp, seed, name).times_in(udp.periods.as_deref())
}
