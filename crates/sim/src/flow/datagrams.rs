//! Datagram flows.

use super::Kind;
use crate::packet::Packet;
use crate::udp::Fragment;
use crate::world::{World, call, send};
use tcplab_engine::{Order, RouteId};
use tcplab_model::schema::UdpPlan;
use tcplab_tables as tables;
use tcplab_units::Duration;
use tcplab_workload::{Times, accounts, datagrams};

/// The datagrams of one flow.
#[derive(Clone)]
pub(crate) struct Datagrams<'a> {
    route: RouteId,
    /// Departure times from the flow's start: the next one, and those after it.
    next: Option<Duration>,
    times: Times<'a>,
    /// The number of datagrams, if limited.
    pub most: Option<u64>,
    payload: u32,
    mtu: u32,
    pub seen: tables::MeasuredDatagrams,
}

impl<'a> World<'a> {
    pub fn prepare_datagrams(&mut self, number: usize, udp: &'a UdpPlan) -> Kind<'a> {
        let planned = &self.plan.flows[number];
        let route = self.route_of_datagrams(number);
        let mut times = datagrams::times(udp, self.plan.seed, &planned.name);
        Kind::Datagrams(Box::new(Datagrams {
            route,
            next: times.next(),
            times,
            most: udp.packets,
            payload: udp.payload.0 as u32,
            mtu: planned.mtu as u32,
            seen: tables::MeasuredDatagrams::within(accounts::window(self.plan)),
        }))
    }

    /// Sends the datagrams that are due.
    pub fn send_datagrams(&mut self, number: usize) {
        let (now, end) = (self.network.now(), self.end());
        let flow = &mut self.flows[number];
        let Kind::Datagrams(datagrams) = &mut flow.kind else { return };
        let host = flow.plan.from;
        while let Some(after) = datagrams.next.filter(|_| now < end) {
            let is_busy = self.cpus.as_ref().is_some_and(|cpus| cpus.is_busy(now, host));
            if is_busy || flow.start + after > now {
                self.network.set_timer(flow.timer, flow.start + after, Order::Last);
                return;
            }
            let Datagrams { route, payload, mtu, .. } = **datagrams;
            let which = datagrams.seen.all().sent() as u32;
            datagrams.next = datagrams.times.next();
            datagrams.seen.on_sent(now);
            let onto = &mut (&mut self.network, &mut self.cpus);
            call(onto, host);
            for fragment in Fragment::all_of(which, now, payload, mtu) {
                send(onto, (host, route), Packet::Udp(fragment));
            }
        }
    }

    /// A datagram, or a fragment of one, has arrived.
    pub fn take_datagram(&mut self, number: usize, fragment: &Fragment) {
        let now = self.network.now();
        let Kind::Datagrams(datagrams) = &mut self.flows[number].kind else { return };
        let host = self.plan.flows[number].to;
        let reassembly = self.reassemblies.entry(host).or_default();
        if let Some(whole) = reassembly.take(now, number, fragment) {
            let (number, bytes) = (whole.number.into(), whole.payload.into());
            datagrams.seen.on_arrival(number, whole.sent_at, now, bytes);
            call(&mut (&mut self.network, &mut self.cpus), host);
        }
    }
}
