//! What a sender tells a congestion controller, and what the controller answers.
//!
//! The sender keeps loss repair, RTT estimation, round counting and (for those that need it) rate
//! samples; the controller owns its window. It cannot reach the socket, schedule anything or read a
//! clock, so it can be tested alone and put into any stack.
//!
//! Windows are counted in segments, as the Linux kernel does, because the kernel is the reference.

use crate::Window;
use std::fmt::Debug;
use tcplab_units::{Duration, Rate, Time};

/// Decides how much a flow may have in flight, and how fast it may send.
///
/// Three methods are required. The rest do nothing unless overridden, or what is usual to the
/// [window](CongestionControl::window) of those that have one.
pub trait CongestionControl: Debug + Send + Copied {
    /// An ACK changed the scoreboard: data was delivered or marked lost. Once per ACK, after loss
    /// detection.
    fn on_ack(&mut self, flow: &FlowState, ack: &Ack);

    /// Data is about to leave for the first time. Before anything else; the handshake has timed the
    /// path, unless a SYN was repeated.
    fn on_begin(&mut self, _flow: &FlowState) {}

    /// The window and the threshold by which the first pacing rate is computed, where the SYN-ACK finds a
    /// window of `cwnd` segments: 10, or 1 if the SYN was sent again. Linux calls its module for that ACK
    /// before the module's `init`, with a state of zeros (`tcp_rcv_synsent_state_process` calls `tcp_ack`
    /// before `tcp_finish_connect`), and forgets both afterwards (`tcp_init_transfer`).
    fn opening(&self, cwnd: u64) -> (u64, Option<u64>) {
        (cwnd, None)
    }

    /// The flow goes on under this algorithm, which begins anew in the place of another one
    /// (`setsockopt` with `TCP_CONGESTION`): the window is as that one has left it, and `Init` had it as the
    /// initial one.
    fn on_adopted(&mut self, flow: &FlowState, left: &Left) {
        if let Some(window) = self.window() {
            window.take_over(left);
        }
        self.on_begin(flow);
    }

    /// An ACK arrived, and losses have not been looked for yet: `ack.lost` is zero, there is no
    /// `ack.round`, and `flow.delivered` does not count what it delivers. Told to those alone that
    /// [hear arrivals](CongestionControl::hears_arrivals), because most need not know so early. They
    /// also hear of ACKs that change nothing, and for which there is no `on_ack`.
    fn on_arrival(&mut self, _flow: &FlowState, _ack: &Ack) {}

    /// Whether to be told of ACKs as they arrive. Asked once.
    fn hears_arrivals(&self) -> bool {
        false
    }

    /// Whether the window is to become smaller without a signal of the network, as for a mark
    /// (`tcp_enter_cwr` of Linux). Asked of those that hear arrivals, after `on_ack`; outside of an episode the answer to yes is
    /// `on_congestion`, with [`Cause::Ecn`].
    fn wants_reduction(&self) -> bool {
        false
    }

    /// Congestion was signalled. Once per episode, not once per lost segment.
    fn on_congestion(&mut self, flow: &FlowState, event: Congestion);

    /// The window and, for algorithms that pace, the rate to use from now on.
    fn control(&self) -> Control;

    /// The window of an algorithm that ACKs clock. What is usual for one is then done to it: after a
    /// false alarm, a pause, a time in which it was not used, and a reduction that the sender led.
    fn window(&mut self) -> Option<&mut Window> {
        None
    }

    /// What was under way was too large for the path, and leaves again in smaller segments. That says
    /// nothing of congestion, but the kernel's state machine goes to where a timeout leads
    /// (`tcp_simple_retransmit`), and `on_recovered` follows as after one.
    fn on_resized(&mut self, _flow: &FlowState) {
        if let Some(window) = self.window() {
            window.vouch();
        }
    }

    /// The data outstanding when the episode began is acknowledged.
    fn on_recovered(&mut self, _flow: &FlowState) {}

    /// The episode was a false alarm (F-RTO, Eifel, DSACK).
    fn on_undo(&mut self, _flow: &FlowState) {
        if let Some(window) = self.window() {
            window.undo();
        }
    }

    /// The first segment after `idle` without anything in flight is about to leave, and the sender
    /// is set to restart after idle (RFC 5681 §4.1).
    fn on_restart(&mut self, flow: &FlowState, idle: Duration) {
        if let Some(window) = self.window() {
            window.restart(flow, idle);
        }
    }

    /// Nothing was in flight, and a segment leaves, `idle` after the last one. After `on_restart`.
    fn on_transmit_start(&mut self, _flow: &FlowState, _idle: Duration) {}

    /// For a timeout now the application or the peer has been the limit, and `used` segments the most
    /// in flight.
    fn on_unused(&mut self, _flow: &FlowState, used: u64) {
        if let Some(window) = self.window() {
            window.narrow(used);
        }
    }

    /// A loss was found while the window was led to a smaller one for a mark, and `cwnd` is left of it.
    fn on_deepened(&mut self, _cwnd: u64) {}

    /// The sender has led the window to `cwnd`, less than it had to (rate halving): it goes on from
    /// there.
    fn on_moderated(&mut self, cwnd: u64) {
        if let Some(window) = self.window() {
            window.cap(cwnd);
        }
    }

    /// A reduction ends when the window has been led to `cwnd`, and goes on from there: it turned out not to
    /// be needed, and nothing else of it is taken back, or another one follows.
    fn on_given_up(&mut self, cwnd: u64) {
        if let Some(window) = self.window() {
            window.set(cwnd);
        }
    }

    /// Where rate halving ends, if not at `ssthresh` (`min_cwnd` of Linux until 3.1).
    fn floor(&self) -> Option<u64> {
        None
    }

    /// Whether to be told how fast the path delivers: `ack.rate`, and every segment lost. Asked once.
    fn samples_rate(&self) -> bool {
        false
    }

    /// Whether it sends less than the path could carry, of its own accord. Asked of those that sample
    /// the rate; samples of what is in flight are then marked as `app_limited`.
    fn is_holding_back(&self) -> bool {
        false
    }

    /// Windows of data for which a send buffer that grows has room (`sndbuf_expand` of Linux).
    /// Asked once.
    fn buffered_windows(&self) -> u64 {
        2
    }

    /// A segment was marked lost, with what was known when it left. Before `on_ack` and
    /// `on_congestion`; `flow.lost` counts all that were found lost with it. Told to those alone that
    /// [sample the rate](CongestionControl::samples_rate).
    fn on_lost(&mut self, _flow: &FlowState, _lost: &Lost) {}

    /// Internal state worth plotting, by name. The comment above each call of `record` says what it is,
    /// with its unit (`Algorithm::probes`).
    fn probe(&self, _record: &mut dyn FnMut(&'static str, f64)) {}
}

/// Copies of an algorithm behind [`CongestionControl`], so that a run can go on from one state in several
/// ways: all that derive `Clone` have them.
pub trait Copied {
    /// The same with all that it knows.
    fn copied(&self) -> Box<dyn CongestionControl>;
}

impl<C: CongestionControl + Clone + 'static> Copied for C {
    fn copied(&self) -> Box<dyn CongestionControl> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn CongestionControl> {
    fn clone(&self) -> Self {
        (**self).copied()
    }
}

/// A controller's decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Control {
    /// Segments that may be in flight.
    pub cwnd: u64,
    /// Slow-start threshold in segments, for those that have one and once it is known.
    pub ssthresh: Option<u64>,
    /// Sending rate; without one, ACKs clock the flow.
    pub pacing: Option<Rate>,
    /// Whether the sender may spread a reduction over the episode (PRR, RFC 6937, or rate halving), or
    /// uses `cwnd` as is.
    pub prr: bool,
    /// The fewest segments that leave at once where bursts are made for segmentation offload, if not
    /// as many as usual.
    pub least_burst: Option<u64>,
    /// How long the rate takes for the segments that leave at once, at the most; bursts are as the stack
    /// makes them without it.
    pub longest_burst: Option<Duration>,
}

/// What a flow is started with.
#[derive(Clone, Copy, Debug)]
pub struct Init {
    /// Payload bytes of a full segment.
    pub mss: u64,
    /// Segments of the first window.
    pub initial_window: u64,
    /// What a multiplicative decrease starts from.
    pub cut_base: CutBase,
    /// Whose arithmetic.
    pub flavour: Flavour,
    /// For algorithms that randomize: derived from the run's seed and the flow's name.
    pub seed: u64,
    /// The highest rate at which the connection may send, whatever the algorithm decides. The sender
    /// keeps to it by itself.
    pub max_pacing: Option<Rate>,
}

/// Whose way to go where the standards leave a choice, or the kernel has made another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// As the RFCs say.
    Rfc,
    /// As the Linux kernel does.
    Linux,
}

/// What a multiplicative decrease starts from. A setting of the stack, not of the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutBase {
    /// The window, as in Linux.
    Cwnd,
    /// The data outstanding, as in RFC 5681 §3.1.
    FlightSize,
}

/// What the sender knows when it calls. Read-only: a controller cannot reach the socket.
#[derive(Clone, Copy, Debug)]
pub struct FlowState {
    /// Now.
    pub now: Time,
    /// Payload bytes of a full segment.
    pub mss: u64,
    /// The window in effect. While the sender leads it to a smaller one, it is not yet the controller's.
    pub cwnd: u64,
    /// Bytes a second that the window amounts to, and a little more (`sk_pacing_rate`); 0 if not known.
    pub rate: u64,
    /// The flow is paced.
    pub is_paced: bool,
    /// Segments sent and neither delivered nor marked lost.
    pub in_flight: u64,
    /// Segments that the receiver has, and cannot acknowledge because others are missing (`sacked_out`).
    pub sacked: u64,
    /// Segments delivered since the connection began.
    pub delivered: u64,
    /// Smoothed RTT (RFC 6298); zero until the first sample.
    pub srtt: Duration,
    /// Least RTT of the connection; `Duration::MAX` until the first sample.
    pub min_rtt: Duration,
    /// The retransmission timeout.
    pub rto: Duration,
    /// The oldest offset that is not acknowledged.
    pub una: u64,
    /// The next offset to be sent for the first time.
    pub nxt: u64,
    /// Segments marked lost since the connection began, each time they were.
    pub lost: u64,
    /// When the next segment may leave, for flows that are paced; `Time::ZERO` for others.
    pub next_departure: Time,
    /// There was nothing to send, and what was in flight then has not all arrived. Known where the rate
    /// is sampled.
    pub app_limited: bool,
    /// The window was the limit, not the application or the peer (RFC 7661).
    pub cwnd_limited: bool,
    /// Where the sender stands.
    pub phase: Phase,
}

impl FlowState {
    /// Between the `on_congestion` of a loss or a mark and its `on_recovered`. After a timeout the
    /// window grows from the first ACK on, so that is not part of it.
    #[inline]
    pub fn is_recovering(&self) -> bool {
        matches!(self.phase, Phase::Reduced | Phase::Recovery)
    }
}

/// Where a sender stands. The order means how grave it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Nothing is known to be amiss.
    Open,
    /// Something arrived out of order.
    Disorder,
    /// A mark, or a loss that is repaired already, makes the window smaller.
    Reduced,
    /// A loss was found by the ACKs of later segments and is being repaired.
    Recovery,
    /// The timer ran out and what was not SACKed is being sent again.
    Loss,
}

impl Phase {
    /// Whether the way from here to `next` leads through `Open`: every repair ends there, even if the
    /// same ACK tells that something else is amiss (`tcp_fastretrans_alert`).
    pub(crate) fn passes_open(self, next: Self) -> bool {
        next == Self::Open || (self > Self::Disorder && next == Self::Disorder)
    }
}

/// What one ACK brought.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack {
    /// Segments newly acknowledged, cumulatively.
    pub acked: u64,
    /// Segments of growth that this ACK is worth, by the stack's way of counting: one per ACK, one
    /// per segment, or by bytes with a limit (RFC 3465). What `Window` grows by.
    pub credit: u64,
    /// Segments newly delivered: acknowledged or SACKed for the first time.
    pub delivered: u64,
    /// Segments newly marked lost.
    pub lost: u64,
    /// Segments newly reported as CE-marked.
    pub ce: u64,
    /// RTT of the newest segment delivered, if unambiguous (Karn).
    pub rtt: Option<Duration>,
    /// One-way delay to the receiver, up to a constant that is the same for the whole connection: only
    /// differences mean something. In milliseconds, by the clocks of both ends (RFC 7323 timestamps).
    pub one_way_delay: Option<Duration>,
    /// What the timestamps of the ACK say (RFC 7323).
    pub timestamps: Option<Timestamps>,
    /// Nothing was outstanding when it came: Linux does not look at what it might acknowledge, and tells
    /// nobody (`tcp_ack`, `pkts_acked`).
    pub is_idle: bool,
    /// It has no block, no mark and no new window: Linux predicts such, and takes a shorter way.
    pub is_predicted: bool,
    /// Segments that were in flight before it.
    pub in_flight_before: u64,
    /// `FlowState::delivered` when the newest segment that it delivers left, where the sender samples the
    /// rate. Told as it arrives; later `rate` has it.
    pub delivered_at_send: Option<u64>,
    /// How fast the path delivered, where the sender samples it.
    pub rate: Option<RateSample>,
    /// Present on the ACK that ends a round trip.
    pub round: Option<Round>,
}

/// How fast the path delivered the newest segment acknowledged
/// (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug)]
pub struct RateSample {
    /// Delivery rate over the sample's interval.
    pub rate: Rate,
    /// Segments delivered in the interval.
    pub delivered: u64,
    /// How long that took: the longer of the times in which they were sent and acknowledged.
    pub interval: Duration,
    /// `FlowState::delivered` when the newest of them left.
    pub delivered_at_send: u64,
    /// The receiver may have held its ACK back, waiting for another segment.
    pub is_ack_delayed: bool,
    /// The sender had nothing to send at some moment of the interval.
    pub app_limited: bool,
    /// Segments in flight when that segment left, itself included.
    pub in_flight_at_send: u64,
    /// Segments marked lost over the interval.
    pub lost: u64,
}

/// The timestamps of an ACK, each in milliseconds of the clock of the end that set it. Clocks show one when
/// the experiment begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// When the ACK left the receiver.
    pub sent: u64,
    /// When what it answers left the sender.
    pub echoed: u64,
}

impl Timestamps {
    /// How much later the receiver's clock was than the sender's, from the time when what is answered
    /// left to that of the answer, and [half of the clocks' range](Self::HALF) more: so it is positive
    /// however the clocks are set, and grows and shrinks with the delay unless they are 24 days apart.
    pub fn one_way_delay(self) -> Duration {
        // The clocks are those of the option, which has 32 bits.
        let later = (self.sent as u32).wrapping_sub(self.echoed as u32);
        Duration::from_millis(u64::from(later.wrapping_add(Self::HALF)))
    }

    /// Where the difference of two clocks that agree is placed: in milliseconds.
    pub const HALF: u32 = 1 << 31;
}

/// A segment marked lost.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    /// Segments in flight when it left, itself included.
    pub in_flight_at_send: u64,
    /// `FlowState::delivered` when it left.
    pub delivered_at_send: u64,
    /// Segments marked lost since it left, up to this one.
    pub lost: u64,
    /// The sender had nothing to send shortly before it left.
    pub app_limited: bool,
}

/// What happened during the round trip just ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    /// From its first ACK to its last.
    pub duration: Duration,
    /// Least RTT sampled.
    pub min_rtt: Option<Duration>,
    /// Mean of the RTTs sampled.
    pub mean_rtt: Option<Duration>,
    /// Greatest RTT sampled.
    pub max_rtt: Option<Duration>,
    /// RTTs sampled.
    pub rtt_samples: u32,
    /// Segments delivered.
    pub delivered: u64,
    /// Segments marked lost.
    pub lost: u64,
    /// Segments reported as CE-marked.
    pub ce: u64,
}

/// The state that an algorithm leaves to another one that takes its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Left {
    /// Segments that may be in flight.
    pub cwnd: u64,
    /// Slow-start threshold in segments, once it is known.
    pub ssthresh: Option<u64>,
    /// What has been earned towards the next segment of congestion avoidance (`snd_cwnd_cnt`).
    pub credit: f64,
    /// Segments of the first window of the connection.
    pub initial: u64,
}

/// The start of a congestion episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Congestion {
    /// What signalled it.
    pub cause: Cause,
    /// FlightSize of RFC 5681: segments outstanding when the episode began.
    pub flight: u64,
    /// A timeout in an episode that has been answered already: the window starts over, and the
    /// threshold stays.
    pub again: bool,
}

/// What signalled congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A segment was found lost by the ACKs of later ones.
    Loss,
    /// The receiver echoed a congestion mark.
    Ecn,
    /// The retransmission timer ran out. What is in flight now is what is not believed lost.
    Timeout,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_way_delays_differ_as_delays_do_however_the_clocks_are_set() {
        let range = 1_u64 << 32;
        // The receiver's clock agrees, is a day ahead, a day behind, or wraps between the two.
        for (sent, echoed) in [(20, 0), (86_400_020, 0), (20, 86_400_000), (range - 10, range - 30)]
        {
            let short = Timestamps { sent, echoed }.one_way_delay();
            let long = Timestamps { sent: (sent + 30) % range, echoed }.one_way_delay();
            assert_eq!(long - short, Duration::from_millis(30), "{sent} {echoed}");
        }
    }
}
