//! Consequences of the path MTU for the sender: segments of another size, retransmission of those
//! that are too large, and probes (RFC 1191, RFC 4821).

use crate::context::Context;
use crate::departure::{MtuProbe, ProbeConditions};
use crate::sender::Sender;
use tcplab_cc::Phase;
use tcplab_units::Time;

impl Sender {
    /// The payload of a full segment is this one from now on, if there is another.
    fn set_mss(&mut self, mss: Option<u16>) {
        self.mss = mss.unwrap_or(self.mss);
    }

    /// The path takes packets of this size and no larger ones. Says whether that is news.
    pub fn reduce_mtu(&mut self, mtu: u16, options: u16) -> bool {
        let mss = self.departure.reduce_mtu(mtu, self.mss, options);
        self.set_mss(mss);
        mss.is_some()
    }

    /// Sets the size of segments to that of the route, once it has been looked up. Says whether
    /// something may leave for that.
    #[cold]
    pub fn sync_mss(&mut self, context: Context<'_>) -> bool {
        let Some((mss, is_told)) = self.departure.sync_mss(self.mss) else { return false };
        self.mss = mss;
        is_told && self.simple_retransmit(context.now, self.mss) && {
            self.update_rate(context);
            true
        }
    }

    /// Data that is sent again is routed first, and then sized (`__tcp_retransmit_skb`).
    #[cold]
    pub fn reroute(&mut self, context: Context<'_>) {
        self.departure.on_route_lookup();
        self.sync_mss(context);
    }

    /// The host drops a packet of so many bytes. For the sender it has left, as far as that is
    /// noted before the packet is routed (`__tcp_transmit_skb`).
    #[cold]
    pub(crate) fn note_local_drop(&mut self, context: Context<'_>, in_flight: u64, bytes: u64) {
        self.counters.sent_segments += bytes.div_ceil(self.mss.into());
        if in_flight == 0 {
            self.on_transmit_start(context);
        }
        self.departure.note_sent(context.now);
    }

    /// The options of segments are agreed on, which take so much; `mss` is what they leave.
    pub fn set_option_bytes(&mut self, options: u16) {
        let mss = self.departure.set_option_bytes(self.mss, options);
        self.set_mss(mss);
    }

    /// The connection stands: from now on the size may be searched for (`tcp_mtup_init`).
    pub fn init_mtu_probing(&mut self, context: Context<'_>, options: u16) {
        let mss = self.departure.init_mtu_probing(context, self.mss, options);
        self.set_mss(mss);
    }

    /// Nothing has been answered for long: the path may swallow large packets. It is not believed
    /// any more, or less is tried (`tcp_mtu_probing`).
    pub fn suspect_black_hole(&mut self, now: Time) {
        let mss = self.departure.suspect_black_hole(now);
        self.set_mss(mss);
    }

    /// The host has heard from another connection that the route takes packets of this size: the
    /// next packet looks the route up.
    pub fn note_route_mtu(&mut self, mtu: u16, options: u16) {
        self.departure.note_route_mtu(mtu, self.mss, options);
    }

    /// Whether new data should leave as a probe (`tcp_mtu_probe`).
    #[cold]
    pub fn mtu_probe(&mut self, context: Context<'_>, in_flight: u64) -> MtuProbe {
        if self.loss.phase() != Phase::Open {
            return MtuProbe::No;
        }
        let around = ProbeConditions {
            stream: &self.stream(),
            window: self.window_for(in_flight),
            reordering: self.loss.reordering(context.settings),
        };
        self.departure.mtu_probe(context.now, around)
    }

    /// Something is acknowledged: a probe may have arrived. Then segments become larger, and the
    /// window fewer of them (`tcp_mtup_probe_success`).
    #[cold]
    pub fn on_mtu_probe_acked(&mut self, now: Time) {
        let Some((before, size, mss)) = self.departure.take_acked_mtu_probe(self.una) else {
            return;
        };
        self.mss = mss;
        let cwnd = (self.congestion.controller_cwnd() * u64::from(before) / u64::from(size)).max(1);
        self.consult(now, |cc, _| cc.on_moderated(cwnd));
    }

    /// A loss was found. If it is that of a probe, what is under way leaves again in smaller
    /// segments. Says whether anything does.
    pub fn is_mtu_probe_lost(&mut self, now: Time) -> bool {
        self.loss.phase() < Phase::Reduced
            && self.departure.take_lost_mtu_probe(self.una)
            && self.simple_retransmit(now, self.mss)
    }
}
