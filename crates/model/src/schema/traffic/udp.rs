//! UDP datagrams.

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

/// The UDP and IPv4 headers.
const UDP_HEADER: u64 = 8;
const IP_HEADER: u64 = 20;

table! {
    /// Sends datagrams regardless of their fate: either at a `rate` or at an `interval`, all the
    /// time or in on periods. A datagram larger than the MTU is fragmented, as in IPv4.
    pub struct Udp {
        /// The rate during on periods, headers included: "2 Mbit/s".
        pub rate: Option<Rate> = None,
        /// The time between datagrams: "2 us". With random gaps, the mean.
        pub interval: Option<Duration> [SOME_TIME] = None,
        /// The distribution of the times between datagrams.
        pub gaps: Gaps = Gaps::Constant,
        /// The data in each datagram: "1472 B". At most 65,507 B.
        pub payload: Bytes [PAYLOAD] = Bytes(1472),
        /// The number of datagrams: 10000. By default datagrams are sent until the experiment ends.
        pub packets: Option<u64> [AT_LEAST_ONE] = None,
        /// The on periods, from the start of the flow: `[["0 s", "1 s"], ["3 s", "4 s"]]`. By
        /// default datagrams are sent all the time.
        pub periods: Vec<(Duration, Duration)> = Vec::new(),
        /// The length of an on period: "2 s".
        pub on: Option<Duration> [SOME_TIME] = None,
        /// The length of the pause between on periods: "1 s".
        pub off: Option<Duration> [SOME_TIME] = None,
    }
}

words! {
    /// The distribution of the times between datagrams. Each on period begins anew.
    #[what("spread of gaps")]
    pub enum Gaps {
        /// Constant gaps; the first datagram leaves at once.
        "constant" => Constant,
        /// Exponential gaps: datagrams are a Poisson process. The first datagram also has a gap
        /// before it.
        "poisson" => Poisson,
    }
}

/// Sends datagrams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UdpPlan {
    /// The time between datagrams, or its mean; never zero.
    pub gap: Duration,
    /// The distribution of these times.
    #[serde(deserialize_with = "crate::stored::setting")]
    pub gaps: Gaps,
    /// The data in each datagram.
    pub payload: Bytes,
    /// The number of datagrams; `None` means until the experiment ends.
    pub packets: Option<u64>,
    /// The on periods, from the start of the flow: in order, without overlap. `None` means all the
    /// time.
    pub periods: Option<Vec<(Duration, Duration)>>,
    /// The load offered in on periods, as a share of the bottleneck's rate.
    pub offered: f64,
}

impl Udp {
    /// The key that sets the rate.
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
    /// The mean number of datagrams sent in this time.
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

/// The bytes on the wire of a datagram on a path with this MTU, with all headers. Fragments except
/// the last carry a multiple of 8 bytes (RFC 791 §3.2).
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
    // 1481 bytes behind the IP header: fragments of 1480 and 1.
    assert_eq!(wire_bytes(1473, 1500), 1481 + 2 * 20);
    // 65,515 bytes are 44 fragments of 1480 and a rest.
    assert_eq!(wire_bytes(MOST_PAYLOAD, 1500), 65_515 + 45 * 20);
    // 552 is the largest multiple of 8 within 576 - 20 bytes.
    assert_eq!(wire_bytes(1096, 576), 1104 + 2 * 20);
}
