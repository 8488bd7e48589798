//! Samples of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation), by arithmetic.
#![expect(clippy::unwrap_used, reason = "a lock that is poisoned fails the test")]

use crate::peer::*;
use std::sync::{Arc, Mutex};
use tcplab_cc::{Ack, Congestion, CongestionControl, Control, FlowState, Lost, RateSample};
use tcplab_tcp::{BuildControl, Settings, Start};
use tcplab_units::{Duration, Rate};

const RTT: u64 = ms(100);

/// What the controller was told.
#[derive(Debug, Default)]
struct Heard {
    samples: Vec<Option<RateSample>>,
    lost: Vec<Lost>,
    app_limited: bool,
}

/// A window of ten segments, whatever happens, and an open ear.
#[derive(Clone, Debug)]
struct Listener {
    heard: Arc<Mutex<Heard>>,
    holds_back: bool,
}

impl CongestionControl for Listener {
    fn on_ack(&mut self, flow: &FlowState, ack: &Ack) {
        let mut heard = self.heard.lock().unwrap();
        heard.samples.push(ack.rate);
        heard.app_limited = flow.app_limited;
    }

    fn on_congestion(&mut self, _flow: &FlowState, _event: Congestion) {}

    fn on_lost(&mut self, _flow: &FlowState, lost: &Lost) {
        self.heard.lock().unwrap().lost.push(*lost);
    }

    fn samples_rate(&self) -> bool {
        true
    }

    fn is_holding_back(&self) -> bool {
        self.holds_back
    }

    fn control(&self) -> Control {
        Control {
            cwnd: 10,
            ssthresh: None,
            pacing: None,
            prr: false,
            least_burst: None,
            longest_burst: None,
        }
    }
}

struct Script {
    peer: Peer,
    heard: Arc<Mutex<Heard>>,
}

impl Script {
    fn new(settings: Settings, holds_back: bool) -> Self {
        let heard = Arc::new(Mutex::new(Heard::default()));
        let ear = Arc::clone(&heard);
        let control: BuildControl =
            Arc::new(move |_: Start| Box::new(Listener { heard: Arc::clone(&ear), holds_back }));
        Self { peer: Peer::steered(settings, RTT, control), heard }
    }

    /// The sample of the last ACK.
    fn sample(&self) -> RateSample {
        self.heard.lock().unwrap().samples.last().copied().flatten().expect("a sample")
    }
}

/// A sample's delivered segments, and its interval in microseconds.
fn measure(sample: &RateSample) -> (u64, u64) {
    (sample.delivered, sample.interval.as_nanos() / 1_000)
}

fn bytes_per_second(bytes: u64) -> Rate {
    Rate::from_bits_per_second(8 * bytes)
}

#[test]
fn rate_sample_spans_delivery_since_the_newest_segment_left() {
    let mut script = Script::new(rfc(), false);
    let peer = &mut script.peer;
    peer.writes(0, 60 * MSS);
    peer.gets(0, data(1..10_001));
    peer.sends(ms(100), ack(2_001));
    peer.gets(ms(100), data(10_001..12_001));
    // Two segments in the 100 ms since they left: 20 kB/s. The second made two in flight.
    let sample = script.sample();
    assert_eq!(measure(&sample), (2, ms(100)));
    assert_eq!(sample.rate, bytes_per_second(20_000));
    assert_eq!((sample.delivered_at_send, sample.in_flight_at_send, sample.lost), (0, 2, 0));
    let peer = &mut script.peer;
    peer.sends(ms(140), ack(10_001));
    peer.gets(ms(140), data(12_001..20_001));
    assert_eq!(measure(&script.sample()), (10, ms(140)));
    // When the twelfth left, two had been delivered; until its ACK ten more are, in 100 ms.
    script.peer.sends(ms(200), ack(12_001));
    script.peer.gets(ms(200), data(20_001..22_001));
    let sample = script.sample();
    assert_eq!((measure(&sample), sample.delivered_at_send), ((10, ms(100)), 2));
    assert_eq!(sample.rate, bytes_per_second(100_000));
}

#[test]
fn rate_sample_uses_the_send_interval_if_acks_are_compressed() {
    let mut script = Script::new(rfc(), false);
    let peer = &mut script.peer;
    peer.writes(0, MSS);
    peer.gets(0, data(1..1_001));
    peer.writes(ms(50), MSS);
    peer.gets(ms(50), data(1_001..2_001));
    // The first ACK is 50 ms late. The third segment leaves 150 ms after the first, and its ACK
    // arrives 100 ms after the first one's: the longer interval, 150 ms, counts.
    peer.sends(ms(150), ack(1_001));
    peer.writes(ms(150), MSS);
    peer.gets(ms(150), data(2_001..3_001));
    peer.sends(ms(250), ack(3_001));
    assert_eq!(measure(&script.sample()), (2, ms(150)));
}

#[test]
fn rate_sample_after_idle_starts_at_the_first_departure() {
    let mut script = Script::new(rfc(), false);
    let peer = &mut script.peer;
    peer.writes(0, MSS);
    peer.gets(0, data(1..1_001));
    peer.sends(ms(100), ack(1_001));
    peer.writes(ms(600), 2 * MSS);
    peer.gets(ms(600), data(1_001..3_001));
    peer.sends(ms(700), ack(3_001));
    assert_eq!(measure(&script.sample()), (2, ms(100)));
}

#[test]
fn segments_sent_after_a_gap_give_app_limited_samples() {
    let mut script = Script::new(rfc(), false);
    let peer = &mut script.peer;
    peer.writes(0, 5 * MSS);
    peer.gets(0, data(1..5_001));
    peer.writes(ms(50), MSS);
    peer.gets(ms(50), data(5_001..6_001));
    peer.sends(ms(100), ack(5_001));
    // Segments that left before the gap are no sample of the application's rate.
    assert!(!script.sample().app_limited);
    let peer = &mut script.peer;
    peer.writes(ms(100), 60 * MSS);
    peer.gets(ms(100), data(6_001..15_001));
    peer.sends(ms(150), ack(6_001));
    peer.gets(ms(150), data(15_001..16_001));
    assert!(script.sample().app_limited);
    // The gap ends with the delivery of the seventh. The eighth left before that, the next ones
    // after it.
    script.peer.sends(ms(200), ack(8_001));
    script.peer.gets(ms(200), data(16_001..18_001));
    assert!(script.sample().app_limited);
    assert!(!script.heard.lock().unwrap().app_limited);
    script.peer.sends(ms(300), ack(18_001));
    script.peer.gets(ms(300), data(18_001..28_001));
    assert!(!script.sample().app_limited);
}

#[test]
fn congestion_control_holding_back_marks_samples_app_limited() {
    let mut script = Script::new(rfc(), true);
    let peer = &mut script.peer;
    peer.writes(0, 60 * MSS);
    peer.gets(0, data(1..10_001));
    peer.sends(ms(100), ack(10_001));
    peer.gets(ms(100), data(10_001..20_001));
    assert!(!script.sample().app_limited);
    script.peer.sends(ms(200), ack(20_001));
    script.peer.gets(ms(200), data(20_001..30_001));
    assert!(script.sample().app_limited);
}

#[test]
fn rate_sample_of_a_lone_small_segment_is_ack_delayed() {
    let mut script = Script::new(rfc(), false);
    for (start, bytes, is_delayed) in [(0, 500, true), (ms(200), MSS, false)] {
        let peer = &mut script.peer;
        let from = if start == 0 { 1 } else { 501 };
        peer.writes(start, bytes);
        peer.gets(start, data(from..from + bytes));
        peer.sends(start + ms(100), ack(from + bytes));
        assert_eq!(script.sample().is_ack_delayed, is_delayed, "{bytes} bytes");
    }
}

#[test]
fn lost_segment_is_reported_with_its_transmit_time_state() {
    let mut script = Script::new(rfc(), false);
    let peer = &mut script.peer;
    peer.writes(0, 60 * MSS);
    peer.gets(0, data(1..10_001));
    peer.sends(ms(100), ack(1_001));
    peer.gets(ms(100), data(10_001..11_001));
    // RFC 8985 §6.2: with three SACKed above them, the second and the third are lost at once. They
    // left with two and three in flight; the retransmissions leave with seven others of the ten.
    peer.sends(ms(110), ack(1_001).sack(3_001..7_001));
    peer.gets(ms(110), data(1_001..3_001));
    peer.ignores(ms(110));
    let heard = script.heard.lock().unwrap();
    let lost = heard.lost.iter();
    let lost: Vec<_> =
        lost.map(|it| (it.in_flight_at_send, it.delivered_at_send, it.lost)).collect();
    assert_eq!(lost, [(2, 0, 1), (3, 0, 2)]);
    let sample = heard.samples.last().copied().flatten().expect("a sample");
    assert_eq!((measure(&sample), sample.lost), ((5, ms(110)), 2));
    drop(heard);
    // A retransmission counts from its last departure: five had been delivered by then. It left 110
    // ms after the newest of those, and took 100 ms.
    script.peer.sends(ms(210), ack(7_001));
    script.peer.ignores(ms(210));
    let sample = script.sample();
    assert_eq!((measure(&sample), sample.delivered_at_send), ((2, ms(110)), 5));
}

#[test]
fn linux_delivery_rate_ignores_slower_app_limited_samples() {
    // tcp_rate_gen: an application-limited sample counts if it is not slower than the last one.
    let mut script = Script::new(linux(), false);
    let rate = |script: &Script| script.peer.end.snapshot().delivery_rate;
    let peer = &mut script.peer;
    peer.writes(0, 60 * MSS);
    peer.gets(0, data(1..10_001));
    assert_eq!(peer.end.snapshot().delivery_rate, None);
    // The write found nothing outstanding, so the first flight is application-limited.
    peer.sends(ms(100), ack(2_001));
    peer.ignores(ms(100));
    assert!(script.sample().app_limited);
    assert_eq!(rate(&script), Some(bytes_per_second(20_000)));
    // Three in 190 ms are slower than two in 100.
    script.peer.sends(ms(190), ack(3_001));
    script.peer.ignores(ms(190));
    assert_eq!(rate(&script), Some(bytes_per_second(20_000)));
    script.peer.sends(ms(200), ack(10_001));
    script.peer.ignores(ms(200));
    assert_eq!(rate(&script), Some(bytes_per_second(50_000)));
    // The twelfth left at 100 ms, after the delivery of the second: ten in 150 ms, and no longer
    // application-limited.
    script.peer.sends(ms(250), ack(12_001));
    script.peer.ignores(ms(250));
    assert!(!script.sample().app_limited);
    assert_eq!(rate(&script), Some(bytes_per_second(66_666)));
    assert_eq!(script.sample().interval, Duration::from_millis(150));
}

#[test]
fn delivery_rate_is_not_sampled_unless_requested() {
    let mut peer = Peer::connected(rfc(), RTT);
    peer.writes(0, 10 * MSS);
    peer.gets(0, data(1..10_001));
    peer.sends(ms(100), ack(10_001));
    assert_eq!(peer.end.snapshot().delivery_rate, None);
}
