//! Expands shapes to links.

use crate::mistake::{Mistake, Problem};
use crate::read::Place;
use crate::schema::{
    Antiparallel, Chain, Dumbbell, LanPlan, Lane, Link, LinkSettings, Network, ParkingLot,
};
use tcplab_units::{Duration, Rate};

/// A link between two named nodes, everything about it decided.
pub(crate) struct LinkSpec {
    pub between: [String; 2],
    pub forward: Lane,
    pub back: Lane,
    pub place: String,
    /// The medium, whose node is the second.
    pub lan: Option<LanPlan>,
}

/// The links that all parts of `network` stand for, in the order of the schema.
pub(crate) fn expand(network: &Network, mistakes: &mut Vec<Mistake>) -> Vec<LinkSpec> {
    let mut links = Links { links: Vec::new(), mistakes };
    if let Some(shape) = &network.dumbbell {
        links.dumbbell(shape);
    }
    if let Some(shape) = &network.parking_lot {
        links.parking_lot(shape);
    }
    if let Some(shape) = &network.chain {
        links.chain(shape);
    }
    if let Some(shape) = &network.antiparallel {
        links.antiparallel(shape);
    }
    for (i, link) in network.links.iter().enumerate() {
        links.single(link, &format!("network.links[{i}]"));
    }
    for name in network.lan.keys() {
        links.lan(network, name);
    }
    links.links
}

/// Back-off grows to a thousand slots, so more stations would hardly send.
const STATIONS: usize = 1000;

struct Links<'a> {
    links: Vec<LinkSpec>,
    mistakes: &'a mut Vec<Mistake>,
}

impl Links<'_> {
    fn add(&mut self, from: impl Into<String>, to: impl Into<String>, lanes: (&Lane, &Lane)) {
        let between = [from.into(), to.into()];
        let (forward, back) = (lanes.0.clone(), lanes.1.clone());
        self.links.push(LinkSpec { between, forward, back, place: String::new(), lan: None });
    }

    /// Both directions of a link, where `back` says what differs there.
    fn both(
        &mut self,
        settings: &LinkSettings,
        back: &LinkSettings,
        at: &str,
    ) -> Option<(Lane, Lane)> {
        let forward = settings.lane(at, self.mistakes)?;
        let back = back.or(settings).lane(&format!("{at}.back"), self.mistakes)?;
        Some((forward, back))
    }

    /// The links of a shape were described together.
    fn placed(&mut self, first: usize, at: &str) {
        for link in &mut self.links[first..] {
            at.clone_into(&mut link.place);
        }
    }

    fn dumbbell(&mut self, shape: &Dumbbell) {
        let at = "network.dumbbell";
        let first = self.links.len();
        let Some(bottleneck) = self.both(&shape.into(), &shape.back, at) else { return };
        let access = or_default(&shape.access, Duration::from_millis(1), &bottleneck);
        let access = access.lane("network.dumbbell.access", self.mistakes);
        let Some(access) = access else { return };
        let delays = self.access_delays(shape, &bottleneck, access.delay);
        self.add("left", "right", (&bottleneck.0, &bottleneck.1));
        for (i, (left, right)) in (1..).zip(delays) {
            let left = Lane { delay: left, ..access.clone() };
            let right = Lane { delay: right, ..access.clone() };
            self.add(format!("left{i}"), "left", (&left, &left));
            self.add("right", format!("right{i}"), (&right, &right));
        }
        self.placed(first, at);
    }

    /// The delays on the left and on the right of each pair.
    fn access_delays(
        &mut self,
        shape: &Dumbbell,
        bottleneck: &(Lane, Lane),
        access: Duration,
    ) -> Vec<(Duration, Duration)> {
        let Some((from, to)) = shape.rtt else {
            return vec![(access, access); shape.pairs as usize];
        };
        let shared = bottleneck.0.delay + bottleneck.1.delay;
        let mut refuse = |reason: String| {
            self.mistakes.push(Problem::Invalid(reason).at("network.dumbbell.rtt"));
            Vec::new()
        };
        if shape.access.delay.is_some() {
            return refuse("takes the place of `access.delay`; give one of them".into());
        }
        if from > to {
            return refuse(format!("begins with {from}, which is more than {to}"));
        }
        let step = u128::from((to - from).as_picos());
        let pairs = u128::from(shape.pairs);
        let rtt = |i: u128| from + Duration::from_picos((step * i / pairs) as u64);
        if rtt(1) < shared {
            let least = rtt(1);
            return refuse(format!("asks for {least}, but the bottleneck alone takes {shared}"));
        }
        let delays = (1..=pairs).map(|i| {
            let one_way = (rtt(i) - shared) / 2;
            (one_way / 2, one_way - one_way / 2)
        });
        delays.collect()
    }

    fn parking_lot(&mut self, shape: &ParkingLot) {
        let at = "network.parking_lot";
        let first = self.links.len();
        let Some(hop) = self.both(&shape.into(), &shape.back, at) else { return };
        let access = or_default(&shape.access, Duration::from_millis(1), &hop);
        let access = access.lane("network.parking_lot.access", self.mistakes);
        let Some(access) = access else { return };
        let router = |i: u64| format!("router{i}");
        for i in 1..=shape.hops {
            self.add(router(i), router(i + 1), (&hop.0, &hop.1));
        }
        self.add("source", router(1), (&access, &access));
        self.add(router(shape.hops + 1), "sink", (&access, &access));
        for i in 1..=shape.hops {
            self.add(format!("entry{i}"), router(i), (&access, &access));
            self.add(router(i + 1), format!("exit{i}"), (&access, &access));
        }
        self.placed(first, at);
    }

    fn chain(&mut self, shape: &Chain) {
        let at = "network.chain";
        let first = self.links.len();
        let Some(hop) = self.both(&shape.into(), &shape.back, at) else { return };
        let node = |i: u64| match i {
            0 => "client".into(),
            i if i == shape.hops => "server".into(),
            i => format!("router{i}"),
        };
        for i in 0..shape.hops {
            self.add(node(i), node(i + 1), (&hop.0, &hop.1));
        }
        self.placed(first, at);
    }

    fn antiparallel(&mut self, shape: &Antiparallel) {
        let at = "network.antiparallel";
        let first = self.links.len();
        let down = shape.down.lane("network.antiparallel.down", self.mistakes);
        let up = shape.up.lane("network.antiparallel.up", self.mistakes);
        let (Some(down), Some(up)) = (down, up) else { return };
        let slow = (down, up);
        let access = or_default(&shape.access, Duration::ZERO, &slow);
        let access = access.lane("network.antiparallel.access", self.mistakes);
        let (Some(access), (down, up)) = (access, slow) else { return };
        self.add("client", "near", (&access, &access));
        self.add("near", "far", (&up, &down));
        self.add("far", "server", (&access, &access));
        self.placed(first, at);
    }

    fn single(&mut self, link: &Link, at: &str) {
        let first = self.links.len();
        let settings = LinkSettings::from(link);
        let forward = link.forward.or(&settings).lane(&format!("{at}.forward"), self.mistakes);
        let back = link.back.or(&settings).lane(&format!("{at}.back"), self.mistakes);
        let (from, to) = (&link.between.0, &link.between.1);
        if from == to {
            let problem = Problem::Invalid(format!("connects \"{from}\" with itself"));
            self.mistakes.push(problem.at(format!("{at}.between")));
        } else if let (Some(forward), Some(back)) = (forward, back) {
            self.add(from, to, (&forward, &back));
        }
        self.placed(first, at);
    }

    /// A link from each station to the node of the medium. On its way there a packet waits for the medium
    /// and crosses it; from there to the other station it takes no time.
    fn lan(&mut self, network: &Network, name: &str) {
        let lan = &network.lan[name];
        let place = Place::Root.key("network");
        let at = place.key("lan").key(name).to_string();
        let is_taken = self.links.iter().any(|link| link.between.iter().any(|node| node == name));
        let stations = &lan.nodes;
        let mut refuse = |problem: Problem| {
            self.mistakes.push(problem.at(format!("{at}.nodes")));
        };
        if stations.len() > STATIONS {
            let (number, most) = (stations.len() as u128, STATIONS as u64);
            return refuse(Problem::TooMany { what: "nodes", number, most });
        }
        if stations.len() < 2 {
            return refuse(Problem::Invalid("needs two nodes at least".into()));
        }
        let taken = stations.iter().map(String::as_str).find(|it| network.lan.contains_key(*it));
        if let Some(name) = taken.or(is_taken.then_some(name)) {
            let reason = format!("\"{name}\" is the name of a LAN, and cannot be that of a host");
            return refuse(Problem::Invalid(reason));
        }
        for (i, station) in stations.iter().enumerate() {
            if stations[..i].contains(station) {
                return refuse(Problem::Invalid(format!("names \"{station}\" twice")));
            }
        }
        if let Err(problem) = lan.check_slot() {
            return self.mistakes.push(problem.at(format!("{at}.slot")));
        }
        let settings = LinkSettings {
            rate: Some(lan.rate),
            delay: Some(lan.delay),
            queue: Some(lan.queue.clone()),
            mtu: Some(lan.mtu),
            ..LinkSettings::default()
        };
        let Some(forward) = settings.lane(&at, self.mistakes) else { return };
        let back = Lane { delay: Duration::ZERO, ..forward.clone() };
        let first = self.links.len();
        for station in stations {
            self.add(station, name, (&forward, &back));
        }
        self.placed(first, &at);
        for link in &mut self.links[first..] {
            link.lan = Some(lan.plan(name));
        }
    }
}

/// Access links are no bottleneck unless they are made one: they are ten times as fast as the link
/// they lead to.
fn or_default(access: &LinkSettings, delay: Duration, slow: &(Lane, Lane)) -> LinkSettings {
    let fastest = slow.0.rate.max(slow.1.rate).bits_per_second();
    let rate = Some(Rate::from_bits_per_second(fastest.saturating_mul(10)));
    access.or(&LinkSettings { rate, delay: Some(delay), ..LinkSettings::default() })
}
