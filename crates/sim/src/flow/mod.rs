//! Flows: which connections a flow opens and when, what they carry, and the outcome.
//!
//! The programs at the ends of a connection are in `crate::application`.
//!
//! | file | flows |
//! |---|---|
//! | `streams` | with connections that carry data one way |
//! | `request_response` | with requests and responses: request flows and web page loads |
//! | `datagrams` | without connections |
//! | `outcome` | the outcome of flows, for the tables |

mod datagrams;
mod outcome;
mod request_response;
mod streams;

pub(crate) use datagrams::Datagrams;

use std::collections::VecDeque;
use tcplab_engine::TimerId;
use tcplab_model::schema::{ArrivalsPlan, Begin, Requests, WebPlan};
use tcplab_model::{FlowPlan, Plan};
use tcplab_tables::{self as tables, Activity, RoundTrips};
use tcplab_units::{Duration, Time};
use tcplab_workload::{Session, Transfer, Transfers, User};

/// One flow of a plan.
#[derive(Clone)]
pub(crate) struct Flow<'a> {
    pub plan: &'a FlowPlan,
    /// The start of the flow.
    pub start: Time,
    pub has_started: bool,
    /// Whether a connection of one of its transfers was established.
    pub has_connected: bool,
    /// Fires at the start, and whenever the flow's program acts on its own.
    pub timer: TimerId,
    pub kind: Kind<'a>,
    /// The number of connections opened.
    pub opened: u32,
    /// Remains of closed connections, by number, whose routes may be reused.
    pub left: VecDeque<u32>,
    /// How long those routes are not reused after the last packet.
    pub quarantine: Duration,
    /// The slots of closed connections.
    pub free: Vec<usize>,
    /// The outcomes of transfers, if the flow has many. Boxed, as is the state of rare kinds: an
    /// experiment may have many flows of one connection.
    pub transfers: Option<Box<tables::Transfers>>,
    /// How many transfers began, and how many completed.
    pub begun: u64,
    pub completed: u64,
    /// RTTs of the transfers whose rows were written since the last mark.
    pub written_rtt: Option<RoundTrips>,
    /// The flow's activity up to that mark.
    pub before: Activity,
}

/// The kind of a flow, by how its connections come about.
#[derive(Clone)]
pub(crate) enum Kind<'a> {
    /// The one connection of this number, over which one end sends.
    One(usize),
    /// One connection, with one request after another.
    Requests(RequestResponse<'a>),
    /// Several connections, each for one or more sessions.
    Web(Page<'a>),
    /// A connection for each transfer.
    Arrivals(Box<Arriving<'a>>),
    /// Datagrams.
    Datagrams(Box<Datagrams<'a>>),
}

/// Requests and responses over one connection.
#[derive(Clone)]
pub(crate) struct RequestResponse<'a> {
    pub pair: usize,
    pub spec: &'a Requests,
    /// Requests sent so far.
    pub asked: u64,
}

/// Sessions of a web page.
#[derive(Clone)]
pub(crate) struct Page<'a> {
    pub spec: &'a WebPlan,
    pub sessions: Vec<Session<'a>>,
    /// How many sessions have begun.
    pub begun: usize,
}

/// Transfers, each over its own connection.
#[derive(Clone)]
pub(crate) struct Arriving<'a> {
    pub spec: &'a ArrivalsPlan,
    pub begin: Beginning<'a>,
    /// How many transfers have begun.
    pub begun: u64,
}

/// When transfers begin.
#[derive(Clone)]
pub(crate) enum Beginning<'a> {
    /// At given times: the next one, and those after it.
    Timed { next: Option<Transfer>, rest: Transfers<'a> },
    /// In a closed loop: each user has one transfer at a time.
    Closed(Vec<Waiting<'a>>),
}

/// A user of a closed loop.
#[derive(Clone)]
pub(crate) struct Waiting<'a> {
    pub sizes: User<'a>,
    /// Fires at the end of the user's think time.
    pub timer: Option<TimerId>,
}

impl<'a> Flow<'a> {
    /// The kind is a placeholder until the flow is prepared.
    pub fn new(plan: &'a Plan, number: usize, timer: TimerId) -> Self {
        let flow = &plan.flows[number];
        Self {
            plan: flow,
            start: Time::ZERO + tcplab_workload::start(flow, plan.seed),
            has_started: false,
            has_connected: false,
            timer,
            kind: Kind::One(0),
            opened: 0,
            left: VecDeque::new(),
            quarantine: streams::quarantine(plan, flow),
            free: Vec::new(),
            transfers: None,
            begun: 0,
            completed: 0,
            written_rtt: None,
            before: Activity::default(),
        }
    }

    /// Whether the end that receives the data opens the connection, to request it.
    pub fn asks(&self) -> bool {
        tcplab_workload::ports::asks(self.plan)
    }
}

impl RequestResponse<'_> {
    /// Whether another request follows.
    pub fn has_more(&self) -> bool {
        self.spec.requests.is_none_or(|most| self.asked < most)
    }
}

impl<'a> Arriving<'a> {
    pub fn new(spec: &'a ArrivalsPlan, seed: u64, name: &str) -> Self {
        let begin = match (Transfers::new(spec, seed, name), spec.begin) {
            (Some(mut rest), _) => Beginning::Timed { next: rest.next(), rest },
            (None, Begin::Closed { users, .. }) => {
                let user = |number| User::new(spec, seed, name, number);
                let waiting = |number| Waiting { sizes: user(number), timer: None };
                Beginning::Closed((0..users).map(waiting).collect())
            }
            (None, _) => Beginning::Closed(Vec::new()),
        };
        Self { spec, begin, begun: 0 }
    }

    /// Whether another transfer may begin.
    pub fn has_more(&self) -> bool {
        self.spec.transfers.is_none_or(|most| self.begun < most)
    }
}
