//! The contents and faults of captures.

use crate::packets::{ACK, Segment, Written, read, segment, value};
use tcplab_capture::Info;

/// The names and counts of faults.
fn faults(info: &Info) -> Vec<(String, String)> {
    let rows = 0..info.faults.len();
    rows.map(|row| (value(&info.faults, row, "fault"), value(&info.faults, row, "count"))).collect()
}

fn has(info: &Info, fault: &str, count: &str) -> bool {
    faults(info).contains(&(fault.into(), count.into()))
}

#[test]
fn totals_lengths_and_protocols_are_counted() {
    let mut written = Written::new();
    written.handshake().client(segment(120.0, ACK, 1001, 9001, 1000));
    let info = written.info();
    let total = |column| value(&info.totals, 0, column);
    // Two packets of 52 bytes, one of 40 and one of 1040.
    assert_eq!((total("packets"), total("bytes")), ("4".into(), "1184".into()));
    assert_eq!((total("duration_s"), total("connections")), ("0.120".into(), "1".into()));
    assert_eq!(
        (total("packets_per_s"), total("packet_mean_bytes")),
        ("33.333".into(), "296.000".into())
    );
    let classes: Vec<_> = (0..info.lengths.len())
        .map(|row| (value(&info.lengths, row, "length"), value(&info.lengths, row, "packets")))
        .filter(|(_, packets)| packets != "0")
        .collect();
    assert_eq!(classes, [("40-79", "3"), ("640-1279", "1")].map(|(a, b)| (a.into(), b.into())));
    let protocol = ["network", "transport", "packets", "percent"];
    let protocol = protocol.map(|column| value(&info.protocols, 0, column));
    assert_eq!(protocol, ["ipv4", "tcp", "4", "100.000"]);
    assert_eq!(faults(&info), [("snap length".into(), "1".into())]);
}

#[test]
fn faults_of_a_capture_are_listed() {
    let mut written = Written::new();
    // One direction only, with a missing packet; and the clock goes back.
    for (at, seq) in [(10.0, 1001), (20.0, 3001), (15.0, 4001)] {
        written.client(segment(at, ACK, seq, 9001, 1000));
    }
    let info = written.info();
    assert!(has(&info, "one direction", "1"));
    assert!(has(&info, "missing packets", "1000"));
    assert!(has(&info, "clock", "1"));
    assert!(has(&info, "handshakes", "1"));
    let mut written = Written::new();
    written.handshake();
    let large = Segment { id: 5, ..segment(20.0, ACK, 1001, 9001, 3000) };
    written.client(large).client(Segment { at: 20.1, ..large });
    let info = written.info();
    assert!(has(&info, "offload", "1") && has(&info, "duplicates", "1"));
    let cut = read(&written.bytes[..written.bytes.len() - 5]);
    assert!(has(&cut, "damage", "1"));
    assert!(has(&read(&written.bytes[..24]), "damage", "1"));
}

#[test]
fn reaching_the_connection_limit_is_reported() {
    let mut written = Written::new();
    for port in 0..2000 {
        written.add([1, 2], [10_000 + port, 80], segment(f64::from(port), ACK, 1, 1, 100));
    }
    let info = written.info();
    assert_eq!(value(&info.totals, 0, "connections"), "2000");
    assert_eq!(info.flows.len(), 2000);
    assert!(has(&info, "connections", "1000"));
}
