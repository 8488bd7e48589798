//! Requests and responses.

use crate::packets::{ACK, FIN, PUSH, Written, segment, value};
use tcplab_capture::{CaptureTurnRow, Flows, Info, Reader};
use tcplab_tables::Table;

const COLUMNS: [&str; 8] = [
    "connection",
    "turn",
    "start_s",
    "request_bytes",
    "response_bytes",
    "wait_ms",
    "response_ms",
    "pause_ms",
];

fn turns(written: &Written) -> Table<CaptureTurnRow> {
    let mut reader = Reader::new(Box::new(std::io::Cursor::new(written.bytes.clone())), "x")
        .expect("it is a capture");
    let flows = Flows::new(1000).with_turns();
    Info::read(&mut reader, "x", flows, &mut |_| true).expect("nobody stops it").turns
}

fn rows(written: &Written) -> Vec<Vec<String>> {
    let table = turns(written);
    let row = |number| COLUMNS.map(|column| value(&table, number, column)).to_vec();
    (0..table.len()).map(row).collect()
}

#[test]
fn a_turn_is_client_data_followed_by_server_data() {
    let mut written = Written::new();
    written.handshake();
    // A request of 300 bytes at 20 ms, in two segments; a response of 1,500 from 45 to 50 ms.
    written.client(segment(20.0, ACK, 1001, 9001, 200));
    written.client(segment(21.0, ACK | PUSH, 1201, 9001, 100));
    written.server(segment(41.0, ACK, 9001, 1301, 0));
    written.server(segment(45.0, ACK, 9001, 1301, 1000));
    written.server(segment(50.0, ACK | PUSH, 10001, 1301, 500));
    written.client(segment(50.0, ACK, 1301, 10501, 0));
    // The next request 70 ms later, whose response has one segment.
    written.client(segment(120.0, ACK | PUSH, 1301, 10501, 40));
    written.server(segment(140.0, ACK | PUSH, 10501, 1341, 60));
    written.client(segment(140.0, FIN | ACK, 1341, 10561, 0));
    assert_eq!(
        rows(&written),
        [
            ["0", "0", "0.020", "300", "1500", "24.000", "5.000", "-"],
            ["0", "1", "0.120", "40", "60", "20.000", "0.000", "70.000"],
        ]
    );
}

#[test]
fn retransmissions_are_left_out_of_turns() {
    let mut written = Written::new();
    written.handshake();
    written.client(segment(20.0, ACK | PUSH, 1001, 9001, 100));
    written.server(segment(40.0, ACK | PUSH, 9001, 1101, 100));
    // Neither side knows that the other one has the data.
    written.client(segment(220.0, ACK | PUSH, 1001, 9001, 100));
    written.server(segment(240.0, ACK | PUSH, 9001, 1101, 100));
    assert_eq!(rows(&written), [["0", "0", "0.020", "100", "100", "20.000", "0.000", "-"]]);
}

#[test]
fn a_turn_may_have_data_of_one_side_only() {
    let mut written = Written::new();
    written.handshake();
    written.client(segment(20.0, ACK | PUSH, 1001, 9001, 700));
    // Another connection, on which the server sends first.
    written.add([1, 2], [10_002, 5001], segment(30.0, ACK, 1, 1, 0));
    written.add([2, 1], [5001, 10_002], segment(31.0, ACK | PUSH, 1, 1, 90));
    written.add([1, 2], [10_002, 5001], segment(35.0, ACK | PUSH, 1, 91, 10));
    let mut all = rows(&written);
    all.sort();
    assert_eq!(
        all,
        [
            ["0", "0", "0.020", "700", "0", "-", "-", "-"],
            ["1", "0", "0.031", "0", "90", "-", "0.000", "-"],
            ["1", "1", "0.035", "10", "0", "-", "-", "4.000"],
        ]
    );
}
