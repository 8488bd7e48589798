//! A flow: which connections it opens and when, what they are for, and what came of it.
//!
//! What its programs do on a connection is `crate::application`.
//!
//! | file | flows |
//! |---|---|
//! | `streams` | whose connections carry data one way |
//! | `dialogues` | in which one end asks and the other one answers |
//! | `datagrams` | without connections |
//! | `outcome` | what became of them, for the tables |

mod datagrams;
mod dialogues;
mod outcome;
mod streams;

pub(crate) use datagrams::Datagrams;

use std::collections::VecDeque;
use tcplab_engine::TimerId;
use tcplab_model::schema::{ArrivalsPlan, Begin, Requests, WebPlan};
use tcplab_model::{FlowPlan, Plan};
use tcplab_tables::{self as tables, Activity, RoundTrips};
use tcplab_units::{Duration, Time};
use tcplab_workload::{Session, Transfer, Transfers, User, accounts};

/// One flow of a plan.
#[derive(Clone)]
pub(crate) struct Flow<'a> {
    pub plan: &'a FlowPlan,
    /// When it begins.
    pub start: Time,
    pub has_started: bool,
    /// A connection of one of its transfers was there.
    pub has_connected: bool,
    /// Fires when it begins, and whenever its program is to do something of its own accord.
    pub timer: TimerId,
    pub kind: Kind<'a>,
    /// How many connections it has opened.
    pub opened: u32,
    /// Remains of its connections, by number: others may use these ways.
    pub left: VecDeque<u32>,
    /// For how long these are left alone.
    pub forsaken: Duration,
    /// The places of connections that are over.
    pub free: Vec<usize>,
    /// What became of its transfers, if it has many.
    pub transfers: tables::Transfers,
    /// How many of these began, and how many completed.
    pub begun: u64,
    pub completed: u64,
    /// The RTTs of transfers whose rows were written since the last mark.
    pub written_rtt: Option<RoundTrips>,
    /// All that it had done by then.
    pub before: Activity,
}

/// How its connections come to be.
#[derive(Clone)]
pub(crate) enum Kind<'a> {
    /// One connection of this number, over which one end sends.
    One(usize),
    /// One connection, over which one end asks again and again.
    Requests(Dialogue<'a>),
    /// Several connections, each for one or more sessions.
    Web(Page<'a>),
    /// A connection for each transfer.
    Arrivals(Arriving<'a>),
    /// Datagrams.
    Datagrams(Box<Datagrams<'a>>),
}

/// Questions and answers.
#[derive(Clone)]
pub(crate) struct Dialogue<'a> {
    pub pair: usize,
    pub spec: &'a Requests,
    /// Questions asked so far.
    pub asked: u64,
}

/// Sessions of a web page.
#[derive(Clone)]
pub(crate) struct Page<'a> {
    pub spec: &'a WebPlan,
    pub sessions: Vec<Session<'a>>,
    /// How many have begun.
    pub begun: usize,
}

/// Transfers, each over a connection of its own.
#[derive(Clone)]
pub(crate) struct Arriving<'a> {
    pub spec: &'a ArrivalsPlan,
    pub begin: Beginning<'a>,
    /// How many have begun.
    pub begun: u64,
}

/// When transfers begin.
#[derive(Clone)]
pub(crate) enum Beginning<'a> {
    /// At their times: the next one, and those after it.
    Timed { next: Option<Transfer>, rest: Transfers<'a> },
    /// When a user has done with the last one: each has one at a time.
    Closed(Vec<Waiting<'a>>),
}

/// A user of a closed loop.
#[derive(Clone)]
pub(crate) struct Waiting<'a> {
    pub sizes: User<'a>,
    /// Fires when it has thought.
    pub timer: Option<TimerId>,
}

impl<'a> Flow<'a> {
    /// Its kind is found when it is prepared.
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
            forsaken: streams::forsaken(plan, flow),
            free: Vec::new(),
            transfers: tables::Transfers::within(accounts::window(plan)),
            begun: 0,
            completed: 0,
            written_rtt: None,
            before: Activity::default(),
        }
    }

    /// Whether the end that receives the data opens the connection, to ask for it.
    pub fn asks(&self) -> bool {
        tcplab_workload::ports::asks(self.plan)
    }
}

impl Dialogue<'_> {
    /// Whether another question is to follow.
    pub fn goes_on(&self) -> bool {
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
    pub fn goes_on(&self) -> bool {
        self.spec.transfers.is_none_or(|most| self.begun < most)
    }
}
