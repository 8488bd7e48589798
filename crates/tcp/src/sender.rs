//! The sending half: what it knows of what it sent, and who decides how much that is.

use crate::cwnd_reduction::CwndReduction;
use crate::cwnd_validation::CwndValidation;
use crate::delivery_rate::DeliveryRate;
use crate::pacing::Pacing;
use crate::path_mtu::PathMtu;
use crate::rack::Rack;
use crate::recovery::Recovery;
use crate::rounds::Rounds;
use crate::rtt::Rtt;
use crate::scoreboard::Scoreboard;
use crate::send_buffer::SendBuffer;
use crate::seq::Origin;
use crate::settings::Settings;
use crate::small_queue::SmallQueue;
use crate::timer::Timer;
use crate::tlp::TailProbe;
use crate::tso::Tso;
use crate::undo::Undo;
use std::ops::{Deref, DerefMut};
use std::sync::LazyLock;
use tcplab_cc::{CongestionControl, Control, FlowState, Left};
use tcplab_units::{Duration, Time};

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

/// Who decides how much may be in flight, and the rounds counted on its behalf.
#[derive(Clone, Debug)]
pub(crate) struct Controller {
    pub cc: Box<dyn CongestionControl>,
    pub hears_arrivals: bool,
    pub rounds: Rounds,
}

/// What is under way, what became of it, and what is made of that.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flight {
    pub board: Scoreboard,
    pub recovery: Recovery,
    pub rack: Rack,
    pub tlp: TailProbe,
    pub undo: Undo,
    /// While the window is led to a smaller one.
    pub reduction: Option<CwndReduction>,
    pub validation: CwndValidation,
    pub tso: Tso,
    pub pacing: Pacing,
}

/// A flight that is made when something is first changed in it: most connections of a large experiment
/// only receive, or wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct OnDemand(Option<Box<Flight>>);

/// Windows for which a send buffer has room before there is a controller that says it.
const DEFAULT_WINDOWS: u64 = 2;

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
    pub flight: OnDemand,
    /// The peer is to be told that the window was made smaller (RFC 3168 §6.1.2).
    pub owes_cwr: bool,
    pub rtt: Rtt,
    /// The least RTT of the path, the handshake's included.
    pub min_rtt: Duration,
    /// Waits for what is outstanding.
    pub timer: Timer,
    /// The retransmission timer runs out then at the latest, for the user timeout.
    pub deadline: Time,
    /// None until there is data to send.
    pub controller: Option<Box<Controller>>,
    /// Segments with data that came before, and that Linux does not only take the data of.
    pub unheard: u32,
    /// The controller's last decision; before there is one, the initial window.
    pub control: Control,
    /// The application writes from its own memory, not from a file.
    pub copies: bool,
    /// How Linux holds what was written, once something was.
    pub buffer: Option<Box<SendBuffer>>,
    /// What waits at the host's own device, if that tells of what has left.
    pub small_queue: Option<Box<SmallQueue>>,
    /// What is known of the path's size, if it is not what both ends say.
    pub path: Option<Box<PathMtu>>,
    /// The next segment may be small: the persist timer ran out (RFC 9293 §3.8.6.2.1).
    pub overrides_silly_window: bool,
    pub last_sent: Time,
    /// When anything left, ACKs too (`tcp_wstamp_ns`).
    pub last_left: Time,
    pub delivered: u64,
    /// Segments found lost, each time they are.
    pub lost: u64,
    /// Bytes acknowledged and not yet counted as growth (RFC 3465).
    pub credit_bytes: u64,
    pub counters: SenderCounters,
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
            owes_cwr: false,
            rtt: Rtt::new(&settings.rto_limits()),
            min_rtt: Duration::MAX,
            timer: Timer::OFF,
            deadline: Time::NEVER,
            controller: None,
            unheard: 0,
            control: Control {
                cwnd: settings.initial_window,
                ssthresh: None,
                pacing: None,
                prr: false,
                least_burst: None,
                longest_burst: None,
            },
            copies: false,
            buffer: None,
            small_queue: None,
            path: None,
            overrides_silly_window: false,
            last_sent: Time::ZERO,
            last_left: Time::ZERO,
            delivered: 0,
            lost: 0,
            credit_bytes: 0,
            counters: SenderCounters::default(),
        }
    }

    /// There is data to send, or sent with the SYN, and no controller to say how much of it may leave.
    #[inline]
    pub fn needs_control(&self) -> bool {
        self.controller.is_none() && (self.is_stuck() || self.has_outstanding())
    }

    /// Data begins, under this controller, which counts from `since`.
    #[cold]
    pub fn begin(&mut self, since: Time, cc: Box<dyn CongestionControl>, settings: &Settings) {
        self.control = cc.control();
        let (hears_arrivals, samples_rate) = (cc.hears_arrivals(), cc.samples_rate());
        if samples_rate || settings.behaviour.always_samples_rate {
            self.flight.board.rates = Some(Box::new(DeliveryRate::new(samples_rate)));
        }
        self.controller =
            Some(Box::new(Controller { cc, hears_arrivals, rounds: Rounds::default() }));
        if settings.has_packet_buffer() {
            // Nothing was there to send until now.
            self.mark_app_limited();
        }
        if let Some(most) = settings.max_pacing_rate {
            self.flight.tso.limit_rate(most);
        }
        self.consult(since, |cc, flow| cc.on_begin(flow));
        self.flight.validation.note_decision(since);
        let (cwnd, windows) = (self.control.cwnd, self.buffered_windows());
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
        let cwnd = self.cwnd();
        let Some(controller) = &mut self.controller else { return };
        let credit = controller.cc.window().map_or(0.0, |window| window.credit());
        let Control { cwnd: decided, ssthresh, .. } = self.control;
        let left = Left { cwnd: decided, ssthresh, credit, initial: settings.initial_window };
        controller.cc = build(cwnd);
        controller.hears_arrivals = controller.cc.hears_arrivals();
        let samples_rate = controller.cc.samples_rate();
        match &mut self.flight.board.rates {
            Some(rates) => rates.set_listener(samples_rate),
            None if samples_rate => self.begin_rates(now),
            None => {}
        }
        self.consult(now, |cc, flow| cc.on_adopted(flow, &left));
        if !self.control.prr {
            // Such an algorithm leads the window by itself (`tcp_cong_control`).
            self.flight.reduction = None;
        }
    }

    /// Segments believed to be in the network.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        let Flight { board, recovery, .. } = &*self.flight;
        board.in_flight().saturating_sub(recovery.dup_delivered())
    }

    #[inline]
    pub fn has_outstanding(&self) -> bool {
        self.una < self.nxt
    }

    /// The FIN has been sent and acknowledged.
    pub fn is_fin_acked(&self) -> bool {
        self.closed && self.una == self.written + 1
    }

    /// The congestion controller, to look at.
    pub fn cc(&self) -> Option<&dyn CongestionControl> {
        self.controller.as_ref().map(|controller| &*controller.cc)
    }

    /// Segments that may be in flight.
    #[inline]
    pub fn cwnd(&self) -> u64 {
        self.flight.reduction.map_or(self.control.cwnd, |reduction| reduction.cwnd)
    }

    fn flow(&self, now: Time) -> FlowState {
        FlowState {
            now,
            mss: u64::from(self.mss),
            cwnd: self.cwnd(),
            rate: self.flight.tso.rate(),
            is_paced: self.flight.pacing.is_on(),
            in_flight: self.in_flight(),
            sacked: self.flight.board.sacked() + self.flight.recovery.dup_delivered(),
            delivered: self.delivered,
            srtt: self.rtt.srtt(),
            min_rtt: self.min_rtt,
            rto: self.rtt.plain(),
            una: self.una,
            nxt: self.nxt,
            lost: self.lost,
            next_departure: self.flight.pacing.next(),
            app_limited: self.flight.board.rates.as_ref().is_some_and(|it| it.is_app_limited()),
            cwnd_limited: self.flight.validation.is_full(&self.control),
            phase: self.flight.recovery.phase,
        }
    }

    /// Tells the controller of an event and takes its new decision.
    pub fn consult(
        &mut self,
        now: Time,
        event: impl FnOnce(&mut dyn CongestionControl, &FlowState),
    ) {
        let flow = self.flow(now);
        if let Some(controller) = &mut self.controller {
            event(&mut *controller.cc, &flow);
            let before = self.control.ssthresh;
            self.control = controller.cc.control();
            if self.flight.reduction.is_some() && self.control.ssthresh != before {
                self.follow_threshold();
            }
            if let Some(rate) = self.control.pacing {
                self.flight.tso.set_rate(rate);
            }
        }
    }

    /// The controller has moved the window that a reduction leads to.
    #[cold]
    fn follow_threshold(&mut self) {
        if let (Some(reduction), Some(target)) = (&mut self.flight.reduction, self.control.ssthresh)
        {
            reduction.aim_at(target);
        }
    }

    /// Windows of data for which a send buffer that grows has room.
    pub fn buffered_windows(&self) -> u64 {
        self.cc().map_or(DEFAULT_WINDOWS, CongestionControl::buffered_windows)
    }
}
