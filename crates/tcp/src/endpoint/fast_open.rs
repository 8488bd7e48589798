//! TCP Fast Open (RFC 7413): data in the SYN of a client that sends a valid cookie, and data of the
//! server before the handshake is complete.
//!
//! The cookie cache is outside the endpoint. As in Linux, a retransmitted SYN has neither data nor
//! the option, and a server that waits for the end of the handshake retransmits its SYN-ACK alone
//! (`tcp_send_syn_data`, `tcp_rcv_fastopen_synack`, `tcp_try_fastopen`).

use crate::context::Context;
use crate::endpoint::{Endpoint, State};
use crate::segment::{Cookie, FastOpenOption, IP_HEADER, Segment, TCP_HEADER};
use crate::sender::resegment::RESEND_ALL;
use tcplab_units::{Duration, Time};

/// Space for all options of a SYN (`MAX_TCP_OPTION_SPACE`).
const OPTIONS: u16 = 40;
/// The longest that the ACK of the SYN-ACK waits for data that carries it (`TCP_DELACK_MAX`).
const DELACK_MAX: Duration = Duration::from_millis(200);

/// A client's cache entry of a server (RFC 7413 §4.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachedCookie {
    /// The server's cookie.
    pub cookie: Cookie,
    /// The server's MSS.
    pub mss: u16,
}

/// The Fast Open state of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FastOpen {
    /// Client: the cache entry of the server.
    cached: Option<CachedCookie>,
    /// Client: the SYN waits for data (`defer_connect`).
    is_deferred: bool,
    /// Bytes of data in the SYN, and whether the application has more to send.
    payload: u16,
    has_more: bool,
    /// A new cache entry, until the host takes it.
    to_cache: Option<CachedCookie>,
    /// Server: the client's valid cookie, and whether the SYN-ACK grants it.
    expected: Option<Cookie>,
    grants_cookie: bool,
    /// Server: the client sent the valid cookie.
    is_accepted: bool,
}

impl Endpoint {
    /// Active open with Fast Open. With a cached cookie the SYN waits for the first data and
    /// carries it; without one the SYN requests a cookie.
    pub fn connect_fast(&mut self, cached: Option<CachedCookie>) {
        self.connect();
        self.syn_pending = cached.is_none();
        let is_deferred = cached.is_some();
        self.fast_open = Some(Box::new(FastOpen { cached, is_deferred, ..FastOpen::default() }));
    }

    /// Passive open with Fast Open, for a client with this cookie.
    pub fn listen_fast(&mut self, cookie: Cookie) {
        self.listen();
        self.fast_open = Some(Box::new(FastOpen { expected: Some(cookie), ..FastOpen::default() }));
    }

    /// A new entry for the client's cookie cache; returned once.
    pub fn take_cookie_to_cache(&mut self) -> Option<CachedCookie> {
        self.fast_open.as_mut()?.to_cache.take()
    }

    /// Whether the SYN waits for the first data.
    pub(crate) fn is_syn_deferred(&self) -> bool {
        self.fast_open.as_ref().is_some_and(|fast| fast.is_deferred)
    }

    /// The SYN carries the first write as far as it fits. The rest waits for the SYN-ACK.
    pub(crate) fn write_into_syn(&mut self, bytes: u64) -> u64 {
        let own = self.own_mss();
        let Some(fast) = &mut self.fast_open else { return 0 };
        let mss = fast.cached.map_or(0, |cached| cached.mss.min(own));
        let taken = bytes.min(mss.saturating_sub(OPTIONS).into());
        fast.is_deferred = false;
        fast.payload = taken as u16;
        fast.has_more = bytes > taken;
        self.send.written += taken;
        self.syn_pending = true;
        taken
    }

    /// Adds the Fast Open option, and a client's data, to the first SYN or SYN-ACK.
    pub(crate) fn with_fast_open(
        &mut self,
        now: Time,
        segment: Segment,
        is_answer: bool,
    ) -> Segment {
        let Some(fast) = self.fast_open.as_deref().copied() else { return segment };
        let option = |cookie| FastOpenOption::Cookie(cookie);
        // With RFC 791's minimum MTU of 68 bytes, a cookie beside all other options does not fit.
        let most = u32::from(self.own_mss()) + IP_HEADER + TCP_HEADER;
        let with = |option| {
            let whole = segment.with_fast_open(option);
            if whole.wire_bytes() <= most { whole } else { segment }
        };
        if is_answer {
            let granted = fast.expected.filter(|_| fast.grants_cookie).map(option);
            return granted.map_or(segment, with);
        }
        let shown = fast.cached.map(|cached| option(cached.cookie));
        let segment = with(shown.unwrap_or(FastOpenOption::Request));
        if fast.payload == 0 {
            return segment;
        }
        self.send.send_with_syn(Context { now, settings: &self.settings }, fast.payload);
        segment.with_payload(fast.payload)
    }

    /// Handles the Fast Open option of a SYN. The data of a SYN with the valid cookie is accepted;
    /// a client with an invalid cookie, or that requests one, is granted the valid one (RFC 7413
    /// §4.2.2).
    pub(crate) fn on_syn_fast_open(&mut self, now: Time, segment: &Segment) {
        let Some(fast) = &mut self.fast_open else { return };
        let Some(option) = segment.fast_open() else { return };
        fast.is_accepted = fast.expected.is_some_and(|own| option == FastOpenOption::Cookie(own));
        fast.grants_cookie = !fast.is_accepted;
        if fast.is_accepted {
            self.send.una = 1;
            self.receive.on_established(now);
            if segment.payload > 0 {
                self.receive.init_autotuning(&self.settings);
                self.receive.receive_with_syn(segment.payload.into());
            }
        }
    }

    /// Server: whether data may be sent in SYN-RECEIVED, because the client sent the valid cookie.
    pub(crate) fn may_send_before_handshake(&self) -> bool {
        self.state == State::SynReceived
            && self.fast_open.as_ref().is_some_and(|fast| fast.is_accepted)
    }

    /// Data in SYN-RECEIVED, without a FIN. The timer stays that of the SYN-ACK (`tcp_rearm_rto`,
    /// `tcp_schedule_loss_probe`).
    pub(crate) fn poll_before_handshake(&mut self, now: Time) -> Option<Segment> {
        let timer = self.send.timer;
        let closed = std::mem::take(&mut self.send.closed);
        let segment = self.poll_data(now);
        (self.send.timer, self.send.closed) = (timer, closed);
        segment
    }

    /// Handles a SYN-ACK that acknowledges offsets below `acked`. Data of the SYN that is not
    /// acknowledged is retransmitted as ordinary data without a smaller window: that a server
    /// ignores the data is no sign of congestion (RFC 7413 §4.2.1).
    pub(crate) fn on_syn_ack_fast_open(&mut self, now: Time, segment: &Segment, acked: u64) {
        let Some(fast) = &mut self.fast_open else { return };
        let granted = match segment.fast_open() {
            Some(FastOpenOption::Cookie(cookie)) => Some(cookie),
            _ => fast.cached.map(|cached| cached.cookie),
        };
        let mss = segment.syn_options().map_or(0, |options| options.mss);
        fast.to_cache = granted.map(|cookie| CachedCookie { cookie, mss });
        if fast.payload == 0 {
            return;
        }
        let delays_ack = self.settings.behaviour.fast_open_delays_ack;
        let has_more = fast.has_more;
        self.send.on_syn_acked(acked);
        if self.send.has_outstanding() {
            self.send.simple_retransmit(now, RESEND_ALL);
            self.handshake_ack_pending = false;
        } else {
            self.send.timer.stop();
            if delays_ack && has_more {
                // The application's next data carries the ACK.
                self.delayed_ack.on_ack_sent();
                self.delayed_ack.delay_ack(now + DELACK_MAX);
                self.handshake_ack_pending = false;
            }
        }
    }
}
