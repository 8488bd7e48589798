//! Values with several notations.

use crate::common::{SIM, SMALL, message, plan, small_with};
use tcplab_model::schema::CoDelPlan;
use tcplab_model::{AckCounting, Discipline, Loss, RateChanges, Samples};
use tcplab_units::Duration;

fn loss(text: &str) -> Option<Loss> {
    plan(&small_with("delay", &format!("loss = {text}\ndelay"))).lanes[0].loss.clone()
}

#[test]
fn percent_and_fraction_are_the_same_loss() {
    let tenth = loss("\"0.1 %\"");
    assert_eq!(tenth, loss("0.001"));
    assert_eq!(tenth, loss("{ kind = \"independent\", probability = \"0.10 %\" }"));
    assert_eq!(loss("0"), None);
    assert_eq!(loss("\"0 %\""), None);
}

#[test]
fn invalid_losses_are_refused_at_their_place() {
    let message = |text: &str| message(&small_with("delay", &format!("loss = {text}\ndelay")));
    assert_eq!(
        message("-0.1"),
        "line 5: network.dumbbell.loss: -0.1 is outside the range from 0 to 1 (100 %)"
    );
    assert_eq!(
        message("\"1 permille\""),
        "line 5: network.dumbbell.loss: \"1 permille\" is not a probability, like 0.01 or \"1 %\""
    );
    assert_eq!(
        message("{ kind = \"listed\", packets = [0, 3] }"),
        "line 5: network.dumbbell.loss.packets: must be more than zero"
    );
}

#[test]
fn a_discipline_can_be_a_word() {
    let plan = plan(&small_with("delay", "queue = \"codel\"\ndelay"));
    let five = Duration::from_millis(5);
    assert!(
        matches!(&plan.lanes[0].queue.discipline, &Discipline::CoDel(CoDelPlan { target, .. }) if target == five)
    );
}

#[test]
fn round_trips_of_cake_have_the_words_of_tc() {
    let rtt = |text: &str| {
        let queue = format!("queue = {{ kind = \"cake\", rtt = \"{text}\" }}\ndelay");
        match plan(&small_with("delay", &queue)).lanes[0].queue.discipline.clone() {
            Discipline::Cake(cake) => cake.interval_and_target(),
            other => panic!("{other:?}"),
        }
    };
    // `presets` of tc/q_cake.c, in microseconds: the round-trip time and its target.
    for (word, both) in [
        ("datacentre", [100, 5]),
        ("lan", [1_000, 50]),
        ("metro", [10_000, 500]),
        ("regional", [30_000, 1_500]),
        ("internet", [100_000, 5_000]),
        ("oceanic", [300_000, 15_000]),
        ("satellite", [1_000_000, 50_000]),
        ("interplanetary", [1_000_000_000, 50_000_000]),
        ("42 ms", [42_000, 2_100]),
    ] {
        assert_eq!(rtt(word), both, "{word}");
    }
    let text = "queue = { kind = \"cake\", rtt = \"metre\" }\ndelay";
    assert_eq!(
        message(&small_with("delay", text)),
        "line 5: network.dumbbell.queue.rtt: no round trip of CAKE is called \"metre\"; did you mean \
         \"metro\"?"
    );
}

#[test]
fn appropriate_byte_counting_is_set_by_one_option() {
    let abc = |text: &str| {
        plan(&format!("{SMALL}stack.abc = {text}\n")).flows[0].tcp().unwrap().stack.abc
    };
    assert_eq!(abc("\"off\""), AckCounting::Ack);
    assert_eq!(abc("\"segment\""), AckCounting::Segment);
    assert_eq!(abc("2"), AckCounting::Byte { limit: 2 });
}

#[test]
fn samples_are_at_an_interval_or_at_acks() {
    let samples = |text: &str| plan(&format!("{SMALL}[record]\nsamples = {text}\n")).record.samples;
    assert_eq!(samples("\"ack\""), Samples::Ack);
    assert_eq!(samples("\"10 ms\""), Samples::Every(Duration::from_millis(10)));
    assert_eq!(
        message(&format!("{SMALL}[record]\nsamples = \"0 s\"\n")),
        "line 11: record.samples: must be more than zero"
    );
}

#[test]
fn rates_change_in_steps_or_by_a_trace() {
    let changes = |text: &str| small_with("delay", &format!("rate_changes = {text}\ndelay"));
    let steps = plan(&changes("[[\"10 s\", \"5 Mbit/s\"], [\"20 s\", \"10 Mbit/s\"]]"));
    assert!(
        matches!(&steps.lanes[0].rate_changes, Some(RateChanges::Steps(steps)) if steps.len() == 2)
    );
    let trace = plan(&changes("{ opportunities = [[2, 3], [5, 1]] }"));
    let Some(RateChanges::Trace(found)) = &trace.lanes[0].rate_changes else { panic!() };
    // Four packets of 1500 bytes in 5 ms.
    assert_eq!((found.period_ms(), found.count()), (5, 4));
    assert_eq!(found.mean_rate().to_string(), "9.6 Mbit/s");
    assert_eq!(
        message(&changes("[[\"10 s\", \"5 Mbit/s\"], [\"10 s\", \"1 Mbit/s\"]]")),
        "line 5: network.dumbbell.rate_changes[1]: is not later than the one before"
    );
}

#[test]
fn mutually_exclusive_settings_are_refused() {
    assert_eq!(
        message(&format!("{SMALL}cc = \"cubic\"\nstack.cc = \"newreno\"\n")),
        "line 10: flows[0].cc: is given a second time as `stack.cc`; give one of them"
    );
    assert_eq!(
        message(&format!("{SMALL}traffic = \"udp\"\n")),
        "line 10: flows[0].traffic: needs a `rate` or an `interval`"
    );
    assert_eq!(
        message(&small_with("delay", "rtt = [\"10 ms\", \"30 ms\"]\ndelay")),
        "line 5: network.dumbbell.rtt: asks for 30 ms, but the bottleneck alone takes 40 ms"
    );
    assert_eq!(
        message(&format!("{SMALL}[stack]\nmin_rto = \"70 s\"\n")),
        "line 11: stack.min_rto: is 70 s, which is more than the `max_rto` of 60 s"
    );
}

/// The plan of the small experiment with these keys before the delay.
fn with_keys(keys: &str) -> String {
    small_with("delay", &format!("{keys}\ndelay"))
}

#[test]
fn a_link_with_a_trace_needs_no_rate() {
    let toml = "duration = \"1 s\"\nflows = [{ from = \"a\", to = \"b\" }]\n[[network.links]]\n\
                between = [\"a\", \"b\"]\ndelay = \"1 ms\"\n\
                rate_changes = { opportunities = [[1, 1]] }\n";
    assert_eq!(plan(toml).lanes[0].rate.to_string(), "12 Mbit/s");
}

#[test]
fn file_names_are_replaced_by_file_contents() {
    let folder = std::env::temp_dir().join(format!("tcplab-files-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, text) in [
        ("lte.txt", "1\n1\n4\n"),
        ("orbit.txt", "0 20\n15 31.5\n"),
        ("jitter.txt", "1.5\n0.5\n"),
        ("light.txt", "0 20 0 0 3\n500 22.5 0\n"),
    ] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let read = |keys: &str| {
        let document = tcplab_model::from_toml(&with_keys(keys)).unwrap();
        document.in_folder(&folder).plans(&SIM).map(|mut plans| plans.remove(0))
    };
    let named = read(
        "rate_changes = { trace = \"lte.txt\" }\ndelay_changes = { trace = \"orbit.txt\" }\n\
         jitter = { file = \"jitter.txt\" }",
    );
    let written = read(
        "rate_changes = { opportunities = [[1, 2], [4, 1]] }\n\
         delay_changes = [[\"0 s\", \"20 ms\"], [\"15 s\", \"31.5 ms\"]]\n\
         jitter = { kind = \"empirical\", times = [\"1.5 ms\", \"0.5 ms\"] }",
    );
    // A plan contains the contents of files, so it is the same run.
    assert_eq!(named.unwrap().id, written.unwrap().id);
    let named = read(
        "rate_changes = { trace = \"lte.txt\" }\nlight = { trains = { file = \"light.txt\" }, after = \"5 ms\" }",
    );
    let trains = "[{ at = \"0 s\", delay = \"20 ms\", opportunities = [0, 0, 3] }, \
                  { at = \"500 ms\", delay = \"22.5 ms\", opportunities = [0] }]";
    let written = read(&format!(
        "rate_changes = {{ opportunities = [[1, 2], [4, 1]] }}\n\
         light = {{ trains = {trains}, after = \"5 ms\" }}",
    ));
    assert_eq!(named.unwrap().id, written.unwrap().id);
    let message = read("rate_changes = { trace = \"none.txt\" }").unwrap_err().to_string();
    assert!(
        message
            .contains("network.dumbbell.rate_changes.trace: the file \"none.txt\" cannot be read"),
        "{message}"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn impossible_link_changes_are_refused() {
    for (keys, expected) in [
        (
            "rate_changes = { kind = \"sine\", amplitude = \"10 Mbit/s\", period = \"1 s\" }",
            "rate_changes.amplitude: is 10 Mbit/s, and the rate of the link 10 Mbit/s",
        ),
        (
            "rate_changes = { kind = \"random-walk\", step = \"1 Mbit/s\", least = \"1 Mbit/s\", most = \"5 Mbit/s\" }",
            "rate_changes.least: the walk is from 1 Mbit/s to 5 Mbit/s, and begins at 10 Mbit/s",
        ),
        ("rate_changes = { opportunities = [[0, 1]] }", "a trace takes some time"),
        ("rate_changes = { opportunities = [[3, 1], [2, 1]] }", "milliseconds that do not ascend"),
        (
            "outages = [[\"1 s\", \"2 s\"], [\"3 s\", \"1 s\"]]",
            "outages[1]: begins before the one before is over",
        ),
        (
            "outages = { kind = \"periodic\", every = \"1 s\", lasts = \"1 s\" }",
            "outages.lasts: is 1 s, and the next begins after 1 s",
        ),
        (
            "delay_changes = { kind = \"handover\", least = \"5 ms\", most = \"2 ms\" }",
            "delay_changes.most: is 2 ms, and `least` is 5 ms",
        ),
        ("jitter = { kind = \"empirical\", times = [] }", "jitter: has no times"),
        (
            "jitter = { kind = \"pareto\", shape = 1.0, least = \"1 ms\" }",
            "jitter.shape: 1 is outside the range from 1.01 to 1000",
        ),
        (
            "outages = [[\"1 s\", \"2 s\"]]\ncontention = { access = { kind = \"uniform\", most = \"1 ms\" } }",
            "contention: cannot be on a link with outages",
        ),
        (
            "light = { trains = [{ at = \"0 s\", delay = \"1 ms\", opportunities = [0] }] }",
            "light.trains: has fewer than two trains",
        ),
        (
            "light = { trains = [{ at = \"0 s\", delay = \"1 ms\", opportunities = [1, 0] }, \
             { at = \"1 s\", delay = \"1 ms\", opportunities = [0] }] }",
            "light.trains[0]: has opportunities that do not ascend",
        ),
        (
            "light = { trains = [{ at = \"0 s\", delay = \"1 ms\", opportunities = [0] }, \
             { at = \"1 s\", delay = \"1 ms\", opportunities = [0] }] }",
            "light: needs the trace of a heavy load in `rate_changes`",
        ),
        (
            "delay_changes = { kind = \"handover\", every = \"1 us\", least = \"1 ms\", most = \"2 ms\" }",
            "delay_changes: ",
        ),
    ] {
        let message = message(&with_keys(keys));
        assert!(message.contains(expected), "{keys}: {message}");
    }
}
