//! A scripted peer: what it sends, and what it receives from the endpoint under test, each with its
//! time.
//!
//! One endpoint is under test, usually the one that connects. Times are microseconds since its
//! connection was established; offsets count the bytes of each direction from 1. The script
//! contains everything that the endpoint sends: an unexpected segment is an error at the next line.

use crate::world::control;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use tcplab_cc::{CutBase, Flavour, Init, Params, build};
use tcplab_tcp::{
    AckCounting, Behaviour, BuildControl, CachedCookie, Cookie, Endpoint, FastOpenOption, Flags,
    Identity, Segment, SeqNumber, Settings, Start, SynOptions, Timestamps, WindowReduction,
};
use tcplab_units::{Duration, Time};

/// Payload of a full segment in these scripts.
pub const MSS: u64 = 1000;
/// The peer's window scale.
const SCALE: u8 = 7;
/// The endpoint's time at establishment: a time at which all levels of Linux's timer wheel advance,
/// so that they do at multiples of 1, 8, 64, 512 and 4096 ms of a script's time.
const BEGIN: u64 = 3_088_000;
/// The initial sequence numbers: both directions wrap soon.
const OURS: u32 = u32::MAX - 5_500;
const THEIRS: u32 = u32::MAX - 3_500;

/// Milliseconds in microseconds.
pub const fn ms(millis: u64) -> u64 {
    millis * 1_000
}

/// The sender of the RFCs, with all newer parts.
pub fn rfc() -> Settings {
    Settings {
        mss: MSS as u16,
        timestamps: false,
        nagle: false,
        delayed_ack: None,
        dsack: true,
        rack: true,
        tlp: true,
        reduction: WindowReduction::Proportional,
        frto: true,
        undo: true,
        ..Settings::default()
    }
}

/// Linux 6.12 as in its profile, without Nagle and timestamps.
pub fn linux() -> Settings {
    Settings {
        behaviour: Behaviour::LINUX,
        tso: true,
        counting: AckCounting::PerSegment,
        delayed_ack: Some(Duration::from_millis(40)),
        quick_ack: 16,
        min_rto: Duration::from_millis(200),
        max_rto: Duration::from_secs(120),
        receive_buffer: 6_291_456,
        app_win: 31,
        ..rfc()
    }
}

/// A segment that the peer sends, or expects.
#[derive(Clone, Debug, Default)]
pub struct Line {
    data: Option<Range<u64>>,
    from: Option<u64>,
    ack: Option<u64>,
    sack: Vec<Range<u64>>,
    window: Option<u64>,
    echo: Option<u64>,
    stamp: Option<u64>,
    flags: Flags,
    without: Flags,
    push: Option<bool>,
    mss: Option<u16>,
    fast_open: Option<FastOpenOption>,
}

/// One segment with data, or as many full ones as needed. In a SYN, data begins behind the SYN's
/// sequence number: `data(0..500)` has 500 bytes from offset 1 on.
pub fn data(range: Range<u64>) -> Line {
    Line { data: Some(range), ..Line::default() }
}

/// An acknowledgment without data.
pub fn ack(ack: u64) -> Line {
    Line { ack: Some(ack), ..Line::default() }
}

/// A SYN, or the flags of one.
pub fn syn() -> Line {
    Line { flags: Flags::SYN, ..Line::default() }
}

/// A reset without an acknowledgment.
pub fn reset() -> Line {
    Line { flags: Flags::RST, without: Flags::ACK, ..Line::default() }
}

impl Line {
    pub fn acking(self, ack: u64) -> Self {
        Self { ack: Some(ack), ..self }
    }

    /// Begins at this offset. Without it, segments begin where the data before them ended.
    pub fn from(self, offset: u64) -> Self {
        Self { from: Some(offset), ..self }
    }

    /// Adds this SACK block after others.
    pub fn sack(mut self, block: Range<u64>) -> Self {
        self.sack.push(block);
        self
    }

    /// Offers this window, in bytes.
    pub fn window(self, bytes: u64) -> Self {
        Self { window: Some(bytes), ..self }
    }

    /// Echoes the timestamp of the segment that the other side sent at that time.
    pub fn echoing(self, at: u64) -> Self {
        Self { echo: Some(at), ..self }
    }

    /// Has the timestamp of the segment that the peer sent at that time.
    pub fn stamped(self, at: u64) -> Self {
        Self { stamp: Some(at), ..self }
    }

    /// A SYN with this MSS option.
    pub fn offering(self, mss: u16) -> Self {
        Self { mss: Some(mss), ..self }
    }

    /// A SYN that requests a Fast Open cookie.
    pub fn asking(self) -> Self {
        Self { fast_open: Some(FastOpenOption::Request), ..self }
    }

    /// A SYN with this Fast Open cookie.
    pub fn cookie(self, bits: u64) -> Self {
        Self { fast_open: Some(FastOpenOption::Cookie(Cookie(bits))), ..self }
    }

    pub fn with(self, flags: Flags) -> Self {
        Self { flags: self.flags.with(flags), ..self }
    }

    /// None of these flags is set.
    pub fn without(self, flags: Flags) -> Self {
        Self { without: self.without.with(flags), ..self }
    }

    /// The last segment has PSH, and no other.
    pub fn pushed(self) -> Self {
        Self { push: Some(true), ..self }
    }
}

pub struct Peer {
    pub end: Endpoint,
    now: Time,
    /// Segments of the endpoint that the script has not expected yet.
    sent: VecDeque<(u64, Segment)>,
    /// The timestamps of all segments sent, by time.
    values: Vec<(u64, u32)>,
    /// Payload of a full segment.
    pub mss: u64,
    timestamps: bool,
    /// The endpoint's window scale.
    scale: u8,
    /// The window that the endpoint offered last.
    offered: u64,
    /// The end of the data that the peer has sent.
    next: u64,
    /// The application reads all data at once.
    pub reads: bool,
    /// Bytes that the application has read.
    pub read: u64,
    /// Bytes that the application has yet to write.
    to_write: u64,
    /// How many of the next bursts the queue of the host refuses.
    pub refusals: u64,
}

fn newreno(settings: &Settings) -> BuildControl {
    if settings.behaviour == Behaviour::LINUX {
        linux_control("newreno")
    } else {
        control("newreno")
    }
}

/// A congestion control in its variant of the kernel.
pub fn linux_control(name: &'static str) -> BuildControl {
    Arc::new(move |start: Start| {
        let Start { mss, initial_window, seed } = start;
        let (cut_base, flavour) = (CutBase::Cwnd, Flavour::Linux);
        let init = Init { mss, initial_window, cut_base, flavour, seed, max_pacing: None };
        build(name, &init, &Params::default()).expect("it is in the table")
    })
}

/// The peer's timestamp clock.
fn their_clock(now: Time) -> u32 {
    77_000 + now.since(Time::ZERO).as_millis() as u32
}

fn at(micros: u64) -> Time {
    Time::ZERO + Duration::from_micros(BEGIN + micros)
}

#[expect(clippy::needless_pass_by_value, reason = "scripts read better without references")]
impl Peer {
    /// An endpoint that connects at 0.
    pub fn connecting(settings: Settings) -> Self {
        let control = newreno(&settings);
        Self::steered_connecting(settings, control)
    }

    /// An endpoint that connects at 0, with this congestion control.
    pub fn steered_connecting(settings: Settings, control: BuildControl) -> Self {
        Self::beginning(settings, at(0), control)
    }

    /// An endpoint that listens, and receives this SYN at 0.
    pub fn listening(settings: Settings, syn: Line) -> Self {
        let control = newreno(&settings);
        Self::steered_listener(settings, control, syn)
    }

    /// An endpoint that listens, with this congestion control.
    pub fn steered_listener(settings: Settings, control: BuildControl, syn: Line) -> Self {
        let mut peer = Self::new(settings, at(0), control);
        peer.end.listen();
        peer.sends(0, syn);
        peer
    }

    /// An endpoint that listens with Fast Open, for a client with this cookie.
    pub fn listening_fast(settings: Settings, cookie: u64, syn: Line) -> Self {
        let control = newreno(&settings);
        let mut peer = Self::new(settings, at(0), control);
        peer.end.listen_fast(Cookie(cookie));
        peer.sends(0, syn);
        peer
    }

    /// An endpoint that connects at 0 with Fast Open, maybe with a cached cookie.
    pub fn connecting_fast(settings: Settings, cookie: Option<u64>) -> Self {
        let control = newreno(&settings);
        let mut peer = Self::new(settings, at(0), control);
        let mss = u16::MAX;
        peer.end.connect_fast(cookie.map(|bits| CachedCookie { cookie: Cookie(bits), mss }));
        peer.serve();
        peer
    }

    /// An endpoint that connects at 0, with a cached path MTU.
    pub fn connecting_over(settings: Settings, mtu: u16) -> Self {
        let control = newreno(&settings);
        let mut peer = Self::new(settings, at(0), control);
        peer.end.set_cached_mtu(mtu);
        peer.end.connect();
        peer.serve();
        peer
    }

    /// An ICMP notice: a router dropped the packet that starts at `offset`, and names this MTU.
    /// Returns the MTU if the endpoint accepts the notice.
    pub fn tells(&mut self, at: u64, offset: u64, mtu: u16) -> Option<u16> {
        self.run(at);
        self.expect_nothing();
        let seq = SeqNumber(OURS.wrapping_add(offset as u32));
        let notice = Segment::new(Flags::ACK, seq, SeqNumber(THEIRS)).frag_needed(mtu, u16::MAX);
        let taken = self.end.on_frag_needed(self.now, &notice);
        self.serve();
        taken
    }

    fn beginning(settings: Settings, now: Time, control: BuildControl) -> Self {
        let mut peer = Self::new(settings, now, control);
        peer.end.connect();
        peer.serve();
        peer
    }

    fn new(settings: Settings, now: Time, control: BuildControl) -> Self {
        let identity = Identity { initial_sequence: OURS, seed: 1 };
        let options = if settings.timestamps { 12 } else { 0 };
        let mss = u64::from(settings.mss) - options;
        let timestamps = settings.timestamps;
        let end = Endpoint::new(Arc::new(settings), control, identity);
        let (sent, values) = Default::default();
        let (scale, offered, next, reads, read, to_write) = (0, 0, 0, true, 0, 0);
        Self {
            end,
            now,
            sent,
            values,
            mss,
            timestamps,
            scale,
            offered,
            next,
            reads,
            read,
            to_write,
            refusals: 0,
        }
    }

    /// An endpoint whose connection is established at 0, over a path with this RTT.
    pub fn connected(settings: Settings, rtt: u64) -> Self {
        Self::answering(settings, rtt, syn().acking(1))
    }

    /// An endpoint whose connection is established at 0 by this SYN-ACK.
    pub fn answering(settings: Settings, rtt: u64, answer: Line) -> Self {
        let control = newreno(&settings);
        Self::standing(settings, rtt, control, answer)
    }

    /// An endpoint whose connection is established at 0, with this congestion control.
    pub fn steered(settings: Settings, rtt: u64, control: BuildControl) -> Self {
        Self::standing(settings, rtt, control, syn().acking(1))
    }

    fn standing(settings: Settings, rtt: u64, control: BuildControl, answer: Line) -> Self {
        let begun = Time::ZERO + Duration::from_micros(BEGIN - rtt);
        let mut peer = Self::beginning(settings, begun, control);
        peer.sent.clear();
        peer.sends(0, answer);
        peer.gets(0, ack(1));
        let answered = peer.values.len().saturating_sub(1);
        peer.values.drain(..answered);
        peer
    }

    fn micros(&self) -> u64 {
        // Before establishment, times are not shifted.
        (self.now.since(Time::ZERO).as_nanos() / 1_000).saturating_sub(BEGIN)
    }

    fn serve(&mut self) {
        self.end.sync_mss(self.now);
        while self.end.replies_before_wakeup()
            && let Some(segment) = self.poll()
        {
            self.note(segment);
        }
        if self.reads {
            self.read += self.end.read(self.now, u64::MAX);
        }
        loop {
            while let Some(segment) = self.poll() {
                self.note(segment);
            }
            // A send buffer may take a write in several parts, and send in between.
            let taken = if self.to_write > 0 { self.end.write(self.to_write) } else { 0 };
            self.to_write -= taken;
            if taken == 0 {
                break;
            }
        }
    }

    /// The next segment that the queue of the host accepts.
    fn poll(&mut self) -> Option<Segment> {
        while self.refusals > 0 {
            let before = self.end.before_burst();
            let first = self.end.poll_transmit(self.now)?;
            let mut last = first;
            while !self.end.ends_burst(self.now)
                && let Some(segment) = self.end.poll_transmit(self.now)
            {
                last = segment;
            }
            self.refusals -= 1;
            self.end.on_refused(self.now, &before, (&first, &last), 0);
        }
        self.end.poll_transmit(self.now)
    }

    fn note(&mut self, segment: Segment) {
        let at = self.micros();
        if let Some(offer) = segment.syn_options() {
            self.scale = offer.window_scale.unwrap_or(0);
        }
        let is_syn = segment.flags.has(Flags::SYN);
        self.offered = u64::from(segment.window) << if is_syn { 0 } else { self.scale };
        self.values.extend(segment.timestamps().map(|timestamps| (at, timestamps.value)));
        self.sent.push_back((at, segment));
    }

    /// Runs until `until`.
    fn run(&mut self, until: u64) {
        let until = at(until);
        assert!(until >= self.now, "the script goes back in time");
        while self.end.next_timer() <= until {
            self.now = self.now.max(self.end.next_timer());
            self.end.on_timer(self.now);
            self.serve();
        }
        self.now = until;
    }

    fn expect_nothing(&mut self) {
        let unasked: Vec<_> = self.sent.iter().map(|(at, sent)| describe(*at, sent)).collect();
        let now = self.micros();
        assert!(unasked.is_empty(), "before {now} µs, not in the script: {unasked:#?}");
    }

    /// The endpoint's application writes.
    pub fn writes(&mut self, at: u64, bytes: u64) {
        self.run(at);
        self.expect_nothing();
        self.to_write += bytes;
        self.serve();
    }

    /// A full segment has left the endpoint's device. Returns whether the endpoint was throttled by
    /// it.
    pub fn leaves(&mut self, at: u64) -> bool {
        self.run(at);
        let goes_on = self.end.on_tx_completion(MSS as u16);
        if goes_on {
            self.end.resume();
            self.serve();
        }
        goes_on
    }

    /// The peer sends `line` at this time: data in as many segments as needed.
    pub fn sends(&mut self, at: u64, line: Line) {
        self.run(at);
        self.expect_nothing();
        for part in self.parts(&line) {
            let segment = self.segment(&line, part);
            self.end.on_segment(self.now, &segment);
            self.serve();
        }
    }

    fn parts(&self, line: &Line) -> Vec<Option<Range<u64>>> {
        let Some(range) = line.data.clone() else { return vec![None] };
        let starts = range.clone().step_by(self.mss as usize);
        starts.map(|start| Some(start..(start + self.mss).min(range.end))).collect()
    }

    fn segment(&mut self, line: &Line, part: Option<Range<u64>>) -> Segment {
        let is_syn = line.flags.has(Flags::SYN);
        let from = line.from.unwrap_or(self.next);
        let range = part.unwrap_or(from..from);
        self.next = self.next.max(range.end + u64::from(is_syn));
        let is_first = is_syn && line.ack.is_none();
        let flags = if is_first { line.flags } else { line.flags.with(Flags::ACK) };
        let flags = if line.push == Some(true) { flags.with(Flags::PUSH) } else { flags };
        let seq = SeqNumber(THEIRS.wrapping_add(range.start as u32));
        let acked = SeqNumber(OURS.wrapping_add(line.ack.unwrap_or(1) as u32));
        let scale = if is_syn { 0 } else { SCALE };
        let window = line.window.unwrap_or(u64::MAX) >> scale;
        let mut segment = Segment::new(flags, seq, acked)
            .with_window(window.min(u64::from(u16::MAX)) as u16)
            .with_payload((range.end - range.start) as u16);
        if self.timestamps {
            let last = self.values.last().map_or(0, |last| last.1);
            let by_time = |at| self.values.iter().find(|&&(sent, _)| sent == at);
            let named = line.echo.map(|at| by_time(at).expect("nothing was sent then").1);
            let value = their_clock(line.stamp.map_or(self.now, at));
            let echo = named.unwrap_or(last);
            segment = segment.with_timestamps(Timestamps { value, echo });
        }
        if is_syn {
            segment = segment.with_syn_options(SynOptions {
                mss: u16::MAX,
                window_scale: Some(SCALE),
                sack_permitted: !line.without.has(Flags::PUSH),
            });
        }
        if let Some(option) = line.fast_open {
            segment = segment.with_fast_open(option);
        }
        let number = |offset: u64| SeqNumber(OURS.wrapping_add(offset as u32));
        segment.with_sack(line.sack.iter().map(|block| (number(block.start), number(block.end))))
    }

    /// The peer expects that the endpoint's next segments leave at this time and equal `line`: data
    /// in full segments, and an acknowledgment with exactly these SACK blocks.
    pub fn gets(&mut self, at: u64, line: Line) {
        self.run(at);
        self.take(at, line);
    }

    fn take(&mut self, at: u64, line: Line) {
        let parts = self.parts(&line);
        let last = parts.len() - 1;
        for (number, part) in parts.into_iter().enumerate() {
            let Some((sent, segment)) = self.sent.pop_front() else {
                panic!("at {at} µs, nothing was sent: {line:?}")
            };
            let seen = describe(sent, &segment);
            assert_eq!(sent, at, "{seen} instead of {line:?}");
            let start = u64::from(segment.seq.0.wrapping_sub(OURS));
            let range = (segment.payload > 0).then(|| start..start + u64::from(segment.payload));
            assert_eq!(range, part, "{seen} instead of {line:?}");
            assert!(line.from.is_none_or(|from| from == start), "{seen} instead of {line:?}");
            let acked = u64::from(segment.ack.0.wrapping_sub(THEIRS));
            assert!(line.ack.is_none_or(|ack| ack == acked), "{seen} instead of {line:?}");
            let block = |block: &(SeqNumber, SeqNumber)| {
                let number = |of: SeqNumber| u64::from(of.0.wrapping_sub(THEIRS));
                number(block.0)..number(block.1)
            };
            let sack: Vec<_> = segment.sack().iter().map(block).collect();
            assert!(part.is_some() || sack == line.sack, "{seen} instead of {line:?}");
            let scale = if segment.flags.has(Flags::SYN) { 0 } else { self.scale };
            let window = u64::from(segment.window) << scale;
            assert!(line.window.is_none_or(|wanted| wanted == window), "{seen}, not {line:?}");
            let flags = segment.flags;
            let has = |one: Flags| flags.has(one) && !line.flags.has(one);
            let unwanted = FLAGS.iter().any(|&one| line.without.has(one) && has(one));
            assert!(flags.has(line.flags) && !unwanted, "{seen} instead of {line:?}");
            assert_eq!(segment.fast_open(), line.fast_open, "{seen} instead of {line:?}");
            let mss = segment.syn_options().map(|options| options.mss);
            assert!(line.mss.is_none() || mss == line.mss, "{seen} offers {mss:?}, not {line:?}");
            let echo = segment.timestamps().map(|timestamps| timestamps.echo);
            let named = line.echo.map(|sent| their_clock(self::at(sent)));
            assert!(named.is_none() || echo == named, "{seen} echoes {echo:?}, not {named:?}");
            let push = line.push.map(|push| push && number == last);
            let is_pushed = flags.has(Flags::PUSH);
            assert!(push.is_none_or(|push| push == is_pushed), "{seen} instead of {line:?}");
        }
    }

    /// As `gets`, with a time that is rounded to microseconds.
    pub fn gets_near(&mut self, at: u64, line: Line) {
        self.run(at + 1);
        for (sent, _) in self.sent.iter_mut().filter(|(sent, _)| sent.abs_diff(at) <= 1) {
            *sent = at;
        }
        self.take(at, line);
    }

    /// The peer expects nothing until this time.
    pub fn silence(&mut self, until: u64) {
        self.run(until);
        self.expect_nothing();
    }

    /// The peer accepts everything sent until this time.
    pub fn ignores(&mut self, until: u64) {
        self.run(until);
        self.sent.clear();
    }

    /// The timestamps of all segments that the endpoint has sent.
    pub fn stamps(&self) -> Vec<u32> {
        self.values.iter().map(|value| value.1).collect()
    }

    /// The window that the endpoint offered last, in bytes.
    pub fn window(&self) -> u64 {
        self.offered
    }

    pub fn cwnd(&self) -> u64 {
        self.end.snapshot().cwnd
    }

    pub fn ssthresh(&self) -> Option<u64> {
        self.end.snapshot().ssthresh
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.expect_nothing();
        }
    }
}

const FLAGS: [Flags; 9] = [
    Flags::ACK,
    Flags::PUSH,
    Flags::FIN,
    Flags::ECE,
    Flags::CWR,
    Flags::AE,
    Flags::ECT,
    Flags::ECT1,
    Flags::CE,
];

fn describe(at: u64, segment: &Segment) -> String {
    let start = segment.seq.0.wrapping_sub(OURS);
    let end = start.wrapping_add(u32::from(segment.payload));
    let number = |of: SeqNumber| of.0.wrapping_sub(THEIRS);
    let sack: Vec<_> = segment.sack().iter().map(|it| number(it.0)..number(it.1)).collect();
    let window = segment.window;
    let ack = number(segment.ack);
    let push = if segment.flags.has(Flags::PUSH) { " pushed" } else { "" };
    let flags = segment.flags;
    format!("{start}..{end}{push} {flags:?} ack {ack} {sack:?} window {window} at {at} µs")
}
