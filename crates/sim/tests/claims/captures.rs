//! Captures: their contents, and that they do not change results. `tests/python/test_written.py`
//! compares their packets with the kernel's.

use std::io::Cursor;
use tcplab_capture::{CaptureFlowRow, FILE, Flows, Info, Reader};
use tcplab_model::Watch;
use tcplab_sim::backend;
use tcplab_tables::{Produced, Table};

fn run(toml: &str) -> Produced {
    let plans = tcplab_model::from_toml(toml).and_then(|document| document.plans(&backend()));
    let plans = plans.unwrap_or_else(|mistakes| panic!("{mistakes}\n{toml}"));
    let produced = tcplab_sim::run(&plans[0], &Watch::default()).unwrap();
    let names: Vec<_> = produced.files.iter().map(|file| file.0.clone()).collect();
    assert_eq!(names, tcplab_sim::files(&plans[0]));
    produced
}

/// The connections of the capture of a run.
fn connections(produced: &Produced) -> Table<CaptureFlowRow> {
    let [(name, file)] = &produced.files[..] else { panic!("one file") };
    assert_eq!(name, FILE);
    let mut reader = Reader::new(Box::new(Cursor::new(file.clone())), name).unwrap();
    let read = Info::read(&mut reader, name, Flows::default(), &mut |_| true).unwrap();
    read.flows
}

/// Transfers of 2000 bytes, one in a millisecond, over connections that each last for more than 40
/// ms, with packet loss.
fn transfers(record: &str) -> Produced {
    run(&format!(
        r#"
        duration = "20 s"
        network.links = [{{
            between = ["a", "b"], rate = "100 Mbit/s", delay = "10 ms", loss = 0.01,
        }}]
        flows = [
            {{ from = "a", to = "b", traffic = {{
                kind = "arrivals", every = "1 ms", sizes = "2 kB", transfers = 1500
            }} }},
            {{ from = "a", to = "b", traffic = {{ kind = "bulk", size = "5 kB" }} }},
        ]
        record = {{ links = "100 ms", {record} }}
        "#
    ))
}

#[test]
fn each_connection_has_its_port_and_its_packets() {
    let produced = transfers(r#"captures = ["b>a", "a>b"]"#);
    let flows = connections(&produced);
    let [ports, servers, bytes] =
        ["client_port", "server_port", "client_bytes"].map(|name| flows.integers(name).unwrap());
    let by_server = |port| {
        let of_flow = (0..flows.len()).filter(|&row| servers[row] == Some(port));
        of_flow.map(|row| (ports[row].unwrap(), bytes[row].unwrap())).collect::<Vec<_>>()
    };
    // Slots are reused again and again; ports are those of the first flow in order.
    let mut first = by_server(5001);
    first.sort_unstable();
    let sent: Vec<_> = (0..1500).map(|n| (10_001 + n, 2000)).collect();
    assert_eq!(first, sent);
    assert_eq!(by_server(5002), [(11_501, 5000)]);
    let again: i64 =
        flows.integers("client_retransmitted_segments").unwrap().iter().flatten().sum();
    let counted = produced.tables.flows.integers("retransmitted_segments").unwrap();
    assert_eq!(again, counted.iter().flatten().sum::<i64>());
    assert!(again > 10, "{again}");
}

#[test]
fn capturing_changes_no_result() {
    let (blind, seeing) = (transfers(""), transfers(r#"captures = ["a>b"]"#));
    assert!(blind.files.is_empty());
    // More than the watcher holds at once: most of it was written during the run.
    assert!(seeing.files[0].1.len() > 4096 * 70);
    assert!(seeing.tables.packets.is_empty());
    let (links, same) = (blind.tables.links.part(0), seeing.tables.links.part(0));
    for ((name, values), (_, same)) in links.columns().zip(same.columns()).skip(1) {
        assert_eq!(format!("{values:?}"), format!("{same:?}"), "{name}");
    }
    let (transfers, same) = (blind.tables.transfers.part(0), seeing.tables.transfers.part(0));
    for ((name, values), (_, same)) in transfers.columns().zip(same.columns()).skip(1) {
        assert_eq!(format!("{values:?}"), format!("{same:?}"), "{name}");
    }
}

#[test]
fn packet_rows_and_captures_do_not_affect_each_other() {
    let produced = run(r#"
        duration = "2 s"
        network.chain = { hops = 2, rate = "10 Mbit/s", delay = "10 ms", loss = 0.02 }
        flows = [{ from = "client", to = "server", traffic = { kind = "bulk", size = "500 kB" } }]
        record.packets = ["client>router1"]
        record.captures = ["router1>server", "client>router1", "router1>server"]
        "#);
    let packets = &produced.tables.packets;
    let [links, points] = ["link", "point"].map(|name| packets.texts(name).unwrap());
    assert!(links.iter().all(|link| *link == Some("client>router1")));
    let left = points.iter().filter(|point| **point == Some("leave")).count();
    let file = Cursor::new(produced.files[0].1.clone());
    let mut reader = Reader::new(Box::new(file), FILE).unwrap();
    let mut captured = [0, 0];
    while let Some(packet) = reader.next_packet() {
        captured[packet.interface as usize] += 1;
    }
    let names: Vec<_> = reader.interfaces().iter().map(|it| it.name.as_deref().unwrap()).collect();
    assert_eq!(names, ["client>router1", "router1>server"]);
    // Packets lost on the first link do not reach the second one.
    let lost = points.iter().filter(|point| **point == Some("drop")).count();
    assert!(lost > 0);
    assert_eq!(captured, [left, left - lost]);
}
