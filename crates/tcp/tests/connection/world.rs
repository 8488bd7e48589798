//! Two endpoints and a wire between them, for tests of whole connections.

use std::collections::VecDeque;
use std::sync::Arc;
use tcplab_cc::{CutBase, Flavour, Init, Params, build};
use tcplab_tcp::{BuildControl, Endpoint, Flags, Identity, Segment, Settings, Start, State};
use tcplab_units::{Duration, Time};

/// The two ends: the one that connects, and the one that listens.
pub const CLIENT: usize = 0;
pub const SERVER: usize = 1;

pub fn millis(value: u64) -> Duration {
    Duration::from_millis(value)
}

/// The fate of a segment on the wire.
pub enum Fate {
    Pass,
    Drop,
    /// Arrives this much later than others.
    Late(Duration),
    Twice,
    /// Arrives with a CE mark, if it is ECN-capable.
    Marked,
}

/// A segment, with its time and its sender.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub at: Time,
    pub from: usize,
    pub segment: Segment,
}

pub struct World {
    pub now: Time,
    pub ends: [Endpoint; 2],
    /// One-way delay.
    pub delay: Duration,
    /// The application reads all data at once.
    pub reads: [bool; 2],
    pub received: [u64; 2],
    /// Bytes that each application has yet to write, and whether it then closes.
    to_write: [u64; 2],
    to_close: [bool; 2],
    pub log: Vec<Sent>,
    wire: VecDeque<(Time, usize, Segment)>,
    fate: Box<dyn FnMut(&Sent) -> Fate>,
}

pub fn newreno() -> BuildControl {
    control("newreno")
}

pub fn control(name: &'static str) -> BuildControl {
    Arc::new(move |start: Start| {
        let Start { mss, initial_window, seed } = start;
        let init = Init {
            mss,
            initial_window,
            cut_base: CutBase::FlightSize,
            flavour: Flavour::Rfc,
            seed,
            max_pacing: None,
        };
        build(name, &init, &Params::default()).expect("it is in the table")
    })
}

impl World {
    /// Both ends have the same settings; 50 ms each way, without loss.
    pub fn new(settings: Settings) -> Self {
        Self::of([settings.clone(), settings])
    }

    pub fn of(settings: [Settings; 2]) -> Self {
        Self::with(settings.map(|settings| (settings, newreno())))
    }

    /// Each end with its own congestion control.
    pub fn with([client, server]: [(Settings, BuildControl); 2]) -> Self {
        let end = |(settings, control), initial_sequence| {
            let identity = Identity { initial_sequence, seed: 1 };
            Endpoint::new(Arc::new(settings), control, identity)
        };
        // Both directions wrap within the first hundred kilobytes.
        let mut ends = [end(client, u32::MAX - 50_000), end(server, u32::MAX - 70_000)];
        ends[SERVER].listen();
        ends[CLIENT].connect();
        Self {
            now: Time::ZERO,
            ends,
            delay: millis(50),
            reads: [true; 2],
            received: [0; 2],
            to_write: [0; 2],
            to_close: [false; 2],
            log: Vec::new(),
            wire: VecDeque::new(),
            fate: Box::new(|_| Fate::Pass),
        }
    }

    /// Sets the function that decides the fate of each segment.
    pub fn wire(mut self, fate: impl FnMut(&Sent) -> Fate + 'static) -> Self {
        self.fate = Box::new(fate);
        self
    }

    /// Both ends in ESTABLISHED.
    pub fn established(mut self) -> Self {
        self.run(millis(200));
        assert_eq!([self.ends[0].state(), self.ends[1].state()], [State::Established; 2]);
        self.log.clear();
        self
    }

    /// The application of an end writes this much, as its send buffer accepts it.
    pub fn write(&mut self, end: usize, bytes: u64) {
        self.to_write[end] += bytes;
    }

    /// The application of an end closes after its writes.
    pub fn close(&mut self, end: usize) {
        self.to_close[end] = true;
    }

    /// Sends everything that may leave now.
    pub fn flush(&mut self) {
        for from in [CLIENT, SERVER] {
            self.send(from);
            while self.act(from) {
                self.send(from);
            }
        }
    }

    /// The application writes and closes as far as possible. Returns whether it did either.
    fn act(&mut self, end: usize) -> bool {
        let mut taken = 0;
        if self.to_write[end] > 0 {
            taken = self.ends[end].write(self.to_write[end]);
            self.to_write[end] -= taken;
        }
        let closes = self.to_write[end] == 0 && std::mem::take(&mut self.to_close[end]);
        if closes {
            self.ends[end].close();
        }
        taken > 0 || closes
    }

    fn send(&mut self, from: usize) {
        while let Some(segment) = self.ends[from].poll_transmit(self.now) {
            let sent = Sent { at: self.now, from, segment };
            self.log.push(sent);
            let arrives = self.now + self.delay;
            match (self.fate)(&sent) {
                Fate::Pass => self.put(arrives, from, segment),
                Fate::Drop => {}
                Fate::Late(more) => self.put(arrives + more, from, segment),
                Fate::Marked => {
                    let mut marked = segment;
                    if marked.flags.has(Flags::ECT) {
                        marked.flags = marked.flags.with(Flags::CE);
                    }
                    self.put(arrives, from, marked);
                }
                Fate::Twice => {
                    self.put(arrives, from, segment);
                    self.put(arrives, from, segment);
                }
            }
        }
    }

    fn put(&mut self, arrives: Time, from: usize, segment: Segment) {
        let place = self.wire.partition_point(|entry| entry.0 <= arrives);
        self.wire.insert(place, (arrives, from, segment));
    }

    /// Advances to the next event, if there is one before `until`.
    fn step(&mut self, until: Time) -> bool {
        self.flush();
        let arrival = self.wire.front().map_or(Time::NEVER, |entry| entry.0);
        let timer = self.ends[0].next_timer().min(self.ends[1].next_timer());
        let next = arrival.min(timer).max(self.now);
        if next > until || next == Time::NEVER {
            return false;
        }
        self.now = next;
        if arrival <= timer {
            let (_, from, segment) = self.wire.pop_front().expect("something arrives");
            self.ends[1 - from].on_segment(self.now, &segment);
        } else {
            for end in &mut self.ends {
                if end.next_timer() <= self.now {
                    end.on_timer(self.now);
                }
            }
        }
        for end in [CLIENT, SERVER] {
            if self.reads[end] {
                self.received[end] += self.ends[end].read(self.now, u64::MAX);
            }
        }
        true
    }

    /// Runs for this time.
    pub fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while self.step(until) {}
        self.now = until;
    }

    /// Runs until there are no more events, or `limit` has passed. Returns whether there are none.
    pub fn settle(&mut self, limit: Duration) -> bool {
        let until = self.now + limit;
        while self.step(until) {}
        self.wire.is_empty() && self.ends.iter().all(|end| end.next_timer() == Time::NEVER)
    }

    /// The segments sent by one end, as (milliseconds, segment).
    pub fn sent_by(&self, from: usize) -> Vec<(u64, Segment)> {
        let sent = self.log.iter().filter(|sent| sent.from == from);
        sent.map(|sent| (sent.at.since(Time::ZERO).as_millis(), sent.segment)).collect()
    }

    /// The payloads of one end's data segments.
    pub fn payloads(&self, from: usize) -> Vec<u16> {
        let sent = self.log.iter().filter(|sent| sent.from == from && sent.segment.payload > 0);
        sent.map(|sent| sent.segment.payload).collect()
    }

    pub fn states(&self) -> [State; 2] {
        [self.ends[CLIENT].state(), self.ends[SERVER].state()]
    }
}

/// Drops the data segments of `from` with these numbers, counted from 1 in the order sent.
pub fn drop_data(from: usize, numbers: &'static [usize]) -> impl FnMut(&Sent) -> Fate {
    let mut seen = 0;
    move |sent| {
        if sent.from == from && sent.segment.payload > 0 {
            seen += 1;
            if numbers.contains(&seen) {
                return Fate::Drop;
            }
        }
        Fate::Pass
    }
}

/// Whether a segment is a pure ACK.
pub fn is_ack(segment: &Segment) -> bool {
    segment.payload == 0 && segment.flags.has(Flags::ACK) && segment.sequence_length() == 0
}
