//! A plan: one fully resolved run, as given to a backend.

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

/// One run, with every name, default and relative quantity resolved. Clones share the large parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// 16 hexadecimal digits that depend on everything that can change the result.
    pub id: String,
    /// The experiment's name.
    pub experiment: String,
    /// The backend that is to run the plan.
    pub backend: String,
    /// The backend's version.
    pub version: String,
    /// The kernel to use, on the backend `linux`.
    pub kernel: Option<String>,
    /// The seed of this repetition.
    pub seed: u64,
    /// The number of the repetition, from 0.
    pub repetition: u64,
    /// The swept values of this run as text, by path, in the order of the file.
    pub swept: Vec<(String, String)>,
    /// The simulated time.
    pub duration: Duration,
    /// The nodes' names; a node's number is its index.
    pub nodes: Arc<[String]>,
    /// Both directions of all links: numbers 2k and 2k + 1 belong to the same link.
    pub lanes: Arc<[LanePlan]>,
    /// The flows, one by one.
    pub flows: Arc<[FlowPlan]>,
    /// Hosts with processing time, a queue of their own or receive offload, in the order of their
    /// nodes.
    #[serde(default, skip_serializing_if = "<[HostPlan]>::is_empty")]
    pub hosts: Arc<[HostPlan]>,
    /// The recorded tables and captures.
    pub record: RecordPlan,
    /// The part of the run that results cover; `None` if that is the whole run without intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure: Option<MeasurePlan>,
    /// The changes during the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Arc<ChangePlan>>,
    /// The precision that ends the repetitions, if not a fixed number. Not part of a stored plan.
    #[serde(skip)]
    pub until: Option<Until>,
    /// Settings without effect, or with one that is hardly intended. The plan runs nevertheless.
    /// Written as text; a plan that is read back has none.
    #[serde(skip_deserializing)]
    pub warnings: Arc<[Mistake]>,
}

/// One direction of one link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LanePlan {
    /// Unique: `left>right`; the second of several between the same nodes is `left>right/2`.
    pub name: String,
    /// The experiment's table that describes the lane, for messages: `network.links[0].back`. A key
    /// that is missing there is one of the link (`origin`).
    pub place: String,
    /// The node at the start.
    pub from: usize,
    /// The node at the end.
    pub to: usize,
    /// The rate.
    pub rate: Rate,
    /// The propagation delay.
    pub delay: Duration,
    /// Random additions to the delay.
    #[serde(deserialize_with = "stored::setting")]
    pub jitter: Jitter,
    /// The largest packet with its IP header, in bytes.
    pub mtu: u64,
    /// Whether the router before the lane sends an ICMP message when a packet is larger than that.
    pub icmp: bool,
    /// The queue in front of the lane.
    pub queue: QueuePlan,
    /// Losses on the link.
    #[serde(deserialize_with = "stored::optional")]
    pub loss: Option<Loss>,
    /// Packets that are held back and overtaken.
    #[serde(deserialize_with = "stored::optional")]
    pub reordering: Option<Reordering>,
    /// Changes of the rate.
    #[serde(deserialize_with = "stored::optional")]
    pub rate_changes: Option<RateChanges>,
    /// Delays and opportunities under light load.
    #[serde(
        default,
        deserialize_with = "stored::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub light: Option<Light>,
    /// Changes of the delay.
    #[serde(
        default,
        deserialize_with = "stored::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub delay_changes: Option<DelayChanges>,
    /// Whether packets with a shorter delay overtake others.
    #[serde(default, skip_serializing_if = "is_false")]
    pub overtaking: bool,
    /// The share of packets that are corrupted.
    #[serde(default, deserialize_with = "stored::setting", skip_serializing_if = "is_never")]
    pub corruption: Probability,
    /// The share of packets that are duplicated.
    #[serde(default, deserialize_with = "stored::setting", skip_serializing_if = "is_never")]
    pub duplication: Probability,
    /// Outages.
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
    /// The shared medium to which the lane belongs, if any.
    pub lan: Option<Arc<LanPlan>>,
    /// The rate times the largest base RTT of the flows on the lane, or twice its own delay without
    /// flows. The rate is that at which packets leave the queue: a shaper's, if that is less than
    /// the link's.
    pub bdp: Bytes,
}

impl LanePlan {
    /// The sustained rate of traffic: that of the link, or of the shaper or policer in front of it
    /// if that is less. For a link whose rate changes, its initial rate.
    pub fn lasting_rate(&self) -> Rate {
        self.queue.discipline.rate().map_or(self.rate, |rate| rate.min(self.rate))
    }

    /// The mean number of changes of rate and delay in this time, outages included.
    pub fn changes_in(&self, duration: Duration) -> u64 {
        let rates = self.rate_changes.as_ref().map_or(0, |it| it.changes_in(duration));
        let delays = self.delay_changes.as_ref().map_or(0, |it| it.changes_in(duration));
        let outages = self.outages.as_ref().map_or(0, |it| it.changes_in(duration));
        rates + delays + outages
    }

    /// Whether the lane leads from a shared medium to a station. It takes no time, which the
    /// sending station has already taken.
    pub fn leaves_lan(&self) -> bool {
        self.lan.as_ref().is_some_and(|lan| lan.node == self.from)
    }

    /// An upper bound of the time from a packet's arrival at the queue to its arrival at the far
    /// end: a full queue and a packet in transmission go first. `Duration::MAX` if unknown.
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
    /// The queue discipline.
    pub discipline: Discipline,
    /// The queue limit.
    pub limit: QueueLimit,
}

/// The limit of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueLimit {
    /// In packets, whatever their size.
    Packets(u64),
    /// In bytes.
    Bytes(u64),
}

/// One flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowPlan {
    /// The unique name.
    pub name: String,
    /// The experiment's entry that describes the flow, for messages: `flows[1]`.
    pub place: String,
    /// The node that sends the data.
    pub from: usize,
    /// The node that receives the data.
    pub to: usize,
    /// The label to group by.
    pub class: String,
    /// The start of the flow.
    pub start: Duration,
    /// The maximum random addition to `start`, which the backend draws from the seed and the name.
    pub start_jitter: Duration,
    /// The traffic of the application.
    pub traffic: Arc<TrafficPlan>,
    /// The transport of the data.
    pub transport: Transport,
    /// The largest packet on the path, with its IP header: in both directions for TCP, forward for
    /// UDP.
    pub mtu: u64,
    /// The lanes from `from` to `to`.
    pub forward: Vec<usize>,
    /// The lanes from `to` to `from`.
    pub back: Vec<usize>,
    /// The sum of the delays of all these lanes.
    pub base_rtt: Duration,
    /// The forward lane with the lowest rate ([`LanePlan::lasting_rate`]); the first among equals.
    pub bottleneck: usize,
}

/// A host with processing time, a queue of its own or receive offload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostPlan {
    /// The host's node.
    pub node: usize,
    /// The experiment's entry that describes the host, for messages: `hosts.server`.
    pub place: String,
    /// The processing time, if any.
    #[serde(deserialize_with = "stored::optional")]
    pub cpu: Option<Cpu>,
    /// Whether the queues of the lanes that begin here are the host's own.
    pub has_qdisc: bool,
    /// The interrupt delay of the host's devices with generic receive offload (GRO), in whole
    /// nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gro: Option<Duration>,
}

/// The transport of a flow.
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
    /// The stack of `from`.
    #[serde(deserialize_with = "stored::stack")]
    pub stack: Arc<StackPlan>,
    /// The stack of `to`.
    #[serde(deserialize_with = "stored::stack")]
    pub peer_stack: Arc<StackPlan>,
}

/// The recorded tables and captures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordPlan {
    /// When the state of flows is sampled.
    #[serde(deserialize_with = "stored::setting")]
    pub samples: Samples,
    /// How often the state of lanes is sampled.
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

/// The part of a run that results cover, in whole nanoseconds after its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasurePlan {
    /// The beginning.
    pub from: Duration,
    /// The end, which may be that of the run and then need not be a whole nanosecond.
    pub to: Duration,
    /// The length of the intervals, if there are any.
    pub every: Option<Duration>,
}

impl Plan {
    /// The host at a node, if it has settings.
    fn host(&self, node: usize) -> Option<&HostPlan> {
        let place = self.hosts.binary_search_by_key(&node, |host| host.node);
        place.ok().map(|place| &self.hosts[place])
    }

    /// Whether a node is a host with a queue of its own.
    pub fn has_qdisc(&self, node: usize) -> bool {
        self.host(node).is_some_and(|host| host.has_qdisc)
    }

    /// The processing time of a host, if any.
    pub fn cpu(&self, node: usize) -> Option<&Cpu> {
        self.host(node)?.cpu.as_ref()
    }

    /// The interrupt delay of a host, if it has receive offload.
    pub fn gro(&self, node: usize) -> Option<Duration> {
        self.host(node)?.gro
    }

    /// The part of the run that results cover.
    pub fn measured(&self) -> MeasurePlan {
        let whole = MeasurePlan { from: Duration::ZERO, to: self.duration, every: None };
        self.measure.unwrap_or(whole)
    }
}

impl FlowPlan {
    /// The TCP of both ends, if the transport is TCP.
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
    /// The transport's name: `tcp`.
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
