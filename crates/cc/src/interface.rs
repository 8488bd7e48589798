//! The interface between a sender and its congestion controller.
//!
//! The sender performs loss recovery, RTT estimation, round counting and (if needed) rate sampling;
//! the controller owns its window. A controller cannot reach the socket, schedule anything or read
//! a clock, so it can be tested alone and used in any stack.
//!
//! Windows are counted in segments, as in the Linux kernel, which is the reference.

use crate::Window;
use std::fmt::Debug;
use tcplab_units::{Duration, Rate, Time};

/// Decides how much a flow may have in flight, and how fast it may send.
///
/// Three methods are required. The others do nothing unless overridden, or apply the standard
/// behaviour to the [window](CongestionControl::window) of algorithms that have one.
pub trait CongestionControl: Debug + Send + Copied {
    /// An ACK changed the scoreboard: data was delivered or marked lost. Once per ACK, after loss
    /// detection.
    fn on_ack(&mut self, flow: &FlowState, ack: &Ack);

    /// Data is about to be sent for the first time. Called before anything else; the handshake has
    /// given an RTT, unless a SYN was retransmitted.
    fn on_begin(&mut self, _flow: &FlowState) {}

    /// The window and the threshold for the first pacing rate, if the SYN-ACK finds a window of
    /// `cwnd` segments: 10, or 1 after a retransmitted SYN. Linux calls its module for that ACK
    /// before the module's `init`, with a zeroed state (`tcp_rcv_synsent_state_process` calls
    /// `tcp_ack` before `tcp_finish_connect`), and discards both afterwards (`tcp_init_transfer`).
    fn opening(&self, cwnd: u64) -> (u64, Option<u64>) {
        (cwnd, None)
    }

    /// The flow switches to this algorithm from another one (`setsockopt` with `TCP_CONGESTION`).
    /// The window is the one that the other algorithm left, and `Init` had it as the initial one.
    fn on_adopted(&mut self, flow: &FlowState, left: &Left) {
        if let Some(window) = self.window() {
            window.take_over(left);
        }
        self.on_begin(flow);
    }

    /// An ACK arrived, before loss detection: `ack.lost` is zero, there is no `ack.round`, and
    /// `flow.delivered` does not include the delivered segments. Called only for algorithms that
    /// [ask for it](CongestionControl::wants_in_ack_event), also for ACKs that change nothing, for
    /// which there is no `on_ack`.
    fn on_arrival(&mut self, _flow: &FlowState, _ack: &Ack) {}

    /// Whether `on_arrival` is called. Asked once.
    fn wants_in_ack_event(&self) -> bool {
        false
    }

    /// Whether the window is to be reduced without a signal of the network, as for a mark
    /// (`tcp_enter_cwr` of Linux). Asked of algorithms with `on_arrival`, after `on_ack`. Outside
    /// of an episode, `true` leads to `on_congestion` with [`Cause::Ecn`].
    fn wants_reduction(&self) -> bool {
        false
    }

    /// Congestion was signalled. Once per episode, not once per lost segment.
    fn on_congestion(&mut self, flow: &FlowState, event: Congestion);

    /// The window and, for algorithms that pace, the rate to use from now on.
    fn control(&self) -> Control;

    /// The window of an ack-clocked algorithm. The sender applies the standard undo, idle restart,
    /// window validation and rate halving to it.
    fn window(&mut self) -> Option<&mut Window> {
        None
    }

    /// Data in flight was too large for the path, and is sent again in smaller segments. That is no
    /// congestion, but the kernel's state machine enters the state of a timeout
    /// (`tcp_simple_retransmit`), and `on_recovered` follows as after one.
    fn on_resized(&mut self, _flow: &FlowState) {
        if let Some(window) = self.window() {
            window.vouch();
        }
    }

    /// The data outstanding when the episode began is acknowledged.
    fn on_recovered(&mut self, _flow: &FlowState) {}

    /// The episode was spurious (F-RTO, Eifel, DSACK).
    fn on_undo(&mut self, _flow: &FlowState) {
        if let Some(window) = self.window() {
            window.undo();
        }
    }

    /// The first segment after `idle` without data in flight is about to be sent, and the sender is
    /// set to restart after idle (RFC 5681 §4.1).
    fn on_restart(&mut self, flow: &FlowState, idle: Duration) {
        if let Some(window) = self.window() {
            window.restart(flow, idle);
        }
    }

    /// Nothing was in flight, and a segment is sent, `idle` after the last one. Called after
    /// `on_restart`.
    fn on_transmit_start(&mut self, _flow: &FlowState, _idle: Duration) {}

    /// For an RTO the application or the peer has been the limit, with at most `used` segments in
    /// flight.
    fn on_unused(&mut self, _flow: &FlowState, used: u64) {
        if let Some(window) = self.window() {
            window.narrow(used);
        }
    }

    /// A loss was found while the window was being reduced for a mark, with `cwnd` left of it.
    fn on_deepened(&mut self, _cwnd: u64) {}

    /// The sender has moved the window to `cwnd`, less than required (rate halving). The window
    /// continues from there.
    fn on_moderated(&mut self, cwnd: u64) {
        if let Some(window) = self.window() {
            window.cap(cwnd);
        }
    }

    /// A reduction ends with the window at `cwnd` and continues from there: the reduction was
    /// spurious and nothing else of it is undone, or another one follows.
    fn on_given_up(&mut self, cwnd: u64) {
        if let Some(window) = self.window() {
            window.set(cwnd);
        }
    }

    /// The window at which rate halving ends, if not at `ssthresh` (`min_cwnd` of Linux until 3.1).
    fn floor(&self) -> Option<u64> {
        None
    }

    /// Whether delivery rate samples are used: `ack.rate`, and `on_lost` for every lost segment.
    /// Asked once.
    fn samples_rate(&self) -> bool {
        false
    }

    /// Whether the sending rate is deliberately below the capacity of the path. Asked of algorithms
    /// that sample the rate; samples of data in flight are then marked as `app_limited`.
    fn is_holding_back(&self) -> bool {
        false
    }

    /// Windows of data that a growing send buffer has room for (`sndbuf_expand` of Linux). Asked
    /// once.
    fn buffered_windows(&self) -> u64 {
        2
    }

    /// A segment was marked lost, with the state at its transmission. Called before `on_ack` and
    /// `on_congestion`; `flow.lost` counts all segments found lost together. Called only for
    /// algorithms that [sample the rate](CongestionControl::samples_rate).
    fn on_lost(&mut self, _flow: &FlowState, _lost: &Lost) {}

    /// Internal state worth plotting, by name. The comment above each call of `record` becomes its
    /// description, with the unit (`Algorithm::probes`).
    fn probe(&self, _record: &mut dyn FnMut(&'static str, f64)) {}
}

/// Clones an algorithm behind [`CongestionControl`], so that several runs can continue from one
/// state. All algorithms that derive `Clone` implement it.
pub trait Copied {
    /// A clone with the whole state.
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
    /// Whether the sender may spread a reduction over the episode (PRR, RFC 6937, or rate halving)
    /// instead of applying `cwnd` at once.
    pub prr: bool,
    /// The minimum burst in segments with segmentation offload, if not the default.
    pub least_burst: Option<u64>,
    /// The maximum duration of a burst at the pacing rate; without one, the stack decides.
    pub longest_burst: Option<Duration>,
}

/// The initial parameters of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Init {
    /// Payload bytes of a full segment.
    pub mss: u64,
    /// The initial window in segments.
    pub initial_window: u64,
    /// The base of a multiplicative decrease.
    pub cut_base: CutBase,
    /// The flavour of the arithmetic.
    pub flavour: Flavour,
    /// The seed of randomized algorithms, derived from the run's seed and the flow's name.
    pub seed: u64,
    /// The maximum rate of the connection, whatever the algorithm decides. The sender enforces it.
    pub max_pacing: Option<Rate>,
}

/// The behaviour where the standards leave a choice, or where the kernel differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// As in the RFCs.
    Rfc,
    /// As in the Linux kernel.
    Linux,
}

/// The base of a multiplicative decrease. A setting of the stack, not of the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutBase {
    /// The window, as in Linux.
    Cwnd,
    /// The outstanding data, as in RFC 5681 §3.1.
    FlightSize,
}

/// The sender's state at a call. Read-only: a controller cannot reach the socket.
#[derive(Clone, Copy, Debug)]
pub struct FlowState {
    /// The current time.
    pub now: Time,
    /// Payload bytes of a full segment.
    pub mss: u64,
    /// The window in effect. During a reduction by the sender, it is not yet the controller's.
    pub cwnd: u64,
    /// The rate of the window with some headroom in bytes a second (`sk_pacing_rate`); 0 if
    /// unknown.
    pub rate: u64,
    /// Whether the flow is paced.
    pub is_paced: bool,
    /// Segments sent and neither delivered nor marked lost.
    pub in_flight: u64,
    /// Segments SACKed by the receiver (`sacked_out`).
    pub sacked: u64,
    /// Segments delivered since the connection began.
    pub delivered: u64,
    /// Smoothed RTT (RFC 6298); zero until the first sample.
    pub srtt: Duration,
    /// Minimum RTT of the connection; `Duration::MAX` until the first sample.
    pub min_rtt: Duration,
    /// The retransmission timeout.
    pub rto: Duration,
    /// The first unacknowledged offset.
    pub una: u64,
    /// The next new offset.
    pub nxt: u64,
    /// Segments marked lost since the connection began, counted each time.
    pub lost: u64,
    /// When the next segment may be sent, for paced flows; `Time::ZERO` for others.
    pub next_departure: Time,
    /// There was nothing to send, and data in flight at that time has not all arrived. Known where
    /// the rate is sampled.
    pub app_limited: bool,
    /// The window was the limit, not the application or the peer (RFC 7661).
    pub cwnd_limited: bool,
    /// The phase of loss recovery.
    pub phase: Phase,
}

impl FlowState {
    /// Whether the sender is between the `on_congestion` of a loss or a mark and its
    /// `on_recovered`. After a timeout the window grows from the first ACK on, so that is not
    /// included.
    #[inline]
    pub fn is_recovering(&self) -> bool {
        matches!(self.phase, Phase::Reduced | Phase::Recovery)
    }
}

/// The phase of loss recovery, in ascending order of severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// No problem is known.
    Open,
    /// Data arrived out of order.
    Disorder,
    /// The window is reduced for a mark, or for a loss that is already repaired.
    Reduced,
    /// A loss was detected by later ACKs and is being repaired.
    Recovery,
    /// The retransmission timer expired, and data that was not SACKed is retransmitted.
    Loss,
}

impl Phase {
    /// Whether the transition to `next` passes through `Open`: every recovery ends there, even if
    /// the same ACK reveals another problem (`tcp_fastretrans_alert`).
    pub(crate) fn passes_open(self, next: Self) -> bool {
        next == Self::Open || (self > Self::Disorder && next == Self::Disorder)
    }
}

/// The information of one ACK.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack {
    /// Segments newly acknowledged, cumulatively.
    pub acked: u64,
    /// Segments of growth for this ACK, by the stack's way of counting: one per ACK, one per
    /// segment, or by bytes with a limit (RFC 3465). The basis of `Window`'s growth.
    pub credit: u64,
    /// Segments newly delivered: acknowledged or SACKed for the first time.
    pub delivered: u64,
    /// Segments newly marked lost.
    pub lost: u64,
    /// Segments newly reported as CE-marked.
    pub ce: u64,
    /// RTT of the newest segment delivered, if unambiguous (Karn).
    pub rtt: Option<Duration>,
    /// One-way delay to the receiver, up to a constant of the connection, so that only differences
    /// have a meaning. In milliseconds, by the clocks of both ends (RFC 7323 timestamps).
    pub one_way_delay: Option<Duration>,
    /// The timestamps of the ACK (RFC 7323).
    pub timestamps: Option<Timestamps>,
    /// Whether nothing was outstanding: Linux then ignores the acknowledgment and does not call the
    /// module (`tcp_ack`, `pkts_acked`).
    pub is_idle: bool,
    /// Whether Linux handles the ACK on its fast path, by header prediction: no SACK block, no mark
    /// and no new window.
    pub is_predicted: bool,
    /// Segments in flight before this ACK.
    pub in_flight_before: u64,
    /// `FlowState::delivered` when the newest delivered segment was sent, where the sender samples
    /// the rate. Only on arrival; later `rate` has it.
    pub delivered_at_send: Option<u64>,
    /// The delivery rate, where the sender samples it.
    pub rate: Option<RateSample>,
    /// Present on the ACK that ends a round trip.
    pub round: Option<Round>,
}

/// The delivery rate up to the newest acknowledged segment
/// (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug)]
pub struct RateSample {
    /// Delivery rate over the sample's interval.
    pub rate: Rate,
    /// Segments delivered in the interval.
    pub delivered: u64,
    /// The interval: the longer of the times in which the segments were sent and acknowledged.
    pub interval: Duration,
    /// `FlowState::delivered` when the newest segment was sent.
    pub delivered_at_send: u64,
    /// Whether the receiver may have delayed its ACK.
    pub is_ack_delayed: bool,
    /// Whether the sender had nothing to send at some moment of the interval.
    pub app_limited: bool,
    /// Segments in flight when that segment was sent, itself included.
    pub in_flight_at_send: u64,
    /// Segments marked lost over the interval.
    pub lost: u64,
}

/// The timestamps of an ACK, each in milliseconds of the clock of the end that set it. All clocks
/// start at 1 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// When the ACK was sent by the receiver.
    pub sent: u64,
    /// When the acknowledged data was sent by the sender.
    pub echoed: u64,
}

impl Timestamps {
    /// The receiver's timestamp minus the sender's, plus [half of the clocks' range](Self::HALF).
    /// The result is positive however the clocks are set, and follows the delay unless they are 24
    /// days apart.
    pub fn one_way_delay(self) -> Duration {
        // Timestamps have 32 bits.
        let later = (self.sent as u32).wrapping_sub(self.echoed as u32);
        Duration::from_millis(u64::from(later.wrapping_add(Self::HALF)))
    }

    /// The value for clocks that agree, without delay, in milliseconds.
    pub const HALF: u32 = 1 << 31;
}

/// A segment marked lost.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    /// Segments in flight when it was sent, itself included.
    pub in_flight_at_send: u64,
    /// `FlowState::delivered` when it was sent.
    pub delivered_at_send: u64,
    /// Segments marked lost since it was sent, up to this one.
    pub lost: u64,
    /// Whether the sender had nothing to send shortly before.
    pub app_limited: bool,
}

/// The measurements of the round trip that just ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    /// From its first ACK to its last.
    pub duration: Duration,
    /// Minimum RTT.
    pub min_rtt: Option<Duration>,
    /// Mean RTT.
    pub mean_rtt: Option<Duration>,
    /// Maximum RTT.
    pub max_rtt: Option<Duration>,
    /// The number of RTT samples.
    pub rtt_samples: u32,
    /// Segments delivered.
    pub delivered: u64,
    /// Segments marked lost.
    pub lost: u64,
    /// Segments reported as CE-marked.
    pub ce: u64,
}

/// The state that an algorithm leaves to its successor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Left {
    /// Segments that may be in flight.
    pub cwnd: u64,
    /// Slow-start threshold in segments, once it is known.
    pub ssthresh: Option<u64>,
    /// Credit towards the next segment of congestion avoidance (`snd_cwnd_cnt`).
    pub credit: f64,
    /// The initial window of the connection in segments.
    pub initial: u64,
}

/// The start of a congestion episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Congestion {
    /// The cause.
    pub cause: Cause,
    /// FlightSize of RFC 5681: segments outstanding when the episode began.
    pub flight: u64,
    /// Whether this is a timeout in an episode already handled: the window starts over, and the
    /// threshold stays.
    pub again: bool,
}

/// The cause of a congestion episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A segment was found lost by ACKs of later ones.
    Loss,
    /// The receiver echoed a congestion mark.
    Ecn,
    /// The retransmission timer expired. The data in flight is what is not believed lost.
    Timeout,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_way_delay_differences_do_not_depend_on_clock_offsets() {
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
