//! Path MTU discovery: by ICMP notices of routers (RFC 1191), or by probes where routers send none
//! (RFC 4821).
//!
//! As in Linux: `tcp_v4_mtu_reduced`, `tcp_sync_mss`, `tcp_mtu_probe`, `tcp_mtu_probing`. A probe
//! is a segment of new data that is larger than the MSS. It takes one segment of the window; Linux
//! takes off one more.

use crate::context::Context;
use crate::departure::data::Data;
use crate::departure::{Departure, Stream, Window};
use crate::segment::{IP_HEADER, TCP_HEADER};
use crate::settings::MtuProbing;
use std::ops::Range;
use tcplab_units::{Duration, Time};

const NO_NOTICE: (Time, Time) = (Time::NEVER, Time::NEVER);
const HEADERS: u16 = (IP_HEADER + TCP_HEADER) as u16;
/// The size that every path should carry (`TCP_BASE_MSS`), and the smallest that is tried
/// (`TCP_MIN_SND_MSS`).
const BASE: u16 = 1024;
const LEAST: u16 = 48;
/// Probing ends when the size is known to this many bytes (`TCP_PROBE_THRESHOLD`), and restarts
/// after ten minutes (`TCP_PROBE_INTERVAL`).
const PRECISION: u16 = 8;
const AGAIN: Duration = Duration::from_secs(600);
/// The smallest window for a probe: its loss must be detectable by duplicate ACKs.
const LEAST_WINDOW: u64 = 11;

/// The path MTU and the search for it, in bytes of whole packets.
#[derive(Clone, Debug)]
pub(super) struct PathMtu {
    /// The agreed MSS, options included, and the bytes of options.
    clamp: u16,
    options: u16,
    /// The largest packet according to ICMP notices and the route cache.
    mtu: u16,
    search: Option<Search>,
    /// When the last ICMP notice arrived, and the time that Linux uses for it.
    notice: (Time, Time),
    route_change: Option<RouteChange>,
    /// Payload bytes of the segment that the host has just dropped as too large and that is not
    /// accounted for yet; or 0.
    dropped: u16,
}

/// Another connection of the host has changed the route's MTU. Linux looks the route up with the
/// next packet of this connection (`ip_queue_xmit`), and sizes the packets after that one by it
/// (`tcp_current_mss`).
#[derive(Clone, Copy, Debug)]
struct RouteChange {
    mtu: u16,
    /// A packet has left, or was dropped, since then.
    is_looked_up: bool,
    /// The packet that looked the route up was too large, and the host dropped it (`ip_fragment`).
    has_dropped: bool,
}

/// The search for the largest packet that the path carries (`icsk_mtup`).
#[derive(Clone, Debug)]
struct Search {
    /// Whether the search runs. If not, the MTU of ICMP notices applies.
    is_on: bool,
    /// A size that the path carries, and one above which nothing is tried.
    low: u16,
    high: u16,
    /// The outstanding probe: its size and its data.
    probe: Option<(u16, Range<u64>)>,
    since: Time,
}

/// The decision on an MTU probe.
#[derive(Clone)]
pub(crate) enum MtuProbe {
    /// No probe.
    No,
    /// A probe waits for the window, and later data waits behind it.
    Wait,
    /// The probe leaves now.
    Yes(Data),
}

/// The conditions for an MTU probe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProbeConditions<'a> {
    pub stream: &'a Stream,
    pub window: Window,
    /// The reordering degree in segments.
    pub reordering: u32,
}

impl PathMtu {
    fn mss_of(&self, mtu: u16) -> u16 {
        mtu.saturating_sub(HEADERS).min(self.clamp).saturating_sub(self.options).max(1)
    }

    fn mtu_of(&self, mss: u16) -> u16 {
        mss.saturating_add(self.options).saturating_add(HEADERS)
    }

    /// The payload of a full segment.
    fn mss(&self) -> u16 {
        let told = self.mss_of(self.mtu);
        let found = self.search.as_ref().filter(|search| search.is_on);
        found.map_or(told, |search| told.min(self.mss_of(search.low)))
    }
}

/// The path MTU. Methods that change the payload of a full segment return the new one.
impl Departure {
    /// Whether the path MTU may differ from the agreed MSS.
    #[inline]
    pub fn has_path_mtu(&self) -> bool {
        self.path.is_some()
    }

    /// The path MTU state. The first call creates it from the present MSS and the bytes of options.
    fn path(&mut self, mss: u16, options: u16) -> &mut PathMtu {
        let clamp = mss + options;
        let mtu = clamp + HEADERS;
        self.path.get_or_insert_with(|| {
            Box::new(PathMtu {
                clamp,
                options,
                mtu,
                search: None,
                notice: NO_NOTICE,
                route_change: None,
                dropped: 0,
            })
        })
    }

    /// The path carries packets of at most `mtu` bytes (`tcp_v4_mtu_reduced`). Returns the new MSS
    /// if that is smaller than known.
    pub fn reduce_mtu(&mut self, mtu: u16, mss: u16, options: u16) -> Option<u16> {
        let path = self.path(mss, options);
        path.route_change = None;
        if mtu >= path.mtu {
            return None;
        }
        path.mtu = mtu;
        if let Some(search) = &mut path.search {
            search.high = search.high.min(mtu);
        }
        Some(path.mss())
    }

    /// A packet with or without data leaves, and its route is looked up.
    #[cold]
    pub fn on_route_lookup(&mut self) {
        if let Some(route_change) = self.path.as_mut().and_then(|path| path.route_change.as_mut()) {
            route_change.is_looked_up = true;
        }
    }

    /// Adopts the route's MTU once a packet has looked it up, except during an unfinished write,
    /// which keeps its size. Returns a new MSS, and whether the host has dropped a packet of this
    /// connection (`tcp_v4_mtu_reduced`).
    #[cold]
    pub fn sync_mss(&mut self, mss: u16) -> Option<(u16, bool)> {
        if self.buffer.as_ref().is_some_and(|buffer| buffer.is_writing()) {
            return None;
        }
        let path = self.path.as_mut()?;
        let route_change = path.route_change.take_if(|route_change| route_change.is_looked_up)?;
        let options = path.options;
        Some((self.reduce_mtu(route_change.mtu, mss, options)?, route_change.has_dropped))
    }

    /// Whether a packet of new data with `bytes` exceeds the MTU of the route that is looked up for
    /// it. The host then drops the packet, and its data stays in the send buffer.
    #[cold]
    pub(super) fn is_dropped_locally(&mut self, bytes: u64, mss: u16) -> bool {
        let payload = bytes.min(mss.into()) as u16;
        let Some(path) = &mut self.path else { return false };
        let size = path.mtu_of(payload);
        let Some(route_change) =
            path.route_change.as_mut().filter(|route_change| size > route_change.mtu)
        else {
            return false;
        };
        (route_change.is_looked_up, route_change.has_dropped) = (true, true);
        path.dropped = payload;
        if let Some(buffer) = &mut self.buffer {
            buffer.requeue_dropped(bytes);
        }
        true
    }

    /// The options are agreed on and take `options` bytes; `mss` already excludes them.
    pub fn set_option_bytes(&mut self, mss: u16, options: u16) -> Option<u16> {
        let path = self.path.as_mut()?;
        (path.clamp, path.options) = (mss + options, options);
        Some(path.mss())
    }

    /// The connection is established: MTU probing may begin (`tcp_mtup_init`).
    pub fn init_mtu_probing(
        &mut self,
        context: Context<'_>,
        mss: u16,
        options: u16,
    ) -> Option<u16> {
        let probing = context.settings.mtu_probing;
        if probing == MtuProbing::Off {
            return None;
        }
        let path = self.path(mss, options);
        path.search = Some(Search {
            is_on: probing == MtuProbing::Always,
            low: path.mtu_of(BASE),
            high: path.mtu.min(path.clamp + HEADERS),
            probe: None,
            since: context.now,
        });
        Some(path.mss())
    }

    /// The path may drop large packets silently: enables MTU probing, or probes smaller sizes
    /// (`tcp_mtu_probing`).
    pub fn suspect_black_hole(&mut self, now: Time) -> Option<u16> {
        let path = self.path.as_mut()?;
        let half = path.search.as_ref().map_or(0, |search| path.mss_of(search.low)) / 2;
        let low = path.mtu_of(half.clamp(LEAST, BASE));
        let search = path.search.as_mut()?;
        if search.is_on {
            search.low = low;
        } else {
            (search.is_on, search.since) = (true, now);
        }
        Some(path.mss())
    }

    /// The time in the timestamps option of a segment that leaves now. For a segment that answers
    /// an ICMP notice, Linux uses the time of the previous departure, because it does not read the
    /// clock.
    #[cold]
    pub fn timestamp_clock(&self, now: Time, stamp: Time) -> Time {
        let told = self.path.as_ref().map(|path| path.notice);
        told.filter(|&(at, _)| at == now).map_or(stamp, |(_, before)| before)
    }

    /// Another connection of the host learned that the route carries packets of at most `mtu`
    /// bytes. The next packet looks the route up.
    pub fn note_route_mtu(&mut self, mtu: u16, mss: u16, options: u16) {
        let path = self.path(mss, options);
        if mtu < path.mtu {
            path.route_change.get_or_insert(RouteChange {
                mtu,
                is_looked_up: false,
                has_dropped: false,
            });
        }
    }

    /// An ICMP "fragmentation needed" notice arrives now.
    pub fn note_icmp_notice(&mut self, now: Time) {
        if let Some(path) = &mut self.path {
            path.notice = (now, self.last_data_sent);
        }
    }

    /// Payload bytes of the segment that the host has just dropped as too large, or 0. To be
    /// accounted for once.
    pub fn take_local_drop(&mut self) -> u16 {
        self.path.as_mut().map_or(0, |path| std::mem::take(&mut path.dropped))
    }

    /// The largest payload according to the path MTU, options included.
    pub fn path_mss(&self) -> Option<u16> {
        self.path.as_ref().map(|path| path.mtu.saturating_sub(HEADERS))
    }
}

/// Probes.
impl Departure {
    /// Whether the next new data leaves as an MTU probe (`tcp_mtu_probe`).
    #[cold]
    pub fn mtu_probe(&mut self, now: Time, conditions: ProbeConditions<'_>) -> MtuProbe {
        let ProbeConditions { stream, window: Window { cwnd, in_flight }, reordering } = conditions;
        if cwnd < LEAST_WINDOW {
            return MtuProbe::No;
        }
        let Some((mtu, payload)) = self.next_probe_size(now) else { return MtuProbe::No };
        let needed = u64::from(payload) + u64::from(reordering + 1) * u64::from(stream.mss);
        if stream.unsent() < needed || stream.window < needed {
            return MtuProbe::No;
        }
        if stream.usable() < needed || (in_flight + 2 > cwnd && in_flight > 0) {
            return MtuProbe::Wait;
        }
        let start = stream.nxt;
        if let Some(search) = self.path.as_mut().and_then(|path| path.search.as_mut()) {
            search.probe = Some((mtu, start..start + u64::from(payload)));
        }
        let (fin, is_retransmission, is_probe, push) = (false, false, false, false);
        MtuProbe::Yes(Data { start, payload, fin, is_retransmission, is_probe, push })
    }

    /// The middle between the known bounds, as a packet size and its payload. None while a probe is
    /// outstanding, or when the size is known.
    fn next_probe_size(&mut self, now: Time) -> Option<(u16, u16)> {
        let path = self.path.as_mut()?;
        let most = path.mtu.min(path.clamp + HEADERS);
        let search = path.search.as_mut().filter(|it| it.is_on && it.probe.is_none())?;
        if search.high < search.low.saturating_add(PRECISION) {
            if now.since(search.since) >= AGAIN {
                // The path may have changed (`tcp_mtu_check_reprobe`).
                (search.high, search.since) = (most, now);
            }
            return None;
        }
        let mtu = search.low + (search.high - search.low) / 2;
        Some((mtu, path.mss_of(mtu)))
    }

    /// Data below `una` is acknowledged. If that includes a probe, returns the largest packet
    /// before and now, and the new MSS.
    #[cold]
    pub fn take_acked_mtu_probe(&mut self, una: u64) -> Option<(u16, u16, u16)> {
        let path = self.path.as_mut()?;
        let before = path.mtu_of(path.mss());
        let search = path.search.as_mut()?;
        let (size, _) = search.probe.take_if(|(_, data)| data.end <= una)?;
        search.low = size;
        Some((before, size, path.mss()))
    }

    /// The segment at `una` is lost. Returns whether it is a probe: then its size was the cause,
    /// not congestion (RFC 4821 §7.4; `tcp_mtup_probe_failed`).
    pub fn take_lost_mtu_probe(&mut self, una: u64) -> bool {
        let Some(search) = self.path.as_mut().and_then(|path| path.search.as_mut()) else {
            return false;
        };
        let Some((size, _)) = search.probe.take_if(|(_, data)| data.start == una) else {
            return false;
        };
        search.high = size - 1;
        true
    }

    /// A segment is retransmitted, so the outcome of an MTU probe is no longer clear. Returns the
    /// departure time that the retransmission counts with: after an ICMP notice Linux does not read
    /// the clock, so that of the previous departure.
    #[inline]
    pub fn on_retransmit(&mut self, now: Time) -> Time {
        if self.path.is_some() { self.forget_mtu_probe(now) } else { now }
    }

    #[cold]
    fn forget_mtu_probe(&mut self, now: Time) -> Time {
        let Some(path) = &mut self.path else { return now };
        if let Some(search) = &mut path.search {
            search.probe = None;
        }
        if path.notice.0 == now { path.notice.1 } else { now }
    }
}
