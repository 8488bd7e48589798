//! The congestion window: how much may be in flight.
//!
//! [`CongestionWindow`] is the only caller of the congestion controller. It owns the controller's
//! decision, the reduction that leads to a smaller window, window validation, round counting and
//! the debts of the window to the peer (CWR). The sender's coordinators tell it what happened.

mod reduction;

use crate::settings::WindowReduction;
use reduction::CwndReduction;
use tcplab_cc::{Ack, CongestionControl, Control, FlowState, Left, Round};
use tcplab_transport::{CwndValidation, Outstanding, Rounds};
use tcplab_units::{Rate, Time};

/// Windows of data for which a send buffer has room before there is a controller that says it.
const DEFAULT_WINDOWS: u64 = 2;

/// The congestion window of one connection.
#[derive(Clone, Debug)]
pub(crate) struct CongestionWindow {
    /// None until there is data to send.
    controller: Option<Box<Controller>>,
    /// The controller's last decision; before there is one, the initial window.
    control: Control,
    /// Bytes acknowledged and not yet counted as growth (RFC 3465).
    credit_bytes: u64,
    /// Segments with data that arrived before there was a controller, and that Linux tells its own
    /// of.
    early_arrivals: u32,
    /// The peer is to be told that the window was reduced (RFC 3168 §6.1.2).
    owes_cwr: bool,
}

/// The controller, and the state of the window that exists with it.
#[derive(Clone, Debug)]
struct Controller {
    cc: Box<dyn CongestionControl>,
    hears_arrivals: bool,
    rounds: Rounds,
    /// Set while the window is led to a smaller one.
    reduction: Option<CwndReduction>,
    validation: CwndValidation,
}

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
            early_arrivals: 0,
            owes_cwr: false,
        }
    }

    /// A controller takes the window over. Says whether it asks for rate samples.
    #[cold]
    pub fn begin(&mut self, cc: Box<dyn CongestionControl>) -> bool {
        self.control = cc.control();
        let (hears_arrivals, samples_rate) = (cc.hears_arrivals(), cc.samples_rate());
        let (rounds, validation) = (Rounds::default(), CwndValidation::default());
        let reduction = None;
        self.controller =
            Some(Box::new(Controller { cc, hears_arrivals, rounds, reduction, validation }));
        samples_rate
    }

    /// Another controller replaces the first. Returns what that leaves, and whether the new one
    /// asks for rate samples; nothing if there was none.
    #[cold]
    pub fn adopt(
        &mut self,
        initial: u64,
        build: impl FnOnce(u64) -> Box<dyn CongestionControl>,
    ) -> Option<(Left, bool)> {
        let cwnd = self.cwnd();
        let controller = self.controller.as_mut()?;
        let credit = controller.cc.window().map_or(0.0, |window| window.credit());
        let Control { cwnd: decided, ssthresh, .. } = self.control;
        controller.cc = build(cwnd);
        controller.hears_arrivals = controller.cc.hears_arrivals();
        Some((Left { cwnd: decided, ssthresh, credit, initial }, controller.cc.samples_rate()))
    }

    /// Tells the controller of an event and takes its decision.
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
                self.follow_threshold();
            }
        }
    }

    /// The controller has moved the window that a reduction leads to.
    #[cold]
    fn follow_threshold(&mut self) {
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

    /// Whether the controller is told of ACKs before losses are looked for.
    #[inline]
    pub fn hears_arrivals(&self) -> bool {
        self.controller.as_ref().is_some_and(|it| it.hears_arrivals)
    }

    /// Whether a controller that hears arrivals asks for a reduction (`tcp_enter_cwr`).
    #[inline]
    pub fn wants_reduction(&self) -> bool {
        self.controller.as_ref().is_some_and(|it| it.hears_arrivals && it.cc.wants_reduction())
    }

    /// Segments that may be in flight.
    #[inline]
    pub fn cwnd(&self) -> u64 {
        let reduction = self.controller.as_ref().and_then(|it| it.reduction.as_ref());
        reduction.map_or(self.control.cwnd, |reduction| reduction.cwnd)
    }

    /// The controller's window, which a reduction may not have reached.
    pub fn decided(&self) -> u64 {
        self.control.cwnd
    }

    /// The slow-start threshold, once it is known.
    #[inline]
    pub fn ssthresh(&self) -> Option<u64> {
        self.control.ssthresh
    }

    /// Whether the controller's window is below the threshold.
    pub fn is_in_slow_start(&self) -> bool {
        self.control.ssthresh.is_none_or(|ssthresh| self.control.cwnd < ssthresh)
    }

    /// The pacing rate of a controller that decides on one.
    #[inline]
    pub fn pacing(&self) -> Option<Rate> {
        self.control.pacing
    }

    /// The controller's decision.
    #[inline]
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// The first window is one segment: the SYN was lost (RFC 5681 §3.1).
    pub fn begin_with_one(&mut self) {
        self.control.cwnd = 1;
    }

    /// Windows of data for which a send buffer that grows has room.
    pub fn buffered_windows(&self) -> u64 {
        self.cc().map_or(DEFAULT_WINDOWS, CongestionControl::buffered_windows)
    }

    /// Ends the round trip in progress, if this ACK does.
    #[inline]
    pub fn end_round(&mut self, now: Time, una: u64, nxt: u64, ack: &Ack) -> Option<Round> {
        self.controller.as_mut()?.rounds.on_ack(now, una, nxt, ack)
    }

    /// Growth in segments for `bytes` acknowledged (RFC 3465).
    pub fn credit(&mut self, bytes: u64, mss: u64) -> u64 {
        self.credit_bytes += bytes;
        let segments = self.credit_bytes / mss;
        self.credit_bytes %= mss;
        segments
    }
}

/// Reductions.
impl CongestionWindow {
    /// The controller has answered congestion when the window was `before`: a reduction begins if
    /// the settings spread it and the controller allows that.
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

    /// The reduction leads to the controller's newest threshold.
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

    /// Whether the window is being led to a smaller one.
    #[inline]
    pub fn is_reducing(&self) -> bool {
        self.controller.as_ref().is_some_and(|it| it.reduction.is_some())
    }

    /// The reduction ends. Returns the window that it had come to, if there was one.
    #[inline]
    pub fn end_reduction(&mut self) -> Option<u64> {
        self.controller.as_mut()?.reduction.take().map(|reduction| reduction.cwnd)
    }

    /// An ACK moves the window of the reduction.
    #[inline]
    pub fn reduce(&mut self, delivered: u64, lost: u64, advanced: bool, in_flight: u64) {
        if let Some(reduction) = self.reduction_mut() {
            reduction.on_ack(delivered, lost, advanced, in_flight);
        }
    }

    /// The window that a finished reduction leaves, where it depends on how the reduction went.
    pub fn reached(&self, in_flight: u64, burst: u64) -> Option<u64> {
        self.controller.as_ref()?.reduction.as_ref()?.reached(in_flight, burst)
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
    /// Whether the window was the limit and may grow.
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

    /// Whether new data left since validation last looked.
    #[inline]
    pub fn has_sent_data(&self) -> bool {
        self.controller.as_ref().is_some_and(|it| it.validation.has_sent_data())
    }

    /// Whether new data left since validation last looked; clears the flag.
    #[inline]
    pub fn take_sent_data(&mut self) -> bool {
        self.controller.as_mut().is_some_and(|it| it.validation.take_sent_data())
    }

    /// The window has just been decided upon (`snd_cwnd_stamp`).
    #[inline]
    pub fn note_decision(&mut self, now: Time) {
        if let Some(controller) = &mut self.controller {
            controller.validation.note_decision(now);
        }
    }

    /// When the window was last full or decided upon.
    pub fn decided_at(&self) -> Time {
        self.controller.as_ref().map_or(Time::ZERO, |it| it.validation.decided_at())
    }

    /// Validation begins anew after an idle time.
    pub fn validate_anew(&mut self, now: Time) {
        if let Some(controller) = &mut self.controller {
            controller.validation.begin_anew(now);
        }
    }

    /// The most segments outstanding since the window was last full; the count begins anew.
    pub fn take_used(&mut self) -> u64 {
        self.controller.as_mut().map_or(0, |it| it.validation.take_used())
    }

    /// All that may leave has left; `limited`: the window kept the rest back.
    #[inline]
    pub fn validate_flight(&mut self, limited: bool, out: Outstanding) {
        if let Some(controller) = &mut self.controller {
            controller.validation.on_flight(limited, out);
        }
    }

    /// Validates the window as Linux does. Says whether a part of the window is unused.
    #[inline]
    pub fn validate_round(&mut self, now: Time, limited: bool, out: Outstanding) -> bool {
        let control = &self.control;
        self.controller
            .as_mut()
            .is_some_and(|it| it.validation.on_round(now, limited, out, control))
    }
}

/// Debts to the peer (CWR) and to the controller (early arrivals).
impl CongestionWindow {
    /// The peer is to be told of a reduction, or not any more (RFC 3168 §6.1.2).
    pub fn owe_cwr(&mut self, owes: bool) {
        self.owes_cwr = owes;
    }

    /// Whether the peer is to be told; it is told now.
    #[inline]
    pub fn take_cwr(&mut self) -> bool {
        std::mem::take(&mut self.owes_cwr)
    }

    /// A data segment arrived before the controller was created.
    pub fn note_early_arrival(&mut self) {
        self.early_arrivals += 1;
    }

    /// The number of data segments that arrived before the controller was created; resets it.
    pub fn take_early_arrivals(&mut self) -> u32 {
        std::mem::take(&mut self.early_arrivals)
    }
}
