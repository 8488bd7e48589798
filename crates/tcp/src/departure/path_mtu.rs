//! How large packets may be on the path: as routers say (RFC 1191), or as probes find out that
//! arrive or do not, where routers say nothing (RFC 4821).
//!
//! As in Linux: `tcp_v4_mtu_reduced`, `tcp_sync_mss`, `tcp_mtu_probe`, `tcp_mtu_probing`. A probe
//! is a segment of new data that is larger than others. It counts as one segment of the window,
//! though Linux takes one more off for it.

use crate::context::Context;
use crate::departure::data::Data;
use crate::departure::{Departure, Stream, Window};
use crate::segment::{IP_HEADER, TCP_HEADER};
use crate::settings::MtuProbing;
use std::ops::Range;
use tcplab_units::{Duration, Time};

const NEVER_TOLD: (Time, Time) = (Time::NEVER, Time::NEVER);
const HEADERS: u16 = (IP_HEADER + TCP_HEADER) as u16;
/// The size that every path should carry (`TCP_BASE_MSS`), and the least that is tried
/// (`TCP_MIN_SND_MSS`).
const BASE: u16 = 1024;
const LEAST: u16 = 48;
/// Probing ends when the size is known to this many bytes (`TCP_PROBE_THRESHOLD`), and begins anew
/// after ten minutes (`TCP_PROBE_INTERVAL`).
const PRECISION: u16 = 8;
const AGAIN: Duration = Duration::from_secs(600);
/// A probe wants a window in which its loss shows.
const LEAST_WINDOW: u64 = 11;

/// The MTU of the path, and the search for it, in bytes of whole packets.
#[derive(Clone, Debug)]
pub(super) struct PathMtu {
    /// The most that both ends take in a segment, options included, and how much of it those take.
    clamp: u16,
    options: u16,
    /// The largest packet, as far as was told.
    mtu: u16,
    search: Option<Search>,
    /// When a notice came last, and for what time Linux took that.
    told: (Time, Time),
    ahead: Option<Ahead>,
    /// Payload of the segment that has just failed at the host, and has not been accounted for; or
    /// 0.
    failed: u16,
}

/// The host has heard from another connection how large packets may be. Linux looks the route up
/// again with the next packet of this one (`ip_queue_xmit`), and sizes those after it by that
/// (`tcp_current_mss`).
#[derive(Clone, Copy, Debug)]
struct Ahead {
    mtu: u16,
    /// A packet has left, or has failed, since then.
    has_looked: bool,
    /// The packet that looked the route up was larger, and the host dropped it (`ip_fragment`).
    has_failed: bool,
}

/// The search for the largest packet that arrives.
#[derive(Clone, Debug)]
struct Search {
    /// Whether the search runs. Without it the MTU that routers report is used.
    is_on: bool,
    /// A size that arrives, and one above which nothing is tried.
    low: u16,
    high: u16,
    /// The size of the probe under way, and its data.
    probe: Option<(u16, Range<u64>)>,
    since: Time,
}

/// The decision on a probe of the path MTU.
#[derive(Clone)]
pub(crate) enum SizeProbe {
    /// Nothing.
    No,
    /// The probe waits until the window has room, and later data waits behind it.
    Wait,
    /// The probe leaves now.
    Yes(Data),
}

/// The conditions under which a probe of the path MTU may leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings<'a> {
    pub stream: &'a Stream,
    pub window: Window,
    /// Segments that may come late without being taken for lost.
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

/// What the path takes, as it is told. Where the payload of a full segment changes for that, the
/// new one is returned.
impl Departure {
    /// Whether the path's size is anything but what both ends say.
    #[inline]
    pub fn has_path(&self) -> bool {
        self.path.is_some()
    }

    /// The state of the path. The first use makes it from the current MSS and the size of the
    /// options.
    fn path(&mut self, mss: u16, options: u16) -> &mut PathMtu {
        let clamp = mss + options;
        let mtu = clamp + HEADERS;
        self.path.get_or_insert_with(|| {
            Box::new(PathMtu {
                clamp,
                options,
                mtu,
                search: None,
                told: NEVER_TOLD,
                ahead: None,
                failed: 0,
            })
        })
    }

    /// The path takes packets of this size and no larger ones, if that is news.
    pub fn take_mtu(&mut self, mtu: u16, mss: u16, options: u16) -> Option<u16> {
        let path = self.path(mss, options);
        path.ahead = None;
        if mtu >= path.mtu {
            return None;
        }
        path.mtu = mtu;
        if let Some(search) = &mut path.search {
            search.high = search.high.min(mtu);
        }
        Some(path.mss())
    }

    /// A packet leaves, with data or without: the route is looked up for it.
    #[cold]
    pub fn look_route_up(&mut self) {
        if let Some(ahead) = self.path.as_mut().and_then(|path| path.ahead.as_mut()) {
            ahead.has_looked = true;
        }
    }

    /// Takes the size of the route, once it has been looked up; but not while a call of the
    /// application runs, which keeps the size that it began with. With a new size says whether the
    /// host has told the connection of its own packet (`tcp_v4_mtu_reduced`).
    #[cold]
    pub fn refresh_route(&mut self, mss: u16) -> Option<(u16, bool)> {
        if self.buffer.as_ref().is_some_and(|buffer| buffer.is_writing()) {
            return None;
        }
        let path = self.path.as_mut()?;
        let ahead = path.ahead.take_if(|ahead| ahead.has_looked)?;
        let options = path.options;
        Some((self.take_mtu(ahead.mtu, mss, options)?, ahead.has_failed))
    }

    /// Whether a packet of new data with so many bytes is too large for the route that is looked up
    /// for it: it is dropped here, and stays in the send buffer.
    #[cold]
    pub(super) fn fails_at_host(&mut self, bytes: u64, mss: u16) -> bool {
        let payload = bytes.min(mss.into()) as u16;
        let Some(path) = &mut self.path else { return false };
        let size = path.mtu_of(payload);
        let Some(ahead) = path.ahead.as_mut().filter(|ahead| size > ahead.mtu) else {
            return false;
        };
        (ahead.has_looked, ahead.has_failed) = (true, true);
        path.failed = payload;
        if let Some(buffer) = &mut self.buffer {
            buffer.keep(bytes);
        }
        true
    }

    /// Sets the size of the options in each segment, after they are negotiated.
    pub fn set_options_size(&mut self, mss: u16, options: u16) -> Option<u16> {
        let path = self.path.as_mut()?;
        (path.clamp, path.options) = (mss + options, options);
        Some(path.mss())
    }

    /// The connection stands: from now on the size may be searched for (`tcp_mtup_init`).
    pub fn begin_search(&mut self, context: Context<'_>, mss: u16, options: u16) -> Option<u16> {
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

    /// Nothing has been answered for long: the path may swallow large packets. It is not believed
    /// any more, or less is tried (`tcp_mtu_probing`).
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

    /// The time that a segment says it is which leaves now: one that answers a notice is as late as
    /// what left before, as Linux does not look at the clock for it.
    #[cold]
    pub fn stamp(&self, now: Time, stamp: Time) -> Time {
        let told = self.path.as_ref().map(|path| path.told);
        told.filter(|&(at, _)| at == now).map_or(stamp, |(_, before)| before)
    }

    /// The host has heard from another connection that the route takes packets of this size: the
    /// next packet looks the route up.
    pub fn note_route(&mut self, mtu: u16, mss: u16, options: u16) {
        let path = self.path(mss, options);
        if mtu < path.mtu {
            path.ahead.get_or_insert(Ahead { mtu, has_looked: false, has_failed: false });
        }
    }

    /// A notice of a packet that was too large comes now.
    pub fn note_notice(&mut self, now: Time) {
        if let Some(path) = &mut self.path {
            path.told = (now, self.last_sent);
        }
    }

    /// The payload of the segment that has just failed at the host, or 0; it is accounted for now.
    pub fn take_failed(&mut self) -> u16 {
        self.path.as_mut().map_or(0, |path| std::mem::take(&mut path.failed))
    }

    /// The largest payload that the path carries, by the ICMP messages received; options included.
    pub fn path_mss(&self) -> Option<u16> {
        self.path.as_ref().map(|path| path.mtu.saturating_sub(HEADERS))
    }
}

/// Probes.
impl Departure {
    /// Whether new data should leave as a probe (`tcp_mtu_probe`).
    #[cold]
    pub fn size_probe(&mut self, now: Time, around: Surroundings<'_>) -> SizeProbe {
        let Surroundings { stream, window: Window { cwnd, in_flight }, reordering } = around;
        if cwnd < LEAST_WINDOW {
            return SizeProbe::No;
        }
        let Some((mtu, payload)) = self.size_to_probe(now) else { return SizeProbe::No };
        let needed = u64::from(payload) + u64::from(reordering + 1) * u64::from(stream.mss);
        if stream.unsent() < needed || stream.window < needed {
            return SizeProbe::No;
        }
        if stream.usable() < needed || (in_flight + 2 > cwnd && in_flight > 0) {
            return SizeProbe::Wait;
        }
        let start = stream.nxt;
        if let Some(search) = self.path.as_mut().and_then(|path| path.search.as_mut()) {
            search.probe = Some((mtu, start..start + u64::from(payload)));
        }
        let (fin, again, is_probe, push) = (false, false, false, false);
        SizeProbe::Yes(Data { start, payload, fin, again, is_probe, push })
    }

    /// The middle between what arrives and what is too large, as a packet and its payload; none
    /// while a probe is under way, or if there is nothing more to find out.
    fn size_to_probe(&mut self, now: Time) -> Option<(u16, u16)> {
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

    /// All before `una` is acknowledged. Where a probe has arrived for that, returns the largest
    /// packets, before and now, and the payload of a full segment.
    #[cold]
    pub fn take_arrived_probe(&mut self, una: u64) -> Option<(u16, u16, u16)> {
        let path = self.path.as_mut()?;
        let before = path.mtu_of(path.mss());
        let search = path.search.as_mut()?;
        let (size, _) = search.probe.take_if(|(_, data)| data.end <= una)?;
        search.low = size;
        Some((before, size, path.mss()))
    }

    /// The segment at `una` is lost. If it is a probe, that says something of sizes and nothing of
    /// congestion (RFC 4821 §7.4; `tcp_mtup_probe_failed`). Says whether it is.
    pub fn take_lost_probe(&mut self, una: u64) -> bool {
        let Some(search) = self.path.as_mut().and_then(|path| path.search.as_mut()) else {
            return false;
        };
        let Some((size, _)) = search.probe.take_if(|(_, data)| data.start == una) else {
            return false;
        };
        search.high = size - 1;
        true
    }

    /// A segment is retransmitted: the fate of a probe says nothing about the path MTU any more.
    /// Returns the departure time that the segment gets. After an ICMP message Linux does not read
    /// the clock, so a segment that was too large gets the time of the previous transmission.
    #[inline]
    pub fn on_retransmit(&mut self, now: Time) -> Time {
        if self.path.is_some() { self.forget_probe(now) } else { now }
    }

    #[cold]
    fn forget_probe(&mut self, now: Time) -> Time {
        let Some(path) = &mut self.path else { return now };
        if let Some(search) = &mut path.search {
            search.probe = None;
        }
        if path.told.0 == now { path.told.1 } else { now }
    }
}
