//! Rows from facts: values that follow from times and counts, computed here for every backend
//! alike.

use crate::Tables;
use crate::facts::{FlowFacts, Outcome, TransferFacts};
use crate::rows::{FlowRow, TransferRow};
use crate::transfers::Transfers;
use tcplab_units::{Duration, Time};

/// Bits a second from `start` to `end`; `None` if no time passed or there was no connection.
fn goodput(has_connected: bool, bytes: u64, start: Time, end: Time) -> Option<f64> {
    let elapsed = end.since(start).as_secs_f64();
    let bits = bytes as f64 * 8.0;
    (has_connected && elapsed > 0.0).then_some(bits / elapsed)
}

/// Seconds from `start` to `end`, if completed.
fn completion(outcome: Outcome<'_>, start: Time, end: Time) -> Option<f64> {
    (outcome == Outcome::Completed).then(|| end.since(start).as_secs_f64())
}

impl Tables {
    /// Adds the row of a flow, and its sender's totals.
    pub fn add_flow(&mut self, run: &str, facts: &FlowFacts<'_>) {
        let table = &mut self.flows;
        let flow = facts.flow;
        // The time in which the flow ran, within the measuring window.
        let (from, to) = (facts.start.max(facts.window.from()), facts.end.min(facts.window.to()));
        let goodput = goodput(facts.has_connected, facts.bytes, from, to);
        let (bottleneck, rate) = flow.bottleneck;
        let millis = |value: Option<Duration>| value.map(Duration::as_millis_f64);
        let rtt = facts.rtt;
        let datagrams = facts.datagrams;
        let delays = datagrams.and_then(|it| it.delays);
        let transfers = facts.transfers;
        let seconds = |picos: u64| Duration::from_picos(picos).as_secs_f64();
        let percentile = |percent: u64| {
            let of =
                |it: &Transfers| it.completion.percentile(percent, it.measured.0 - it.measured.1);
            transfers.and_then(of).map(seconds)
        };
        let row = FlowRow {
            run: table.label(run),
            flow: table.label(flow.name),
            class: table.label(flow.class),
            from: table.label(flow.from),
            to: table.label(flow.to),
            transport: table.label(flow.transport.word()),
            cc: flow.cc.map(|cc| table.label(cc)),
            start_s: facts.start.as_secs_f64(),
            end_s: facts.end.as_secs_f64(),
            bytes: facts.bytes,
            goodput_mbit_s: goodput.map(|goodput| goodput / 1e6),
            bottleneck: table.label(bottleneck),
            bottleneck_share: goodput.map(|goodput| goodput / rate.bits_per_second() as f64),
            completion_s: completion(facts.outcome, facts.start, facts.end),
            outcome: table.label(facts.outcome.word()),
            sent_segments: facts.counters.sent_segments,
            retransmitted_segments: facts.counters.retransmitted_segments,
            timeouts: facts.counters.timeouts,
            loss_episodes: facts.counters.loss_episodes,
            rtt_min_ms: millis(rtt.map(|rtt| rtt.min)),
            rtt_mean_ms: millis(rtt.map(|rtt| rtt.mean())),
            rtt_max_ms: millis(rtt.map(|rtt| rtt.max)),
            lost_packets: datagrams.and_then(|it| it.lost),
            reordered_packets: datagrams.and_then(|it| it.reordered),
            delay_min_ms: millis(delays.map(|it| it.min)),
            delay_mean_ms: millis(delays.map(|it| it.mean)),
            delay_p50_ms: millis(delays.map(|it| it.p50)),
            delay_p95_ms: millis(delays.map(|it| it.p95)),
            delay_p99_ms: millis(delays.map(|it| it.p99)),
            jitter_ms: millis(delays.map(|it| it.jitter)),
            jitter_mean_ms: millis(delays.and_then(|it| it.mean_jitter)),
            ipdv_ms: millis(delays.and_then(|it| it.ipdv)),
            transfers: transfers.map(|it| it.measured.0),
            completed_transfers: transfers.map(|it| it.measured.1),
            completion_mean_s: transfers.and_then(|it| it.completion.mean()).map(seconds),
            completion_p50_s: percentile(50),
            completion_p95_s: percentile(95),
            completion_p99_s: percentile(99),
        };
        table.push(row);
        self.totals.flows.push(facts.totals);
    }

    /// Adds the row of a transfer, and counts it in the sums of its flow. Rows follow the order in
    /// which transfers end.
    pub fn add_transfer(&mut self, run: &str, facts: &TransferFacts<'_>, of_flow: &mut Transfers) {
        of_flow.add(facts);
        let table = &mut self.transfers;
        let goodput = goodput(facts.has_connected, facts.bytes, facts.start, facts.end);
        let millis = |value: Option<Duration>| value.map(Duration::as_millis_f64);
        let (counters, rtt) = (facts.counters, facts.rtt);
        let row = TransferRow {
            run: table.label(run),
            flow: table.label(facts.flow),
            transfer: facts.number,
            class: table.label(facts.class),
            connection: facts.connection,
            start_s: facts.start.as_secs_f64(),
            end_s: facts.end.as_secs_f64(),
            bytes: facts.bytes,
            goodput_mbit_s: goodput.map(|goodput| goodput / 1e6),
            completion_s: completion(facts.outcome, facts.start, facts.end),
            outcome: table.label(facts.outcome.word()),
            sent_segments: counters.map(|it| it.sent_segments),
            retransmitted_segments: counters.map(|it| it.retransmitted_segments),
            timeouts: counters.map(|it| it.timeouts),
            loss_episodes: counters.map(|it| it.loss_episodes),
            rtt_min_ms: millis(rtt.map(|rtt| rtt.min)),
            rtt_mean_ms: millis(rtt.map(|rtt| rtt.mean())),
            rtt_max_ms: millis(rtt.map(|rtt| rtt.max)),
        };
        table.push(row);
    }
}
