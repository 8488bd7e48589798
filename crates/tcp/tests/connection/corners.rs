//! Corner cases: windows full to the last byte, duplicate segments, misbehaving peers.

use crate::world::*;
use std::sync::Arc;
use tcplab_tcp::{
    Ended, Endpoint, Flags, Identity, Segment, SeqNumber, Settings, State, SynOptions,
};
use tcplab_units::Time;

fn settings() -> Settings {
    Settings { delayed_ack: None, nagle: false, ..Settings::default() }
}

/// A window of ten segments.
fn small_window() -> Settings {
    Settings { timestamps: false, receive_buffer: 14_600, ..settings() }
}

/// A listening endpoint that has answered a SYN.
fn half_open() -> (Endpoint, Time) {
    let settings = Arc::new(Settings { timestamps: false, ..settings() });
    let identity = Identity { initial_sequence: 1_000, seed: 1 };
    let mut end = Endpoint::new(settings, newreno(), identity);
    end.listen();
    let now = Time::ZERO + millis(5);
    end.on_segment(now, &syn(Flags::SYN));
    assert!(end.poll_transmit(now).is_some());
    (end, now)
}

fn syn(flags: Flags) -> Segment {
    let options = SynOptions { mss: 1460, window_scale: None, sack_permitted: true };
    let segment = Segment::new(flags, SeqNumber(500), SeqNumber(1_001)).with_window(1_000);
    segment.with_syn_options(options)
}

#[test]
fn unacceptable_segment_in_syn_received_is_acknowledged() {
    let (mut end, now) = half_open();
    let old = Segment::new(Flags::ACK, SeqNumber(490), SeqNumber(1_001)).with_window(1_000);
    end.on_segment(now, &old);
    assert!(end.poll_transmit(now).is_some_and(|segment| is_ack(&segment)));
    assert!(end.next_timer() > now);
}

#[test]
fn syn_ack_with_rst_does_not_establish() {
    let (mut end, now) = half_open();
    end.on_segment(now, &syn(Flags::SYN.with(Flags::RST).with(Flags::ACK)));
    assert_ne!(end.state(), State::Established);
}

#[test]
fn retransmitted_syn_ack_gives_no_rtt_sample() {
    // The round trip of 1.2 s exceeds the client's first RTO: its SYN arrives twice, and the ACK of
    // the first SYN-ACK right after the second SYN-ACK was sent.
    let mut world = World::new(Settings { initial_rto: millis(1_150), ..settings() });
    world.delay = millis(600);
    world.run(millis(1_900));
    assert_eq!(world.states()[SERVER], State::Established);
    assert!(world.ends[SERVER].rtt().is_none());
}

#[test]
fn the_first_ack_echoes_the_first_data() {
    // RFC 7323 §4.3: the SYN-ACK counts as the last ACK sent.
    let mut world = World::new(settings()).established();
    world.ends[CLIENT].write(100);
    world.run(millis(400));
    let data = world.sent_by(CLIENT)[0].1.timestamps().unwrap();
    let ack = world.sent_by(SERVER)[0].1.timestamps().unwrap();
    assert_eq!(ack.echo, data.value);
}

#[test]
fn sack_blocks_fit_the_largest_packet_beside_data() {
    let mut world = World::new(settings()).established().wire(drop_data(CLIENT, &[5]));
    for end in [CLIENT, SERVER] {
        world.ends[end].write(100_000);
    }
    world.run(millis(3_000));
    assert!(world.log.iter().all(|sent| sent.segment.wire_bytes() <= 1_500));
    assert!(
        world.log.iter().any(|sent| sent.segment.payload > 0 && !sent.segment.sack().is_empty())
    );
    assert_eq!(world.received, [100_000; 2]);
}

#[test]
fn acks_at_the_right_edge_of_a_full_window_are_acceptable() {
    // Both sides fill the other's window, and the first segment of each is lost. Their ACKs begin
    // at the right edge.
    let mut seen = [0; 2];
    let mut world = World::new(small_window()).established().wire(move |sent| {
        seen[sent.from] += usize::from(sent.segment.payload > 0);
        if sent.segment.payload > 0 && seen[sent.from] == 1 { Fate::Drop } else { Fate::Pass }
    });
    for end in [CLIENT, SERVER] {
        world.ends[end].write(14_600);
    }
    world.run(millis(10_000));
    for end in &world.ends {
        assert_eq!(end.counters().timeouts, 0);
    }
    let acks = world.log.iter().filter(|sent| is_ack(&sent.segment)).count();
    assert!(acks <= 2 * 20, "{acks} ACKs for 20 segments");
}

#[test]
fn fin_behind_a_closed_window_waits_for_it_to_open() {
    let mut world = World::new(small_window()).established();
    world.reads[SERVER] = false;
    world.ends[CLIENT].write(14_600);
    world.ends[CLIENT].close();
    // The window is closed for an hour, and the peer answers every probe.
    world.run(millis(3_600_000));
    assert_eq!(world.ends[CLIENT].ended(), None);
    assert_eq!(world.ends[SERVER].read(world.now, u64::MAX), 14_600);
    world.run(millis(1_000));
    assert!(world.ends[SERVER].is_at_end());
}

#[test]
fn window_probes_do_not_back_off_the_rto() {
    let mut world = World::new(small_window()).established();
    world.reads[SERVER] = false;
    world.ends[CLIENT].write(100_000);
    world.run(millis(600_000));
    assert_eq!(world.ends[CLIENT].snapshot().rto, millis(1_000));
}

#[test]
fn answered_window_probes_do_not_time_out_with_zero_retries() {
    let mut world = World::new(Settings { retries: 0, ..small_window() }).established();
    world.reads[SERVER] = false;
    world.ends[CLIENT].write(100_000);
    world.run(millis(60_000));
    assert_eq!(world.ends[CLIENT].ended(), None);
}

#[test]
fn end_reason_is_kept_after_close_and_abort() {
    let mut world = World::new(Settings { syn_retries: 0, ..settings() }).wire(|_| Fate::Drop);
    world.run(millis(60_000));
    world.ends[CLIENT].close();
    world.ends[CLIENT].abort();
    assert_eq!(world.ends[CLIENT].ended(), Some(Ended::TimedOut));
}

#[test]
fn data_with_an_ack_below_the_window_is_dropped() {
    // RFC 5961 §5.2: an acknowledgment below any that the window allows.
    let settings = Settings { timestamps: false, receive_buffer: 10_000, ..settings() };
    let mut world = World::new(settings).established();
    world.ends[CLIENT].write(1_000_000);
    world.run(millis(20_000));
    assert!(world.ends[CLIENT].snapshot().acked_bytes > 200_000);
    let (client, server) = (u32::MAX - 50_000, u32::MAX - 70_000);
    let blind = Segment::new(Flags::ACK, SeqNumber(server + 1), SeqNumber(client + 1));
    let now = world.now;
    world.ends[CLIENT].on_segment(now, &blind.with_payload(100).with_window(1_000));
    assert_eq!(world.ends[CLIENT].readable(), 0);
}

#[test]
fn rescue_retransmission_counts_twice_in_pipe() {
    // Of 40 segments the first and 21 to 38 are lost. At 100 ms the ACKs of 2 to 20 and of 39 and
    // 40 arrive: FlightSize is 40, cwnd 20, and 40 - 21 SACKed - 1 lost + 1 retransmitted = 19 are
    // in the pipe. RFC 6675 releases one of the 18 suspects. Then the pipe is 20, because it counts
    // both copies.
    const LOST: [usize; 19] =
        [1, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38];
    let window = Settings { receive_buffer: 40 * 1448, initial_window: 40, ..settings() };
    let mut world = World::new(window).established().wire(drop_data(CLIENT, &LOST));
    world.ends[CLIENT].write(40 * 1448);
    world.run(millis(101));
    let sent = world.sent_by(CLIENT);
    let repeats = sent.iter().filter(|(at, segment)| *at > 200 && segment.payload > 0).count();
    assert!(repeats <= 1 + 1, "{repeats}");
    world.run(millis(10_000));
    assert_eq!(world.received[SERVER], 40 * 1448);
}
