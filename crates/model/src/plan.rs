//! One run with nothing left open: what a backend is given.

use crate::change::ChangePlan;
use crate::mistake::Mistake;
use crate::schema::{
    CongestionControl, Contention, Cpu, DelayChanges, Discipline, Jitter, LanPlan, Light, Loss,
    OrOff, Outages, Probability, RateChanges, Reordering, Samples, StackPlan, TrafficPlan, Until,
};
use crate::stored;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;
use tcplab_units::{Bytes, Duration, Rate};

/// One run, with every name, default and relative quantity resolved. A clone shares the large parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// 16 hexadecimal digits that differ if anything differs that can change the result.
    pub id: String,
    /// The experiment's name.
    pub experiment: String,
    /// The backend that is to run it.
    pub backend: String,
    /// The backend's version.
    pub version: String,
    /// The kernel that is asked for, on the backend `linux`.
    pub kernel: Option<String>,
    /// The seed of this repetition.
    pub seed: u64,
    /// Which repetition, from 0.
    pub repetition: u64,
    /// The swept values of this run as text, by path, in the order of the file.
    pub swept: Vec<(String, String)>,
    /// How long to simulate.
    pub duration: Duration,
    /// The nodes' names; a node's number is its index.
    pub nodes: Arc<[String]>,
    /// The directions of all links: numbers 2k and 2k + 1 belong to the same one.
    pub lanes: Arc<[LanePlan]>,
    /// The flows, counted out.
    pub flows: Arc<[FlowPlan]>,
    /// Hosts that take time, or have a queue of their own or receive offload, in the order of their
    /// nodes.
    #[serde(default, skip_serializing_if = "<[HostPlan]>::is_empty")]
    pub hosts: Arc<[HostPlan]>,
    /// What to write down.
    pub record: RecordPlan,
    /// The part of the run that results are of; nothing if that is all of it, without intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure: Option<MeasurePlan>,
    /// The changes while the run goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Arc<ChangePlan>>,
    /// When enough repetitions are run, if that is not a number of them. No part of a stored plan.
    #[serde(skip)]
    pub until: Option<Until>,
    /// Settings that do nothing, or hardly what was meant. The plan runs in spite of them.
    /// Written as text; a plan that is read back has none.
    #[serde(skip_deserializing)]
    pub warnings: Arc<[Mistake]>,
}

/// One direction of one link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LanePlan {
    /// Unique: `left>right`; of several between the same nodes, the second is `left>right/2`.
    pub name: String,
    /// The table of the experiment that describes it, for messages: `network.links[0].back`. A key that
    /// is not there is one of the link (`origin`).
    pub place: String,
    /// The node where it begins.
    pub from: usize,
    /// The node where it ends.
    pub to: usize,
    /// How fast bits leave.
    pub rate: Rate,
    /// How long a bit travels.
    pub delay: Duration,
    /// What is added to the delay by chance.
    #[serde(deserialize_with = "stored::setting")]
    pub jitter: Jitter,
    /// The largest packet with its IP header, in bytes.
    pub mtu: u64,
    /// Whether the router before it says so when a packet is larger than that.
    pub icmp: bool,
    /// The queue in front of it.
    pub queue: QueuePlan,
    /// Losses on the way.
    #[serde(deserialize_with = "stored::optional")]
    pub loss: Option<Loss>,
    /// Packets that others overtake.
    #[serde(deserialize_with = "stored::optional")]
    pub reordering: Option<Reordering>,
    /// How the rate changes.
    #[serde(deserialize_with = "stored::optional")]
    pub rate_changes: Option<RateChanges>,
    /// Delays and opportunities of a light load.
    #[serde(
        default,
        deserialize_with = "stored::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub light: Option<Light>,
    /// How the delay changes.
    #[serde(
        default,
        deserialize_with = "stored::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub delay_changes: Option<DelayChanges>,
    /// Whether packets with a shorter delay overtake others.
    #[serde(default, skip_serializing_if = "is_false")]
    pub overtaking: bool,
    /// The share of packets that are damaged on the way.
    #[serde(default, deserialize_with = "stored::setting", skip_serializing_if = "is_never")]
    pub corruption: Probability,
    /// The share of packets that arrive twice.
    #[serde(default, deserialize_with = "stored::setting", skip_serializing_if = "is_never")]
    pub duplication: Probability,
    /// Times at which nothing leaves.
    #[serde(
        default,
        deserialize_with = "stored::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub outages: Option<Outages>,
    /// The channel for which stations contend, if there is one.
    #[serde(
        default,
        deserialize_with = "stored::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub contention: Option<Contention>,
    /// The shared medium that it is part of, if it is.
    pub lan: Option<Arc<LanPlan>>,
    /// The rate times the largest base RTT of the flows that use it, or twice its own delay if none
    /// does. The rate is that at which packets leave the queue: a shaper's, if that is less than the
    /// link's.
    pub bdp: Bytes,
}

impl LanePlan {
    /// The rate that traffic can have for long: that of the link, or of the shaper or policer before it
    /// if that is less. A link whose rate changes counts with the one that it begins with.
    pub fn lasting_rate(&self) -> Rate {
        self.queue.discipline.rate().map_or(self.rate, |rate| rate.min(self.rate))
    }

    /// How often its rate and its delay change in this time, outages included, in the mean.
    pub fn changes_in(&self, duration: Duration) -> u64 {
        let rates = self.rate_changes.as_ref().map_or(0, |it| it.changes_in(duration));
        let delays = self.delay_changes.as_ref().map_or(0, |it| it.changes_in(duration));
        let outages = self.outages.as_ref().map_or(0, |it| it.changes_in(duration));
        rates + delays + outages
    }

    /// Whether it leads from a shared medium to a station, which takes no time: the station that sends has taken it.
    pub fn leaves_lan(&self) -> bool {
        self.lan.as_ref().is_some_and(|lan| lan.node == self.from)
    }

    /// No packet stays for longer, from when it comes to its queue until it is at the other end: a full
    /// queue and a packet in transmission go before it. The longest time there is if that is not known.
    pub fn longest_stay(&self) -> Duration {
        let Jitter::UpTo(jitter) = self.jitter else { return Duration::MAX };
        let changes = self.rate_changes.is_some() || self.delay_changes.is_some();
        let waits = self.outages.is_some() || self.contention.is_some() || self.lan.is_some();
        if changes || waits || self.reordering.is_some() {
            return Duration::MAX;
        }
        let before = match self.queue.limit {
            QueueLimit::Packets(packets) => packets.saturating_mul(self.mtu),
            QueueLimit::Bytes(bytes) => bytes,
        };
        let all = before.saturating_add(self.mtu).saturating_add(self.mtu);
        self.rate.time_for(all) + self.delay + jitter
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
pub(crate) fn is_never(probability: &Probability) -> bool {
    probability.0 <= 0.0
}

/// A queue with its sizes in packets or bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueuePlan {
    /// Which packets it drops, and in which order it serves them.
    pub discipline: Discipline,
    /// How much it holds.
    pub limit: QueueLimit,
}

/// How much a queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueLimit {
    /// So many packets, whatever their size.
    Packets(u64),
    /// So many bytes.
    Bytes(u64),
}

/// One flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowPlan {
    /// Unique.
    pub name: String,
    /// Where in the experiment it was described, for messages: `flows[1]`.
    pub place: String,
    /// The node that sends the data.
    pub from: usize,
    /// The node that receives it.
    pub to: usize,
    /// The label to group by.
    pub class: String,
    /// When it begins.
    pub start: Duration,
    /// The most that chance adds to `start`. The backend draws it, from the seed and the name.
    pub start_jitter: Duration,
    /// What the application does.
    pub traffic: Arc<TrafficPlan>,
    /// What carries its data.
    pub transport: Transport,
    /// The largest packet that the path carries, with its IP header: both ways for TCP, forward for UDP.
    pub mtu: u64,
    /// The lanes from `from` to `to`.
    pub forward: Vec<usize>,
    /// The lanes from `to` to `from`.
    pub back: Vec<usize>,
    /// The delays of all these lanes together.
    pub base_rtt: Duration,
    /// The lane of the way forward with the least rate ([`LanePlan::lasting_rate`]); the first among
    /// equals.
    pub bottleneck: usize,
}

/// A host that takes time for what it sends and receives, or has a queue of its own or receive
/// offload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostPlan {
    /// Its node.
    pub node: usize,
    /// Where in the experiment it was described, for messages: `hosts.server`.
    pub place: String,
    /// How much time, if any.
    #[serde(deserialize_with = "stored::optional")]
    pub cpu: Option<Cpu>,
    /// Whether the queues of the lanes that begin here are its own.
    pub has_qdisc: bool,
    /// Its devices have receive offload (GRO): how long what arrives waits for the poll, in whole
    /// nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gro: Option<Duration>,
}

/// What carries the data of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Transport {
    /// TCP.
    Tcp(TcpPlan),
    /// UDP, which has no settings.
    Udp,
}

/// The TCP of both ends of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpPlan {
    /// That of `from`.
    #[serde(deserialize_with = "stored::stack")]
    pub stack: Arc<StackPlan>,
    /// That of `to`.
    #[serde(deserialize_with = "stored::stack")]
    pub peer_stack: Arc<StackPlan>,
}

/// What to write down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordPlan {
    /// When the state of flows is written down.
    #[serde(deserialize_with = "stored::setting")]
    pub samples: Samples,
    /// How often the state of lanes is written down.
    #[serde(deserialize_with = "stored::setting")]
    pub links: OrOff<Duration>,
    /// The lanes whose packets are captured.
    pub captures: Vec<usize>,
    /// The lanes whose packets are rows of a table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packets: Vec<usize>,
}

impl RecordPlan {
    /// The lanes whose packets are captured, each once and in order: the interfaces of the capture.
    pub fn captured(&self) -> Vec<usize> {
        let lanes: BTreeSet<usize> = self.captures.iter().copied().collect();
        lanes.into_iter().collect()
    }
}

/// The part of a run that results are of, in whole nanoseconds after its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasurePlan {
    /// When it begins.
    pub from: Duration,
    /// When it ends; that may be the end of the run, which need not be a whole nanosecond.
    pub to: Duration,
    /// How long its intervals are, if they have rows.
    pub every: Option<Duration>,
}

impl Plan {
    /// What is said of a host.
    fn host(&self, node: usize) -> Option<&HostPlan> {
        let place = self.hosts.binary_search_by_key(&node, |host| host.node);
        place.ok().map(|place| &self.hosts[place])
    }

    /// Whether a node is a host with a queue of its own.
    pub fn has_qdisc(&self, node: usize) -> bool {
        self.host(node).is_some_and(|host| host.has_qdisc)
    }

    /// The time that a host takes, if it takes any.
    pub fn cpu(&self, node: usize) -> Option<&Cpu> {
        self.host(node)?.cpu.as_ref()
    }

    /// How long what arrives at a host waits for a poll, if it has receive offload.
    pub fn gro(&self, node: usize) -> Option<Duration> {
        self.host(node)?.gro
    }

    /// The part of the run that results are of.
    pub fn measured(&self) -> MeasurePlan {
        let whole = MeasurePlan { from: Duration::ZERO, to: self.duration, every: None };
        self.measure.unwrap_or(whole)
    }
}

impl FlowPlan {
    /// The TCP at both ends, if it is what carries the data.
    pub fn tcp(&self) -> Option<&TcpPlan> {
        match &self.transport {
            Transport::Tcp(tcp) => Some(tcp),
            Transport::Udp => None,
        }
    }

    /// The congestion control of the sender, if it has one.
    pub fn cc(&self) -> Option<&CongestionControl> {
        self.tcp().map(|tcp| &tcp.stack.cc)
    }
}

impl Transport {
    /// The word for it: `tcp`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Tcp(_) => "tcp",
            Self::Udp => "udp",
        }
    }
}

impl TcpPlan {
    /// The stacks of both ends, that of `from` first.
    pub fn stacks(&self) -> [&Arc<StackPlan>; 2] {
        [&self.stack, &self.peer_stack]
    }
}
