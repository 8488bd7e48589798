//! Flows with connections that carry data one way: a single one, or one for each transfer.

use super::{Arriving, Beginning, Flow, Kind, Page};
use crate::application::{Program, Receive, Send};
use crate::connections::{Pair, Wanted};
use crate::world::{Owner, World};
use tcplab_engine::Order;
use tcplab_model::schema::Begin;
use tcplab_model::{FlowPlan, Plan, TrafficPlan};
use tcplab_tables::Transfers;
use tcplab_tcp::{Ended, State};
use tcplab_units::{Duration, Time};
use tcplab_workload::{Transfer, accounts};

/// The minimum time before the routes of a closed connection are reused: twice the maximum segment
/// lifetime, as in Linux (`TCP_TIMEWAIT_LEN`).
const TIME_WAIT: Duration = Duration::from_secs(60);

/// How long the routes of a closed connection of this flow are not reused. Its last packets may be
/// in transit for that long, and the next connection must not receive them.
pub(crate) fn quarantine(plan: &Plan, flow: &FlowPlan) -> Duration {
    let lanes = flow.forward.iter().chain(&flow.back);
    let longest: Duration = lanes.map(|&lane| plan.lanes[lane].longest_stay()).sum();
    longest.max(TIME_WAIT)
}

impl World<'_> {
    /// Prepares a flow before it begins.
    #[expect(
        clippy::match_wildcard_for_single_variants,
        reason = "a kind that is added and not run here needs no line"
    )]
    pub fn prepare(&mut self, number: usize) {
        let planned = &self.plan.flows[number];
        let kind = match &*planned.traffic {
            TrafficPlan::Bulk(bulk) => {
                let size = bulk.size.map(|size| size.0);
                let send = bulk
                    .write
                    .map_or_else(|| Send::bulk(size), |piece| Send::in_pieces(size, piece.0));
                Kind::One(self.add_one(number, send))
            }
            TrafficPlan::OnOff(times) => {
                Kind::One(self.add_one(number, Send::on_off(&times.periods)))
            }
            TrafficPlan::Requests(requests) => self.prepare_requests(number, requests),
            TrafficPlan::Web(web) => Kind::Web(Page::new(web)),
            TrafficPlan::Arrivals(arrivals) => {
                let arriving = Arriving::new(arrivals, self.plan.seed, &planned.name);
                Kind::Arrivals(Box::new(arriving))
            }
            TrafficPlan::Udp(udp) => self.prepare_datagrams(number, udp),
            _ => unreachable!("a plan with other traffic is refused"),
        };
        let flow = &mut self.flows[number];
        flow.transfers = (!matches!(kind, Kind::One(_) | Kind::Datagrams(_)))
            .then(|| Box::new(Transfers::within(accounts::window(self.plan))));
        flow.kind = kind;
    }

    fn add_one(&mut self, number: usize, send: Send) -> usize {
        let is_copied = send.is_in_pieces();
        let programs = [Program::Send(send), Program::Receive(Receive::default())];
        let pair = self.add_connection(number, programs, false);
        if is_copied {
            self.connections.ends[2 * pair + 1].endpoint.expect_copied_data();
        }
        pair
    }

    /// Adds a connection to a flow. `is_passing`: the connection may end before the run does.
    pub fn add_connection(
        &mut self,
        number: usize,
        programs: [Program; 2],
        is_passing: bool,
    ) -> usize {
        let now = self.network.now();
        if self.flows[number].opened > 0 {
            self.write_down_before_reuse();
        }
        let flow = &mut self.flows[number];
        let left = &self.connections.left;
        let is_free = |&number: &u32| left[number as usize].touched + flow.quarantine <= now;
        let left = flow.left.front().copied().filter(is_free);
        if let Some(number) = left {
            flow.left.pop_front();
            if let Some(cpus) = &mut self.cpus {
                cpus.forget(number, &self.connections.left[number as usize].way.routes);
            }
            if let Some(devices) = &mut self.devices {
                devices.forget(number);
            }
        }
        let wanted = Wanted {
            flow: number,
            number: flow.opened,
            programs,
            asks: flow.asks(),
            is_passing,
            place: flow.free.pop(),
            left,
        };
        flow.opened += 1;
        let onto = (&mut self.network, &mut self.routers);
        let pair = self.connections.add(self.present, wanted, onto);
        self.make_room_for(pair);
        pair
    }

    /// The timer of a flow's program has expired.
    pub fn on_flow_timer(&mut self, number: usize) {
        let Flow { kind, has_started, .. } = &mut self.flows[number];
        let begins = !std::mem::replace(has_started, true);
        match kind {
            Kind::One(pair) => {
                let pair = *pair;
                self.turn_on_or_off(number, pair, begins);
            }
            Kind::Requests(_) => self.begin_requests(number),
            Kind::Web(_) => self.begin_page(number),
            Kind::Arrivals(_) => self.begin_transfers(number),
            Kind::Datagrams(_) => self.send_datagrams(number),
        }
    }

    /// A flow with one connection begins, pauses or resumes.
    fn turn_on_or_off(&mut self, number: usize, pair: usize, begins: bool) {
        let (now, sender) = (self.network.now(), 2 * pair);
        if begins {
            self.open(sender);
        }
        let flow = &self.flows[number];
        let end = &mut self.connections.ends[sender];
        let Program::Send(send) = &mut end.program else { return };
        let next = send.switch(now, flow.start);
        if send.is_on() && !begins {
            end.endpoint.wake_writer();
        }
        self.network.set_timer(flow.timer, next, Order::Last);
        self.update_memory_pressure(sender);
        if begins {
            self.serve(sender);
        } else {
            self.act(sender);
        }
    }

    /// Begins the transfers that are due; in a closed loop, the first transfer of every user.
    fn begin_transfers(&mut self, number: usize) {
        let now = self.network.now();
        let flow = &mut self.flows[number];
        let Kind::Arrivals(arriving) = &mut flow.kind else { return };
        if let Beginning::Closed(users) = &arriving.begin {
            for user in 0..users.len() {
                self.begin_transfer_of(number, user);
            }
            return;
        }
        // A transfer due at the very end of the experiment does not begin.
        while now < self.end() {
            let flow = &mut self.flows[number];
            let Kind::Arrivals(arriving) = &mut flow.kind else { return };
            let Beginning::Timed { next, rest } = &mut arriving.begin else { return };
            let Some(Transfer { after, size }) = *next else { return };
            if flow.start + after > now {
                self.network.set_timer(flow.timer, flow.start + after, Order::Last);
                return;
            }
            *next = rest.next();
            arriving.begun += 1;
            self.begin_transfer(number, size);
        }
    }

    /// Begins the next transfer of a user of a closed loop, if there is to be one.
    pub fn begin_transfer_of(&mut self, number: usize, user: usize) {
        let is_over = self.network.now() >= self.end();
        let Kind::Arrivals(arriving) = &mut self.flows[number].kind else { return };
        if is_over || !arriving.has_more() {
            return;
        }
        let Beginning::Closed(users) = &mut arriving.begin else { return };
        let Some(size) = users[user].sizes.next() else { return };
        arriving.begun += 1;
        let pair = self.begin_transfer(number, size);
        self.connections.pairs[pair].user = user;
    }

    fn begin_transfer(&mut self, number: usize, size: u64) -> usize {
        let now = self.network.now();
        let mut send = Send::bulk(Some(size));
        send.switch(now, now);
        let programs = [Program::Send(send), Program::Receive(Receive::default())];
        let pair = self.add_connection(number, programs, true);
        let which = self.connections.pairs[pair].number.into();
        self.note_begin(pair, which, size);
        self.open(2 * pair);
        self.update_memory_pressure(2 * pair);
        self.serve(2 * pair);
        pair
    }

    /// A transfer has arrived in full, or its connection broke: its user continues.
    pub fn on_done(&mut self, pair: usize) {
        let connection = &self.connections.pairs[pair];
        let (number, user) = (connection.flow, connection.user);
        let Kind::Arrivals(arriving) = &self.flows[number].kind else { return };
        let Begin::Closed { think, .. } = arriving.spec.begin else { return };
        // At least a nanosecond: the time in which a program notices that a transfer is complete.
        self.think(number, user, think.max(Duration::from_nanos(1)));
    }

    /// Begins a user's next transfer after its think time.
    fn think(&mut self, number: usize, user: usize, time: Duration) {
        let Kind::Arrivals(arriving) = &self.flows[number].kind else { return };
        let Beginning::Closed(users) = &arriving.begin else { return };
        let known = users[user].timer;
        let timer = known.unwrap_or_else(|| self.add_timer(Owner::User { flow: number, user }));
        if let Kind::Arrivals(arriving) = &mut self.flows[number].kind
            && let Beginning::Closed(users) = &mut arriving.begin
        {
            users[user].timer = Some(timer);
        }
        self.network.set_timer(timer, self.network.now() + time, Order::Last);
    }

    /// Something has happened at an end of a connection that may end before the run.
    #[inline(never)]
    pub fn look_whether_over(&mut self, end: usize) {
        let pair = end / 2;
        if let Program::Receive(receive) = &self.connections.ends[end].program
            && receive.received >= self.connections.pairs[pair].size
            && !self.connections.pairs[pair].is_done
        {
            self.connections.pairs[pair].is_done = true;
            self.flows[self.connections.pairs[pair].flow].completed += 1;
            self.on_done(pair);
        }
        let near = &self.connections.ends[end].endpoint;
        let is_over = |state| matches!(state, State::Closed | State::TimeWait);
        if !is_over(near.state()) {
            return;
        }
        // The far end listens on if no SYN reached it, or continues alone if it never receives the
        // close.
        let is_broken = near.ended().is_some_and(|ended| ended != Ended::Normally);
        if is_broken {
            self.on_broken(end);
        }
        let far = &self.connections.ends[end ^ 1].endpoint;
        if is_over(far.state()) || (far.state() == State::Listen && is_broken) {
            self.release(pair);
        }
    }

    /// Releases a connection with which both ends are done.
    fn release(&mut self, pair: usize) {
        if self.connections.pairs[pair].is_free {
            return;
        }
        self.write_transfer(pair);
        let left = self.leave_behind(pair);
        for end in [2 * pair, 2 * pair + 1] {
            let end = &mut self.connections.ends[end];
            self.network.set_connection_timer(end.timer, Time::NEVER);
            end.is_passing = false;
        }
        let Pair { flow, alarms, .. } = &self.connections.pairs[pair];
        for alarm in alarms.iter().flatten() {
            self.network.set_timer(*alarm, Time::NEVER, Order::Last);
        }
        let flow = &mut self.flows[*flow];
        flow.left.push_back(left);
        flow.free.push(pair);
        self.connections.pairs[pair].is_free = true;
    }
}

#[cfg(test)]
mod tests {
    use crate::recorder::Show;
    use crate::world::World;
    use tcplab_engine::LaneId;
    use tcplab_model::{Plan, Watch};
    use tcplab_units::{Duration, Time};

    /// A plan of 1 kB transfers, so many of which begin in a second.
    fn plan(settings: &str, per_second: u32, transfers: u32) -> Plan {
        let seconds = transfers / per_second * 11 / 10 + 30;
        let text = format!(
            r#"
            duration = "{seconds} s"
            record = {{ samples = "off", links = "off" }}
            {settings}
            [[flows]]
            from = "a"
            to = "b"
            [flows.traffic]
            kind = "arrivals"
            per_second = {per_second}
            sizes = "1 kB"
            transfers = {transfers}
            "#
        );
        let document =
            tcplab_model::from_toml(&text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        document.plans(&crate::backend()).unwrap_or_else(|mistakes| panic!("{mistakes}")).remove(0)
    }

    /// How many slots and routes the connections took, and how many timers there are besides
    /// theirs.
    fn places(plan: &Plan) -> (usize, usize, usize) {
        let mut world = World::new(plan, Show(None));
        let end = Time::ZERO + plan.duration;
        assert!(world.pass_time::<false>(end, &Watch::default()).is_ok());
        let pairs = &world.connections.pairs;
        assert!(pairs.iter().all(|pair| pair.is_free), "a connection is not over");
        (pairs.len(), world.flows[0].left.len(), world.timers())
    }

    #[test]
    fn connection_slots_and_routes_are_reused() {
        // A transfer and its close take some 60 ms: at 1000 a second, 60 at once, and in a Poisson
        // process at most 110. Routes are not reused for 60 s, in which 60,000 begin, and at most
        // 61,000.
        let plan = plan(
            r#"network.links = [{ between = ["a", "b"], rate = "1 Gbit/s", delay = "10 ms" }]"#,
            1000,
            200_000,
        );
        let (pairs, ways, timers) = places(&plan);
        assert!((40..110).contains(&pairs), "{pairs} places");
        assert!((59_000..61_500).contains(&ways), "{ways} ways");
        assert_eq!(timers, 3, "of the flow, of samples and of links");
    }

    #[test]
    fn a_reused_route_keeps_the_routers_on_it() {
        // The second link has a smaller MTU, so a router checks packet sizes. Routes are free again
        // after a minute. Everything that leaves the first link must enter the second one,
        // whichever connection sends it.
        let plan = plan(
            r#"
            [[network.links]]
            between = ["a", "r"]
            rate = "1 Gbit/s"
            delay = "10 ms"
            [[network.links]]
            between = ["r", "s"]
            rate = "1 Gbit/s"
            delay = "10 ms"
            mtu = 800
            [[network.links]]
            between = ["s", "b"]
            rate = "1 Gbit/s"
            delay = "10 ms"
            "#,
            1,
            200,
        );
        let mut world = World::new(&plan, Show(None));
        let end = Time::ZERO + plan.duration;
        assert!(world.pass_time::<false>(end, &Watch::default()).is_ok());
        assert!(world.flows[0].left.len() < 100, "ways were used again");
        let lane = |number| world.network.counters(LaneId(number));
        // One segment of 1 kB is too large; its host remembers the path MTU for the others.
        assert_eq!(lane(2).entered_packets + 1, lane(0).arrived_packets);
    }

    #[test]
    fn routes_are_quarantined_until_their_packets_have_left_the_network() {
        let wait = |settings: &str| {
            let plan =
                plan(&format!("network.links = [{{ between = ['a', 'b'], {settings} }}]"), 1, 10);
            super::quarantine(&plan, &plan.flows[0])
        };
        // Ten packets of 1500 bytes wait, one is in transmission and one in transit; in both
        // directions.
        let stay = Duration::from_millis(12 * 120_000 + 20_000);
        assert_eq!(wait("rate = '100 bit/s', delay = '20 s', queue = '10 packets'"), stay + stay);
        // 2 * 12.7 ms is less than TIME-WAIT.
        assert_eq!(
            wait("rate = '100 Mbit/s', delay = '10 ms', queue = '20 packets'"),
            Duration::from_secs(60)
        );
    }

    #[test]
    fn slots_of_connections_that_never_open_are_reused() {
        // SYNs at 0 and 1 s, and the end at 3 s: at 10 a second, 30 at once.
        let plan = plan(
            r#"
            stack = { syn_retries = 1, syn_linear_timeouts = 0 }
            network.links = [{ between = ["a", "b"], rate = "1 Gbit/s", delay = "10 ms", loss = "100 %" }]
            "#,
            10,
            3000,
        );
        let (pairs, ways, timers) = places(&plan);
        assert!((20..65).contains(&pairs), "{pairs} places");
        assert!((500..720).contains(&ways), "{ways} ways");
        assert_eq!(timers, 3, "of the flow, of samples and of links");
    }
}
