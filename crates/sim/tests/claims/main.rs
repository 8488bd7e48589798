//! Claims about the whole backend: figures from theory, behaviour of traffic, refusals, and equal
//! results from equal experiments.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod bbr;
mod captures;
mod changes;
mod compound;
mod datagrams;
mod dctcp;
mod delay_based;
mod digests;
mod fairness;
mod goodput;
mod hosts;
mod l4s;
mod long;
mod loss_law;
mod marking;
mod measure;
mod memory;
mod packets;
mod path_mtu;
mod prague;
mod queues;
mod same_time;
mod sawtooth;
mod traffic;
mod transfers;
mod unsupported;
mod westwood;

use tcplab_model::{Backend, Profile, Watch};
use tcplab_sim::backend;
use tcplab_tables::Tables;

/// Runs every run of an experiment written as TOML. The default profile is that of the standards,
/// because theory is about their TCP.
fn run_all(toml: &str) -> Vec<Tables> {
    let backend = Backend { profile: Profile::Rfc, ..backend() };
    let plans = tcplab_model::from_toml(toml).and_then(|document| document.plans(&backend));
    let plans = plans.unwrap_or_else(|mistakes| panic!("{mistakes}"));
    plans.iter().map(|plan| tcplab_sim::run(plan, &Watch::default()).unwrap().tables).collect()
}

/// Runs an experiment of a single run.
fn run(toml: &str) -> Tables {
    let mut all = run_all(toml);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// A column of the table of flows.
fn flows(tables: &Tables, column: &str) -> Vec<f64> {
    if let Some(values) = tables.flows.numbers(column) {
        return values.iter().map(|value| value.unwrap_or(f64::NAN)).collect();
    }
    let values = tables.flows.integers(column).unwrap();
    values.iter().map(|value| value.unwrap() as f64).collect()
}

/// Bytes of the first flow acknowledged per second between two samples.
fn acked_per_second(tables: &Tables, from: f64, to: f64) -> f64 {
    let times = tables.samples.numbers("time_s").unwrap();
    let acked = tables.samples.integers("acked_bytes").unwrap();
    let at = |time: f64| {
        let row = times.iter().position(|&seen| (seen.unwrap() - time).abs() < 1e-9).unwrap();
        acked[row].unwrap() as f64
    };
    (at(to) - at(from)) / (to - from)
}

/// Mean utilization of a link after a time.
fn utilisation(tables: &Tables, link: &str, after: f64) -> f64 {
    let names = tables.links.texts("link").unwrap();
    let times = tables.links.numbers("time_s").unwrap();
    let values = tables.links.numbers("utilisation").unwrap();
    let rows = (0..names.len())
        .filter(|&row| names[row] == Some(link) && times[row].unwrap() > after)
        .map(|row| values[row].unwrap());
    mean(&rows.collect::<Vec<_>>())
}

fn mean(values: &[f64]) -> f64 {
    assert!(!values.is_empty());
    values.iter().sum::<f64>() / values.len() as f64
}

/// Jain's index of the goodput of flows (Jain, Chiu, Hawe 1984).
fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    sum * sum / (rates.len() as f64 * squares)
}

/// Asserts that a value deviates by at most a share of the expected one.
fn assert_within(share: f64, value: f64, expected: f64, what: &str) {
    let off = value / expected - 1.0;
    assert!(
        off.abs() <= share,
        "{what}: {value}, expected {expected}: off by {:.2} %",
        off * 100.0
    );
}
