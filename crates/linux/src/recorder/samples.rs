//! The table of samples.

use super::{Recorder, seconds};
use crate::records::{Internals, Sample};
use tcplab_model::CongestionControl;
use tcplab_tables::{Kind, SampleRow};

/// What TCP calls a threshold that has not been set (`TCP_INFINITE_SSTHRESH`).
const NO_THRESHOLD: u32 = 0x7fff_ffff;

impl Recorder<'_> {
    pub(super) fn add_sample(&mut self, key: (usize, usize), time: u64, sample: &Sample) {
        let name = self.name(key);
        let cc = self.plan.flows[key.0].cc().map_or("udp", CongestionControl::algorithm);
        let acked = self.acked.get(&key.0).copied().unwrap_or_default();
        let samples = &mut self.tables.samples;
        let row = SampleRow {
            run: samples.label(&self.plan.id),
            flow: samples.label(&name),
            time_s: seconds(time),
            cwnd_segments: sample.cwnd.into(),
            ssthresh_segments: (sample.ssthresh < NO_THRESHOLD).then_some(sample.ssthresh.into()),
            srtt_ms: (sample.srtt_us > 0).then_some(f64::from(sample.srtt_us) / 1e3),
            rto_ms: f64::from(sample.rto_us) / 1e3,
            in_flight_segments: sample.in_flight.into(),
            acked_bytes: sample.acked_bytes.saturating_add(acked),
            pacing_mbit_s: megabits(sample.pacing),
            delivery_rate_mbit_s: megabits(sample.delivery_rate),
        };
        samples.push(row);
        let mut internal = |name: &str, value: f64| {
            let column = samples.extra(&format!("{cc}_{name}"), Kind::Number);
            samples.set_number(column, value);
        };
        // Gains are in 1/256, the share of marks in 1/1024.
        match sample.internals {
            Internals::None => {}
            Internals::Vegas { rtt_us, min_rtt_us } => {
                // Here the least of the connection is called the RTT (`tcp_vegas_get_info`).
                let is_swapped = matches!(cc, "vegas" | "yeah");
                let (rtt_us, min_rtt_us) =
                    if is_swapped { (min_rtt_us, rtt_us) } else { (rtt_us, min_rtt_us) };
                // No sample in this round trip: 0x7fffffff.
                if rtt_us < NO_THRESHOLD {
                    internal("rtt_ms", f64::from(rtt_us) / 1e3);
                }
                if min_rtt_us < NO_THRESHOLD {
                    internal("base_rtt_ms", f64::from(min_rtt_us) / 1e3);
                }
            }
            Internals::Dctcp { alpha, ce_state } => {
                internal("alpha", f64::from(alpha) / 1024.0);
                internal("ce_state", f64::from(ce_state));
            }
            Internals::Bbr { bandwidth, min_rtt_us, pacing_gain, cwnd_gain } => {
                internal("bandwidth_mbit_s", bandwidth as f64 * 8.0 / 1e6);
                internal("min_rtt_ms", f64::from(min_rtt_us) / 1e3);
                internal("pacing_gain", f64::from(pacing_gain) / 256.0);
                internal("cwnd_gain", f64::from(cwnd_gain) / 256.0);
            }
        }
    }
}

/// Bytes a second; none for zero.
fn megabits(rate: u64) -> Option<f64> {
    (rate > 0).then_some(rate as f64 * 8.0 / 1e6)
}
