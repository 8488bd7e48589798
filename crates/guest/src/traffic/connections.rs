//! Open connections, each of which is reported once.

use crate::channel;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tcplab_guest::report::{Datagrams, Report};
use tcplab_tables::{MeasuredDatagrams, Window};
use tcplab_units::{Duration, Time};

/// A connection, or a datagram flow.
pub(super) struct Connection {
    flow: usize,
    number: usize,
    port: u16,
    /// In nanoseconds after the start of the experiment.
    start: u64,
    /// The counters of a datagram flow.
    datagrams: Option<Counts>,
    /// Set at the end: when all data had arrived, in nanoseconds after the start of the experiment,
    /// or `None` after a failure.
    over: OnceLock<Option<u64>>,
}

/// Times are in nanoseconds after the start of the experiment; 0 means not yet.
#[derive(Default)]
pub(super) struct Counts {
    pub sent: AtomicU64,
    pub finished: AtomicU64,
    pub received_bytes: AtomicU64,
    pub arrived: AtomicU64,
    /// The duration of the experiment.
    duration: u64,
    /// `None` if the datagrams have no numbers.
    numbered: Option<Mutex<Numbered>>,
    /// `None` if no counters are reported before the end.
    since: Option<Mutex<Since>>,
}

/// Counters of a datagram flow since the last mark.
struct Since {
    flow: usize,
    window: Window,
    mark: Time,
    sent: u64,
    arrived: u64,
    bytes: u64,
}

impl Since {
    /// An event is about to be counted: reports marks that have passed first.
    fn pass(&mut self, now: Time) {
        while let Some(mark) = self.window.next_mark(self.mark).filter(|mark| *mark <= now) {
            self.mark = mark;
            self.report();
        }
    }

    fn report(&mut self) {
        let Self { flow, sent, arrived, bytes, .. } = *self;
        channel::report(&Report::Datagrams { flow, sent, arrived, bytes });
        (self.sent, self.arrived, self.bytes) = (0, 0, 0);
    }
}

/// Numbered datagrams.
#[derive(Default)]
struct Numbered {
    seen: MeasuredDatagrams,
    /// Sending times, from number `first` on.
    sent: VecDeque<u64>,
    first: u64,
}

/// A datagram overtaken by more than this many has no delay.
const MOST_OVERTAKEN: u64 = 1 << 16;

impl Counts {
    /// A datagram is sent at this time.
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
            since.report();
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
    /// When all data had arrived, in nanoseconds after the start of the experiment.
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

    /// A datagram flow that begins now, in an experiment of this duration.
    pub fn begin_datagrams(
        flow: usize,
        port: u16,
        (start, duration): (u64, u64),
        (are_numbered, window): (bool, Option<Window>),
    ) -> Arc<Self> {
        let all = || MeasuredDatagrams::within(window.unwrap_or(Window::whole(Duration::ZERO)));
        let numbered =
            are_numbered.then(|| Mutex::new(Numbered { seen: all(), ..Numbered::default() }));
        // Marks before the flow's start are not reported.
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

    /// The last of a flow's open connections, sessions or requests.
    pub fn last(flow: usize) -> Option<Arc<Self>> {
        begun().range((flow, 0)..=(flow, usize::MAX)).next_back().map(|(_, it)| Arc::clone(it))
    }

    /// The counters of a datagram flow.
    pub fn datagrams(&self) -> &Counts {
        self.datagrams.as_ref().expect("only flows of datagrams are asked")
    }

    /// Waits for the end. Returns when all data had arrived, in nanoseconds after the start of the
    /// experiment; `None` after a failure.
    pub fn wait(&self) -> Option<u64> {
        *self.over.wait()
    }

    /// Reports the end, unless the other side has done so.
    pub fn end(&self, end: End) {
        // The lock is held meanwhile, so that the end is reported only once.
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
