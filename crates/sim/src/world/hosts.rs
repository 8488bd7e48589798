//! Queues in hosts: packets for the poll of a device with receive offload, packets and timers for
//! the processor, and senders blocked by the queue of their own device.

use super::World;
use crate::connections::{DATAGRAMS, End, LEFT, ROUTERS, flow_of, flow_on_lanes};
use crate::cpu::{Step, Work};
use crate::gro::Devices;
use crate::packet::Packet;
use tcplab_engine::{Departure, EndpointId, Event};

impl World<'_> {
    /// Whether a packet that has come waits for the poll of a device, or for its host's processor.
    /// Timers are checked where they expire.
    #[cold]
    pub(super) fn is_deferred(&mut self, event: &Event<Packet>) -> bool {
        let Event::Delivered { to, packet } = *event else { return false };
        self.waits_for_poll(to, packet) || self.waits_for_turn(to, packet)
    }

    /// Whether a packet waits for the poll of the device at which it has arrived.
    fn waits_for_poll(&mut self, to: EndpointId, packet: Packet) -> bool {
        if self.devices.is_none() {
            return false;
        }
        let (flow, is_sender) = match packet {
            // The packet is at a router.
            Packet::Tcp(_) if (ROUTERS..DATAGRAMS).contains(&to.0) => return false,
            Packet::Udp(_) => (flow_of(to), false),
            Packet::Tcp(_) => self.flow_and_side(to),
            Packet::Icmp(_) => self.flow_and_side(EndpointId(self.routers.end_of(to) as u32)),
        };
        let flow = &self.plan.flows[flow];
        let way = if is_sender { &flow.back } else { &flow.forward };
        let (Some(devices), Some(&lane)) = (&mut self.devices, way.last()) else { return false };
        devices.take(&mut self.network, lane, (to, packet))
    }

    /// Handles a device's interrupt: its packets are received.
    #[cold]
    pub(super) fn on_interrupt(&mut self, lane: usize) {
        let (plan, connections) = (self.plan, &self.connections);
        let key = |to: EndpointId| {
            // The remains of a connection get no data.
            let pair = connections.pairs.get(to.0 as usize / 2)?;
            let sends = !to.0.is_multiple_of(2);
            Some(flow_on_lanes(plan, pair.flow, pair.number, sends).key)
        };
        if let Some(devices) = &mut self.devices {
            devices.begin_poll(lane, |to| key(to).unwrap_or_default());
        }
        // Applications act once everything has been received.
        self.is_polling = true;
        while let Some((to, packet)) = self.devices.as_mut().and_then(|it| it.next_polled(lane)) {
            if !self.waits_for_turn(to, packet) {
                self.receive(to, packet);
            }
        }
        self.is_polling = false;
    }

    /// Receives arrived packets before the pacing and ACK-compression timers expire, and after
    /// other timers (`NET_RX_SOFTIRQ`, `HRTIMER_SOFTIRQ`, `TIMER_SOFTIRQ`).
    #[cold]
    pub(super) fn poll_before_timer(&mut self, end: usize) {
        let now = self.network.now();
        let is_soft = self.connections.ends[end].endpoint.is_hrtimer_due(now);
        let due = |devices: &Devices| devices.next_due(now).filter(|_| is_soft);
        while let Some(lane) = self.devices.as_ref().and_then(due) {
            self.on_interrupt(lane);
        }
    }

    /// Receives a packet.
    fn receive(&mut self, to: EndpointId, packet: Packet) {
        match packet {
            Packet::Tcp(segment) if to.0 < ROUTERS => self.deliver(to.0 as usize, &segment),
            packet => self.deliver_other(to, packet),
        }
    }

    /// Whether a packet waits for its host's processor.
    fn waits_for_turn(&mut self, to: EndpointId, packet: Packet) -> bool {
        if self.cpus.is_none() {
            return false;
        }
        let host = match packet {
            Packet::Tcp(_) if to.0 < ROUTERS || to.0 >= LEFT => self.host_of(to),
            Packet::Icmp(_) => self.host_of(EndpointId(self.routers.end_of(to) as u32)),
            Packet::Udp(_) => self.plan.flows[flow_of(to)].to,
            // Routers have no processing time.
            Packet::Tcp(_) => return false,
        };
        self.waits_for_cpu(host, Work::Receive(to, packet))
    }

    /// The node of an end of a connection, or of its remains.
    pub(super) fn host_of(&self, to: EndpointId) -> usize {
        if to.0 < ROUTERS {
            return self.connections.ends[to.0 as usize].host as usize;
        }
        let (flow, is_sender) = self.flow_and_side(to);
        let flow = &self.plan.flows[flow];
        if is_sender { flow.from } else { flow.to }
    }

    /// The flow of an end of a connection, or of its remains, and whether that end sends the data.
    pub(super) fn flow_and_side(&self, to: EndpointId) -> (usize, bool) {
        let flow = if to.0 < ROUTERS {
            self.connections.pairs[to.0 as usize / 2].flow
        } else {
            self.connections.flow_left_at(to)
        };
        (flow, to.0.is_multiple_of(2))
    }

    /// Whether work is queued for a host's processor.
    #[cold]
    pub(super) fn waits_for_cpu(&mut self, host: usize, work: Work) -> bool {
        self.cpus.as_mut().is_some_and(|cpus| cpus.take(&mut self.network, host, work))
    }

    /// Handles the next step of a host's processor.
    #[cold]
    pub(super) fn on_cpu(&mut self, host: usize) {
        while let Some(cpus) = &mut self.cpus {
            match cpus.step(&mut self.network, host) {
                Step::Send(route, packet, at) => {
                    self.network.send_own(route, packet, Departure { at, ..Departure::default() });
                }
                Step::Do(Work::Receive(to, packet)) => self.receive(to, packet),
                Step::Do(Work::EndTimer(end)) => {
                    // The timer may have been stopped meanwhile.
                    let endpoint = &self.connections.ends[end].endpoint;
                    if endpoint.next_timer() <= self.network.now() {
                        self.run_end_timer(end);
                    }
                }
                Step::Do(Work::Resume(end)) => {
                    self.connections.ends[end].endpoint.resume();
                    self.serve(end);
                }
                Step::Do(Work::Timer(timer)) => self.run_timer(timer),
                Step::Wait => return,
            }
        }
    }

    /// A packet has left its sender's device.
    #[cold]
    pub(super) fn on_tx_completion(&mut self, to: EndpointId, packet: Packet) {
        let Packet::Tcp(segment) = packet else { return };
        // The route ends at the other end, or at a gate.
        let sender = match to.0 {
            end if end < ROUTERS => end as usize ^ 1,
            router if router < DATAGRAMS => self.routers.end_of(to),
            _ => return,
        };
        if sender >= ROUTERS as usize {
            return;
        }
        let End { endpoint, host, .. } = &mut self.connections.ends[sender];
        let host = *host as usize;
        if segment.payload > 0
            && endpoint.on_tx_completion(segment.payload)
            && (self.cpus.is_none() || !self.waits_for_cpu(host, Work::Resume(sender)))
        {
            self.resume_later(sender);
        }
    }
}
