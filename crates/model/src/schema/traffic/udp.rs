//! Datagrams.

use super::{Setting, invalid, on_off};
use crate::mistake::Problem;
use crate::read::{table, words};
use crate::schema::{AT_LEAST_ONE, SOME_TIME};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use tcplab_units::{Bytes, Duration, Rate};

/// The most data in one datagram: 65,535 bytes less the headers of IPv4 and UDP.
pub const MOST_PAYLOAD: u64 = 65_507;

const PAYLOAD: RangeInclusive<Bytes> = Bytes(1)..=Bytes(MOST_PAYLOAD);

/// The headers of UDP and of IPv4.
const UDP_HEADER: u64 = 8;
const IP_HEADER: u64 = 20;

table! {
    /// Sends datagrams, whatever becomes of them: either at a `rate` or at an `interval`, all the time
    /// or in periods. A datagram larger than the MTU travels in fragments, as IPv4 has it.
    pub struct Udp {
        /// How fast, headers included: "2 Mbit/s". While it is off it sends nothing, and the rate is
        /// that of the time in which it is on.
        pub rate: Option<Rate> = None,
        /// The time from one datagram to the next: "2 us". Of random gaps, the mean.
        pub interval: Option<Duration> [SOME_TIME] = None,
        /// How the times between datagrams are spread.
        pub gaps: Gaps = Gaps::Constant,
        /// The data in each datagram: "1472 B". At most 65,507 B.
        pub payload: Bytes [PAYLOAD] = Bytes(1472),
        /// How many: 10000. Without a number it sends until the experiment ends.
        pub packets: Option<u64> [AT_LEAST_ONE] = None,
        /// From when to when it sends, counted from the start of the flow:
        /// `[["0 s", "1 s"], ["3 s", "4 s"]]`. Without periods it sends all the time.
        pub periods: Vec<(Duration, Duration)> = Vec::new(),
        /// How long it sends: "2 s".
        pub on: Option<Duration> [SOME_TIME] = None,
        /// How long it then pauses, before it sends again: "1 s".
        pub off: Option<Duration> [SOME_TIME] = None,
    }
}

words! {
    /// How the times between datagrams are spread. Each period in which a source is on begins anew.
    #[what("spread of gaps")]
    pub enum Gaps {
        /// All the same; the first datagram leaves at once.
        "constant" => Constant,
        /// Exponentially: datagrams are a Poisson process. The first has such a time before it as well.
        "poisson" => Poisson,
    }
}

/// Sends datagrams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UdpPlan {
    /// The time from one datagram to the next, or its mean; never zero.
    pub gap: Duration,
    /// How these times are spread.
    #[serde(deserialize_with = "crate::stored::setting")]
    pub gaps: Gaps,
    /// The data in each datagram.
    pub payload: Bytes,
    /// How many; nothing means until the experiment ends.
    pub packets: Option<u64>,
    /// From when to when it sends, counted from the start of the flow: in order, without overlap.
    /// Nothing means all the time.
    pub periods: Option<Vec<(Duration, Duration)>>,
    /// The load that it offers to its bottleneck while it is on, as a share of its rate.
    pub offered: f64,
}

impl Udp {
    /// The key that says how often datagrams leave.
    pub(crate) fn key(&self) -> &'static str {
        if self.rate.is_some() { "rate" } else { "interval" }
    }

    pub(super) fn plan(&self, setting: &Setting<'_>) -> Result<UdpPlan, Problem> {
        let bytes = wire_bytes(self.payload.0, setting.mtu);
        let gap = match (self.rate, self.interval) {
            (Some(rate), None) => rate.time_for(bytes),
            (None, Some(interval)) => interval,
            (Some(_), Some(_)) => {
                return Err(invalid("has a `rate` and an `interval`; give one of them"));
            }
            (None, None) => return Err(invalid("needs a `rate` or an `interval`")),
        };
        let gap = gap.max(Duration::from_picos(1));
        let busy = setting.bottleneck.time_for(bytes);
        Ok(UdpPlan {
            gap,
            gaps: self.gaps,
            payload: self.payload,
            packets: self.packets,
            periods: on_off::periods(&self.periods, self.on, self.off, setting.duration)?,
            offered: busy.as_secs_f64() / gap.as_secs_f64(),
        })
    }
}

impl UdpPlan {
    /// How many datagrams leave in so long a time, on average.
    pub(crate) fn expected(&self, duration: Duration) -> f64 {
        let on = match &self.periods {
            None => duration,
            Some(periods) => periods
                .iter()
                .map(|(from, to)| duration.min(*to).saturating_sub(*from))
                .fold(Duration::ZERO, |all, one| all + one),
        };
        let number = on.as_secs_f64() / self.gap.as_secs_f64();
        self.packets.map_or(number, |most| number.min(most as f64))
    }
}

/// A datagram of so much data on a path of this MTU, with all headers: in fragments if need be, each
/// but the last of a multiple of 8 bytes (RFC 791 §3.2).
fn wire_bytes(payload: u64, mtu: u64) -> u64 {
    let content = payload + UDP_HEADER;
    if content + IP_HEADER <= mtu {
        return content + IP_HEADER;
    }
    let most = (mtu.saturating_sub(IP_HEADER) / 8 * 8).max(8);
    content + content.div_ceil(most) * IP_HEADER
}

#[cfg(test)]
#[test]
fn a_fragmented_datagram_has_a_header_for_each_fragment() {
    assert_eq!(wire_bytes(1472, 1500), 1500);
    // 1481 bytes behind the IP header: 1480 and 1.
    assert_eq!(wire_bytes(1473, 1500), 1481 + 2 * 20);
    // 65,515 bytes in fragments of 1480 are 44 and a rest.
    assert_eq!(wire_bytes(MOST_PAYLOAD, 1500), 65_515 + 45 * 20);
    // Of 576 - 20 bytes, 552 are a multiple of 8.
    assert_eq!(wire_bytes(1096, 576), 1104 + 2 * 20);
}
