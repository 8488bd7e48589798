//! The path MTU at the sender: segments of another size, retransmission of those that are too
//! large, and MTU probes (RFC 1191, RFC 4821).

use crate::context::Context;
use crate::departure::{MtuProbe, ProbeConditions};
use crate::sender::Sender;
use tcplab_cc::Phase;
use tcplab_units::Time;

impl Sender {
    /// Sets the payload of a full segment, if it changes.
    fn set_mss(&mut self, mss: Option<u16>) {
        self.mss = mss.unwrap_or(self.mss);
    }

    /// The path carries packets of at most `mtu` bytes (`tcp_v4_mtu_reduced`). Returns whether that
    /// is smaller than known.
    pub fn reduce_mtu(&mut self, mtu: u16, options: u16) -> bool {
        let mss = self.departure.reduce_mtu(mtu, self.mss, options);
        self.set_mss(mss);
        mss.is_some()
    }

    /// Adopts the route's MTU once a packet has looked the route up (`tcp_sync_mss`). Returns
    /// whether retransmissions may leave for it.
    #[cold]
    pub fn sync_mss(&mut self, context: Context<'_>) -> bool {
        let Some((mss, is_told)) = self.departure.sync_mss(self.mss) else { return false };
        self.mss = mss;
        is_told && self.simple_retransmit(context.now, self.mss) && {
            self.update_rate(context);
            true
        }
    }

    /// A retransmission looks the route up before it is sized (`__tcp_retransmit_skb`).
    #[cold]
    pub fn reroute(&mut self, context: Context<'_>) {
        self.departure.on_route_lookup();
        self.sync_mss(context);
    }

    /// The host drops a packet of `bytes`. The sender has counted it as sent where Linux does so
    /// before routing (`__tcp_transmit_skb`).
    #[cold]
    pub(crate) fn note_local_drop(&mut self, context: Context<'_>, in_flight: u64, bytes: u64) {
        self.counters.sent_segments += bytes.div_ceil(self.mss.into());
        if in_flight == 0 {
            self.on_transmit_start(context);
        }
        self.departure.note_sent(context.now);
    }

    /// The options are agreed on and take `options` bytes; `mss` already excludes them.
    pub fn set_option_bytes(&mut self, options: u16) {
        let mss = self.departure.set_option_bytes(self.mss, options);
        self.set_mss(mss);
    }

    /// The connection is established: MTU probing may begin (`tcp_mtup_init`).
    pub fn init_mtu_probing(&mut self, context: Context<'_>, options: u16) {
        let mss = self.departure.init_mtu_probing(context, self.mss, options);
        self.set_mss(mss);
    }

    /// The path may drop large packets silently: enables MTU probing, or probes smaller sizes
    /// (`tcp_mtu_probing`).
    pub fn suspect_black_hole(&mut self, now: Time) {
        let mss = self.departure.suspect_black_hole(now);
        self.set_mss(mss);
    }

    /// Another connection of the host learned that the route carries packets of at most `mtu`
    /// bytes. The next packet looks the route up.
    pub fn note_route_mtu(&mut self, mtu: u16, options: u16) {
        self.departure.note_route_mtu(mtu, self.mss, options);
    }

    /// Whether the next new data leaves as an MTU probe (`tcp_mtu_probe`).
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

    /// Data is acknowledged, maybe an MTU probe: then segments grow, and the window holds fewer of
    /// them (`tcp_mtup_probe_success`).
    #[cold]
    pub fn on_mtu_probe_acked(&mut self, now: Time) {
        let Some((before, size, mss)) = self.departure.take_acked_mtu_probe(self.una) else {
            return;
        };
        self.mss = mss;
        let cwnd = (self.congestion.controller_cwnd() * u64::from(before) / u64::from(size)).max(1);
        self.consult(now, |cc, _| cc.on_moderated(cwnd));
    }

    /// A loss was detected. If the MTU probe was lost, the outstanding data is retransmitted in
    /// smaller segments. Returns whether it was.
    pub fn is_mtu_probe_lost(&mut self, now: Time) -> bool {
        self.loss.phase() < Phase::Reduced
            && self.departure.take_lost_mtu_probe(self.una)
            && self.simple_retransmit(now, self.mss)
    }
}
