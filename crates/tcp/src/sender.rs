//! The sending half: what it knows of what it sent, and who decides how much that is.

use crate::congestion::CongestionWindow;
use crate::loss::Loss;
use crate::send_buffer::SendBuffer;
use crate::sender::path_mtu::PathMtu;
use crate::sender::small_queue::SmallQueue;
use crate::sender::tso::Tso;
use crate::seq::Origin;
use crate::settings::Settings;
use crate::timer::Timer;
use std::ops::{Deref, DerefMut};
use std::sync::LazyLock;
use tcplab_cc::{CongestionControl, FlowState};
use tcplab_transport::DeliveryRate;
use tcplab_transport::Pacing;
use tcplab_transport::Rtt;
use tcplab_units::Time;

mod calls;
pub(crate) mod data;
pub(crate) mod on_ack;
mod output;
mod pacing;
mod path_mtu;
mod recovery;
mod reordering;
pub(crate) mod resegment;
mod rto_timer;
mod sampling;
mod small_queue;
mod tail_probe;
pub(crate) mod tso;
mod undo;
mod validation;

/// What a sender has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Segments with data, repeated ones included.
    pub sent_segments: u64,
    /// Segments with data sent again.
    pub retransmitted_segments: u64,
    /// FINs without data sent again.
    pub retransmitted_fins: u64,
    /// Times the retransmission timer ran out.
    pub timeouts: u64,
    /// Congestion episodes: loss recoveries begun, timeouts included.
    pub episodes: u64,
    /// Segments that the receiver reports to have come twice.
    pub duplicate_segments: u64,
}

/// What is under way, what became of it, and what is made of that.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flight {
    pub loss: Loss,
    pub tso: Tso,
    pub pacing: Pacing,
}

/// A flight that is made when something is first changed in it: most connections of a large experiment
/// only receive, or wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct OnDemand(Option<Box<Flight>>);

static NOTHING: LazyLock<Flight> = LazyLock::new(Flight::default);

impl Deref for OnDemand {
    type Target = Flight;

    #[inline]
    fn deref(&self) -> &Flight {
        match &self.0 {
            Some(flight) => flight,
            None => Self::nothing(),
        }
    }
}

impl DerefMut for OnDemand {
    #[inline]
    fn deref_mut(&mut self) -> &mut Flight {
        match &mut self.0 {
            Some(flight) => flight,
            empty => Self::fill(empty),
        }
    }
}

impl OnDemand {
    /// What there is of it: to be asked by what happens at ends that send nothing, too.
    #[inline]
    pub fn get(&self) -> Option<&Flight> {
        self.0.as_deref()
    }

    #[cold]
    fn nothing() -> &'static Flight {
        &NOTHING
    }

    #[cold]
    fn fill(empty: &mut Option<Box<Flight>>) -> &mut Flight {
        empty.get_or_insert_default()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub origin: Origin,
    /// The oldest offset not acknowledged.
    pub una: u64,
    /// The next offset to be sent for the first time.
    pub nxt: u64,
    /// The end of what the application wrote.
    pub written: u64,
    /// The application will write no more.
    pub closed: bool,
    /// Bytes the peer takes beyond `una`.
    pub window: u64,
    pub largest_window: u64,
    /// Sequence and acknowledgment of the segment that last set the window (RFC 9293 §3.10.7.4).
    pub window_set_by: (u64, u64),
    pub peer_window_scale: u8,
    /// Payload bytes of a full segment, options deducted.
    pub mss: u16,
    /// Bytes of a full segment as both ends agreed on, options included.
    pub agreed_mss: u16,
    pub sack: bool,
    /// What is under way, and all that is known of it.
    flight: OnDemand,
    pub rtt: Rtt,
    /// Waits for what is outstanding.
    pub timer: Timer,
    /// The retransmission timer runs out then at the latest, for the user timeout.
    pub deadline: Time,
    /// How much may be in flight.
    congestion: CongestionWindow,
    /// The application writes from its own memory, not from a file.
    copies: bool,
    /// How Linux holds what was written, once something was.
    buffer: Option<Box<SendBuffer>>,
    /// What waits at the host's own device, if that tells of what has left.
    small_queue: Option<Box<SmallQueue>>,
    /// What is known of the path's size, if it is not what both ends say.
    path: Option<Box<PathMtu>>,
    /// The next segment may be small: the persist timer ran out (RFC 9293 §3.8.6.2.1).
    overrides_silly_window: bool,
    last_sent: Time,
    /// When anything left, ACKs too (`tcp_wstamp_ns`).
    last_left: Time,
    delivered: u64,
    /// Segments found lost, each time they are.
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
            flight: OnDemand::default(),
            rtt: Rtt::new(&settings.rto_limits()),
            timer: Timer::OFF,
            deadline: Time::NEVER,
            congestion: CongestionWindow::new(settings.initial_window),
            copies: false,
            buffer: None,
            small_queue: None,
            path: None,
            overrides_silly_window: false,
            last_sent: Time::ZERO,
            last_left: Time::ZERO,
            delivered: 0,
            lost: 0,
            counters: SenderCounters::default(),
        }
    }

    /// There is data to send, or sent with the SYN, and no controller to say how much of it may leave.
    #[inline]
    pub fn needs_control(&self) -> bool {
        !self.congestion.is_controlled() && (self.is_stuck() || self.has_outstanding())
    }

    /// Data begins, under this controller, which counts from `since`.
    #[cold]
    pub fn begin(&mut self, since: Time, cc: Box<dyn CongestionControl>, settings: &Settings) {
        let samples_rate = self.congestion.begin(cc);
        if samples_rate || settings.behaviour.always_samples_rate {
            self.flight.loss.sample_rates(DeliveryRate::new(samples_rate));
        }
        if settings.has_packet_buffer() {
            // Nothing was there to send until now.
            self.mark_app_limited();
        }
        if let Some(most) = settings.max_pacing_rate {
            self.flight.tso.limit_rate(most);
        }
        self.consult(since, |cc, flow| cc.on_begin(flow));
        self.congestion.note_decision(since);
        let (cwnd, windows) = (self.congestion.decided(), self.congestion.buffered_windows());
        if let Some(buffer) = &mut self.buffer {
            buffer.begin(cwnd, windows);
        }
    }

    /// The flow goes on under another controller, which is built with the window in effect.
    #[cold]
    pub fn adopt(
        &mut self,
        now: Time,
        build: impl FnOnce(u64) -> Box<dyn CongestionControl>,
        settings: &Settings,
    ) {
        let Some((left, samples_rate)) = self.congestion.adopt(settings.initial_window, build)
        else {
            return;
        };
        match self.flight.loss.rates_mut() {
            Some(rates) => rates.set_listener(samples_rate),
            None if samples_rate => self.begin_rates(now),
            None => {}
        }
        self.consult(now, |cc, flow| cc.on_adopted(flow, &left));
        if !self.congestion.control().prr {
            // Such an algorithm leads the window by itself (`tcp_cong_control`).
            self.congestion.end_reduction();
        }
    }

    /// Segments believed to be in the network.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.flight.loss.in_flight()
    }

    #[inline]
    pub fn has_outstanding(&self) -> bool {
        self.una < self.nxt
    }

    /// The FIN has been sent and acknowledged.
    pub fn is_fin_acked(&self) -> bool {
        self.closed && self.una == self.written + 1
    }

    /// Segments that may be in flight.
    #[inline]
    pub fn cwnd(&self) -> u64 {
        self.congestion.cwnd()
    }

    fn flow(&self, now: Time) -> FlowState {
        FlowState {
            now,
            mss: u64::from(self.mss),
            cwnd: self.cwnd(),
            rate: self.flight.tso.rate(),
            is_paced: self.flight.pacing.is_on(),
            in_flight: self.in_flight(),
            sacked: self.flight.loss.out_of_order(),
            delivered: self.delivered,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            rto: self.rtt.plain(),
            una: self.una,
            nxt: self.nxt,
            lost: self.lost,
            next_departure: self.flight.pacing.next(),
            app_limited: self.flight.loss.rates().is_some_and(DeliveryRate::is_app_limited),
            cwnd_limited: self.congestion.is_full(),
            phase: self.flight.loss.phase(),
        }
    }

    /// Tells the controller of an event and takes its new decision.
    pub fn consult(
        &mut self,
        now: Time,
        event: impl FnOnce(&mut dyn CongestionControl, &FlowState),
    ) {
        let flow = self.flow(now);
        self.congestion.consult(&flow, event);
        if let Some(rate) = self.congestion.pacing() {
            self.flight.tso.set_rate(rate);
        }
    }
}
