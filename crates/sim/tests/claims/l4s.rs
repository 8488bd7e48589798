//! `DualPI2` with Prague and CUBIC: short queues for Prague, and similar shares for both (RFC 9332
//! §1.1 and §2.1, RFC 9331 §4.3). `docs/explanation/l4s.md` has the map of rates and round trips.

use crate::{flows, run};
use std::collections::BTreeMap;
use tcplab_tables::Tables;

/// A CUBIC flow and a Prague flow over a queue for so many seconds, measured from the twentieth
/// second on.
fn both(rate: u32, rtt: u32, queue: &str, prague: &str, more: &str, seconds: u32) -> Tables {
    run(&format!(
        r#"
        duration = "{seconds} s"
        measure.from = "20 s"
        stack.profile = "linux-6.12"
        {more}
        [network.dumbbell]
        pairs = 2
        rate = "{rate} Mbit/s"
        delay = "{delay} ms"
        access = {{ rate = "1 Gbit/s", delay = "0.5 ms" }}
        queue = {queue}
        [[flows]]
        name = "cubic"
        from = "left1"
        to = "right1"
        cc = "cubic"
        [[flows]]
        name = "prague"
        from = "left2"
        to = "right2"
        cc = {prague}
        "#,
        delay = f64::from(rtt) / 2.0 - 1.0,
    ))
}

/// Jain's index of the goodputs: 1 if they are equal, 0.9 if one is twice the other, 1/2 if one has
/// all.
fn jain(tables: &Tables) -> f64 {
    crate::jain(&flows(tables, "goodput_mbit_s"))
}

/// The 99th percentile of the time that Prague's segments waited at the bottleneck, in
/// milliseconds, after the twentieth second.
fn prague_waits(tables: &Tables) -> f64 {
    let packets = &tables.packets;
    let (points, names) = (packets.texts("point").unwrap(), packets.texts("flow").unwrap());
    let (times, seqs) = (packets.numbers("time_s").unwrap(), packets.integers("seq").unwrap());
    let mut entered = BTreeMap::new();
    let mut waits = Vec::new();
    for row in (0..times.len()).filter(|&row| names[row] == Some("prague")) {
        let (time, seq) = (times[row].unwrap(), seqs[row].unwrap());
        if points[row] == Some("enter") {
            entered.insert(seq, time);
        } else if points[row] == Some("leave") && time > 20.0 {
            waits.push((time - entered[&seq]) * 1e3);
        }
    }
    waits.sort_by(f64::total_cmp);
    waits[waits.len() * 99 / 100]
}

const RECORD: &str = "record = { links = \"off\", samples = \"off\", packets = [\"left>right\"] }";
const NOTHING: &str = "record = { links = \"off\", samples = \"off\" }";

#[test]
fn dualpi2_keeps_the_queue_of_prague_below_a_millisecond() {
    // The threshold is 1 ms. A packet also waits for the one in transmission and, where packets
    // take long, for another one of its own flow.
    for (rate, rtt) in [(5, 20), (20, 40), (50, 10), (50, 40), (100, 20)] {
        let waits = prague_waits(&both(rate, rtt, "\"dualpi2\"", "\"prague\"", RECORD, 60));
        let packet_ms = 12.0 / f64::from(rate);
        let most = if rate < 50 { 1.0 + 2.0 * packet_ms } else { 1.0 };
        assert!(waits < most, "{rate} Mbit/s, {rtt} ms: {waits} ms");
    }
    // In a shared queue Prague waits as long as the other flow: PIE's target is 15 ms.
    let pie = "{ kind = \"pie\", ecn = true }";
    assert!(prague_waits(&both(50, 10, pie, "\"prague\"", RECORD, 60)) > 10.0);
}

#[test]
fn cubic_and_prague_share_a_link_of_dualpi2() {
    // Where both are governed by p, CUBIC in its Reno-friendly region has the window 1.22 / p (RFC
    // 9438 §4.3 with p^2), and Prague, marked with 2 p, 2.7 / (2 p) (see its page). The rates are
    // as 1.37 / max(rtt, 25 ms) to 1.22 / (rtt + 15 ms): 1.12 at 10 ms, 1.56 at 20, 1.53 at 40 and
    // 1.32 at 80. Since p follows each sawtooth, the limit is twice that. A CUBIC flow has some ten
    // losses in 40 s at the larger windows, too few for a mean, so runs last five minutes.
    for (rate, rtt) in [(10, 40), (20, 20), (20, 80), (50, 10), (50, 40), (100, 20), (100, 80)] {
        let jain = jain(&both(rate, rtt, "\"dualpi2\"", "\"prague\"", NOTHING, 300));
        assert!(jain > 0.9, "{rate} Mbit/s, {rtt} ms: {jain}");
    }
    // RFC 9332 §1.1: in a queue that treats both alike, Prague starves the other flow.
    let pie = "{ kind = \"pie\", ecn = true }";
    let alone = jain(&both(20, 20, pie, "\"prague\"", &format!("stack.ecn = true\n{NOTHING}"), 60));
    assert!(alone < 0.7, "{alone}");
}

#[test]
fn the_time_shifted_scheduler_and_the_ramp_also_work() {
    // RFC 9332 §4.2.2: a time-shifted FIFO in place of weighted round robin, and its ramp of §A.1.
    for queue in [
        "{ kind = \"dualpi2\", scheduler = \"time-shifted\" }",
        "{ kind = \"dualpi2\", threshold = \"800 us\", ramp = \"400 us\" }",
    ] {
        let tables = both(50, 20, queue, "\"prague\"", RECORD, 60);
        assert!(prague_waits(&tables) < 1.0 && jain(&tables) > 0.9, "{queue}");
    }
}

#[test]
fn prague_falls_back_where_a_classic_queue_marks() {
    // RFC 9331 §4.3: Prague coexists with Reno-friendly flows in an RFC 3168 queue. Briscoe and
    // Ahmed 2019: its fallback tells PIE's 15 ms and CoDel's 5 ms from an L4S queue by their delay
    // and its variation. In an L4S queue nothing changes.
    let prague = "{ name = \"prague\", fallback = true }";
    for (kind, rate) in [("pie", 20), ("pie", 100), ("codel", 20), ("codel", 100)] {
        let queue = format!("{{ kind = \"{kind}\", ecn = true }}");
        let tables = both(rate, 20, &queue, prague, &format!("stack.ecn = true\n{NOTHING}"), 60);
        assert!(jain(&tables) > 0.9, "{kind}, {rate} Mbit/s: {}", jain(&tables));
    }
    let alike = [prague, "\"prague\""].map(|cc| both(20, 20, "\"dualpi2\"", cc, NOTHING, 60));
    let [one, other] = alike.map(|tables| flows(&tables, "goodput_mbit_s"));
    assert_eq!(one, other);
}

#[test]
fn an_l4s_overload_leaves_the_classic_queue_its_share() {
    // RFC 9332 §4.2.2 and §4.2.3: twenty Prague flows at 2 Mbit/s and 10 ms, a BDP of less than two
    // packets. The CUBIC flow gets the tenth of the link that the scheduler reserves for the
    // classic queue: 0.193 Mbit/s of data.
    let tables = run(r#"
        duration = "60 s"
        measure.from = "20 s"
        stack.profile = "linux-6.12"
        record = { links = "off", samples = "off" }
        [network.dumbbell]
        pairs = 2
        rate = "2 Mbit/s"
        delay = "4 ms"
        access = { rate = "1 Gbit/s", delay = "0.5 ms" }
        queue = "dualpi2"
        [[flows]]
        from = "left1"
        to = "right1"
        cc = "cubic"
        [[flows]]
        from = "left2"
        to = "right2"
        count = 20
        cc = "prague"
        "#);
    let cubic = flows(&tables, "goodput_mbit_s")[0];
    assert!(cubic > 0.193, "{cubic}");
}
