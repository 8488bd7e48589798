//! The sending half: the sequence space, the owners of losses, window and departures, and the
//! coordinators that connect them.

use crate::congestion::CongestionWindow;
use crate::context::Context;
use crate::departure::{Departure, Stream, Window};
use crate::loss::Loss;
use crate::on_demand::OnDemand;
use crate::seq::Origin;
use crate::settings::Settings;
use crate::timer::Timer;
use tcplab_cc::{CongestionControl, FlowState};
use tcplab_transport::DeliveryRate;
use tcplab_transport::Rtt;
use tcplab_units::Time;

mod bursts;
mod calls;
pub(crate) mod on_ack;
mod output;
mod path_mtu;
mod recovery;
pub(crate) mod refusal;
mod reordering;
pub(crate) mod resegment;
mod rto_timer;
mod sampling;
mod tail_probe;
mod undo;
mod validation;

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Segments with data, retransmissions included.
    pub sent_segments: u64,
    /// Retransmitted segments with data.
    pub retransmitted_segments: u64,
    /// Retransmitted FINs without data.
    pub retransmitted_fins: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Congestion episodes: loss recoveries begun, timeouts included.
    pub episodes: u64,
    /// Segments that the receiver reports to have received twice.
    pub duplicate_segments: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub origin: Origin,
    /// SND.UNA: the oldest offset that is not acknowledged.
    pub una: u64,
    /// SND.NXT: the next offset to be sent for the first time.
    pub nxt: u64,
    /// The end of what the application wrote.
    pub written: u64,
    /// The application has closed the sending direction.
    pub closed: bool,
    /// SND.WND: bytes that the peer accepts beyond `una`.
    pub window: u64,
    pub largest_window: u64,
    /// SND.WL1 and SND.WL2: sequence and acknowledgment number of the segment that last set the
    /// window (RFC 9293 §3.10.7.4).
    pub window_set_by: (u64, u64),
    pub peer_window_scale: u8,
    /// Payload bytes of a full segment, options deducted.
    pub mss: u16,
    /// Bytes of a full segment as both ends agreed, options included.
    pub agreed_mss: u16,
    pub sack: bool,
    /// The scoreboard and the state of loss recovery, once data is sent.
    loss: OnDemand<Loss>,
    pub rtt: Rtt,
    /// The retransmission, reordering, tail-loss-probe or persist timer.
    pub timer: Timer,
    /// The retransmission timer expires no later than this, for the user timeout.
    pub deadline: Time,
    /// How much may be in flight.
    congestion: CongestionWindow,
    /// What leaves when.
    departure: Departure,
    /// Segments delivered since the connection began (`tp->delivered`).
    delivered: u64,
    /// Segments found lost since the connection began, each time.
    lost: u64,
    counters: SenderCounters,
}

impl Sender {
    pub fn new(origin: u32, settings: &Settings) -> Self {
        Self {
            origin: Origin(origin),
            una: 0,
            nxt: 0,
            written: 1,
            closed: false,
            window: 0,
            largest_window: 0,
            window_set_by: (0, 0),
            peer_window_scale: 0,
            mss: settings.mss,
            agreed_mss: settings.mss,
            sack: false,
            loss: OnDemand::default(),
            rtt: Rtt::new(&settings.rto_limits()),
            timer: Timer::OFF,
            deadline: Time::NEVER,
            congestion: CongestionWindow::new(settings.initial_window),
            departure: Departure::default(),
            delivered: 0,
            lost: 0,
            counters: SenderCounters::default(),
        }
    }

    /// Whether data waits to be sent, or left with the SYN, and there is no controller yet.
    #[inline]
    pub fn needs_control(&self) -> bool {
        !self.congestion.is_controlled() && (self.needs_window_probe() || self.has_outstanding())
    }

    /// Data begins, under this controller. Its window counts from `since`.
    #[cold]
    pub fn begin(&mut self, since: Time, cc: Box<dyn CongestionControl>, settings: &Settings) {
        let samples_rate = self.congestion.begin(cc);
        if samples_rate || settings.behaviour.always_samples_rate {
            self.loss.start_rate_sampling(DeliveryRate::new(samples_rate));
        }
        if settings.has_packet_buffer() {
            // Until now there was nothing to send.
            self.mark_app_limited();
        }
        if let Some(most) = settings.max_pacing_rate {
            self.departure.set_max_rate(most);
        }
        self.consult(since, |cc, flow| cc.on_begin(flow));
        self.congestion.stamp_cwnd(since);
        let (cwnd, windows) =
            (self.congestion.controller_cwnd(), self.congestion.buffered_windows());
        self.departure.init_buffer_space(cwnd, windows);
        if self.departure.take_early_refusal() {
            self.enter_cwr(Context { now: since, settings }, 0);
        }
    }

    /// Replaces the controller; the new one is built with the window in effect.
    #[cold]
    pub fn replace_congestion_control(
        &mut self,
        context: Context<'_>,
        build: impl FnOnce(u64) -> Box<dyn CongestionControl>,
    ) {
        let now = context.now;
        let Some((left, samples_rate)) =
            self.congestion.replace_controller(context.settings.initial_window, build)
        else {
            return;
        };
        match self.loss.rates_mut() {
            Some(rates) => rates.set_listener(samples_rate),
            None if samples_rate => self.start_rate_sampling(now),
            None => {}
        }
        self.consult(now, |cc, flow| cc.on_adopted(flow, &left));
        if !self.congestion.control().prr {
            // An algorithm without PRR sets the window itself (`tcp_cong_control`).
            self.congestion.end_reduction();
        }
    }

    /// Segments believed to be in the network (`tcp_packets_in_flight`).
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.loss.in_flight()
    }

    #[inline]
    pub fn has_outstanding(&self) -> bool {
        self.una < self.nxt
    }

    /// Whether the FIN has been sent and acknowledged.
    pub fn is_fin_acked(&self) -> bool {
        self.closed && self.una == self.written + 1
    }

    /// The congestion window in segments.
    #[inline]
    pub fn cwnd(&self) -> u64 {
        self.congestion.cwnd()
    }

    /// The state of the byte stream that departures depend on.
    #[inline]
    fn stream(&self) -> Stream {
        Stream {
            una: self.una,
            nxt: self.nxt,
            written: self.written,
            closed: self.closed,
            window: self.window,
            largest_window: self.largest_window,
            mss: self.mss,
        }
    }

    /// The congestion window and `in_flight` segments.
    #[inline]
    fn window_for(&self, in_flight: u64) -> Window {
        Window { cwnd: self.cwnd(), in_flight }
    }

    fn flow(&self, now: Time) -> FlowState {
        FlowState {
            now,
            mss: u64::from(self.mss),
            cwnd: self.cwnd(),
            rate: self.departure.rate(),
            is_paced: self.departure.pacing().is_on(),
            in_flight: self.in_flight(),
            sacked: self.loss.out_of_order(),
            delivered: self.delivered,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            rto: self.rtt.base_rto(),
            una: self.una,
            nxt: self.nxt,
            lost: self.lost,
            next_departure: self.departure.pacing().next(),
            app_limited: self.loss.rates().is_some_and(DeliveryRate::is_app_limited),
            cwnd_limited: self.congestion.is_full(),
            phase: self.loss.phase(),
        }
    }

    /// Calls the controller with an event and takes its new decision.
    pub fn consult(
        &mut self,
        now: Time,
        event: impl FnOnce(&mut dyn CongestionControl, &FlowState),
    ) {
        let flow = self.flow(now);
        self.congestion.consult(&flow, event);
        if let Some(rate) = self.congestion.pacing() {
            self.departure.set_rate(rate);
        }
    }
}
