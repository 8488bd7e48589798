//! Expands shapes to links.

use crate::fat_tree;
use crate::mistake::{Mistake, Problem};
use crate::read::Place;
use crate::schema::{
    Antiparallel, Chain, Dumbbell, FatTree, Graph, LanPlan, Lane, Link, LinkSettings, Network,
    ParkingLot, Rtts, Star,
};
use tcplab_units::{Duration, Rate};

/// A link between two named nodes, fully resolved.
pub(crate) struct LinkSpec {
    pub between: [String; 2],
    pub forward: Lane,
    pub back: Lane,
    pub place: String,
    /// The medium, whose node is the second one.
    pub lan: Option<LanPlan>,
}

/// The links of all parts of `network`, in the order of the schema.
pub(crate) fn expand(network: &Network, seed: u64, mistakes: &mut Vec<Mistake>) -> Vec<LinkSpec> {
    let mut wiring = Wiring { links: Vec::new(), seed, mistakes };
    if let Some(shape) = &network.dumbbell {
        wiring.dumbbell(shape);
    }
    if let Some(shape) = &network.parking_lot {
        wiring.parking_lot(shape);
    }
    if let Some(shape) = &network.chain {
        wiring.chain(shape);
    }
    if let Some(shape) = &network.star {
        wiring.star(shape);
    }
    if let Some(shape) = &network.fat_tree {
        wiring.fat_tree(shape);
    }
    if let Some(shape) = &network.graph {
        wiring.graph(shape);
    }
    if let Some(shape) = &network.antiparallel {
        wiring.antiparallel(shape);
    }
    for (i, link) in network.links.iter().enumerate() {
        wiring.single(link, &LinkSettings::default(), &format!("network.links[{i}]"));
    }
    for name in network.lan.keys() {
        wiring.lan(network, name);
    }
    wiring.links
}

/// Back-off grows to a thousand slots, so additional stations would hardly send.
const STATIONS: usize = 1000;

/// The most pairs or hosts of a shape.
const MOST_RTTS: usize = 100_000;

struct Wiring<'a> {
    links: Vec<LinkSpec>,
    /// The run's seed, for shapes with random parts.
    seed: u64,
    mistakes: &'a mut Vec<Mistake>,
}

impl Wiring<'_> {
    fn add(&mut self, from: impl Into<String>, to: impl Into<String>, lanes: (&Lane, &Lane)) {
        let between = [from.into(), to.into()];
        let (forward, back) = (lanes.0.clone(), lanes.1.clone());
        self.links.push(LinkSpec { between, forward, back, place: String::new(), lan: None });
    }

    /// Both directions of a link; `back` has the settings that differ there.
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

    /// Sets the place of a shape's links to that of the shape.
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
        let Some(delays) = self.access_delays(shape, &bottleneck, access.delay) else { return };
        self.add("left", "right", (&bottleneck.0, &bottleneck.1));
        for (i, (left, right)) in (1..).zip(delays) {
            let left = Lane { delay: left, ..access.clone() };
            let right = Lane { delay: right, ..access.clone() };
            self.add(format!("left{i}"), "left", (&left, &left));
            self.add("right", format!("right{i}"), (&right, &right));
        }
        self.placed(first, at);
    }

    /// The access delays on the left and on the right of each pair.
    fn access_delays(
        &mut self,
        shape: &Dumbbell,
        bottleneck: &(Lane, Lane),
        access: Duration,
    ) -> Option<Vec<(Duration, Duration)>> {
        let at = "network.dumbbell";
        let pairs = self.number((shape.pairs, Some(1)), shape.rtts.as_ref(), "pairs", at)?;
        let (key, rtts) = match (shape.rtt, &shape.rtts) {
            (None, None) => return Some(vec![(access, access); pairs]),
            (Some(_), Some(_)) => {
                self.add_mistake("rtts", "are given a second time as `rtt`; give one of them", at);
                return None;
            }
            (Some((from, to)), None) if from > to => {
                let reason = format!("begins with {from}, which is more than {to}");
                self.add_mistake("rtt", &reason, at);
                return None;
            }
            (Some((from, to)), None) => {
                let (step, pairs) = (u128::from((to - from).as_picos()), pairs as u128);
                let rtt = |i: u128| from + Duration::from_picos((step * i / pairs) as u64);
                ("rtt", (1..=pairs).map(rtt).collect())
            }
            (None, Some(rtts)) => ("rtts", rtts.of(pairs, self.seed, "dumbbell")),
        };
        if shape.access.delay.is_some() {
            self.add_mistake(key, "takes the place of `access.delay`; give one of them", at);
            return None;
        }
        let shared = bottleneck.0.delay + bottleneck.1.delay;
        if let Some(least) = rtts.iter().min().filter(|least| **least < shared) {
            let reason = format!("asks for {least}, but the bottleneck alone takes {shared}");
            self.add_mistake(key, &reason, at);
            return None;
        }
        let delays = rtts.into_iter().map(|rtt| {
            let one_way = (rtt - shared) / 2;
            (one_way / 2, one_way - one_way / 2)
        });
        Some(delays.collect())
    }

    /// The number of pairs or hosts: given as a number or by the length of a list of RTTs, else the
    /// default.
    /// default.
    fn number(
        &mut self,
        (given, default): (Option<u64>, Option<usize>),
        rtts: Option<&Rtts>,
        key: &str,
        at: &str,
    ) -> Option<usize> {
        let given = given.map(|number| number as usize);
        let Some(Rtts::Listed(listed)) = rtts else {
            let number = given.or(default);
            if number.is_none() {
                let problem = Problem::Missing { example: "5" };
                self.mistakes.push(problem.at(format!("{at}.{key}")));
            }
            return number;
        };
        let number = listed.len();
        if number > MOST_RTTS {
            let (number, most) = (number as u128, MOST_RTTS as u64);
            let problem = Problem::TooMany { what: "RTTs", number, most };
            self.mistakes.push(problem.at(format!("{at}.rtts")));
            return None;
        }
        if let Some(given) = given.filter(|given| *given != number) {
            self.add_mistake("rtts", &format!("are {number}, and `{key}` is {given}"), at);
            return None;
        }
        Some(number)
    }

    fn add_mistake(&mut self, key: &str, reason: &str, at: &str) {
        self.mistakes.push(Problem::Invalid(reason.into()).at(format!("{at}.{key}")));
    }

    fn star(&mut self, shape: &Star) {
        let at = "network.star";
        let first = self.links.len();
        let settings = LinkSettings::from(shape);
        let is_delayed = settings.delay.is_some() || shape.back.delay.is_some();
        if shape.rtts.is_some() && is_delayed {
            return self.add_mistake("rtts", "take the place of `delay`; give one of them", at);
        }
        // RTTs are set on the links below.
        let none = shape.rtts.is_some().then_some(Duration::ZERO);
        let settings = LinkSettings { delay: settings.delay.or(none), ..settings };
        let Some(link) = self.both(&settings, &shape.back, at) else { return };
        let Some(hosts) = self.number((shape.hosts, None), shape.rtts.as_ref(), "hosts", at) else {
            return;
        };
        let rtts = shape.rtts.as_ref().map(|rtts| rtts.of(hosts, self.seed, "star"));
        for i in 0..hosts {
            let (mut there, mut back) = link.clone();
            if let Some(rtts) = &rtts {
                there.delay = rtts[i] / 2;
                back.delay = rtts[i] - there.delay;
            }
            self.add(format!("host{}", i + 1), "hub", (&there, &back));
        }
        self.placed(first, at);
    }

    fn fat_tree(&mut self, shape: &FatTree) {
        let at = "network.fat_tree";
        let first = self.links.len();
        if !shape.k.is_multiple_of(2) {
            let reason = format!(
                "is {}: half of the ports of a switch lead up; give an even number",
                shape.k
            );
            return self.add_mistake("k", &reason, at);
        }
        let settings = LinkSettings::from(shape);
        let lane = settings.lane(at, self.mistakes);
        let access = shape.access.or(&settings);
        let mut again = Vec::new();
        let access = access.lane("network.fat_tree.access", &mut again);
        // A setting missing for all links is reported once.
        let (Some(lane), Some(access)) = (lane, access) else {
            if self.mistakes.is_empty() {
                self.mistakes.append(&mut again);
            }
            return;
        };
        let tree = fat_tree::FatTree::new(shape.k);
        for [one, other] in tree.access() {
            self.add(one, other, (&access, &access));
        }
        for [one, other] in tree.links() {
            self.add(one, other, (&lane, &lane));
        }
        self.placed(first, at);
    }

    fn graph(&mut self, shape: &Graph) {
        let at = "network.graph";
        match (&shape.file, shape.links.is_empty()) {
            (None, false) => {}
            (None, true) => {
                let reason = "has no links; give the `file` of a network, or `links`";
                return self.mistakes.push(Problem::Invalid(reason.into()).at(at));
            }
            // The file could not be read, which has been reported.
            (Some(_), true) => return,
            (Some(_), false) => {
                return self.add_mistake("file", "is given beside `links`; give one of them", at);
            }
        }
        let settings = LinkSettings::from(shape);
        for (i, link) in shape.links.iter().enumerate() {
            self.single(link, &settings, &format!("{at}.links[{i}]"));
        }
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

    /// A link, with defaults from `base`.
    fn single(&mut self, link: &Link, base: &LinkSettings, at: &str) {
        let first = self.links.len();
        let settings = LinkSettings::from(link).or(base);
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

    /// A link from each station to the node of the medium. On the way there a packet waits for the
    /// medium and crosses it; from there to the other station it takes no time.
    fn lan(&mut self, network: &Network, name: &str) {
        let lan = &network.lan[name];
        let place = Place::Root.key("network");
        let at = place.key("lan").key(name).to_string();
        let is_taken = self.links.iter().any(|link| link.between.iter().any(|node| node == name));
        let stations = &lan.nodes;
        let mut add = |problem: Problem| {
            self.mistakes.push(problem.at(format!("{at}.nodes")));
        };
        if stations.len() > STATIONS {
            let (number, most) = (stations.len() as u128, STATIONS as u64);
            return add(Problem::TooMany { what: "nodes", number, most });
        }
        if stations.len() < 2 {
            return add(Problem::Invalid("needs two nodes at least".into()));
        }
        let taken = stations.iter().map(String::as_str).find(|it| network.lan.contains_key(*it));
        if let Some(name) = taken.or(is_taken.then_some(name)) {
            let reason = format!("\"{name}\" is the name of a LAN, and cannot be that of a host");
            return add(Problem::Invalid(reason));
        }
        for (i, station) in stations.iter().enumerate() {
            if stations[..i].contains(station) {
                return add(Problem::Invalid(format!("names \"{station}\" twice")));
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

/// Access links are ten times as fast as the link behind them by default, so that they are no
/// bottleneck.
/// they lead to.
fn or_default(access: &LinkSettings, delay: Duration, slow: &(Lane, Lane)) -> LinkSettings {
    let fastest = slow.0.rate.max(slow.1.rate).bits_per_second();
    let rate = Some(Rate::from_bits_per_second(fastest.saturating_mul(10)));
    access.or(&LinkSettings { rate, delay: Some(delay), ..LinkSettings::default() })
}
