//! The memory that a host's connections share, and the resulting limits of each (`tcp_mem`).

use tcplab_engine::ConnectionTimer;
use tcplab_model::{Memory, Plan, TcpPlan};
use tcplab_tcp::{Endpoint, GUARANTEED, MemoryPressure, State};

/// A host whose connections share memory.
#[derive(Clone, Debug)]
struct Host {
    limits: Memory,
    used: u64,
    connections: u64,
    under_pressure: bool,
    /// The timers of connections that could not write.
    waiting: Vec<ConnectionTimer>,
}

/// The memory charged to one end of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    bytes: u64,
    is_open: bool,
}

/// All hosts with a memory limit.
#[derive(Clone)]
pub(crate) struct Memories {
    hosts: Vec<Option<Host>>,
    counted: Vec<Counted>,
}

impl Memories {
    /// The hosts of a plan, if any has a limit.
    pub fn new(plan: &Plan) -> Option<Self> {
        let mut hosts = vec![None; plan.nodes.len()];
        for flow in plan.flows.iter() {
            let stacks = flow.tcp().into_iter().flat_map(TcpPlan::stacks);
            for (node, stack) in [flow.from, flow.to].into_iter().zip(stacks) {
                let host = |limits| Host {
                    limits,
                    used: 0,
                    connections: 0,
                    under_pressure: false,
                    waiting: Vec::new(),
                };
                hosts[node] = stack.mem.on().map(host);
            }
        }
        hosts.iter().any(Option::is_some).then_some(Self { hosts, counted: Vec::new() })
    }

    /// A connection takes this slot; its ends hold no memory yet.
    pub fn make_room_for(&mut self, pair: usize) {
        let ends = self.counted.len().max(2 * pair + 2);
        self.counted.resize(ends, Counted::default());
    }

    /// Sets the memory limits of an end of a flow, before an event is handled there.
    pub fn set_pressure(&self, node: usize, end: usize, endpoint: &mut Endpoint) {
        if let Some(host) = &self.hosts[node] {
            endpoint.set_memory_pressure(host.pressure_on(self.counted[end].bytes));
        }
    }

    /// Charges the memory that an end holds after the event. Returns the timers of connections that
    /// may write again.
    pub fn count(
        &mut self,
        node: usize,
        (end, timer): (usize, ConnectionTimer),
        endpoint: &mut Endpoint,
    ) -> Vec<ConnectionTimer> {
        let Some(host) = &mut self.hosts[node] else { return Vec::new() };
        let is_open = !matches!(endpoint.state(), State::Closed | State::Listen | State::TimeWait);
        let bytes = if is_open { endpoint.memory() } else { 0 };
        let before = std::mem::replace(&mut self.counted[end], Counted { bytes, is_open });
        let (used, connections) = (host.used, host.connections);
        host.used = used + bytes - before.bytes;
        host.connections = connections + u64::from(is_open) - u64::from(before.is_open);
        host.under_pressure = host.used > host.limits.pressure.0
            || (host.under_pressure && host.used > host.limits.low.0);
        if endpoint.take_write_refused() {
            host.waiting.push(timer);
        }
        let is_eased = host.used < used || host.connections < connections;
        if is_eased { host.take_waiting(timer) } else { Vec::new() }
    }
}

impl Host {
    /// The limits of a connection that holds so much memory itself.
    fn pressure_on(&self, own: u64) -> MemoryPressure {
        let Memory { low, pressure, high } = self.limits;
        let left = |limit: u64| own + limit.saturating_sub(self.used);
        // Under pressure, a connection with less than an equal share may grow to that share.
        let share = high.0 / self.connections.max(1);
        let most = if self.used > high.0 {
            0
        } else {
            let without_pressure = if self.under_pressure { 0 } else { left(pressure.0) };
            without_pressure.max(share).max(GUARANTEED).min(left(high.0))
        };
        let is_above_low = self.used >= low.0;
        MemoryPressure { is_above_low, is_under_pressure: self.under_pressure, limit: most }
    }

    /// Takes the waiting connections, except for this one, which has just had its turn.
    fn take_waiting(&mut self, but: ConnectionTimer) -> Vec<ConnectionTimer> {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_unstable_by_key(|timer| timer.index());
        waiting.dedup();
        self.waiting.extend(waiting.extract_if(.., |timer| *timer == but));
        waiting
    }
}
