//! The connections that have begun and not ended: each is reported once.

use crate::channel;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tcplab_guest::report::{Datagrams, Report};

/// A connection, or a flow of datagrams.
pub(super) struct Connection {
    flow: usize,
    number: usize,
    port: u16,
    /// In nanoseconds after the start of the experiment.
    start: u64,
    /// Counted on the way if it is a flow of datagrams.
    datagrams: Option<Counts>,
}

/// Times are in nanoseconds after the start of the experiment; 0 means not yet.
#[derive(Default)]
pub(super) struct Counts {
    pub sent: AtomicU64,
    pub finished: AtomicU64,
    pub received_bytes: AtomicU64,
    pub arrived: AtomicU64,
}

impl Counts {
    fn reported(&self) -> Datagrams {
        let time = |at: &AtomicU64| Some(at.load(Ordering::Relaxed)).filter(|&at| at > 0);
        Datagrams {
            sent: self.sent.load(Ordering::Relaxed),
            finished: time(&self.finished),
            arrived: time(&self.arrived),
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
        Self { flow, number, port, start, datagrams: None }.insert()
    }

    /// A flow of datagrams that begins now.
    pub fn begin_datagrams(flow: usize, port: u16, start: u64) -> Arc<Self> {
        Self { flow, number: 0, port, start, datagrams: Some(Counts::default()) }.insert()
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

    /// What is counted of a flow of datagrams.
    pub fn datagrams(&self) -> &Counts {
        self.datagrams.as_ref().expect("only flows of datagrams are asked")
    }

    /// Reports how it ended, unless the other side has done so.
    pub fn end(&self, end: End) {
        // The lock is kept meanwhile, so that nobody reports it a second time.
        if begun().remove(&(self.flow, self.number)).is_some() {
            self.report(end);
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

/// Reports every connection that the end of the experiment cut short.
pub(crate) fn report_unfinished() {
    for connection in std::mem::take(&mut *begun()).into_values() {
        connection.report(End::default());
    }
}
