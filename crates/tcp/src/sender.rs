//! The sending half: what may be sent, and what an ACK means for it.

use crate::recovery::{Arrival, Phase, Recovery, Rules, Turn};
use crate::rounds::{Contribution, Rounds};
use crate::rtt::Rtt;
use crate::scoreboard::{Progress, Scoreboard};
use crate::segment::{Flags, Segment};
use crate::seq::Origin;
use crate::settings::{AckCounting, Settings};
use tcplab_cc::{Ack, Cause, Congestion, CongestionControl, Control, FlowState};
use tcplab_units::Time;

/// What a sender has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Segments with data or FIN, repeated ones included.
    pub sent_segments: u64,
    /// Segments sent again.
    pub retransmitted_segments: u64,
    /// Times the retransmission timer ran out.
    pub timeouts: u64,
    /// Congestion episodes: loss recoveries begun, timeouts included.
    pub episodes: u64,
}

/// Who decides how much may be in flight, and the rounds counted on its behalf.
#[derive(Debug)]
struct Steering {
    cc: Box<dyn CongestionControl>,
    rounds: Rounds,
}

#[derive(Debug)]
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
    window_set_by: (u64, u64),
    pub peer_window_scale: u8,
    /// Payload bytes of a full segment, options deducted.
    pub mss: u16,
    pub sack: bool,
    pub board: Scoreboard,
    pub recovery: Recovery,
    pub rtt: Rtt,
    /// None until there is data to send.
    steering: Option<Box<Steering>>,
    /// The controller's last decision; before there is one, the initial window.
    pub control: Control,
    pub cwnd_limited: bool,
    /// Data up to here was sent when the window was last full.
    pub limited_until: u64,
    /// The next segment may be small: the persist timer ran out (RFC 9293 §3.8.6.2.1).
    pub overrides_silly_window: bool,
    pub last_sent: Time,
    pub delivered: u64,
    /// Bytes acknowledged and not yet counted as growth (RFC 3465).
    credit_bytes: u64,
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
            sack: false,
            board: Scoreboard::default(),
            recovery: Recovery::default(),
            rtt: Rtt::new(settings),
            steering: None,
            control: Control {
                cwnd: settings.initial_window,
                ssthresh: None,
                pacing: None,
                prr: false,
            },
            cwnd_limited: false,
            limited_until: 0,
            overrides_silly_window: false,
            last_sent: Time::ZERO,
            delivered: 0,
            credit_bytes: 0,
            counters: SenderCounters::default(),
        }
    }

    /// There is data to send and no controller to say how much of it may leave.
    #[inline]
    pub fn needs_control(&self) -> bool {
        self.steering.is_none() && self.is_stuck()
    }

    /// Data begins, under this controller.
    #[cold]
    pub fn begin(&mut self, cc: Box<dyn CongestionControl>) {
        self.control = cc.control();
        self.steering = Some(Box::new(Steering { cc, rounds: Rounds::default() }));
    }

    /// Segments believed to be in the network.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.board.in_flight().saturating_sub(self.recovery.dup_delivered())
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
        self.steering.as_ref().map(|steering| &*steering.cc)
    }

    pub fn flow(&self, now: Time) -> FlowState {
        FlowState {
            now,
            mss: u64::from(self.mss),
            in_flight: self.in_flight(),
            delivered: self.delivered,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min,
            cwnd_limited: self.cwnd_limited,
            recovering: self.recovery.phase == Phase::Recovery,
        }
    }

    /// Tells the controller of an event and takes its new decision.
    pub fn consult(
        &mut self,
        now: Time,
        event: impl FnOnce(&mut dyn CongestionControl, &FlowState),
    ) {
        let flow = self.flow(now);
        if let Some(steering) = &mut self.steering {
            event(&mut *steering.cc, &flow);
            self.control = steering.cc.control();
        }
    }

    /// Takes an acknowledgment of `ack`, which is not beyond `nxt`. Says whether new data was
    /// acknowledged.
    pub fn on_ack(
        &mut self,
        now: Time,
        segment: &Segment,
        (seq, ack): (u64, u64),
        settings: &Settings,
    ) -> bool {
        let window_changed = self.update_window(segment, seq, ack);
        let acked_bytes = ack.saturating_sub(self.una);
        let mut progress = Progress::default();
        if acked_bytes > 0 {
            progress = self.board.acknowledge(ack);
            self.una = ack;
        } else if ack < self.una && segment.sack().is_empty() {
            return false;
        }
        if self.sack && !segment.sack().is_empty() {
            self.take_sack(segment, &mut progress);
        }
        let duplicate = if self.sack {
            acked_bytes == 0 && progress.delivered > 0
        } else {
            ack == self.una
                && acked_bytes == 0
                && self.has_outstanding()
                && segment.sequence_length() == 0
                && !window_changed
        };
        if acked_bytes == 0 && progress.delivered == 0 && !duplicate {
            return false;
        }

        let arrival = Arrival { una: self.una, nxt: self.nxt, duplicate };
        let rules =
            Rules { sack: self.sack, dup_thresh: settings.dup_thresh, mss: u64::from(self.mss) };
        let (turn, lost) = self.recovery.on_ack(&mut self.board, &mut progress, arrival, rules);
        self.delivered += progress.delivered;
        if let Some(sent) = progress.oldest {
            self.rtt.sample(now.since(sent), settings);
        }
        let rtt = progress.newest.map(|sent| now.since(sent));
        match turn {
            Turn::None => {}
            Turn::Begins(cause) => {
                self.begin_episode(now, cause, self.recovery.flight(&self.board));
            }
            Turn::Ends => self.consult(now, |cc, flow| cc.on_recovered(flow)),
        }
        let contribution = Contribution { rtt, delivered: progress.delivered, lost };
        let (una, nxt) = (self.una, self.nxt);
        let round = self
            .steering
            .as_mut()
            .and_then(|steering| steering.rounds.on_ack(now, una, nxt, contribution));
        let ack = Ack {
            acked: progress.acked,
            credit: self.credit(acked_bytes, &progress, settings),
            delivered: progress.delivered,
            lost,
            rtt,
            round,
            ..Ack::default()
        };
        self.consult(now, |cc, flow| cc.on_ack(flow, &ack));
        acked_bytes > 0
    }

    /// The retransmission timer ran out.
    pub fn on_timeout(&mut self, now: Time) {
        self.counters.timeouts += 1;
        self.rtt.back_off();
        // FlightSize is what is outstanding in the network (RFC 5681 §3.1, equation 4). In a recovery
        // that ends so, most of what was sent may have been SACKed long ago.
        let delivered = self.board.sacked() + self.recovery.dup_delivered();
        let flight = self.board.outstanding().saturating_sub(delivered);
        let (turn, _) = self.recovery.on_timeout(&mut self.board, self.nxt);
        if let Turn::Begins(cause) = turn {
            self.begin_episode(now, cause, flight);
        }
    }

    fn begin_episode(&mut self, now: Time, cause: Cause, flight: u64) {
        self.counters.episodes += 1;
        self.consult(now, |cc, flow| cc.on_congestion(flow, Congestion { cause, flight }));
    }

    /// Takes the window of the newest segment (RFC 9293 §3.10.7.4). Says whether it changed.
    #[inline]
    fn update_window(&mut self, segment: &Segment, seq: u64, ack: u64) -> bool {
        if ack < self.una || (seq, ack) < self.window_set_by {
            return false;
        }
        self.window_set_by = (seq, ack);
        let scale = if segment.flags.has(Flags::SYN) { 0 } else { self.peer_window_scale };
        let window = u64::from(segment.window) << scale;
        let changed = window != self.window;
        self.window = window;
        self.largest_window = self.largest_window.max(window);
        changed
    }

    fn take_sack(&mut self, segment: &Segment, progress: &mut Progress) {
        for &(start, end) in segment.sack() {
            let offset = |number| self.origin.offset(number, self.una);
            let (Some(start), Some(end)) = (offset(start), offset(end)) else { continue };
            // Blocks of what is acknowledged or was never sent say nothing (RFC 2018 §5, RFC 2883).
            if start < end && end <= self.nxt {
                self.board.sack(start.max(self.una)..end, progress);
            }
        }
    }

    /// How many segments of growth an ACK is worth.
    #[inline]
    fn credit(&mut self, acked_bytes: u64, progress: &Progress, settings: &Settings) -> u64 {
        match settings.counting {
            _ if acked_bytes == 0 => 0,
            AckCounting::PerAck => 1,
            AckCounting::PerSegment => progress.delivered,
            AckCounting::PerByte { limit } => {
                let mss = u64::from(self.mss);
                let in_slow_start =
                    self.control.ssthresh.is_none_or(|ssthresh| self.control.cwnd < ssthresh);
                // RFC 3465 §2.3: after a timeout L is 1, and in congestion avoidance there is none.
                let counted = match (in_slow_start, self.recovery.phase) {
                    (false, _) => acked_bytes,
                    (true, Phase::Loss) => acked_bytes.min(mss),
                    (true, _) => acked_bytes.min(u64::from(limit) * mss),
                };
                self.credit_bytes += counted;
                let segments = self.credit_bytes / mss;
                self.credit_bytes %= mss;
                segments
            }
        }
    }
}
