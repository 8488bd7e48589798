//! The table of samples.

use super::{Recorder, seconds};
use crate::records::{Internals, Sample};
use std::collections::BTreeMap;
use tcplab_model::CongestionControl;
use tcplab_tables::{Kind, Label, Part, SampleRow};

/// The value of an unset threshold (`TCP_INFINITE_SSTHRESH`).
const NO_THRESHOLD: u32 = 0x7fff_ffff;

impl Recorder<'_> {
    /// A sample of a program's connection, whose sending end is known only at the end.
    pub(super) fn add_undecided(
        &mut self,
        key: (usize, usize),
        is_client: bool,
        (time, sample): (u64, &Sample),
    ) {
        let samples = &mut self.tables.samples;
        let end = (key, is_client);
        // Names have no line breaks, so this label is unique.
        let label =
            *self.undecided.entry(end).or_insert_with(|| samples.label(&format!("\n{end:?}")));
        self.add_sample(key, label, time, sample);
    }

    /// Sorts the samples of sending ends after those of others, connection by connection, and
    /// removes those of their peers.
    pub(super) fn order_undecided(&mut self) {
        if self.undecided.is_empty() {
            return;
        }
        let (mut names, mut places) = (BTreeMap::new(), BTreeMap::new());
        for ((key, is_client), label) in std::mem::take(&mut self.undecided) {
            let sends = is_client == self.client_sends(key);
            let name = sends.then(|| self.name(key));
            let name = name.map(|name| self.tables.samples.label(&name));
            places.extend(name.map(|name| (name.number(), key)));
            names.insert(label, name);
        }
        let place = |&label: &u32| (label != u32::MAX).then(|| places.get(&label));
        let places = |part: &Part<'_, SampleRow>| part.labels("flow").iter().map(place).collect();
        let samples = &self.tables.samples;
        self.tables.samples = samples.in_order(|part| part.relabel("flow", &names), places);
    }

    pub(super) fn add_sample(
        &mut self,
        key: (usize, usize),
        flow: Label,
        time: u64,
        sample: &Sample,
    ) {
        let cc = self.plan.flows[key.0].cc().map_or("udp", CongestionControl::algorithm);
        let acked = self.acked.get(&key.0).copied().unwrap_or_default();
        let samples = &mut self.tables.samples;
        let row = SampleRow {
            run: samples.label(&self.plan.id),
            flow,
            time_s: seconds(time),
            cwnd_segments: sample.cwnd.into(),
            ssthresh_segments: (sample.ssthresh < NO_THRESHOLD).then_some(sample.ssthresh.into()),
            rtt_ms: (sample.rtt_us > 0).then_some(f64::from(sample.rtt_us) / 1e3),
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
                // Here the minimum of the connection is called the RTT (`tcp_vegas_get_info`).
                let is_swapped = matches!(cc, "vegas" | "yeah");
                let (rtt_us, min_rtt_us) =
                    if is_swapped { (min_rtt_us, rtt_us) } else { (rtt_us, min_rtt_us) };
                // 0x7fffffff: no sample in this round trip.
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

/// A rate in bytes a second; `None` for zero.
fn megabits(rate: u64) -> Option<f64> {
    (rate > 0).then_some(rate as f64 * 8.0 / 1e6)
}
