//! Explicit congestion notification (RFC 3168): the handshake, echoes, and the response of the
//! window to a mark.
//!
//! Round trips take 100 ms.

use crate::peer::*;
use tcplab_tcp::{Capable, Ecn, Feedback, Flags, Settings, WindowReduction};
use tcplab_units::Duration;

const RTT: u64 = ms(100);
const ECE: Flags = Flags::ECE;
const CWR: Flags = Flags::CWR;
const ECT: Flags = Flags::ECT;
const CE: Flags = Flags::CE;

fn asks(mut settings: Settings) -> Settings {
    settings.ecn = Ecn::Asks;
    settings
}

/// A connection with ECN.
fn agreed(settings: Settings) -> Peer {
    Peer::answering(asks(settings), RTT, syn().acking(1).with(ECE))
}

/// Ten segments outstanding since 0.
fn ten(settings: Settings, segments: u64) -> Peer {
    let mut peer = agreed(settings);
    peer.writes(0, segments * MSS);
    peer.gets(0, data(1..10_001).with(ECT).without(CWR));
    peer
}

#[test]
fn ecn_client_sets_ece_and_cwr_and_server_answers_ece() {
    // RFC 3168 §6.1.1: SYN with ECE and CWR, SYN-ACK with ECE; then data is ECN-capable.
    let mut peer = Peer::connecting(asks(rfc()));
    peer.gets(0, syn().with(ECE).with(CWR).without(ECT));
    peer.sends(ms(100), syn().acking(1).with(ECE));
    // §6.1.4: pure ACKs are not ECN-capable.
    peer.gets(ms(100), ack(1).without(ECT).without(ECE));
    peer.writes(ms(100), MSS);
    peer.gets(ms(100), data(1..1001).with(ECT));
}

#[test]
fn data_is_not_ect_without_successful_ecn_negotiation() {
    // §6.1.1: no flags, or the same flags reflected by a peer without ECN.
    for answer in [syn().acking(1), syn().acking(1).with(ECE).with(CWR)] {
        let mut peer = Peer::answering(asks(rfc()), RTT, answer);
        peer.writes(0, MSS);
        peer.gets(0, data(1..1001).without(ECT));
        peer.sends(ms(100), ack(1001).with(ECE));
        assert_eq!(peer.ssthresh(), None);
    }
}

#[test]
fn ecn_server_sets_ece_only_on_an_ecn_setup_syn() {
    let asked = syn().with(ECE).with(CWR);
    let answer = || syn().with(Flags::ACK);
    for (setting, question, expected) in [
        (Ecn::Answers, asked.clone(), answer().with(ECE).without(CWR)),
        (Ecn::Asks, asked.clone(), answer().with(ECE).without(CWR)),
        (Ecn::Asks, syn(), answer().without(ECE)),
        (Ecn::Off, asked, answer().without(ECE)),
    ] {
        let mut peer = Peer::listening(Settings { ecn: setting, ..rfc() }, question);
        peer.gets(0, expected);
    }
    let mut peer = Peer::connecting(Settings { ecn: Ecn::Answers, ..rfc() });
    peer.gets(0, syn().without(ECE).without(CWR));
}

#[test]
fn retransmitted_syn_omits_ecn_setup_but_ece_answer_is_accepted() {
    // §6.1.1.1.
    let mut peer = Peer::connecting(asks(rfc()));
    peer.gets(0, syn().with(ECE).with(CWR));
    peer.gets(ms(1_000), syn().without(ECE).without(CWR));
    peer.sends(ms(1_100), syn().acking(1).with(ECE));
    peer.gets(ms(1_100), ack(1));
    peer.writes(ms(1_100), MSS);
    peer.gets(ms(1_100), data(1..1001).with(ECT));
}

#[test]
fn linux_sets_cwr_on_first_data_after_a_spurious_syn_timeout() {
    // tcp_enter_loss: tcp_ecn_queue_cwr, which remains set after the SYN-ACK of the first SYN.
    let mut peer = Peer::connecting(asks(linux()));
    peer.gets(0, syn().with(ECE).with(CWR));
    peer.ignores(ms(1_050));
    peer.sends(ms(1_100), syn().acking(1).with(ECE));
    peer.gets(ms(1_100), ack(1));
    peer.writes(ms(1_100), 2 * MSS);
    peer.gets(ms(1_100), data(1..1001).with(ECT).with(CWR));
    peer.gets(ms(1_100), data(1001..2001).with(ECT).without(CWR));
}

#[test]
fn ce_of_a_segment_that_flushes_a_compressed_ack_is_echoed_in_it() {
    // tcp_data_queue_ofo: tcp_ecn_check_ce comes before tcp_sack_compress_send_ack, whose ACK is
    // the first of the two quick ones for a first mark (tcp_enter_quickack_mode).
    let segment = |number: u64| data((number - 1) * MSS + 1..number * MSS + 1).with(ECT);
    let mut peer = agreed(Settings { receive_buffer: 131_072, ..linux() });
    for number in 1..=17 {
        peer.sends(ms(number), segment(number));
        peer.gets(ms(number), ack(number * MSS + 1));
    }
    for (number, at) in [(19, 19_900), (20, 20_000), (21, 20_100), (22, 20_200)] {
        peer.sends(at, segment(number));
        peer.gets(at, ack(17_001).sack(18_001..number * MSS + 1).without(ECE));
    }
    peer.sends(20_300, segment(24));
    peer.sends(20_350, segment(26).with(CE));
    peer.gets(20_350, ack(17_001).sack(23_001..24_001).sack(18_001..22_001).with(ECE));
    let blocks = |line: Line| line.sack(23_001..24_001).sack(18_001..22_001).with(ECE);
    peer.sends(20_360, segment(27));
    peer.gets(20_360, blocks(ack(17_001).sack(25_001..27_001)));
    peer.sends(20_370, segment(28));
    peer.gets(20_470, blocks(ack(17_001).sack(25_001..28_001)));
}

#[test]
fn ece_is_set_until_cwr_arrives() {
    // §6.1.3.
    let mut peer = agreed(rfc());
    peer.sends(ms(1), data(1..1001).with(ECT));
    peer.gets(ms(1), ack(1001).without(ECE));
    peer.sends(ms(2), data(1001..2001).with(ECT).with(CE));
    peer.gets(ms(2), ack(2001).with(ECE));
    peer.sends(ms(3), data(2001..3001).with(ECT));
    peer.gets(ms(3), ack(3001).with(ECE));
    // Data carries the echo, too.
    peer.writes(ms(4), MSS);
    peer.gets(ms(4), data(1..1001).with(ECE).with(ECT));
    peer.sends(ms(5), data(3001..4001).with(ECT).with(CWR));
    peer.gets(ms(5), ack(4001).without(ECE));
    // A marked segment with CWR is a new mark.
    peer.sends(ms(6), data(4001..5001).with(ECT).with(CE).with(CWR));
    peer.gets(ms(6), ack(5001).with(ECE));
}

#[test]
fn ece_reduces_cwnd_once_per_round_trip() {
    // RFC 8511: 0.8 of the nine that are outstanding. RFC 3168 §6.1.2: at once without PRR, and not
    // again before the outstanding data is acknowledged.
    let mut peer = ten(Settings { reduction: WindowReduction::AtOnce, ..rfc() }, 40);
    peer.sends(ms(100), ack(1001).with(ECE));
    assert_eq!((peer.cwnd(), peer.ssthresh()), (7, Some(7)));
    peer.sends(ms(101), ack(2001).with(ECE));
    peer.sends(ms(102), ack(3001).with(ECE));
    // Seven of seven are in flight. Now each ACK releases one, and the first has CWR.
    peer.sends(ms(103), ack(4001).with(ECE));
    peer.gets(ms(103), data(10_001..11_001).with(ECT).with(CWR));
    peer.sends(ms(104), ack(10_001).with(ECE));
    peer.gets(ms(104), data(11_001..17_001).with(ECT).without(CWR));
    assert_eq!((peer.ssthresh(), peer.end.counters().episodes), (Some(7), 1));
    // Beyond those ten a mark is a new signal, with five outstanding.
    peer.sends(ms(203), ack(12_001).with(ECE));
    assert_eq!((peer.ssthresh(), peer.end.counters().episodes), (Some(4), 2));
}

#[test]
fn linux_reduces_cwnd_gradually_by_prr_after_ece() {
    // tcp_enter_cwr, tcp_cwnd_reduction: of each two delivered one is sent, and the first at once.
    let mut peer = ten(Settings { tso: false, ..linux() }, 40);
    for (number, sends) in [true, false, true, false, true, false].into_iter().enumerate() {
        let number = number as u64;
        peer.sends(ms(100 + number), ack((number + 1) * MSS + 1).with(ECE));
        if sends {
            let start = 10_001 + number / 2 * MSS;
            let line = data(start..start + MSS).with(ECT);
            peer.gets(
                ms(100 + number),
                if number == 0 { line.with(CWR) } else { line.without(CWR) },
            );
        }
    }
    assert_eq!(peer.ssthresh(), Some(5));
    assert_eq!(peer.end.counters().episodes, 1);
}

#[test]
fn retransmissions_are_not_ect() {
    // §6.1.5; and a reduction for a loss is reported, too (§6.1.2), with new data only.
    let mut peer = ten(rfc(), 11);
    peer.sends(ms(100), ack(1).sack(1001..4001));
    peer.gets(ms(100), data(1..1001).without(ECT).without(CWR));
    peer.gets(ms(100), data(10_001..11_001).with(ECT).with(CWR));
}

#[test]
fn reduction_for_ece_is_not_undone() {
    // tcp_fastretrans_alert: ECE prohibits an undo, even if the segment was only late.
    let mut peer = ten(rfc(), 10);
    peer.sends(ms(100), ack(1).sack(1001..4001));
    peer.gets(ms(100), data(1..1001));
    peer.sends(ms(110), ack(5001).with(ECE));
    peer.sends(ms(120), ack(10_001));
    peer.sends(ms(200), ack(10_001).sack(1..1001));
    assert_eq!(peer.ssthresh(), Some(5));
}

#[test]
fn linux_undo_of_recovery_within_cwr_keeps_cwnd() {
    let mut peer =
        ten(Settings { timestamps: true, mss: MSS as u16 + 12, tso: false, ..linux() }, 20);
    // PRR from 10 to 5: of one delivered, half a segment, which is one.
    peer.sends(ms(100), ack(1001).with(ECE));
    peer.gets(ms(100), data(10_001..11_001).with(CWR));
    // tcp_enter_recovery within CWR: no further reduction, and no `prior_ssthresh`. Of four
    // delivered, two may have left: ten less three SACKed and one lost are in flight, and one more
    // may be.
    peer.sends(ms(101), ack(1001).sack(2001..5001));
    peer.gets(ms(101), data(1001..2001));
    assert_eq!((peer.cwnd(), peer.ssthresh()), (7, Some(5)));
    // tcp_try_undo_partial: the segment was only late. tcp_undo_cwnd_reduction leaves the window as
    // it is.
    peer.sends(ms(110), ack(5001).echoing(0));
    assert_eq!((peer.cwnd(), peer.ssthresh()), (7, Some(5)));
    peer.gets(ms(110), data(11_001..12_001));
    peer.ignores(ms(110));
}

#[test]
fn linux_acknowledges_ce_and_cwr_at_once() {
    let mut peer = agreed(Settings { receive_buffer: 131_072, ..linux() });
    let segment = |number: u64| data((number - 1) * MSS + 1..number * MSS + 1).with(ECT);
    for number in 1..=17 {
        peer.sends(ms(number), segment(number));
        peer.gets(ms(number), ack(number * MSS + 1));
    }
    // __tcp_ecn_check_ce: two quick ACKs for a first mark, though every second would be due.
    peer.sends(ms(20), segment(18).with(CE));
    peer.gets(ms(20), ack(18_001).with(ECE));
    peer.sends(ms(21), segment(19).with(CE));
    peer.gets(ms(21), ack(19_001).with(ECE));
    // tcp_ecn_accept_cwr: ICSK_ACK_NOW.
    peer.sends(ms(22), segment(20).with(CWR));
    peer.gets(ms(22), ack(20_001).without(ECE));
    peer.sends(ms(23), segment(21));
    peer.silence(ms(30));
    // Data that is not ECN-capable is probably a retransmission: two quick ACKs.
    peer.sends(ms(31), data(21_001..22_001));
    peer.gets(ms(31), ack(22_001));
    peer.sends(ms(32), segment(23));
    peer.gets(ms(32), ack(23_001));
}

/// DCTCP feedback, and all packets are ECN-capable.
fn echoing(mut settings: Settings) -> Settings {
    (settings.feedback, settings.capable) = (Feedback::Changes, Capable::All);
    asks(settings)
}

#[test]
fn dctcp_receiver_sets_ece_exactly_on_acks_of_ce() {
    // RFC 8257 §3.2: ECE is set exactly on ACKs of marked data, whatever CWR says.
    for settings in [echoing(rfc()), Settings { quick_ack: 0, ..echoing(linux()) }] {
        let mut peer = agreed(Settings { delayed_ack: None, ..settings });
        for (number, marked) in [false, true, true, false, true].into_iter().enumerate() {
            let (number, at) = (number as u64, ms(1 + number as u64));
            let line = data(number * MSS + 1..(number + 1) * MSS + 1).with(ECT).with(CWR);
            let answer = ack((number + 1) * MSS + 1);
            peer.sends(at, if marked { line.with(CE) } else { line });
            peer.gets(at, if marked { answer.with(ECE) } else { answer.without(ECE) });
        }
    }
}

#[test]
fn dctcp_receiver_acks_pending_data_separately_when_ce_changes() {
    // RFC 8257 §3.2: two ACKs, so that each reports the mark of the data that it acknowledges.
    let delayed = Settings { delayed_ack: Some(Duration::from_millis(40)), ..echoing(rfc()) };
    let mut peer = agreed(delayed);
    peer.sends(ms(1), data(1..1001).with(ECT));
    peer.sends(ms(2), data(1001..2001).with(ECT).with(CE));
    peer.gets(ms(2), ack(1001).without(ECE));
    peer.gets(ms(2), ack(2001).with(ECE));
    // While marks continue, ACKs are delayed as usual.
    peer.sends(ms(3), data(2001..3001).with(ECT).with(CE));
    peer.sends(ms(4), data(3001..4001).with(ECT).with(CE));
    peer.gets(ms(4), ack(4001).with(ECE));
    peer.sends(ms(5), data(4001..5001).with(ECT).with(CE));
    peer.sends(ms(6), data(5001..6001).with(ECT));
    peer.gets(ms(6), ack(5001).with(ECE));
    peer.gets(ms(6), ack(6001).without(ECE));
}

#[test]
fn linux_dctcp_receiver_acks_pending_data_separately_when_ce_changes() {
    // dctcp_ece_ack_update: ICSK_ACK_TIMER and ICSK_ACK_NOW.
    let mut peer = agreed(Settings { receive_buffer: 131_072, ..echoing(linux()) });
    let segment = |number: u64| data((number - 1) * MSS + 1..number * MSS + 1).with(ECT);
    for number in 1..=17 {
        peer.sends(ms(number), segment(number));
        peer.gets(ms(number), ack(number * MSS + 1));
    }
    peer.reads = false;
    peer.sends(ms(20), segment(18));
    peer.sends(ms(21), segment(19).with(CE));
    // Both ACKs offer the window after both segments: the second one is in the receive buffer
    // before the first is acknowledged (tcp_queue_rcv, and then tcp_event_data_recv).
    let window = peer.window();
    peer.gets(ms(21), ack(18_001).without(ECE).window(window));
    peer.gets(ms(21), ack(19_001).with(ECE));
    peer.reads = true;
    // No quick ACKs follow: marks have been seen before.
    peer.sends(ms(22), segment(20).with(CE));
    peer.sends(ms(23), segment(21).with(CE));
    peer.gets(ms(23), ack(21_001).with(ECE));
}

#[test]
fn dctcp_sets_ect_on_syns_pure_acks_and_retransmissions() {
    // RFC 8257 §3.5, tcp_ecn_send: SYNs, ACKs and retransmissions.
    let mut peer = Peer::connecting(echoing(rfc()));
    peer.gets(0, syn().with(ECE).with(CWR).with(ECT));
    peer.sends(ms(100), syn().acking(1).with(ECE));
    peer.gets(ms(100), ack(1).with(ECT));
    peer.writes(ms(100), 4 * MSS);
    peer.gets(ms(100), data(1..4001).with(ECT));
    peer.sends(ms(200), ack(1).sack(1001..4001));
    peer.gets(ms(200), data(1..1001).with(ECT));
    let mut peer = Peer::listening(echoing(rfc()), syn().with(ECE).with(CWR));
    peer.gets(0, syn().with(Flags::ACK).with(ECE).with(ECT));
}
