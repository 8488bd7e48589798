//! Each law, with tables that break it.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use tcplab_laws::{Broken, Law, Laws, check, check_stored};
use tcplab_model::{Plan, Watch};
use tcplab_tables::{
    DropRow, FlowRow, FlowTotals, IntervalRow, Label, LaneTotals, LinkRow, PART, PacketRow, Run,
    SampleRow, Table, Tables, Totals, TransferRow, Window,
};

/// A link of one byte a microsecond and 10 ms, and one flow of 10,000 bytes.
const EXPERIMENT: &str = r#"
duration = "300 ms"

[[network.links]]
between = ["a", "b"]
rate = "8 Mbit/s"
delay = "10 ms"
queue = "5 packets"

[[flows]]
from = "a"
to = "b"
traffic = { kind = "bulk", size = "10 kB" }
"#;

fn plan(text: &str) -> Plan {
    tcplab_model::from_toml(text).unwrap().plans(&tcplab_sim::backend()).unwrap().remove(0)
}

/// The rows of a run that keeps all laws.
struct Rows {
    flow: FlowRow,
    samples: [SampleRow; 2],
    links: [LinkRow; 2],
    drops: [DropRow; 2],
    packet_hops: u64,
    totals: Totals,
}

fn flow_row(plan: &Plan, flows: &mut Table<FlowRow>) -> FlowRow {
    FlowRow {
        run: flows.label(&plan.id),
        flow: flows.label("flow1"),
        class: flows.label(""),
        from: flows.label("a"),
        to: flows.label("b"),
        transport: flows.label("tcp"),
        cc: Some(flows.label("cubic")),
        start_s: 0.0,
        end_s: 0.1,
        bytes: 10_000,
        // 80,000 bits in 0.1 s, of 8 Mbit/s.
        goodput_mbit_s: Some(0.8),
        bottleneck: flows.label("a>b"),
        bottleneck_share: Some(0.1),
        completion_s: Some(0.1),
        outcome: flows.label("completed"),
        sent_segments: 9,
        retransmitted_segments: 2,
        timeouts: 0,
        loss_episodes: 1,
        rtt_min_ms: Some(20.08),
        rtt_mean_ms: Some(22.0),
        rtt_max_ms: Some(25.0),
        lost_packets: None,
        reordered_packets: None,
        delay_min_ms: None,
        delay_mean_ms: None,
        delay_p50_ms: None,
        delay_p95_ms: None,
        delay_p99_ms: None,
        jitter_ms: None,
        jitter_mean_ms: None,
        ipdv_ms: None,
        transfers: None,
        completed_transfers: None,
        completion_mean_s: None,
        completion_p50_s: None,
        completion_p95_s: None,
        completion_p99_s: None,
    }
}

/// The tables of such a run, after `edit`.
fn tables(plan: &Plan, edit: impl FnOnce(&mut Rows)) -> Tables {
    let mut tables = Tables::default();
    let flow = flow_row(plan, &mut tables.flows);
    let samples = &mut tables.samples;
    let sample = SampleRow {
        run: samples.label(&plan.id),
        flow: samples.label("flow1"),
        time_s: 0.05,
        cwnd_segments: 10,
        ssthresh_segments: None,
        rtt_ms: Some(20.08),
        srtt_ms: Some(20.08),
        rto_ms: 200.0,
        in_flight_segments: 5,
        acked_bytes: 1_000,
        pacing_mbit_s: None,
        delivery_rate_mbit_s: None,
    };
    let links = &mut tables.links;
    let link = LinkRow {
        run: links.label(&plan.id),
        link: links.label("a>b"),
        time_s: 0.1,
        queue_packets: 2,
        queue_bytes: 3_000,
        queue_max_packets: 5,
        queue_max_bytes: 7_500,
        queue_mean_packets: 1.5,
        queue_mean_bytes: 2_000.0,
        dropped_packets: 1,
        lost_packets: 1,
        marked_packets: 0,
        sent_packets: 9,
        sent_bytes: 13_000,
        utilisation: 0.1,
    };
    let drops = &mut tables.drops;
    let drop = DropRow {
        run: drops.label(&plan.id),
        time_s: 0.06,
        link: Some(drops.label("a>b")),
        flow: Some(drops.label("flow1")),
        bytes: 1500,
        reason: drops.label("QUEUE_FULL"),
    };
    let lost = DropRow { time_s: 0.07, reason: drops.label("LOST_ON_THE_WIRE"), ..drop };
    let there =
        LaneTotals { entered: 12, arrived: 6, dropped: 1, lost: 1, queued: 2, in_transit: 2 };
    let back = LaneTotals { entered: 5, arrived: 5, ..LaneTotals::default() };
    let mut rows = Rows {
        flow,
        samples: [sample, SampleRow { time_s: 0.06, acked_bytes: 2_000, ..sample }],
        links: [link, LinkRow { time_s: 0.2, ..link }],
        drops: [drop, lost],
        packet_hops: 11,
        totals: Totals {
            lanes: vec![there, back],
            flows: vec![Some(FlowTotals { written_bytes: 10_000, sent_bytes: 10_000 })],
        },
    };
    edit(&mut rows);
    tables.flows.push(rows.flow);
    rows.samples.into_iter().for_each(|row| tables.samples.push(row));
    rows.links.into_iter().for_each(|row| tables.links.push(row));
    rows.drops.into_iter().for_each(|row| tables.drops.push(row));
    tables.totals = rows.totals;
    tables.add_run(&Run {
        id: &plan.id,
        experiment: &plan.experiment,
        backend: &plan.backend,
        version: &plan.version,
        seed: plan.seed,
        repetition: plan.repetition,
        simulated_s: plan.duration.as_secs_f64(),
        window: Window::whole(plan.duration),
        packet_hops: rows.packet_hops,
        swept: &plan.swept,
    });
    tables
}

fn verdict(edit: impl FnOnce(&mut Rows)) -> Result<(), Box<Broken>> {
    let plan = plan(EXPERIMENT);
    check(&plan, tables(&plan, edit)).map(|_| ())
}

/// The broken law, with the table and row.
fn broken(edit: impl FnOnce(&mut Rows)) -> (Law, Option<(&'static str, usize)>) {
    let broken = verdict(edit).unwrap_err();
    (broken.law, broken.row.map(|row| (row.table, row.number)))
}

#[test]
fn correct_tables_pass() {
    assert_eq!(verdict(|_| {}), Ok(()));
}

#[test]
fn columns_hold_numbers() {
    for value in [f64::NAN, f64::INFINITY] {
        let seen = broken(|rows| rows.links[1].utilisation = value);
        assert_eq!(seen, (Law::Value, Some(("links", 1))));
        let seen = broken(|rows| rows.samples[0].rto_ms = value);
        assert_eq!(seen, (Law::Value, Some(("samples", 0))));
    }
    let seen = broken(|rows| rows.samples[1].pacing_mbit_s = Some(f64::NEG_INFINITY));
    assert_eq!(seen, (Law::Value, Some(("samples", 1))));
    // A negative value of a non-negative column.
    let seen = broken(|rows| rows.flow.timeouts = u64::MAX);
    assert_eq!(seen, (Law::Value, Some(("flows", 0))));
    // An optional value may be missing.
    assert_eq!(verdict(|rows| rows.samples[0].srtt_ms = None), Ok(()));
}

#[test]
fn rows_of_another_run_are_found() {
    let (own, mut other) = (plan(EXPERIMENT), plan(EXPERIMENT));
    other.id = "another".into();
    let broken = check(&other, tables(&own, |_| {})).unwrap_err();
    assert_eq!((broken.law, broken.row.unwrap().table), (Law::Value, "runs"));
}

#[test]
fn times_are_in_order_and_within_the_run() {
    let seen = broken(|rows| rows.samples[1].time_s = 0.04);
    assert_eq!(seen, (Law::Time, Some(("samples", 1))));
    let seen = broken(|rows| rows.links[1].time_s = 0.31);
    assert_eq!(seen, (Law::Time, Some(("links", 1))));
    let seen = broken(|rows| rows.drops[1].time_s = 0.05);
    assert_eq!(seen, (Law::Time, Some(("drops", 1))));
    let seen = broken(|rows| (rows.flow.start_s, rows.flow.end_s) = (0.2, 0.1));
    assert_eq!(seen, (Law::Time, Some(("flows", 0))));
}

#[test]
fn counts_never_fall() {
    let seen = broken(|rows| rows.samples[1].acked_bytes = 999);
    assert_eq!(seen, (Law::Time, Some(("samples", 1))));
    let seen = broken(|rows| rows.links[1].sent_packets = 8);
    assert_eq!(seen, (Law::Time, Some(("links", 1))));
}

#[test]
fn rtts_shorter_than_their_path_are_found() {
    // Twice 10 ms, and twice 40 us for the smallest packet: 20.08 ms, with clocks rounded to 1 us.
    assert_eq!(verdict(|rows| rows.flow.rtt_min_ms = Some(20.079)), Ok(()));
    let seen = broken(|rows| rows.flow.rtt_min_ms = Some(20.0789));
    assert_eq!(seen, (Law::Rtt, Some(("flows", 0))));
    let seen = broken(|rows| rows.flow.rtt_mean_ms = Some(25.1));
    assert_eq!(seen, (Law::Rtt, Some(("flows", 0))));
    let seen = broken(|rows| rows.samples[1].srtt_ms = Some(19.0));
    assert_eq!(seen, (Law::Rtt, Some(("samples", 1))));
    let seen = broken(|rows| rows.samples[1].rtt_ms = Some(20.0789));
    assert_eq!(seen, (Law::Rtt, Some(("samples", 1))));
}

#[test]
fn a_smoothed_rtt_is_as_long_as_the_kernel_can_hold_at_most() {
    // The path takes 800 s, and 32 bits of eighths of a microsecond are 537 s.
    let plan = plan(
        r#"
duration = "3000 s"
stack = { profile = "linux-6.12", initial_rto = "1000 s", max_rto = "1000 s" }
record.samples = "ack"
network.chain = { rate = "10 Mbit/s", delay = "400 s" }
[[flows]]
from = "client"
to = "server"
"#,
    );
    let tables = tcplab_sim::run(&plan, &Watch::default()).unwrap().tables;
    let srtt = tables.samples.numbers("srtt_ms").unwrap();
    let longest = srtt.iter().flatten().copied().fold(0.0, f64::max);
    assert!((536_870.0..536_871.0).contains(&longest), "{srtt:?}");
    assert!(check(&plan, tables).is_ok());
}

#[test]
fn links_are_no_faster_than_their_rate() {
    // 100,000 bytes in 0.1 s, a packet of 1500 that has just begun, and 3000 that wait.
    assert_eq!(verdict(|rows| rows.links[1].sent_bytes = 13_000 + 101_500), Ok(()));
    let seen = broken(|rows| rows.links[1].sent_bytes = 13_000 + 101_501);
    assert_eq!(seen, (Law::Rate, Some(("links", 1))));
    let seen = broken(|rows| {
        rows.links[0].sent_bytes = 100_000 + 1_500 + 3_001;
        rows.links[1].sent_bytes = rows.links[0].sent_bytes;
    });
    assert_eq!(seen, (Law::Rate, Some(("links", 0))));
    let seen = broken(|rows| rows.links[0].utilisation = 1.001);
    assert_eq!(seen, (Law::Rate, Some(("links", 0))));
    // More than the path's capacity in the flow's time.
    let seen = broken(|rows| {
        (rows.flow.bytes, rows.flow.goodput_mbit_s) = (102_000, Some(8.16));
        rows.flow.bottleneck_share = Some(1.02);
    });
    assert_eq!(seen, (Law::Rate, Some(("flows", 0))));
}

#[test]
fn the_rate_law_follows_rate_changes() {
    let text = EXPERIMENT.replace(
        "queue = \"5 packets\"",
        "queue = \"5 packets\"\nrate_changes = [[\"150 ms\", \"80 Mbit/s\"]]",
    );
    let document = tcplab_model::from_toml(&text).unwrap();
    let anything = tcplab_model::Backend { unsupported: &|_| Vec::new(), ..tcplab_sim::backend() };
    let plan = document.plans(&anything).unwrap().remove(0);
    // Between the samples 50 ms at 1 byte/us and 50 ms at 10.
    for (bytes, is_right) in [(551_500, true), (551_501, false)] {
        let tables = tables(&plan, |rows| rows.links[1].sent_bytes = 13_000 + bytes);
        assert_eq!(check(&plan, tables).is_ok(), is_right, "{bytes}");
    }
}

#[test]
fn impossible_queue_lengths_are_found() {
    let seen = broken(|rows| rows.links[0].queue_max_packets = 6);
    assert_eq!(seen, (Law::Queue, Some(("links", 0))));
    let seen = broken(|rows| rows.links[0].queue_max_packets = 1);
    assert_eq!(seen, (Law::Queue, Some(("links", 0))));
    // The interval begins with the packets that waited in the row before.
    let seen = broken(|rows| {
        (rows.links[1].queue_packets, rows.links[1].queue_bytes) = (0, 0);
        rows.links[1].queue_max_packets = 1;
    });
    assert_eq!(seen, (Law::Queue, Some(("links", 1))));
    let seen = broken(|rows| rows.links[1].queue_mean_packets = 5.1);
    assert_eq!(seen, (Law::Queue, Some(("links", 1))));
    let seen = broken(|rows| rows.links[1].queue_bytes = 3_001);
    assert_eq!(seen, (Law::Queue, Some(("links", 1))));
}

#[test]
fn data_is_written_sent_and_received_in_this_order() {
    let seen = broken(|rows| rows.flow.retransmitted_segments = 10);
    assert_eq!(seen, (Law::Bytes, Some(("flows", 0))));
    for (written_bytes, sent_bytes) in [(10_000, 9_999), (9_999, 10_000)] {
        let totals = FlowTotals { written_bytes, sent_bytes };
        let seen = broken(|rows| rows.totals.flows[0] = Some(totals));
        assert_eq!(seen, (Law::Bytes, Some(("flows", 0))));
    }
}

#[test]
fn outcomes_and_numbers_agree() {
    let at = (Law::Outcome, Some(("flows", 0)));
    assert_eq!(broken(|rows| rows.flow.completion_s = None), at);
    assert_eq!(broken(|rows| rows.flow.completion_s = Some(0.2)), at);
    assert_eq!(broken(|rows| rows.flow.goodput_mbit_s = Some(0.9)), at);
    assert_eq!(broken(|rows| rows.flow.bottleneck_share = Some(0.2)), at);
    assert_eq!(broken(|rows| rows.flow.bottleneck_share = None), at);
    assert_eq!(
        broken(|rows| (rows.flow.goodput_mbit_s, rows.flow.bottleneck_share) = (None, None)),
        at
    );
}

#[test]
fn flows_that_did_not_complete_have_no_time_of_completion() {
    let plan = plan(EXPERIMENT);
    for outcome in ["running", "unfinished", "partial", "reset", "timed out", "not started"] {
        let mut tables = tables(&plan, |_| {});
        let label = tables.flows.label(outcome);
        let mut changed = Tables::default();
        let Tables { samples, links, drops, totals, runs, .. } = tables.clone();
        (changed.samples, changed.links, changed.drops) = (samples, links, drops);
        (changed.totals, changed.runs) = (totals, runs);
        for text in (0..).map_while(|number| tables.flows.text(number)) {
            changed.flows.label(text);
        }
        let mut row = None;
        self::tables(&plan, |rows| row = Some(rows.flow));
        changed.flows.push(FlowRow { outcome: label, ..row.unwrap() });
        let broken = check(&plan, changed).unwrap_err();
        assert_eq!(broken.law, Law::Outcome, "{outcome}");
    }
}

/// The law broken by a run with one transfer, which is the whole flow.
fn with_transfer(edit: impl FnOnce(&mut TransferRow, &mut FlowRow)) -> Option<(Law, &'static str)> {
    let plan = plan(EXPERIMENT);
    let mut transfers = Table::default();
    let mut row = TransferRow {
        run: transfers.label(&plan.id),
        flow: transfers.label("flow1"),
        transfer: 1,
        class: transfers.label(""),
        connection: 1,
        start_s: 0.0,
        end_s: 0.1,
        bytes: 10_000,
        goodput_mbit_s: Some(0.8),
        completion_s: Some(0.1),
        outcome: transfers.label("completed"),
        sent_segments: Some(9),
        retransmitted_segments: Some(2),
        timeouts: Some(0),
        loss_episodes: Some(1),
        rtt_min_ms: Some(20.08),
        rtt_mean_ms: Some(22.0),
        rtt_max_ms: Some(25.0),
    };
    let mut tables = tables(&plan, |rows| {
        (rows.flow.transfers, rows.flow.completed_transfers) = (Some(1), Some(1));
        rows.flow.completion_p50_s = Some(0.1);
        edit(&mut row, &mut rows.flow);
    });
    transfers.push(row);
    tables.transfers = transfers;
    let broken = check(&plan, tables).err()?;
    Some((broken.law, broken.row.unwrap().table))
}

#[test]
fn transfers_agree_with_their_flow() {
    assert_eq!(with_transfer(|_, _| {}), None);
    // A value that a backend cannot assign to single transfers may be missing.
    assert_eq!(with_transfer(|row, _| row.sent_segments = None), None);
    let at = |law| Some((law, "transfers"));
    assert_eq!(with_transfer(|row, _| row.completion_s = None), at(Law::Outcome));
    assert_eq!(with_transfer(|row, _| row.completion_s = Some(0.2)), at(Law::Outcome));
    assert_eq!(with_transfer(|row, _| row.goodput_mbit_s = Some(0.9)), at(Law::Outcome));
    assert_eq!(with_transfer(|row, _| row.retransmitted_segments = Some(10)), at(Law::Bytes));
    assert_eq!(with_transfer(|row, _| row.rtt_min_ms = Some(20.0)), at(Law::Rtt));
    assert_eq!(with_transfer(|row, _| row.start_s = 0.2), at(Law::Time));
    let of_flow = Some((Law::Outcome, "flows"));
    assert_eq!(with_transfer(|_, flow| flow.transfers = Some(2)), of_flow);
    assert_eq!(with_transfer(|_, flow| flow.completed_transfers = Some(0)), of_flow);
    assert_eq!(with_transfer(|_, flow| flow.transfers = None), of_flow);
    let swapped = with_transfer(|_, flow| {
        (flow.completion_p95_s, flow.completion_p99_s) = (Some(0.2), Some(0.1));
    });
    assert_eq!(swapped, of_flow);
}

/// The law broken by a run with a measuring window and two intervals. The flow runs for 50 ms of
/// it, in which 5000 bytes arrive.
fn with_intervals(
    edit: impl FnOnce(&mut [IntervalRow; 2], &mut FlowRow),
) -> Option<(Law, Option<(&'static str, usize)>)> {
    let window = "measure = { from = \"50 ms\", to = \"250 ms\" }\nevery = \"100 ms\"";
    let plan = plan(&format!("{window}\n{EXPERIMENT}"));
    let mut intervals = Table::default();
    let first = IntervalRow {
        run: intervals.label(&plan.id),
        flow: intervals.label("flow1"),
        class: intervals.label(""),
        start_s: 0.05,
        end_s: 0.15,
        bytes: 5_000,
        goodput_mbit_s: 0.4,
        sent_segments: 9,
        retransmitted_segments: 2,
        timeouts: 0,
        loss_episodes: 1,
        rtt_min_ms: Some(20.08),
        rtt_mean_ms: Some(22.0),
        rtt_max_ms: Some(25.0),
        arrived_packets: None,
        transfers: None,
        completed_transfers: None,
    };
    // An interval with the last ACK only.
    let nothing = IntervalRow {
        bytes: 0,
        goodput_mbit_s: 0.0,
        sent_segments: 0,
        retransmitted_segments: 0,
        loss_episodes: 0,
        ..first
    };
    let mut rows = [first, IntervalRow { start_s: 0.15, end_s: 0.25, ..nothing }];
    let mut tables = tables(&plan, |all| {
        all.flow.bytes = 5_000;
        edit(&mut rows, &mut all.flow);
    });
    for row in rows {
        intervals.push(row);
    }
    tables.intervals = intervals;
    let broken = check(&plan, tables).err()?;
    Some((broken.law, broken.row.map(|row| (row.table, row.number))))
}

#[test]
fn intervals_lie_in_the_window_and_add_up_to_their_flow() {
    assert_eq!(with_intervals(|_, _| {}), None);
    let at = |law, row| Some((law, Some(("intervals", row))));
    assert_eq!(with_intervals(|rows, _| rows[0].start_s = 0.04), at(Law::Time, 0));
    assert_eq!(with_intervals(|rows, _| rows[1].end_s = 0.26), at(Law::Time, 1));
    assert_eq!(with_intervals(|rows, _| rows[1].start_s = 0.14), at(Law::Time, 1));
    assert_eq!(with_intervals(|rows, _| rows[0].goodput_mbit_s = 0.41), at(Law::Outcome, 0));
    assert_eq!(with_intervals(|rows, _| rows[0].rtt_min_ms = Some(20.0)), at(Law::Rtt, 0));
    assert_eq!(with_intervals(|rows, _| rows[0].rtt_mean_ms = Some(26.0)), at(Law::Rtt, 0));
    let flow = |law| Some((law, Some(("flows", 0))));
    assert_eq!(with_intervals(|rows, _| rows[1].sent_segments = 1), flow(Law::Bytes));
    assert_eq!(with_intervals(|rows, _| rows[1].timeouts = 1), flow(Law::Bytes));
    assert_eq!(with_intervals(|rows, _| rows[1].transfers = Some(1)), flow(Law::Outcome));
    assert_eq!(with_intervals(|_, flow| flow.loss_episodes = 2), flow(Law::Bytes));
    // 5000 bytes in 50 ms, not in 100.
    assert_eq!(with_intervals(|_, flow| flow.goodput_mbit_s = Some(0.4)), flow(Law::Outcome));
}

#[test]
fn intervals_are_there_only_where_something_asks_for_them() {
    let plan = plan(EXPERIMENT);
    let with = format!("every = \"100 ms\"\n{EXPERIMENT}");
    let with = tcplab_model::from_toml(&with).unwrap().plans(&tcplab_sim::backend()).unwrap();
    let run = |plan: &Plan| tcplab_sim::run(plan, &Watch::default()).unwrap().tables;
    let mut forged = run(&plan);
    let Tables { intervals, .. } = run(&with[0]);
    assert!(!intervals.is_empty());
    forged.intervals = intervals;
    assert!(check(&plan, forged).is_err());
}

#[test]
fn datagrams_arrive_once_and_no_faster_than_their_path() {
    let delays = |least: f64, p99: f64| {
        move |rows: &mut Rows| {
            (rows.flow.lost_packets, rows.flow.reordered_packets) = (Some(4), Some(5));
            rows.flow.delay_min_ms = Some(least);
            (rows.flow.delay_mean_ms, rows.flow.delay_p50_ms) = (Some(12.0), Some(12.0));
            (rows.flow.delay_p95_ms, rows.flow.delay_p99_ms) = (Some(12.0), Some(p99));
        }
    };
    // 10 ms of delay, and 28 bytes at a byte a microsecond.
    assert_eq!(verdict(delays(10.028, 12.0)), Ok(()));
    assert_eq!(broken(delays(10.027, 12.0)), (Law::Rtt, Some(("flows", 0))));
    assert_eq!(broken(delays(10.028, 11.0)), (Law::Rtt, Some(("flows", 0))));
    // 10 of 9 datagrams.
    let seen = broken(|rows| rows.flow.lost_packets = Some(10));
    assert_eq!(seen, (Law::Bytes, Some(("flows", 0))));
}

#[test]
fn packets_are_conserved() {
    let seen = broken(|rows| rows.totals.lanes[1].entered = 6);
    assert_eq!(seen, (Law::Packets, None));
    let seen = broken(|rows| rows.packet_hops = 12);
    assert_eq!(seen, (Law::Packets, Some(("runs", 0))));
}

#[test]
fn drop_rows_match_drop_counters() {
    let seen = broken(|rows| rows.links[1].dropped_packets = 2);
    assert_eq!(seen, (Law::Drops, Some(("links", 1))));
    let seen = broken(|rows| {
        rows.links[0].lost_packets = 0;
        rows.links[1].lost_packets = 0;
    });
    assert_eq!(seen, (Law::Drops, Some(("links", 1))));
    // After the last row only the total counters show the error.
    let seen = broken(|rows| {
        (rows.totals.lanes[0].dropped, rows.totals.lanes[0].arrived) = (2, 5);
        rows.packet_hops = 10;
    });
    assert_eq!(seen, (Law::Drops, None));
}

#[test]
fn the_message_names_the_law_and_the_row() {
    let message = verdict(|rows| rows.flow.rtt_min_ms = Some(12.5)).unwrap_err().to_string();
    for part in ["the law `rtt`", "12.5", "20.08 ms", "flows, row 0", "flow = \"flow1\""] {
        assert!(message.contains(part), "{part} in {message}");
    }
}

#[test]
fn runs_keep_the_laws_and_so_do_their_tables_alone() {
    let plan = plan(EXPERIMENT);
    let tables = tcplab_sim::run(&plan, &Watch::default()).unwrap().tables;
    assert_eq!(check_stored(&plan, &tables), Ok(()));
    assert!(check(&plan, tables).is_ok());
}

#[test]
fn stations_of_a_lan_share_its_rate() {
    let plan = plan(
        r#"
duration = "300 ms"
network.lan.x = { nodes = ["a", "b"], rate = "8 Mbit/s", delay = "2 us" }
flows = [{ from = "a", to = "b", traffic = { kind = "bulk", size = "10 kB" } }]
"#,
    );
    // One station alone may have sent 100,000 bytes in 0.1 s, and a packet that has just begun;
    // both together may not send more.
    let sent = |bytes: [u64; 2]| {
        let mut tables = tcplab_sim::run(&plan, &Watch::default()).unwrap().tables;
        let links = &mut tables.links;
        *links = Table::default();
        let (run, lanes) = (links.label(&plan.id), ["a>x", "b>x"].map(|name| links.label(name)));
        for (lane, sent_bytes) in lanes.into_iter().zip(bytes) {
            let idle = idle_link(run, lane, 0.1, 0);
            links.push(LinkRow { sent_bytes, ..idle });
        }
        check_stored(&plan, &tables).map_err(|broken| broken.law)
    };
    assert_eq!(sent([101_500, 0]), Ok(()));
    assert_eq!(sent([60_000, 41_500]), Ok(()));
    assert_eq!(sent([60_000, 41_501]), Err(Law::Rate));
}

/// An idle link that has dropped and lost so many packets.
fn idle_link(run: Label, link: Label, time_s: f64, gone: u64) -> LinkRow {
    LinkRow {
        run,
        link,
        time_s,
        queue_packets: 0,
        queue_bytes: 0,
        queue_max_packets: 0,
        queue_max_bytes: 0,
        queue_mean_packets: 0.0,
        queue_mean_bytes: 0.0,
        dropped_packets: gone,
        lost_packets: gone,
        marked_packets: 0,
        sent_packets: 9,
        sent_bytes: 13_000,
        utilisation: 0.0,
    }
}

/// Three parts of each growing table: this many rows and some.
const LONG: usize = 2 * PART + 100;

/// Tables of an idle run with `LONG` rows, in which row `number` is changed by `edit`.
fn long_tables(plan: &Plan, number: usize, edit: &impl Fn(&mut Long)) -> Tables {
    let mut tables = tables(plan, |_| {});
    let Tables { samples, links, drops, packets, .. } = &mut tables;
    *links = Table::default();
    let (run, lanes) = (links.label(&plan.id), [links.label("a>b"), links.label("b>a")]);
    for row in 0..LONG {
        let time_s = 0.25 + row as f64 * 1e-7;
        let mut long = Long {
            sample: SampleRow {
                run: samples.label(&plan.id),
                flow: samples.label("flow1"),
                time_s,
                cwnd_segments: 10,
                ssthresh_segments: None,
                rtt_ms: Some(20.08),
                srtt_ms: Some(20.08),
                rto_ms: 200.0,
                in_flight_segments: 5,
                acked_bytes: 2_000,
                pacing_mbit_s: None,
                delivery_rate_mbit_s: None,
            },
            link: idle_link(run, lanes[row % 2], time_s, 1 - row as u64 % 2),
            // Dropped by a host, so no link counts it.
            drop: DropRow {
                run: drops.label(&plan.id),
                time_s,
                link: None,
                flow: None,
                bytes: 1500,
                reason: drops.label("QUEUE_FULL"),
            },
            packet: PacketRow {
                run: packets.label(&plan.id),
                time_s,
                link: packets.label("a>b"),
                point: packets.label("leave"),
                flow: None,
                transport: packets.label("udp"),
                seq: None,
                ack: None,
                window: None,
                flags: None,
                ecn: None,
                payload_bytes: 100,
                bytes: 128,
            },
        };
        if row == number {
            edit(&mut long);
        }
        samples.push(long.sample);
        links.push(long.link);
        drops.push(long.drop);
        packets.push(long.packet);
    }
    tables
}

/// A change that breaks a row.
type Edit<'a, R> = &'a dyn Fn(&mut R);

/// A row of each growing table.
struct Long {
    sample: SampleRow,
    link: LinkRow,
    drop: DropRow,
    packet: PacketRow,
}

#[test]
fn a_row_of_the_third_part_is_found_by_its_number() {
    let plan = plan(EXPERIMENT);
    let number = 2 * PART + 7;
    assert!(check(&plan, long_tables(&plan, number, &|_| {})).is_ok());
    let edits: [(&str, Law, Edit<'_, Long>); 7] = [
        ("samples", Law::Time, &|row| row.sample.acked_bytes = 1_999),
        ("samples", Law::Rtt, &|row| row.sample.srtt_ms = Some(1.0)),
        ("samples", Law::Rtt, &|row| row.sample.rtt_ms = Some(19.9)),
        ("links", Law::Rate, &|row| row.link.utilisation = 1.1),
        ("links", Law::Time, &|row| row.link.sent_packets = 8),
        ("drops", Law::Time, &|row| row.drop.time_s = 0.1),
        ("packets", Law::Value, &|row| row.packet.time_s = f64::NAN),
    ];
    for (table, law, edit) in edits {
        // Two rows were there before.
        let place = if ["samples", "drops"].contains(&table) { number + 2 } else { number };
        let tables = long_tables(&plan, number, &edit);
        let broken = check(&plan, tables).unwrap_err();
        let row = broken.row.unwrap();
        assert_eq!((broken.law, row.table, row.number), (law, table, place));
        let time = row.cells.iter().find(|cell| cell.0 == "time_s").unwrap();
        let is_edited = ["drops", "packets"].contains(&table);
        let expected = (0.25 + number as f64 * 1e-7).to_string();
        assert_eq!(time.1 == expected, !is_edited, "{time:?} of {table}");
    }
}

#[test]
fn rows_may_be_looked_at_while_they_are_written() {
    let plan = plan(EXPERIMENT);
    let mut laws = Laws::new(&plan);
    let mut looks = 0;
    let watch = Watch::default();
    let mut look = |tables: &Tables| {
        looks += 1;
        laws.look(tables);
    };
    let quick = EXPERIMENT.replace("[[network", "record.links = \"10 us\"\n[[network");
    let quick = self::plan(&quick);
    let tables = tcplab_sim::run_shown(&quick, &watch, &mut look).unwrap().tables;
    // Two rows every 10 us for 300 ms, shown 1024 at a time.
    assert_eq!((tables.links.len(), looks), (60_000, 58));
    // The tables are of another plan than the laws: the first check has found that.
    let broken = laws.finish(tables).unwrap_err();
    assert_eq!((broken.law, broken.row.unwrap().number), (Law::Value, 0));
}

#[test]
fn a_row_of_an_idle_link_is_checked_like_any_other() {
    // Once with lanes in turn, and once with a first row out of turn.
    let edits: [(Law, Edit<'_, LinkRow>); 14] = [
        (Law::Time, &|row| row.time_s = 0.2),
        (Law::Time, &|row| row.time_s = 0.31),
        (Law::Value, &|row| row.time_s = f64::NAN),
        (Law::Queue, &|row| row.queue_packets = 1),
        (Law::Queue, &|row| row.queue_bytes = 40),
        (Law::Queue, &|row| row.queue_max_packets = 6),
        (Law::Queue, &|row| row.queue_mean_packets = 0.1),
        (Law::Queue, &|row| row.queue_mean_bytes = -0.1),
        (Law::Value, &|row| row.queue_mean_bytes = f64::NAN),
        (Law::Time, &|row| row.dropped_packets = 0),
        (Law::Rate, &|row| row.sent_bytes = 1_000_000),
        (Law::Time, &|row| row.sent_bytes = 12_999),
        (Law::Rate, &|row| row.utilisation = 1.1),
        (Law::Value, &|row| row.utilisation = f64::INFINITY),
    ];
    let plan = plan(EXPERIMENT);
    for is_in_turn in [true, false] {
        for (law, edit) in edits {
            let mut tables = tables(&plan, |_| {});
            let links = &mut tables.links;
            *links = Table::default();
            let (run, lanes) = (links.label(&plan.id), [links.label("a>b"), links.label("b>a")]);
            for number in 0..3_000 {
                let lane = if is_in_turn || number > 1 { number % 2 } else { 1 - number % 2 };
                let time_s = 0.25 + number as f64 * 1e-7;
                let mut row = idle_link(run, lanes[lane], time_s, 1 - lane as u64);
                if number == 2_500 {
                    edit(&mut row);
                }
                links.push(row);
            }
            let broken = check(&plan, tables).unwrap_err();
            assert_eq!((broken.law, broken.row.unwrap().number), (law, 2_500), "{}", broken.what);
        }
    }
}
