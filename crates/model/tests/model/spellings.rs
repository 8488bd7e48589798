//! Values that can be written in more than one way.

use crate::common::{SMALL, message, plan, small_with};
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
fn losses_are_refused_where_they_were_written() {
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
fn acks_count_by_one_option() {
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
    let trace = plan(&changes("{ trace = \"lte.txt\" }"));
    assert!(matches!(&trace.lanes[0].rate_changes, Some(RateChanges::Trace { .. })));
    assert_eq!(
        message(&changes("[[\"10 s\", \"5 Mbit/s\"], [\"10 s\", \"1 Mbit/s\"]]")),
        "line 5: network.dumbbell.rate_changes[1]: is not later than the one before"
    );
}

#[test]
fn what_excludes_each_other_is_refused() {
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
