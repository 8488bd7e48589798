//! Accurate ECN (RFC 9768): the handshake, the counter in every segment, and when it is reported.

use crate::peer::*;
use tcplab_tcp::{Ecn, Feedback, Flags, Settings, WindowReduction};
use tcplab_units::Duration;

const RTT: u64 = ms(100);
const AE: Flags = Flags::AE;
const CWR: Flags = Flags::CWR;
const ECE: Flags = Flags::ECE;
const ECT: Flags = Flags::ECT;
const ECT1: Flags = Flags::ECT1;
const CE: Flags = Flags::CE;

fn asks(mut settings: Settings) -> Settings {
    (settings.ecn, settings.feedback) = (Ecn::Asks, Feedback::Accurate);
    settings
}

/// With exactly these values of the flags AE, CWR and ECE, as the bits of a number.
fn ace(line: Line, bits: u8) -> Line {
    [(4, AE), (2, CWR), (1, ECE)].into_iter().fold(line, |line, (bit, flag)| {
        if bits & bit == 0 { line.without(flag) } else { line.with(flag) }
    })
}

/// A connection with accurate ECN, whose SYN-ACK was not marked.
fn agreed(settings: Settings) -> Peer {
    Peer::answering(asks(settings), RTT, syn().acking(1).with(CWR))
}

#[test]
fn accecn_client_sets_ae_cwr_ece_on_the_syn() {
    // §3.1.1: the SYN-ACK reports that the SYN was not ECN-capable. §3.2.2.1, table 3: the first
    // ACK reports the same of the SYN-ACK, and then the counter is sent, from 5 on (§3.2.2).
    let mut peer = Peer::connecting(asks(rfc()));
    peer.gets(0, ace(syn(), 0b111).without(ECT));
    peer.sends(ms(100), syn().acking(1).with(CWR));
    peer.gets(ms(100), ace(ack(1), 0b010));
    peer.writes(ms(100), MSS);
    peer.gets(ms(100), ace(data(1..1001), 5).with(ECT).without(ECT1));
}

#[test]
fn first_ack_reports_the_ecn_field_of_the_syn_ack_and_counts_ce() {
    // Table 3, and §3.2.2.2: after a marked SYN-ACK the counter is 6.
    for (arrived, code, count) in [
        (Flags::NONE, 0b010, 5),
        (ECT, 0b100, 5),
        (ECT.with(ECT1), 0b011, 5),
        (ECT.with(CE), 0b110, 6),
    ] {
        let mut peer = Peer::connecting(asks(rfc()));
        peer.gets(0, syn());
        peer.sends(ms(100), syn().acking(1).with(CWR).with(arrived));
        peer.gets(ms(100), ace(ack(1), code));
        peer.writes(ms(100), MSS);
        peer.gets(ms(100), ace(data(1..1001), count));
    }
}

#[test]
fn syn_ack_reports_the_ecn_field_of_the_syn() {
    // Table 2, first block; §3.1.3: unknown codes count as accurate ECN.
    for asked in [0b111, 0b100, 0b010, 0b001, 0b110, 0b101] {
        for (arrived, code) in
            [(Flags::NONE, 0b010), (ECT, 0b100), (ECT.with(ECT1), 0b011), (ECT.with(CE), 0b110)]
        {
            let mut peer = Peer::listening(asks(rfc()), ace(syn(), asked).with(arrived));
            peer.gets(0, ace(syn().with(Flags::ACK), code));
            // A marked SYN is not counted in addition (§3.2.2.2).
            peer.sends(ms(100), ace(ack(1), 0b010));
            peer.writes(ms(100), MSS);
            peer.gets(ms(100), ace(data(1..1001), 5).with(ECT));
        }
    }
}

#[test]
fn accecn_falls_back_to_classic_ecn_with_a_classic_peer() {
    // Table 2, second and third block.
    let mut peer = Peer::answering(asks(rfc()), RTT, syn().acking(1).with(ECE));
    peer.sends(ms(1), data(1..1001).with(ECT).with(CE));
    peer.gets(ms(1), ace(ack(1001), 0b001));
    peer.sends(ms(2), data(1001..2001).with(ECT).with(CWR));
    peer.gets(ms(2), ace(ack(2001), 0));
    let mut peer = Peer::listening(asks(rfc()), ace(syn(), 0b011));
    peer.gets(0, ace(syn().with(Flags::ACK), 0b001));
}

#[test]
fn data_is_not_ect_without_successful_ecn_negotiation() {
    // Table 2: a peer without ECN, and one that reflects the flags.
    for bits in [0, 0b111] {
        let mut peer = Peer::answering(asks(rfc()), RTT, ace(syn().acking(1), bits));
        peer.writes(0, MSS);
        peer.gets(0, ace(data(1..1001), 0).without(ECT));
    }
    let mut peer = Peer::listening(asks(rfc()), syn());
    peer.gets(0, ace(syn().with(Flags::ACK), 0));
}

#[test]
fn accecn_is_requested_on_the_first_two_syns_only() {
    // §3.1.4.1.
    let mut peer = Peer::connecting(asks(rfc()));
    peer.gets(0, ace(syn(), 0b111));
    peer.gets(ms(1_000), ace(syn(), 0b111));
    peer.gets(ms(3_000), ace(syn(), 0));
}

#[test]
fn ce_is_acknowledged_at_its_start_and_every_second_mark() {
    // §3.2.2.5.1: change-triggered, and increment-triggered with n = 2, although ACKs are delayed.
    let settings = Settings { delayed_ack: Some(Duration::from_millis(40)), ack_every: 8, ..rfc() };
    let mut peer = agreed(settings);
    let segment = |number: u64| data((number - 1) * MSS + 1..number * MSS + 1).with(ECT);
    peer.sends(ms(1), segment(1));
    peer.sends(ms(2), segment(2).with(CE));
    peer.gets(ms(2), ace(ack(2001), 6));
    peer.sends(ms(3), segment(3).with(CE));
    peer.sends(ms(4), segment(4).with(CE));
    // 8 marks: the counter wraps.
    peer.gets(ms(4), ace(ack(4001), 0));
    peer.sends(ms(5), segment(5));
    peer.sends(ms(6), segment(6));
    peer.gets(ms(45), ace(ack(6001), 0));
    // Data carries the counter, too.
    peer.sends(ms(46), segment(7).with(CE));
    peer.gets(ms(46), ace(ack(7001), 1));
    peer.writes(ms(47), MSS);
    peer.gets(ms(47), ace(data(1..1001), 1));
}

#[test]
fn three_ce_marked_pure_acks_trigger_an_ack() {
    // §3.2.2.5.1: n = 3 without data that waits for an ACK.
    let mut peer = agreed(rfc());
    peer.writes(0, 10 * MSS);
    peer.gets(0, data(1..10_001));
    for number in 1..=2 {
        peer.sends(ms(100 + number), ace(ack(number * MSS + 1), 5).with(ECT).with(CE));
    }
    peer.sends(ms(103), ace(ack(3001), 5).with(ECT).with(CE));
    peer.gets(ms(103), ace(ack(1), 0));
}

#[test]
fn linux_accecn_acknowledges_a_first_ce_mark_at_once() {
    let mut peer = agreed(Settings { receive_buffer: 131_072, ..linux() });
    let segment = |number: u64| data((number - 1) * MSS + 1..number * MSS + 1).with(ECT);
    for number in 1..=17 {
        peer.sends(ms(number), segment(number));
        peer.gets(ms(number), ace(ack(number * MSS + 1), 5));
    }
    peer.sends(ms(20), segment(18).with(CE));
    peer.gets(ms(20), ace(ack(18_001), 6));
    peer.sends(ms(21), segment(19));
    peer.silence(ms(22));
    peer.sends(ms(23), segment(20));
    peer.gets(ms(23), ace(ack(20_001), 6));
}

#[test]
fn accecn_reduces_cwnd_once_per_round_trip_of_new_marks() {
    // RFC 8511: 0.8 of the nine that are outstanding. An unchanged counter is no new mark.
    let mut peer = agreed(Settings { reduction: WindowReduction::AtOnce, ..rfc() });
    peer.writes(0, 10 * MSS);
    peer.gets(0, data(1..10_001).with(ECT).without(CE));
    peer.sends(ms(100), ace(ack(1001), 6));
    assert_eq!((peer.cwnd(), peer.ssthresh()), (7, Some(7)));
    peer.sends(ms(101), ace(ack(2001), 7));
    peer.sends(ms(102), ace(ack(10_001), 7));
    assert_eq!((peer.ssthresh(), peer.end.counters().episodes), (Some(7), 1));
    // No CWR is sent: the flag is part of the counter.
    peer.writes(ms(103), MSS);
    peer.gets(ms(103), ace(data(10_001..11_001), 5));
    peer.sends(ms(203), ace(ack(11_001), 7));
    assert_eq!(peer.end.counters().episodes, 1);
}

#[test]
fn ce_on_the_syn_ack_is_learned_from_the_first_ack() {
    // §3.2.2.2: the first ACK's 0b110 sets the counter to 6, so a following 6 reports no new mark.
    let mut peer = Peer::listening(asks(rfc()), ace(syn(), 0b111));
    peer.gets(0, syn().with(Flags::ACK));
    peer.sends(ms(100), ace(ack(1), 0b110));
    peer.writes(ms(100), 2 * MSS);
    peer.gets(ms(100), data(1..2001));
    peer.sends(ms(200), ace(ack(1001), 6));
    assert_eq!(peer.end.counters().episodes, 0);
    peer.sends(ms(201), ace(ack(2001), 7));
    assert_eq!(peer.end.counters().episodes, 1);
}
