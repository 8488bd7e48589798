//! The table of packets: points and times, and that recording does not change results.

use crate::run;
use tcplab_tables::Tables;

/// A row: time in seconds, link, point, flags, sequence number, payload, size.
type Row = (f64, String, String, String, u32, i64, i64);

fn rows(tables: &Tables) -> Vec<Row> {
    let packets = &tables.packets;
    let time = packets.numbers("time_s").unwrap();
    let [link, point, flags] = ["link", "point", "flags"].map(|name| packets.texts(name).unwrap());
    let [seq, payload, bytes] =
        ["seq", "payload_bytes", "bytes"].map(|name| packets.integers(name).unwrap());
    let text = |values: &[Option<&str>], row: usize| values[row].unwrap().to_owned();
    (0..packets.len())
        .map(|row| {
            let numbers = (seq[row].unwrap() as u32, payload[row].unwrap(), bytes[row].unwrap());
            let texts = (text(&link, row), text(&point, row), text(&flags, row));
            let (seq, payload, bytes) = numbers;
            (time[row].unwrap(), texts.0, texts.1, texts.2, seq, payload, bytes)
        })
        .collect()
}

/// A flow of some bytes over 12 Mbit/s and 10 ms each way, with packet loss and a short queue.
fn over(queue: &str, size: &str, packets: &str) -> Tables {
    run(&format!(
        r#"
        duration = "10 s"
        network.links = [{{
            between = ["a", "b"], rate = "12 Mbit/s", delay = "10 ms", queue = {queue},
            loss = {{ kind = "listed", packets = [3] }},
        }}]
        flows = [{{ from = "a", to = "b", traffic = {{ kind = "bulk", size = "{size}" }} }}]
        record = {{ packets = {packets} }}
        "#
    ))
}

#[test]
fn packets_are_recorded_at_each_point_of_a_lane() {
    let tables = over("\"100 packets\"", "10 kB", r#"["a>b"]"#);
    let rows = rows(&tables);
    assert!(rows.iter().all(|row| row.1 == "a>b"));
    let at = |point: &str| rows.iter().filter(|row| row.2 == point).collect::<Vec<_>>();
    let [entered, left, arrived, dropped] = ["enter", "leave", "arrive", "drop"].map(at);
    // Every packet that enters also leaves; one data packet is lost after that.
    assert_eq!(entered.len(), left.len());
    assert_eq!((arrived.len(), dropped.len()), (left.len() - 1, 1));
    assert_eq!((entered[0].0, &*entered[0].3, entered[0].5), (0.0, "SYN", 0));
    let drops = (tables.drops.numbers("time_s").unwrap(), tables.drops.len());
    assert_eq!((drops.0[0], drops.1), (Some(dropped[0].0), 1));
    // Each packet that arrives takes its transmission time, 12 bits in a microsecond, and 10 ms.
    let mut left = left;
    left.retain(|row| row.0.to_bits() != dropped[0].0.to_bits());
    for (left, arrived) in left.iter().zip(&arrived) {
        assert_eq!((left.4, &left.3, left.6), (arrived.4, &arrived.3, arrived.6));
        let takes = left.6 as f64 * 8.0 / 12e6 + 0.010;
        // Arrivals are at whole nanoseconds.
        assert!((arrived.0 - left.0 - takes).abs() < 1.1e-9, "{left:?} {arrived:?}");
    }
    // The stream: every byte after the SYN arrives, 10,000 and the FIN.
    let first = arrived[0].4.wrapping_add(1);
    let mut data: Vec<_> = arrived
        .iter()
        .filter(|row| row.5 > 0)
        .map(|row| (row.4.wrapping_sub(first), row.5))
        .collect();
    data.sort_unstable();
    data.dedup();
    let mut next = 0;
    for (begin, bytes) in data {
        assert!(i64::from(begin) <= next);
        next = next.max(i64::from(begin) + bytes);
    }
    assert_eq!(next, 10_000);
}

#[test]
fn the_reverse_direction_acknowledges_all_data() {
    let tables = over("\"100 packets\"", "10 kB", r#"["b>a"]"#);
    let rows = rows(&tables);
    assert_eq!(rows[0].3, "SYN ACK");
    let acks = tables.packets.integers("ack").unwrap();
    let (first, last) = (acks[0].unwrap(), acks.last().unwrap().unwrap());
    // The SYN, the data and the FIN.
    assert_eq!((last as u32).wrapping_sub(first as u32), 10_000 + 1);
}

#[test]
fn recording_packets_changes_nothing_and_rows_are_in_order() {
    for queue in [
        r#""20 packets""#,
        r#"{ kind = "codel", limit = "20 packets" }"#,
        r#"{ kind = "red", limit = "20 packets", min = "5 packets", max = "15 packets" }"#,
    ] {
        let (blind, seeing) =
            (over(queue, "12 MB", "[]"), over(queue, "12 MB", r#"["a>b", "b>a"]"#));
        assert!(blind.packets.is_empty());
        let seen = rows(&seeing);
        // More than the watcher holds at once: most of it was written during the run.
        assert!(seen.len() > 30_000, "{}", seen.len());
        assert!(seen.is_sorted_by(|a, b| a.0 <= b.0));
        let (links, same) = (blind.links.part(0), seeing.links.part(0));
        let both = links.columns().zip(same.columns());
        for ((name, values), (_, same)) in both.filter(|both| both.0.0 != "run") {
            assert_eq!(format!("{values:?}"), format!("{same:?}"), "{queue}: {name}");
        }
        let times = |tables: &Tables| tables.drops.numbers("time_s").unwrap();
        assert_eq!(times(&blind), times(&seeing));
        let dropped = seen.iter().filter(|row| row.2 == "drop").map(|row| Some(row.0));
        assert_eq!(dropped.collect::<Vec<_>>(), times(&seeing));
    }
}
