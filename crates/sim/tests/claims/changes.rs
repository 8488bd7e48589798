//! Settings that change during a run, and runs that share the state up to the change.

use crate::{acked_per_second, assert_within};
use tcplab_laws::Laws;
use tcplab_model::{Plan, Watch};
use tcplab_sim::{Beginning, backend};
use tcplab_tables::{Produced, Tables};

fn plans(toml: &str) -> Vec<Plan> {
    let plans = tcplab_model::from_toml(toml).and_then(|document| document.plans(&backend()));
    plans.unwrap_or_else(|mistakes| panic!("{mistakes}\n{toml}"))
}

/// Runs a plan by itself, and checks that its tables keep all laws.
fn alone(plan: &Plan) -> Tables {
    produced_alone(plan).tables
}

fn produced_alone(plan: &Plan) -> Produced {
    let Produced { tables, files } = tcplab_sim::run(plan, &Watch::default()).unwrap();
    let checked = Laws::new(&plan.with_steps()).finish(tables);
    let tables = checked.unwrap_or_else(|broken| panic!("{broken:?}")).into_tables();
    Produced { tables, files }
}

/// Runs plans with a common beginning, which is run once.
fn shared(plans: &[Plan]) -> Vec<Produced> {
    let watch = Watch::default();
    let [first, .., last] = plans else { panic!("two plans at least") };
    assert!(plans.iter().all(|plan| plan.beginning() == first.beginning()));
    let beginning = Beginning::of(first, &watch).unwrap();
    let others = plans[..plans.len() - 1].iter();
    let mut all: Vec<_> = others.map(|plan| beginning.go_on(plan, &watch).unwrap()).collect();
    all.push(beginning.finish(last, &watch).unwrap());
    all
}

/// The same result under the name of another run, as if nothing were swept.
fn as_of(plan: &Plan, run: &Plan) -> Plan {
    let (id, swept) = (run.id.clone(), run.swept.clone());
    Plan { id, swept, ..plan.clone() }
}

/// Three flows of several kinds over one bottleneck with this queue and these losses.
fn experiment(seed: u64, cc: &str, link: &str, change: &str) -> String {
    format!(
        r#"
        duration = "4 s"
        seed = {seed}
        record = {{ samples = "ack", links = "50 ms", packets = ["left>right"], captures = ["left>right"] }}
        [network.dumbbell]
        pairs = 3
        rate = "10 Mbit/s"
        delay = "15 ms"
        access = {{ rate = "100 Mbit/s", delay = "1 ms" }}
        {link}
        [[flows]]
        name = "bulk"
        from = "left1"
        to = "right1"
        cc = "{cc}"
        [[flows]]
        name = "short"
        from = "left2"
        to = "right2"
        cc = "{cc}"
        traffic = {{ kind = "arrivals", per_second = 20, sizes = {{ kind = "fixed", size = "20 kB" }} }}
        [[flows]]
        name = "pages"
        from = "left3"
        to = "right3"
        traffic = {{ kind = "requests", response = "30 kB", think = "100 ms" }}
        {change}
        "#
    )
}

const QUEUES: [&str; 13] = [
    "droptail", "drophead", "red", "codel", "fq-codel", "pie", "fq-pie", "sfq", "fq", "cake",
    "dualpi2", "tbf", "policer",
];

fn queue(kind: &str) -> String {
    let more = match kind {
        "red" => ", min = \"10 packets\", max = \"30 packets\"",
        "tbf" => ", rate = \"9 Mbit/s\", burst = \"20 kB\", limit = \"40 packets\"",
        "policer" => ", rate = \"9 Mbit/s\", burst = \"20 kB\"",
        _ => "",
    };
    format!("{{ kind = \"{kind}\"{more} }}")
}

const ALGORITHMS: [&str; 21] = [
    "bbr",
    "bbr3",
    "bic",
    "cdg",
    "compound",
    "copa",
    "cubic",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "ledbat",
    "lp",
    "newreno",
    "nv",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "westwood+",
    "yeah",
];

/// Each of these runs gives the same tables and the same capture by itself as from the shared
/// state.
fn assert_shared(toml: &str) {
    let plans = plans(toml);
    for (plan, shared) in plans.iter().zip(shared(&plans)) {
        let alone = produced_alone(plan);
        assert_eq!(alone.tables.digest(), shared.tables.digest(), "{:?}\n{toml}", plan.swept);
        assert_eq!(alone.files.len(), 1);
        assert!(alone.files == shared.files, "{:?}\n{toml}", plan.swept);
    }
}

#[test]
fn forked_runs_equal_separate_runs_for_every_algorithm() {
    for (number, from) in ALGORITHMS.iter().enumerate() {
        let to = ALGORITHMS[(number + 7) % ALGORITHMS.len()];
        let change = format!(
            "[change]\nat = \"{}.37 s\"\n[sweep]\n\"change.flows.*.cc\" = [\"{to}\", \"{from}\"]",
            number % 3
        );
        let loss = "loss = 0.001\njitter = \"2 ms\"";
        assert_shared(&experiment(number as u64, from, loss, &change));
    }
}

#[test]
fn forked_runs_equal_separate_runs_for_every_discipline() {
    for (number, from) in QUEUES.iter().enumerate() {
        let to = queue(QUEUES[(number + 5) % QUEUES.len()]);
        let change = format!(
            r#"
            [change]
            at = "1.5 s"
            [variants.same]
            change = {{ "network.dumbbell.rate" = "10 Mbit/s" }}
            [variants.rate]
            change = {{ "network.dumbbell.rate" = "3 Mbit/s" }}
            [variants.delay]
            change = {{ "network.dumbbell.delay" = "2 ms" }}
            [variants.queue]
            change = {{ "network.dumbbell.queue" = {to}, "network.dumbbell.delay" = "40 ms" }}
            [variants.all]
            change = {{ "network.dumbbell.queue" = "12 packets", "flows.bulk.cc" = "bbr" }}
            "#
        );
        let link = format!("queue = {}", queue(from));
        assert_shared(&experiment(number as u64, "cubic", &link, &change));
    }
}

#[test]
fn a_change_to_the_current_values_changes_nothing() {
    for (number, wire) in
        ["", "loss = 0.002", "jitter = \"3 ms\"\novertaking = true"].iter().enumerate()
    {
        for kind in ["droptail", "fq-codel", "red"] {
            let link = format!("queue = {}\n{wire}", queue(kind));
            let change = "[change]\nat = \"1.7 s\"\n\"flows.*.cc\" = \"cubic\"\n\"network.dumbbell.rate\" = \"10 Mbit/s\"";
            let [plain, same] = ["", change]
                .map(|change| plans(&experiment(number as u64, "cubic", &link, change)).remove(0));
            assert_ne!(plain.id, same.id);
            let same = as_of(&same, &plain);
            assert_eq!(alone(&plain).digest(), alone(&same).digest(), "{link}");
        }
    }
}

#[test]
fn a_changed_rate_or_delay_equals_a_scheduled_step() {
    for (seed, wire) in [
        "",
        "jitter = \"2 ms\"",
        "jitter = \"4 ms\"\novertaking = true",
        "loss = 0.001\nduplication = 0.01",
    ]
    .iter()
    .enumerate()
    {
        for at in ["1.5 s", "0.7003 s", "2.000001234 s"] {
            for (key, value) in
                [("rate", "3 Mbit/s"), ("rate", "40 Mbit/s"), ("delay", "1 ms"), ("delay", "60 ms")]
            {
                let base = format!("queue = \"40 packets\"\n{wire}");
                let steps = format!("{base}\n{key}_changes = [[\"{at}\", \"{value}\"]]");
                let change =
                    format!("[change]\nat = \"{at}\"\n\"network.dumbbell.{key}\" = \"{value}\"");
                let seed = seed as u64;
                let steps = plans(&experiment(seed, "cubic", &steps, "")).remove(0);
                let change = plans(&experiment(seed, "cubic", &base, &change)).remove(0);
                let change = as_of(&change, &steps);
                assert_eq!(
                    alone(&steps).digest(),
                    alone(&change).digest(),
                    "{wire} {at} {key} {value}"
                );
            }
        }
    }
}

/// One flow with a window that fills the path.
fn one_flow(change: &str) -> Tables {
    let toml = format!(
        r#"
        duration = "20 s"
        record = {{ samples = "10 ms" }}
        [network.dumbbell]
        rate = "12 Mbit/s"
        delay = "20 ms"
        [[flows]]
        from = "left1"
        to = "right1"
        [change]
        at = "10 s"
        {change}
        "#
    );
    alone(&plans(&toml)[0])
}

#[test]
fn half_the_rate_is_half_the_goodput() {
    let tables = one_flow("\"network.dumbbell.rate\" = \"6 Mbit/s\"");
    // 1448 of 1500 bytes are data.
    assert_within(
        0.01,
        acked_per_second(&tables, 5.0, 10.0),
        12e6 / 8.0 * 1448.0 / 1500.0,
        "before",
    );
    assert_within(
        0.01,
        acked_per_second(&tables, 12.0, 20.0),
        6e6 / 8.0 * 1448.0 / 1500.0,
        "after",
    );
}

#[test]
fn changing_to_bbr_keeps_cwnd_and_resets_ssthresh() {
    let tables = one_flow("\"flows[0].cc\" = \"bbr\"");
    let [cwnd, ssthresh] =
        ["cwnd_segments", "ssthresh_segments"].map(|name| tables.samples.integers(name).unwrap());
    let pacing = tables.samples.numbers("pacing_mbit_s").unwrap();
    let srtt = tables.samples.numbers("srtt_ms").unwrap();
    let times = tables.samples.numbers("time_s").unwrap();
    let before = times.partition_point(|time| time.unwrap() < 10.0) - 1;
    // CUBIC has left slow start. The sample at 10 s comes after the change and before any packet.
    assert!(ssthresh[before].is_some() && pacing[before].is_none());
    let at = before + 1;
    assert!((times[at].unwrap() - 10.0).abs() < 1e-9);
    assert!(cwnd[at].unwrap() - cwnd[before].unwrap() <= 1);
    assert_eq!(ssthresh[at], None);
    // bbr_init_pacing_rate_from_rtt: 2885/1000 (739/256) times a window in a smoothed RTT, less 1
    // %.
    let window = cwnd[at].unwrap() as f64 * 1448.0 * 8.0 / (srtt[at].unwrap() * 1e3);
    assert_within(0.001, pacing[at].unwrap(), window * 739.0 / 256.0 * 0.99, "pacing");
}

#[test]
fn a_changed_discipline_drops_waiting_packets_and_a_changed_limit_does_not() {
    let waits = |tables: &Tables, time: f64| {
        let links = tables.links.texts("link").unwrap();
        let times = tables.links.numbers("time_s").unwrap();
        let packets = tables.links.integers("queue_packets").unwrap();
        let is_meant = |row: &usize| {
            links[*row] == Some("left>right") && (times[*row].unwrap() - time).abs() < 1e-9
        };
        packets[(0..links.len()).find(is_meant).unwrap()].unwrap()
    };
    let run = |queue: &str| one_flow(&format!("\"network.dumbbell.queue\" = {queue}"));
    let (codel, less) = (run("\"codel\""), run("\"1 packet\""));
    let reasons = codel.drops.texts("reason").unwrap();
    let purged = reasons.iter().filter(|reason| **reason == Some("QUEUE_PURGE")).count() as i64;
    // A packet leaves each millisecond.
    let before = waits(&codel, 9.9);
    assert!(before > 0 && (purged - before).abs() < 100, "{before} {purged}");
    assert!(waits(&codel, 10.0) == 0 && purged > 0);
    assert!(waits(&less, 10.0) == purged);
    assert!(!less.drops.texts("reason").unwrap().contains(&Some("QUEUE_PURGE")));
    assert!(waits(&less, 11.0) <= 1);
}

#[test]
fn tables_spilled_to_a_file_fork_with_the_run() {
    let change =
        "[change]\nat = \"3 s\"\n[sweep]\n\"change.flows.*.cc\" = [\"bbr\", \"cubic\", \"vegas\"]";
    let toml = experiment(1, "cubic", "", change)
        .replace("10 Mbit/s", "400 Mbit/s")
        .replace("samples = \"ack\"", "samples = \"10 us\"");
    assert_shared(&toml);
}

#[test]
fn changes_between_different_uses_of_ecn_are_refused() {
    let toml = experiment(1, "cubic", "", "[change]\nat = \"1 s\"\n\"flows.bulk.cc\" = \"dctcp\"");
    let refused = tcplab_model::from_toml(&toml).unwrap().plans(&backend()).unwrap_err();
    let refused = refused.to_string();
    assert!(refused.contains("`cubic` cannot become `dctcp` while a run goes on"), "{refused}");
}
