//! Rate samples and losses for the controllers that ask for them.

use crate::context::Context;
use crate::sender::Sender;
use tcplab_cc::RateSample;
use tcplab_transport::{AckedNow, Delivery, DeliveryRate, Totals};
use tcplab_units::Time;

impl Sender {
    /// A segment has left that stands at this place of the scoreboard, or is new at its end.
    /// `alone`: nothing was outstanding before.
    #[inline]
    pub(crate) fn note_departure(&mut self, now: Time, place: usize, alone: bool) {
        if self.loss.rates().is_some() {
            self.note_state(now, place, alone);
        }
    }

    #[inline(never)]
    fn note_state(&mut self, now: Time, place: usize, alone: bool) {
        let totals = self.totals();
        if let Some(rates) = self.loss.rates_mut() {
            rates.on_sent(now, place, alone, totals);
        }
    }

    #[inline]
    fn totals(&self) -> Totals {
        Totals { delivered: self.delivered, lost: self.lost, in_flight: self.in_flight() }
    }

    /// A controller asks for samples in the middle of a connection.
    #[cold]
    pub(crate) fn begin_rates(&mut self, now: Time) {
        let rates = DeliveryRate::midway(now, self.loss.scoreboard().outstanding(), self.totals());
        self.loss.sample_rates(rates);
    }

    /// Makes the sample of an ACK, once `delivered` and `lost` count what it did. Only a controller
    /// that asked for samples gets it.
    #[inline]
    pub(crate) fn sample_rate(
        &mut self,
        context: Context<'_>,
        ack: Delivery,
    ) -> Option<RateSample> {
        self.loss.rates()?;
        self.make_sample(context, ack)
    }

    #[inline(never)]
    fn make_sample(&mut self, context: Context<'_>, ack: Delivery) -> Option<RateSample> {
        let state = AckedNow {
            delivered: self.delivered,
            lost: self.lost,
            mss: self.mss.into(),
            min_rtt: self.rtt.min_rtt(),
            clock: context.settings.behaviour.clock,
        };
        self.loss.rates_mut()?.sample(context.now, ack, state)
    }

    /// Notes that the application is the limit, if it is: nothing waits to be sent, nothing to be
    /// repaired, and the window has room (`tcp_rate_check_app_limited`).
    #[inline(never)]
    pub(crate) fn check_app_limited(&mut self) {
        let board = self.loss.scoreboard();
        let has_gap = self.loss.rates().is_some()
            && !board.has_unrepaired()
            && self.unsent() < u64::from(self.mss)
            && self.in_flight() < self.cwnd();
        if has_gap {
            self.mark_app_limited();
        }
    }

    /// Samples say nothing of the path until all that is in flight has arrived.
    pub(crate) fn mark_app_limited(&mut self) {
        let until = self.delivered + self.in_flight();
        if let Some(rates) = self.loss.rates_mut() {
            rates.mark_app_limited(until);
        }
    }

    /// Tells the controller of what was just found lost, segment by segment, if it listens.
    #[inline]
    pub(crate) fn report_losses(&mut self, now: Time) {
        let reports = self.loss.rates().is_some_and(DeliveryRate::has_losses);
        if !reports {
            return;
        }
        let Some(rates) = self.loss.rates_mut() else { return };
        for lost in rates.take_losses(self.lost) {
            self.consult(now, |cc, flow| cc.on_lost(flow, &lost));
        }
    }
}
