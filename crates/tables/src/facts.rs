//! Facts that backends know about flows and transfers; `derived` computes everything that follows.
//! Sums saturate: a kernel's values may be wrong, which `laws` detects.

use crate::datagrams::DatagramFacts;
use crate::measure::Window;
use crate::totals::FlowTotals;
use crate::transfers::Transfers;
use tcplab_units::{Duration, Rate, Time};

/// The transport of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Transport {
    /// The word in tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// How a flow or a transfer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// All data has arrived.
    Completed,
    /// A flow with a size or a number of objects, cut short by the end of the experiment.
    Unfinished,
    /// A flow without an end of its own, which ran until the experiment ended.
    Running,
    /// The flow did not begin.
    NotStarted,
    /// All datagrams were sent, and not all arrived.
    Partial,
    /// The peer reset the connection.
    Reset,
    /// The connection gave up.
    TimedOut,
    /// Another error, in lower case.
    Failed(&'a str),
}

impl<'a> Outcome<'a> {
    /// The word in tables.
    pub fn word(self) -> &'a str {
        match self {
            Self::Completed => "completed",
            Self::Unfinished => "unfinished",
            Self::Running => "running",
            Self::NotStarted => "not started",
            Self::Partial => "partial",
            Self::Reset => "reset",
            Self::TimedOut => "timed out",
            Self::Failed(why) => why,
        }
    }
}

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Segments with data, or datagrams; retransmissions included.
    pub sent_segments: u64,
    /// Retransmitted segments with data.
    pub retransmitted_segments: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Congestion window reductions.
    pub loss_episodes: u64,
}

impl Counters {
    /// Adds the counters of another connection.
    pub fn add(&mut self, other: &Self) {
        self.sent_segments = self.sent_segments.saturating_add(other.sent_segments);
        self.retransmitted_segments =
            self.retransmitted_segments.saturating_add(other.retransmitted_segments);
        self.timeouts = self.timeouts.saturating_add(other.timeouts);
        self.loss_episodes = self.loss_episodes.saturating_add(other.loss_episodes);
    }

    /// The counts since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            sent_segments: self.sent_segments.saturating_sub(before.sent_segments),
            retransmitted_segments: self
                .retransmitted_segments
                .saturating_sub(before.retransmitted_segments),
            timeouts: self.timeouts.saturating_sub(before.timeouts),
            loss_episodes: self.loss_episodes.saturating_sub(before.loss_episodes),
        }
    }
}

/// RTT samples, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrips {
    /// The number of samples.
    pub count: u64,
    /// Their sum in nanoseconds.
    pub sum_nanos: u64,
    /// The minimum.
    pub min: Duration,
    /// The maximum.
    pub max: Duration,
}

impl RoundTrips {
    /// The mean, in whole nanoseconds.
    pub fn mean(&self) -> Duration {
        Duration::from_picos((self.sum_nanos / self.count).saturating_mul(1000))
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Option<Self>) -> Self {
        let Some(other) = other else { return self };
        Self {
            count: self.count.saturating_add(other.count),
            sum_nanos: self.sum_nanos.saturating_add(other.sum_nanos),
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }
}

/// One object of a flow with many: a session, a transfer, a request and its response, a connection
/// of programs. Only those that have begun are reported.
#[derive(Clone, Copy, Debug)]
pub struct TransferFacts<'a> {
    /// The flow's name.
    pub flow: &'a str,
    /// The label for grouping.
    pub class: &'a str,
    /// The number of the transfer in the flow, from 1.
    pub number: u64,
    /// The number of the flow's connection that carries it, from 1.
    pub connection: u64,
    /// The start.
    pub start: Time,
    /// The arrival of the last byte, the failure, or the end of the experiment.
    pub end: Time,
    /// Whether its connection was established.
    pub has_connected: bool,
    /// Bytes that reached the application.
    pub bytes: u64,
    /// The outcome.
    pub outcome: Outcome<'a>,
    /// The sender's counters; `None` if they cannot be assigned to single transfers of a
    /// connection.
    pub counters: Option<Counters>,
    /// RTTs of its sender, if it took any.
    pub rtt: Option<RoundTrips>,
}

/// Identity of a flow: an entry of the experiment, or one instance of its `count`.
#[derive(Clone, Copy, Debug)]
pub struct FlowIdentity<'a> {
    /// The name.
    pub name: &'a str,
    /// The label for grouping.
    pub class: &'a str,
    /// The host that sends the data.
    pub from: &'a str,
    /// The host that receives the data.
    pub to: &'a str,
    /// The transport.
    pub transport: Transport,
    /// The congestion control of the sender; `None` for UDP.
    pub cc: Option<&'a str>,
    /// The slowest link on the forward path, and its initial rate.
    pub bottleneck: (&'a str, Rate),
}

#[cfg(test)]
impl<'a> FlowIdentity<'a> {
    /// A flow for tests that only use its name.
    pub fn named(name: &'a str) -> Self {
        let (class, from, to, cc, bottleneck) =
            ("", "", "", None, ("", Rate::from_bits_per_second(1)));
        Self { name, class, from, to, transport: Transport::Tcp, cc, bottleneck }
    }
}

/// Everything known of a flow at the end.
#[derive(Clone, Copy, Debug)]
pub struct FlowFacts<'a> {
    /// The identity of the flow.
    pub flow: FlowIdentity<'a>,
    /// The measuring window, which restricts the numbers from `bytes` on, but not outcomes.
    pub window: Window,
    /// The start, actual or planned.
    pub start: Time,
    /// The arrival of the last byte if the flow has an end of its own, else the end of the
    /// experiment.
    pub end: Time,
    /// Whether a connection was established; UDP needs none.
    pub has_connected: bool,
    /// Bytes that reached the application.
    pub bytes: u64,
    /// The outcome.
    pub outcome: Outcome<'a>,
    /// The sum of the counters of all its senders.
    pub counters: Counters,
    /// The RTTs of all its senders, if they took any.
    pub rtt: Option<RoundTrips>,
    /// The statistics of its datagrams, if it sends any.
    pub datagrams: Option<DatagramFacts>,
    /// Its transfers, if it consists of many.
    pub transfers: Option<&'a Transfers>,
    /// The sender's totals over the whole run, if the backend has them.
    pub totals: Option<FlowTotals>,
}

impl<'a> FlowFacts<'a> {
    /// A flow that has not begun, to be filled in.
    pub fn new(flow: FlowIdentity<'a>, (start, end): (Time, Time)) -> Self {
        Self {
            flow,
            window: Window::whole(end.since(Time::ZERO)),
            start,
            end,
            has_connected: false,
            bytes: 0,
            outcome: Outcome::NotStarted,
            counters: Counters::default(),
            rtt: None,
            datagrams: None,
            transfers: None,
            totals: None,
        }
    }
}
