//! The connections that have begun and not ended: each is reported once.

use crate::channel;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tcplab_guest::report::{Datagrams, Report};
use tcplab_tables::{MeasuredDatagrams, Window};
use tcplab_units::{Duration, Time};

/// A connection, or a flow of datagrams.
pub(super) struct Connection {
    flow: usize,
    number: usize,
    port: u16,
    /// In nanoseconds after the start of the experiment.
    start: u64,
    /// Counted on the way if it is a flow of datagrams.
    datagrams: Option<Counts>,
    /// Set when it has ended: when all had arrived, in nanoseconds after the start of the experiment, or
    /// nothing if it broke.
    over: OnceLock<Option<u64>>,
}

/// Times are in nanoseconds after the start of the experiment; 0 means not yet.
#[derive(Default)]
pub(super) struct Counts {
    pub sent: AtomicU64,
    pub finished: AtomicU64,
    pub received_bytes: AtomicU64,
    pub arrived: AtomicU64,
    /// How long the experiment lasts.
    duration: u64,
    /// Nothing if the datagrams have no numbers.
    numbered: Option<Mutex<Numbered>>,
    /// Nothing if none of their counts is told before the end.
    since: Option<Mutex<Since>>,
}

/// Counters of a flow of datagrams since the last mark.
struct Since {
    flow: usize,
    window: Window,
    mark: Time,
    sent: u64,
    arrived: u64,
    bytes: u64,
}

impl Since {
    /// Something is to be counted at this time: marks that are over by then are told first.
    fn pass(&mut self, now: Time) {
        while let Some(mark) = self.window.next_mark(self.mark).filter(|mark| *mark <= now) {
            self.mark = mark;
            self.tell();
        }
    }

    fn tell(&mut self) {
        let Self { flow, sent, arrived, bytes, .. } = *self;
        channel::report(&Report::Datagrams { flow, sent, arrived, bytes });
        (self.sent, self.arrived, self.bytes) = (0, 0, 0);
    }
}

/// Datagrams that carry their number.
#[derive(Default)]
struct Numbered {
    seen: MeasuredDatagrams,
    /// When they were sent, from number `first` on.
    sent: VecDeque<u64>,
    first: u64,
}

/// A datagram that is overtaken by more than so many has no delay.
const MOST_OVERTAKEN: u64 = 1 << 16;

impl Counts {
    /// The next datagram is sent at this time.
    pub fn on_sent(&self, at: u64) {
        self.sent.fetch_add(1, Ordering::Relaxed);
        if let Some(mut since) = self.since() {
            since.pass(time(at));
            since.sent += 1;
        }
        if let Some(numbered) = &self.numbered {
            let mut numbered = numbered.lock().unwrap_or_else(PoisonError::into_inner);
            numbered.sent.push_back(at);
            numbered.seen.on_sent(time(at));
        }
    }

    /// The datagram of this number has arrived.
    pub fn on_arrival(&self, number: u64, at: u64, bytes: u64) {
        if let Some(mut since) = self.since() {
            since.pass(time(at));
            since.arrived += 1;
            since.bytes += bytes;
        }
        let Some(numbered) = &self.numbered else { return };
        let mut numbered = numbered.lock().unwrap_or_else(PoisonError::into_inner);
        let place = number.checked_sub(numbered.first).map(|place| place as usize);
        let Some(sent) = place.and_then(|place| numbered.sent.get(place).copied()) else { return };
        numbered.seen.on_arrival(number, time(sent), time(at), bytes);
        while numbered.first + MOST_OVERTAKEN < number {
            numbered.sent.pop_front();
            numbered.first += 1;
        }
    }

    fn since(&self) -> Option<MutexGuard<'_, Since>> {
        Some(self.since.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn reported(&self) -> Datagrams {
        if let Some(mut since) = self.since() {
            since.tell();
        }
        let facts = self.numbered.as_ref().map(|numbered| {
            let numbered = numbered.lock().unwrap_or_else(PoisonError::into_inner);
            Box::new(numbered.seen.facts(time(self.duration)))
        });
        let known = |at: &AtomicU64| Some(at.load(Ordering::Relaxed)).filter(|&at| at > 0);
        Datagrams {
            sent: self.sent.load(Ordering::Relaxed),
            finished: known(&self.finished),
            arrived: known(&self.arrived),
            facts,
        }
    }
}

/// How a connection ended.
#[derive(Default)]
pub(super) struct End {
    /// Bytes that arrived, if this side knows.
    pub received: Option<u64>,
    /// When all had arrived, in nanoseconds after the start of the experiment.
    pub complete: Option<u64>,
    pub error: Option<String>,
}

type Begun = BTreeMap<(usize, usize), Arc<Connection>>;

static BEGUN: Mutex<Begun> = Mutex::new(Begun::new());

fn begun() -> MutexGuard<'static, Begun> {
    BEGUN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connection {
    /// A connection that begins now.
    pub fn begin(flow: usize, number: usize, port: u16, start: u64) -> Arc<Self> {
        Self::new(flow, number, (port, start), None).insert()
    }

    /// A flow of datagrams that begins now, in an experiment that lasts so long.
    pub fn begin_datagrams(
        flow: usize,
        port: u16,
        (start, duration): (u64, u64),
        (are_numbered, window): (bool, Option<Window>),
    ) -> Arc<Self> {
        let all = || MeasuredDatagrams::within(window.unwrap_or(Window::whole(Duration::ZERO)));
        let numbered =
            are_numbered.then(|| Mutex::new(Numbered { seen: all(), ..Numbered::default() }));
        // Nothing is told of marks before it begins.
        let (mark, sent, arrived, bytes) = (time(start), 0, 0, 0);
        let since =
            window.map(|window| Mutex::new(Since { flow, window, mark, sent, arrived, bytes }));
        let counts = Counts { duration, numbered, since, ..Counts::default() };
        Self::new(flow, 0, (port, start), Some(counts)).insert()
    }

    fn new(
        flow: usize,
        number: usize,
        (port, start): (u16, u64),
        datagrams: Option<Counts>,
    ) -> Self {
        Self { flow, number, port, start, datagrams, over: OnceLock::new() }
    }

    fn insert(self) -> Arc<Self> {
        let connection = Arc::new(self);
        begun().insert((connection.flow, connection.number), Arc::clone(&connection));
        connection
    }

    /// The connection of this number, unless it has ended.
    pub fn find(flow: usize, number: usize) -> Option<Arc<Self>> {
        begun().get(&(flow, number)).cloned()
    }

    /// The last of a flow's connections, sessions or requests that have not ended.
    pub fn last(flow: usize) -> Option<Arc<Self>> {
        begun().range((flow, 0)..=(flow, usize::MAX)).next_back().map(|(_, it)| Arc::clone(it))
    }

    /// What is counted of a flow of datagrams.
    pub fn datagrams(&self) -> &Counts {
        self.datagrams.as_ref().expect("only flows of datagrams are asked")
    }

    /// Waits until it has ended, and says when all had arrived, in nanoseconds after the start of the
    /// experiment; nothing if it broke.
    pub fn wait(&self) -> Option<u64> {
        *self.over.wait()
    }

    /// Reports how it ended, unless the other side has done so.
    pub fn end(&self, end: End) {
        // The lock is kept meanwhile, so that nobody reports it a second time.
        if begun().remove(&(self.flow, self.number)).is_some() {
            let complete = end.complete;
            self.report(end);
            self.over.get_or_init(|| complete);
        }
    }

    fn report(&self, end: End) {
        let counts = self.datagrams.as_ref();
        let counted = counts.map(|counts| counts.received_bytes.load(Ordering::Relaxed));
        channel::report(&Report::Connection {
            flow: self.flow,
            number: self.number,
            port: self.port,
            start: self.start,
            received: end.received.or(counted),
            complete: end.complete,
            datagrams: counts.map(Counts::reported),
            error: end.error,
        });
    }
}

fn time(nanos: u64) -> Time {
    Time::from_picos(nanos.saturating_mul(1000))
}

/// Reports every connection that the end of the experiment cut short.
pub(crate) fn report_unfinished() {
    for connection in std::mem::take(&mut *begun()).into_values() {
        connection.report(End::default());
    }
}
