//! NewReno's sawtooth against a drop-tail queue.

use crate::{assert_within, run, utilisation};

/// Share of the link that NewReno uses with a queue of `share` BDP.
fn used(share: &str) -> f64 {
    let tables = run(&format!(
        r#"
        duration = "300 s"
        stack = {{ cc = "newreno" }}
        [[network.links]]
        between = ["a", "b"]
        rate = "20 Mbit/s"
        delay = "30 ms"
        queue = "{share} BDP"
        [[flows]]
        from = "a"
        to = "b"
        "#
    ));
    utilisation(&tables, "a>b", 60.0)
}

#[test]
fn fills_the_link_with_a_queue_of_one_bdp() {
    // The window falls from two BDP to one: the link never runs dry.
    let used = used("1");
    assert!(used > 0.99, "{used}");
}

#[test]
fn uses_the_area_under_the_sawtooth_with_a_quarter() {
    // The window W climbs by one a round trip from half its maximum to B + Q, the BDP and the
    // queue. A round trip takes B (in packet times) until W reaches B and W beyond, and carries W
    // packets. With B = 1 and Q = 1/4, W goes from 5/8 to 5/4:
    //
    //     carried  = integral of W       = ((5/4)^2 - (5/8)^2) / 2           = 0.5859
    //     possible = integral of max(W, 1) = (1 - 5/8) + ((5/4)^2 - 1) / 2   = 0.6563
    let carried = (1.25_f64 * 1.25 - 0.625 * 0.625) / 2.0;
    let possible = (1.0 - 0.625) + (1.25 * 1.25 - 1.0) / 2.0;
    assert_within(0.02, used("0.25"), carried / possible, "share of the link");
}
