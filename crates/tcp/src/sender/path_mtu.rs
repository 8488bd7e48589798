//! Consequences of the path MTU for the sender: segments of another size, retransmission of those
//! that are too large, and probes (RFC 1191, RFC 4821).

use crate::context::Context;
use crate::departure::{SizeProbe, Surroundings};
use crate::sender::Sender;
use tcplab_cc::Phase;
use tcplab_units::Time;

impl Sender {
    /// The payload of a full segment is this one from now on, if there is another.
    fn take_mss(&mut self, mss: Option<u16>) {
        self.mss = mss.unwrap_or(self.mss);
    }

    /// The path takes packets of this size and no larger ones. Says whether that is news.
    pub fn take_mtu(&mut self, mtu: u16, options: u16) -> bool {
        let mss = self.departure.take_mtu(mtu, self.mss, options);
        self.take_mss(mss);
        mss.is_some()
    }

    /// Sets the size of segments to that of the route, once it has been looked up. Says whether
    /// something may leave for that.
    #[cold]
    pub fn refresh_route(&mut self, context: Context<'_>) -> bool {
        let Some((mss, is_told)) = self.departure.refresh_route(self.mss) else { return false };
        self.mss = mss;
        is_told && self.resend_larger(context.now, self.mss) && {
            self.update_rate(context);
            true
        }
    }

    /// Data that is sent again is routed first, and then sized (`__tcp_retransmit_skb`).
    #[cold]
    pub fn route_again(&mut self, context: Context<'_>) {
        self.departure.look_route_up();
        self.refresh_route(context);
    }

    /// The host drops a packet of so many bytes. For the sender it has left, as far as that is
    /// noted before the packet is routed (`__tcp_transmit_skb`).
    #[cold]
    pub(crate) fn note_failed(&mut self, context: Context<'_>, in_flight: u64, bytes: u64) {
        self.counters.sent_segments += bytes.div_ceil(self.mss.into());
        if in_flight == 0 {
            self.on_tx_start(context);
        }
        self.departure.note_sent(context.now);
    }

    /// Sets the size of the options in each segment, after they are negotiated.
    pub fn set_options_size(&mut self, options: u16) {
        let mss = self.departure.set_options_size(self.mss, options);
        self.take_mss(mss);
    }

    /// The connection stands: from now on the size may be searched for (`tcp_mtup_init`).
    pub fn begin_search(&mut self, context: Context<'_>, options: u16) {
        let mss = self.departure.begin_search(context, self.mss, options);
        self.take_mss(mss);
    }

    /// Nothing has been answered for long: the path may swallow large packets. It is not believed
    /// any more, or less is tried (`tcp_mtu_probing`).
    pub fn suspect_black_hole(&mut self, now: Time) {
        let mss = self.departure.suspect_black_hole(now);
        self.take_mss(mss);
    }

    /// The host has heard from another connection that the route takes packets of this size: the
    /// next packet looks the route up.
    pub fn note_route(&mut self, mtu: u16, options: u16) {
        self.departure.note_route(mtu, self.mss, options);
    }

    /// Whether new data should leave as a probe (`tcp_mtu_probe`).
    #[cold]
    pub fn size_probe(&mut self, context: Context<'_>, in_flight: u64) -> SizeProbe {
        if self.loss.phase() != Phase::Open {
            return SizeProbe::No;
        }
        let around = Surroundings {
            stream: &self.stream(),
            window: self.window_for(in_flight),
            reordering: self.loss.reordering(context.settings),
        };
        self.departure.size_probe(context.now, around)
    }

    /// Something is acknowledged: a probe may have arrived. Then segments become larger, and the
    /// window fewer of them (`tcp_mtup_probe_success`).
    #[cold]
    pub fn judge_size_probe(&mut self, now: Time) {
        let Some((before, size, mss)) = self.departure.take_arrived_probe(self.una) else { return };
        self.mss = mss;
        let cwnd = (self.congestion.decided() * u64::from(before) / u64::from(size)).max(1);
        self.consult(now, |cc, _| cc.on_moderated(cwnd));
    }

    /// A loss was found. If it is that of a probe, what is under way leaves again in smaller
    /// segments. Says whether anything does.
    pub fn is_probe_too_large(&mut self, now: Time) -> bool {
        self.loss.phase() < Phase::Reduced
            && self.departure.take_lost_probe(self.una)
            && self.resend_larger(now, self.mss)
    }
}
