//! The congestion window: how much may be in flight.
//!
//! [`CongestionWindow`] is the only caller of the congestion controller. It owns the controller's
//! decision, a window reduction in progress, window validation, round counting and the pending CWR
//! flag. The sender's coordinators report events to it.

mod reduction;

use crate::settings::WindowReduction;
use reduction::CwndReduction;
use tcplab_cc::{Ack, CongestionControl, Control, FlowState, Left, Round};
use tcplab_transport::{CwndValidation, Outstanding, Rounds};
use tcplab_units::{Rate, Time};

/// Congestion windows of data that the send buffer holds before there is a controller.
const DEFAULT_WINDOWS: u64 = 2;

/// The congestion window of one connection.
#[derive(Clone, Debug)]
pub(crate) struct CongestionWindow {
    /// None until there is data to send.
    controller: Option<Box<Controller>>,
    /// The controller's last decision; before the first one, the initial window.
    control: Control,
    /// Bytes acknowledged and not yet counted as window growth (RFC 3465).
    credit_bytes: u64,
    /// Data segments received before the controller exists; Linux calls `in_ack_event` for them.
    segments_before_controller: u32,
    /// The next new data carries CWR (RFC 3168 §6.1.2).
    cwr_pending: bool,
}

/// The controller, and the state of the window that exists with it.
#[derive(Clone, Debug)]
struct Controller {
    cc: Box<dyn CongestionControl>,
    wants_in_ack_event: bool,
    rounds: Rounds,
    /// The window reduction in progress.
    reduction: Option<CwndReduction>,
    validation: CwndValidation,
}

/// The part of the state before a burst that a refusal restores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before(Option<(Option<CwndReduction>, CwndValidation)>);

impl CongestionWindow {
    pub fn new(initial: u64) -> Self {
        Self {
            controller: None,
            control: Control {
                cwnd: initial,
                ssthresh: None,
                pacing: None,
                prr: false,
                least_burst: None,
                longest_burst: None,
            },
            credit_bytes: 0,
            segments_before_controller: 0,
            cwr_pending: false,
        }
    }

    /// Installs the controller. Returns whether it asks for rate samples.
    #[cold]
    pub fn begin(&mut self, cc: Box<dyn CongestionControl>) -> bool {
        self.control = cc.control();
        let (wants_in_ack_event, samples_rate) = (cc.wants_in_ack_event(), cc.samples_rate());
        let (rounds, validation) = (Rounds::default(), CwndValidation::default());
        let reduction = None;
        self.controller =
            Some(Box::new(Controller { cc, wants_in_ack_event, rounds, reduction, validation }));
        samples_rate
    }

    /// Replaces the controller. Returns the state that the old one leaves, and whether the new one
    /// asks for rate samples; none if there was no controller.
    #[cold]
    pub fn replace_controller(
        &mut self,
        initial: u64,
        build: impl FnOnce(u64) -> Box<dyn CongestionControl>,
    ) -> Option<(Left, bool)> {
        let cwnd = self.cwnd();
        let controller = self.controller.as_mut()?;
        let credit = controller.cc.window().map_or(0.0, |window| window.credit());
        let Control { cwnd: decided, ssthresh, .. } = self.control;
        controller.cc = build(cwnd);
        controller.wants_in_ack_event = controller.cc.wants_in_ack_event();
        Some((Left { cwnd: decided, ssthresh, credit, initial }, controller.cc.samples_rate()))
    }

    /// Calls the controller with an event and takes its decision.
    #[inline]
    pub fn consult(
        &mut self,
        flow: &FlowState,
        event: impl FnOnce(&mut dyn CongestionControl, &FlowState),
    ) {
        if let Some(controller) = &mut self.controller {
            event(&mut *controller.cc, flow);
            let before = self.control.ssthresh;
            self.control = controller.cc.control();
            if controller.reduction.is_some() && self.control.ssthresh != before {
                self.retarget_reduction();
            }
        }
    }

    /// The controller has changed the threshold during a reduction.
    #[cold]
    fn retarget_reduction(&mut self) {
        if let Some(target) = self.control.ssthresh {
            self.set_target(target);
        }
    }

    /// Whether there is a controller.
    #[inline]
    pub fn is_controlled(&self) -> bool {
        self.controller.is_some()
    }

    /// The controller, read-only.
    pub fn cc(&self) -> Option<&dyn CongestionControl> {
        self.controller.as_ref().map(|controller| &*controller.cc)
    }

    /// Whether the controller's `in_ack_event` runs for ACKs, before loss detection.
    #[inline]
    pub fn wants_in_ack_event(&self) -> bool {
        self.controller.as_ref().is_some_and(|it| it.wants_in_ack_event)
    }

    /// Whether a controller with `in_ack_event` requests a reduction (`tcp_enter_cwr`).
    #[inline]
    pub fn wants_reduction(&self) -> bool {
        self.controller.as_ref().is_some_and(|it| it.wants_in_ack_event && it.cc.wants_reduction())
    }

    /// The congestion window in segments: during a reduction, its present value.
    #[inline]
    pub fn cwnd(&self) -> u64 {
        let reduction = self.controller.as_ref().and_then(|it| it.reduction.as_ref());
        reduction.map_or(self.control.cwnd, |reduction| reduction.cwnd)
    }

    /// The controller's window, which a reduction in progress may not have reached.
    pub fn controller_cwnd(&self) -> u64 {
        self.control.cwnd
    }

    /// The slow-start threshold; none before the first reduction.
    #[inline]
    pub fn ssthresh(&self) -> Option<u64> {
        self.control.ssthresh
    }

    /// Whether the controller's window is below the threshold.
    pub fn is_in_slow_start(&self) -> bool {
        self.control.ssthresh.is_none_or(|ssthresh| self.control.cwnd < ssthresh)
    }

    /// The pacing rate, if the controller decides on one.
    #[inline]
    pub fn pacing(&self) -> Option<Rate> {
        self.control.pacing
    }

    /// The controller's decision.
    #[inline]
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// The initial window is one segment, because the SYN was lost (RFC 5681 §3.1).
    pub fn begin_with_one(&mut self) {
        self.control.cwnd = 1;
    }

    /// Congestion windows of data that the send buffer holds (`sndbuf_expand`).
    pub fn buffered_windows(&self) -> u64 {
        self.cc().map_or(DEFAULT_WINDOWS, CongestionControl::buffered_windows)
    }

    /// Ends the present round trip, if this ACK does.
    #[inline]
    pub fn end_round(&mut self, now: Time, una: u64, nxt: u64, ack: &Ack) -> Option<Round> {
        self.controller.as_mut()?.rounds.on_ack(now, una, nxt, ack)
    }

    /// Window growth in segments for `bytes` acknowledged (RFC 3465).
    pub fn credit(&mut self, bytes: u64, mss: u64) -> u64 {
        self.credit_bytes += bytes;
        let segments = self.credit_bytes / mss;
        self.credit_bytes %= mss;
        segments
    }
}

/// Reductions.
impl CongestionWindow {
    /// The controller has responded to congestion at the window `before`. Begins a spread reduction
    /// if the settings ask for one and the controller allows it.
    pub fn begin_reduction(&mut self, way: WindowReduction, before: u64) {
        let target = self.target();
        let prr = self.control.prr;
        let Some(controller) = &mut self.controller else { return };
        let floor = controller.cc.floor().unwrap_or(target);
        controller.reduction =
            if prr { CwndReduction::begin(way, before, target, floor) } else { None };
    }

    fn target(&self) -> u64 {
        self.control.ssthresh.unwrap_or(self.control.cwnd)
    }

    /// The target of the reduction becomes the controller's present threshold.
    pub fn deepen_reduction(&mut self) {
        self.set_target(self.target());
    }

    fn set_target(&mut self, target: u64) {
        if let Some(reduction) = self.reduction_mut() {
            reduction.set_target(target);
        }
    }

    #[inline]
    fn reduction_mut(&mut self) -> Option<&mut CwndReduction> {
        self.controller.as_mut()?.reduction.as_mut()
    }

    /// Whether a window reduction is in progress.
    #[inline]
    pub fn is_reducing(&self) -> bool {
        self.controller.as_ref().is_some_and(|it| it.reduction.is_some())
    }

    /// Ends the reduction. Returns the window that it had reached, if there was one.
    #[inline]
    pub fn end_reduction(&mut self) -> Option<u64> {
        self.controller.as_mut()?.reduction.take().map(|reduction| reduction.cwnd)
    }

    /// An ACK updates the window of the reduction.
    #[inline]
    pub fn update_reduction(&mut self, delivered: u64, lost: u64, advanced: bool, in_flight: u64) {
        if let Some(reduction) = self.reduction_mut() {
            reduction.on_ack(delivered, lost, advanced, in_flight);
        }
    }

    /// The window after a finished reduction, where it depends on the course of the reduction.
    pub fn final_cwnd(&self, in_flight: u64, burst: u64) -> Option<u64> {
        self.controller.as_ref()?.reduction.as_ref()?.final_cwnd(in_flight, burst)
    }

    /// The state of reduction and validation before the burst that is about to leave.
    pub fn before_burst(&self) -> Before {
        Before(self.controller.as_ref().map(|it| (it.reduction, it.validation)))
    }

    /// The burst since `before` has not left after all.
    pub fn take_back(&mut self, before: Before) {
        if let (Some(controller), Before(Some(before))) = (&mut self.controller, before) {
            (controller.reduction, controller.validation) = before;
        }
    }

    /// A segment leaves.
    #[inline]
    pub fn on_sent(&mut self) {
        if let Some(reduction) = self.reduction_mut() {
            reduction.on_sent();
        }
    }
}

/// Window validation (RFC 7661).
impl CongestionWindow {
    /// Whether the window limited the sender and may grow (`tcp_is_cwnd_limited`).
    #[inline]
    pub fn is_full(&self) -> bool {
        self.controller.as_ref().is_some_and(|it| it.validation.is_full(&self.control))
    }

    /// New data leaves.
    #[inline]
    pub fn note_new_data(&mut self) {
        if let Some(controller) = &mut self.controller {
            controller.validation.note_sent();
        }
    }

    /// Whether new data left since the last validation.
    #[inline]
    pub fn has_sent_new_data(&self) -> bool {
        self.controller.as_ref().is_some_and(|it| it.validation.has_sent_new_data())
    }

    /// Whether new data left since the last validation; the flag is cleared.
    #[inline]
    pub fn take_sent_new_data(&mut self) -> bool {
        self.controller.as_mut().is_some_and(|it| it.validation.take_sent_new_data())
    }

    /// The window was set now (`snd_cwnd_stamp`).
    #[inline]
    pub fn stamp_cwnd(&mut self, now: Time) {
        if let Some(controller) = &mut self.controller {
            controller.validation.stamp_cwnd(now);
        }
    }

    /// When the window was last full or set (`snd_cwnd_stamp`).
    pub fn cwnd_stamp(&self) -> Time {
        self.controller.as_ref().map_or(Time::ZERO, |it| it.validation.cwnd_stamp())
    }

    /// Validation restarts after an idle time.
    pub fn restart_validation(&mut self, now: Time) {
        if let Some(controller) = &mut self.controller {
            controller.validation.restart(now);
        }
    }

    /// The most segments outstanding since the window was last full (`snd_cwnd_used`); the count
    /// restarts.
    pub fn take_cwnd_used(&mut self) -> u64 {
        self.controller.as_mut().map_or(0, |it| it.validation.take_cwnd_used())
    }

    /// Everything that may leave has left. `limited`: the window held the rest back.
    #[inline]
    pub fn validate_flight(&mut self, limited: bool, out: Outstanding) {
        if let Some(controller) = &mut self.controller {
            controller.validation.on_flight(limited, out);
        }
    }

    /// Validates the window as Linux does (`tcp_cwnd_validate`). Returns whether a part of the
    /// window is unused.
    #[inline]
    pub fn validate_round(&mut self, now: Time, limited: bool, out: Outstanding) -> bool {
        let control = &self.control;
        self.controller
            .as_mut()
            .is_some_and(|it| it.validation.on_round(now, limited, out, control))
    }
}

/// The pending CWR flag, and data that arrived before there was a controller.
impl CongestionWindow {
    /// Sets or clears the pending CWR flag (RFC 3168 §6.1.2).
    pub fn set_cwr_pending(&mut self, is_pending: bool) {
        self.cwr_pending = is_pending;
    }

    /// Whether the next new data carries CWR; the flag is cleared.
    #[inline]
    pub fn take_cwr(&mut self) -> bool {
        std::mem::take(&mut self.cwr_pending)
    }

    /// Data arrived before there was a controller.
    pub fn note_early_arrival(&mut self) {
        self.segments_before_controller += 1;
    }

    /// Data segments that arrived before there was a controller; the count restarts.
    pub fn take_segments_before_controller(&mut self) -> u32 {
        std::mem::take(&mut self.segments_before_controller)
    }
}
