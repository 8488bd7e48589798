//! One dumbbell for `benches/bench.py`: runs it and prints one line of JSON.
//!
//! `bench-dumbbell --profile PROFILE --flows N --rate RATE --seconds S` simulates N flows, with
//! `--queue KIND` behind another discipline than drop-tail in its default settings; `--idle N`
//! tells what a connection costs that stands and carries nothing; `--short N` simulates N short
//! transfers; `--laws` tells what checking the tables of a run takes, as a share of the run.

use std::process::ExitCode;
use std::time::Instant;
use tcplab_laws::Laws;
use tcplab_model::{Plan, Watch};
use tcplab_tables::Tables;

/// The scenario of `make bench`: 1500-byte packets, access links of 10 Gbit/s and 1 ms, a
/// bottleneck of 23 ms with a queue of one BDP (50 ms round trip), CUBIC with SACK and delayed
/// ACKs.
///
/// A profile is taken as it is, but for `rfc`, which is set to what ns-3 does: no timestamps, and a
/// least RTO of 200 ms. `queue` is that of the bottleneck.
fn dumbbell(
    profile: &str,
    flows: u64,
    rate: &str,
    seconds: f64,
    queue: &str,
) -> Result<Plan, String> {
    let mut stack = serde_json::json!({ "profile": profile, "cc": "cubic" });
    if profile == "rfc" {
        stack["timestamps"] = false.into();
        stack["min_rto"] = "200 ms".into();
    }
    plan(&serde_json::json!({
        "name": format!("dumbbell of {flows}"),
        "duration": format!("{seconds} s"),
        "network": { "dumbbell": {
            "pairs": flows,
            "rate": rate,
            "delay": "23 ms",
            "queue": queue,
            "access": { "rate": "10 Gbit/s", "delay": "1 ms", "queue": "1 BDP" },
        }},
        "stack": stack,
        "flows": (1..=flows).map(|n| serde_json::json!({
            "from": format!("left{n}"),
            "to": format!("right{n}"),
            // Spread over the first second, as in the peer's program.
            "start": format!("{} us", (n - 1) * 1_000_000 / flows),
        })).collect::<Vec<_>>(),
        // One row for each link, at the end.
        "record": { "samples": "100 ms", "links": format!("{seconds} s") },
    }))
}

/// Connections between one pair of hosts that open and then have nothing to send.
fn idle(connections: u64) -> Result<Plan, String> {
    plan(&serde_json::json!({
        "duration": "10 s",
        "network": { "links": [
            { "between": ["a", "b"], "rate": "10 Gbit/s", "delay": "1 ms", "queue": "100000 packets" },
        ]},
        "flows": [{
            "from": "a",
            "to": "b",
            "count": connections,
            "stagger": "10 us",
            "traffic": { "kind": "on-off", "periods": [["1000 s", "1001 s"]] },
        }],
        "record": { "samples": "off", "links": "off" },
    }))
}

/// So many transfers of 20 kB, which arrive as a Poisson process at 60 % of the bottleneck's rate,
/// on the network of 100 long flows.
fn short(transfers: u64) -> Result<Plan, String> {
    // 14 segments with 52 bytes of headers each carry 20,000 bytes.
    let per_second = 0.6 * 1e9 / 8.0 / f64::from(20_000 + 14 * 52);
    plan(&serde_json::json!({
        "name": format!("{transfers} transfers of 20 kB"),
        // The last of them have time to end.
        "duration": format!("{} s", (1.01 * transfers as f64 / per_second).ceil() + 5.0),
        "network": { "dumbbell": {
            "rate": "1 Gbit/s",
            "delay": "23 ms",
            "queue": "1 BDP",
            "access": { "rate": "10 Gbit/s", "delay": "1 ms", "queue": "1 BDP" },
        }},
        "flows": [{
            "from": "left1",
            "to": "right1",
            "traffic": {
                "kind": "arrivals",
                "load": "60 %",
                "sizes": "20 kB",
                "transfers": transfers,
            },
        }],
        "record": { "samples": "off", "links": "1 s" },
    }))
}

/// Four pairs over a bottleneck of 10 Mbit/s, which have 18 directions of links, and what is
/// recorded.
fn recorded(record: &serde_json::Value) -> Result<Plan, String> {
    plan(&serde_json::json!({
        "duration": "60 s",
        "network": { "dumbbell": { "pairs": 4, "rate": "10 Mbit/s", "delay": "20 ms" } },
        "flows": (1..=4).map(|n| serde_json::json!({
            "from": format!("left{n}"),
            "to": format!("right{n}"),
        })).collect::<Vec<_>>(),
        "record": record,
    }))
}

fn plan(experiment: &serde_json::Value) -> Result<Plan, String> {
    let document = tcplab_model::from_json(&experiment.to_string()).map_err(|e| e.to_string())?;
    let plans = document.plans(&tcplab_sim::backend()).map_err(|e| e.to_string())?;
    plans.into_iter().next().ok_or_else(|| "no run".into())
}

/// A field of `/proc/self/status` in bytes.
fn memory(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap_or_default();
    let kilobytes = line.split_whitespace().nth(1).and_then(|text| text.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

fn measure(
    profile: &str,
    flows: u64,
    rate: &str,
    seconds: f64,
    queue: &str,
) -> Result<serde_json::Value, String> {
    let plan = dumbbell(profile, flows, rate, seconds, queue)?;
    let (produced, wall) = timed(|| tcplab_sim::run(&plan, &Watch::default()));
    let tables = produced.map_err(|_| "stopped")?.tables;
    let hops = tables.runs.integers("packet_hops").and_then(|column| column[0]).unwrap_or(0);
    let sum = |column: Option<Vec<Option<i64>>>| -> i64 {
        column.unwrap_or_default().iter().flatten().sum()
    };
    let bytes = sum(tables.flows.integers("bytes"));
    Ok(serde_json::json!({
        "scenario": plan.experiment,
        "profile": profile,
        "flows": flows,
        "packet_hops": hops,
        "wall_seconds": wall,
        "packet_hops_per_second": hops as f64 / wall,
        "peak_memory_bytes": memory("VmHWM:"),
        "goodput_mbit_s": bytes as f64 * 8.0 / seconds / 1e6,
        "drops": sum(tables.links.integers("dropped_packets")),
    }))
}

fn measure_idle(connections: u64) -> Result<serde_json::Value, String> {
    let plan = idle(connections)?;
    let before = memory("VmRSS:");
    tcplab_sim::run(&plan, &Watch::default()).map_err(|_| "stopped")?;
    let used = memory("VmHWM:").saturating_sub(before);
    Ok(serde_json::json!({
        "idle_connections": connections,
        "bytes_per_connection": used / connections.max(1),
    }))
}

fn measure_short(transfers: u64) -> Result<serde_json::Value, String> {
    let plan = short(transfers)?;
    let (produced, wall) = timed(|| tcplab_sim::run(&plan, &Watch::default()));
    let tables = produced.map_err(|_| "stopped")?.tables;
    let first = |column| tables.flows.integers(column).and_then(|column| column[0]).unwrap_or(0);
    let hops = tables.runs.integers("packet_hops").and_then(|column| column[0]).unwrap_or(0);
    Ok(serde_json::json!({
        "scenario": plan.experiment,
        "transfers": first("transfers"),
        "completed": first("completed_transfers"),
        "packet_hops": hops,
        "wall_seconds": wall,
        "packet_hops_per_second": hops as f64 / wall,
        "peak_memory_bytes": memory("VmHWM:"),
    }))
}

/// The laws' share of a simulation, for each of the ways to record: while the run goes on and at
/// its end. Of several runs the least, as all wait for memory where other programs use it.
fn measure_laws() -> Result<serde_json::Value, String> {
    const RUNS: usize = 15;
    let records = [
        ("default", serde_json::json!({})),
        ("samples = \"ack\"", serde_json::json!({ "samples": "ack" })),
        ("links = \"1 ms\"", serde_json::json!({ "links": "1 ms" })),
    ];
    let mut shares = serde_json::Map::new();
    for (name, record) in records {
        let plan = recorded(&record)?;
        let (mut run, mut check, mut rows) = (f64::INFINITY, f64::INFINITY, 0);
        for _ in 0..RUNS {
            let mut laws = Laws::new(&plan);
            let mut seconds = 0.0;
            let mut look = |tables: &Tables| seconds += timed(|| laws.look(tables)).1;
            let watch = Watch::default();
            let (produced, all) = timed(|| tcplab_sim::run_shown(&plan, &watch, &mut look));
            let tables = produced.map_err(|_| "stopped")?.tables;
            rows = tables.links.len() + tables.samples.len();
            let (checked, rest) = timed(|| laws.finish(tables));
            checked.map_err(|broken| broken.to_string())?;
            run = run.min(all - seconds);
            check = check.min(seconds + rest);
        }
        shares.insert(
            name.into(),
            serde_json::json!({
                "rows": rows,
                "run_seconds": run,
                "check_seconds": check,
                "share": check / (run + check),
            }),
        );
    }
    Ok(shares.into())
}

/// What a function gives, and the seconds it takes.
fn timed<T>(run: impl FnOnce() -> T) -> (T, f64) {
    #[expect(clippy::disallowed_methods, reason = "this program measures elapsed time")]
    let started = Instant::now();
    let made = run();
    (made, started.elapsed().as_secs_f64())
}

const USAGE: &str = "usage: bench-dumbbell --profile PROFILE --flows N --rate RATE --seconds S \
                     [--queue KIND] | --idle N | --short N | --laws";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = match words[..] {
        [
            "--profile",
            profile,
            "--flows",
            flows,
            "--rate",
            rate,
            "--seconds",
            seconds,
            ref rest @ ..,
        ] => {
            let queue = match rest {
                [] => Some("1 BDP"),
                ["--queue", queue] => Some(*queue),
                _ => None,
            };
            match (flows.parse(), seconds.parse(), queue) {
                (Ok(flows), Ok(seconds), Some(queue)) => {
                    measure(profile, flows, rate, seconds, queue)
                }
                (_, _, None) => Err(USAGE.into()),
                _ => Err("N and S are numbers".into()),
            }
        }
        ["--idle", connections] => {
            connections.parse().map_err(|_| "N is a number".into()).and_then(measure_idle)
        }
        ["--short", transfers] => {
            transfers.parse().map_err(|_| "N is a number".into()).and_then(measure_short)
        }
        ["--laws"] => measure_laws(),
        _ => Err(USAGE.into()),
    };
    match result {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("bench-dumbbell: {message}");
            ExitCode::from(2)
        }
    }
}
