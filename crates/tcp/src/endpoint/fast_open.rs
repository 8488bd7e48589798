//! TCP Fast Open (RFC 7413): data in the SYN of a client that shows a cookie, and answers before
//! the handshake ends.
//!
//! Who keeps cookies, and gives them to those who connect, is not part of an endpoint. As in Linux,
//! what is repeated is a SYN without data and without the option, and a server that waits for the
//! end of the handshake repeats its SYN-ACK alone (`tcp_send_syn_data`, `tcp_rcv_fastopen_synack`,
//! `tcp_try_fastopen`).

use crate::context::Context;
use crate::endpoint::{Endpoint, State};
use crate::segment::{Cookie, FastOpenOption, IP_HEADER, Segment, TCP_HEADER};
use crate::sender::resegment::NONE;
use tcplab_units::{Duration, Time};

/// Room for all the options that a SYN can have (`MAX_TCP_OPTION_SPACE`).
const OPTIONS: u16 = 40;
/// The data that waits for the end of the handshake will bring the ACK; it has so long
/// (`TCP_DELACK_MAX`).
const PATIENCE: Duration = Duration::from_millis(200);

/// The state that a client keeps of a server (RFC 7413 §4.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The cookie that it gave.
    pub cookie: Cookie,
    /// The largest payload that it takes.
    pub mss: u16,
}

/// The Fast Open state of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FastOpen {
    /// A client: what it knows of the server.
    known: Option<Known>,
    /// Its SYN waits for data.
    is_put_off: bool,
    /// Bytes that its SYN carries, and whether there is more to come.
    payload: u16,
    has_more: bool,
    /// News of the server, until somebody asks.
    learned: Option<Known>,
    /// A server: the cookie of the client that may come, and whether the SYN-ACK is to bring it.
    own: Option<Cookie>,
    grants: bool,
    /// The client has shown it.
    is_accepted: bool,
}

impl Endpoint {
    /// Opens actively, with Fast Open: with a cookie the SYN waits for the first data and takes it
    /// along, else it asks for one.
    pub fn connect_fast(&mut self, known: Option<Known>) {
        self.connect();
        self.owes_syn = known.is_none();
        let is_put_off = known.is_some();
        self.fast_open = Some(Box::new(FastOpen { known, is_put_off, ..FastOpen::default() }));
    }

    /// Opens passively, with Fast Open for a client with this cookie.
    pub fn listen_fast(&mut self, cookie: Cookie) {
        self.listen();
        self.fast_open = Some(Box::new(FastOpen { own: Some(cookie), ..FastOpen::default() }));
    }

    /// News of the server for the client to keep; given once.
    pub fn take_learned(&mut self) -> Option<Known> {
        self.fast_open.as_mut()?.learned.take()
    }

    /// The SYN waits for the first data.
    pub(crate) fn is_syn_put_off(&self) -> bool {
        self.fast_open.as_ref().is_some_and(|fast| fast.is_put_off)
    }

    /// The first write leaves with the SYN, as far as it has room; the rest waits for the answer.
    pub(crate) fn write_into_syn(&mut self, bytes: u64) -> u64 {
        let own = self.own_mss();
        let Some(fast) = &mut self.fast_open else { return 0 };
        let mss = fast.known.map_or(0, |known| known.mss.min(own));
        let taken = bytes.min(mss.saturating_sub(OPTIONS).into());
        fast.is_put_off = false;
        fast.payload = taken as u16;
        fast.has_more = bytes > taken;
        self.send.written += taken;
        self.owes_syn = true;
        taken
    }

    /// The first SYN or SYN-ACK, with what there is to say and to send.
    pub(crate) fn with_fast_open(
        &mut self,
        now: Time,
        segment: Segment,
        is_answer: bool,
    ) -> Segment {
        let Some(fast) = self.fast_open.as_deref().copied() else { return segment };
        let option = |cookie| FastOpenOption::Cookie(cookie);
        // On a link of RFC 791's least MTU a cookie beside all other options is too large.
        let most = u32::from(self.own_mss()) + IP_HEADER + TCP_HEADER;
        let with = |option| {
            let whole = segment.with_fast_open(option);
            if whole.wire_bytes() <= most { whole } else { segment }
        };
        if is_answer {
            let granted = fast.own.filter(|_| fast.grants).map(option);
            return granted.map_or(segment, with);
        }
        let shown = fast.known.map(|known| option(known.cookie));
        let segment = with(shown.unwrap_or(FastOpenOption::Request));
        if fast.payload == 0 {
            return segment;
        }
        self.send.send_with_syn(Context { now, settings: &self.settings }, fast.payload);
        segment.with_payload(fast.payload)
    }

    /// A SYN arrived. Its data counts if it shows the right cookie; whoever shows another gets the
    /// right one, like those who ask (RFC 7413 §4.2.2).
    pub(crate) fn take_fast_open(&mut self, now: Time, segment: &Segment) {
        let Some(fast) = &mut self.fast_open else { return };
        let Some(option) = segment.fast_open() else { return };
        fast.is_accepted = fast.own.is_some_and(|own| option == FastOpenOption::Cookie(own));
        fast.grants = !fast.is_accepted;
        if fast.is_accepted {
            self.send.una = 1;
            self.receive.begin(now);
            if segment.payload > 0 {
                self.receive.prepare(&self.settings);
                self.receive.take_with_syn(segment.payload.into());
            }
        }
    }

    /// The server may send: it knows the client, though the handshake has not ended.
    pub(crate) fn is_open_early(&self) -> bool {
        self.state == State::SynReceived
            && self.fast_open.as_ref().is_some_and(|fast| fast.is_accepted)
    }

    /// Data, without a FIN. The timer stays that of the SYN-ACK (`tcp_rearm_rto`,
    /// `tcp_schedule_loss_probe`).
    pub(crate) fn poll_early(&mut self, now: Time) -> Option<Segment> {
        let timer = self.send.timer;
        let closed = std::mem::take(&mut self.send.closed);
        let segment = self.poll_data(now);
        (self.send.timer, self.send.closed) = (timer, closed);
        segment
    }

    /// The answer to a client's SYN acknowledges what comes before `acked`. The rest of its data is
    /// sent again, as ordinary data and without a smaller window: that the server did not take it
    /// says nothing of the path (RFC 7413 §4.2.1).
    pub(crate) fn end_fast_open(&mut self, now: Time, segment: &Segment, acked: u64) {
        let Some(fast) = &mut self.fast_open else { return };
        let granted = match segment.fast_open() {
            Some(FastOpenOption::Cookie(cookie)) => Some(cookie),
            _ => fast.known.map(|known| known.cookie),
        };
        let mss = segment.syn_options().map_or(0, |options| options.mss);
        fast.learned = granted.map(|cookie| Known { cookie, mss });
        if fast.payload == 0 {
            return;
        }
        let delays_ack = self.settings.behaviour.fast_open_delays_ack;
        let has_more = fast.has_more;
        self.send.on_syn_acked(acked);
        if self.send.has_outstanding() {
            self.send.resend_larger(now, NONE);
            self.owes_ack_first = false;
        } else {
            self.send.timer.stop();
            if delays_ack && has_more {
                // The application's waiting data will carry the ACK.
                self.delayed_ack.on_sent();
                self.delayed_ack.delay_ack(now + PATIENCE);
                self.owes_ack_first = false;
            }
        }
    }
}
