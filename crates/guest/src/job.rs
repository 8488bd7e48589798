//! The work of one boot, in the kernel's own terms. All times are in nanoseconds.

use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use tcplab_pace::Pace;
use tcplab_tables::Window;

/// Where the guest finds its job.
pub const PATH: &str = "/job.json";

/// Where the guest writes reports and commands: a file of the kernel's tcplab part.
pub const CHANNEL: &str = "/proc/tcplab";

/// Where the guest puts what programs print.
pub const OUTPUT: &str = "/output";

/// The most that all programs of a run print together, in bytes.
pub const MOST_OUTPUT: u64 = 64 << 20;

/// The file of what one side of a flow of programs prints.
pub fn output(flow: usize, side: &str) -> String {
    format!("{OUTPUT}/{flow}-{side}.txt")
}

/// Everything that is to be done in one boot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// How long the experiment lasts.
    pub duration: u64,
    /// Files of the kernel that hold for all hosts, and what is written into them, before anything
    /// else: `/sys/module/tcp_cubic/parameters/hystart`.
    pub settings: Vec<(String, String)>,
    /// The hosts and routers; a host's number is its index.
    pub hosts: Vec<Host>,
    /// The pairs of devices between them.
    pub links: Vec<Link>,
    /// The traffic.
    pub flows: Vec<Flow>,
    /// What the kernel records.
    pub record: Record,
    /// Who programs are and what they see; nothing where there are none.
    pub programs: Option<Programs>,
}

/// Who programs are and what they see of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Programs {
    /// The number of the user that they are, not 0.
    pub user: u32,
    /// The number of their group, not 0.
    pub group: u32,
    /// Files and folders of the machine that they may read: absolute paths.
    pub reads: Vec<String>,
    /// Folders within these that they see empty.
    pub hidden: Vec<String>,
}

/// A host or router.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Its name, also as the system knows it (`hostname`).
    pub name: String,
    /// Its network namespaces: one for each set of settings. Links end at the first; the others share
    /// its devices.
    pub namespaces: Vec<Namespace>,
}

/// A network namespace of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Namespace {
    /// Its addresses; they belong to the loopback device and are reached over any other.
    pub addresses: Vec<Ipv4Addr>,
    /// Files below `/proc/sys` and what is written into them: `("net/ipv4/tcp_sack", "0")`.
    pub settings: Vec<(String, String)>,
    /// Ways to addresses of other hosts.
    pub routes: Vec<Route>,
}

/// The way to one address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Route {
    /// The address.
    pub to: Ipv4Addr,
    /// The device it is reached over.
    pub device: String,
    /// The largest packet on the whole way.
    pub mtu: Option<u32>,
    /// The first congestion window, in segments.
    pub initial_window: Option<u32>,
    /// The least retransmission timeout, in milliseconds.
    pub min_rto_ms: Option<u32>,
    /// Whether ACKs are never delayed.
    pub quick_ack: bool,
    /// The first window offered, in segments.
    pub initial_receive_window: Option<u32>,
    /// The congestion control of all connections on this way, whatever their sockets ask for.
    pub congestion_control: Option<String>,
}

/// A pair of devices joined back to back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// The two ends.
    pub ends: [End; 2],
}

/// One device, and the way out of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// The number of the host.
    pub host: usize,
    /// The name of the device there: `eth0`.
    pub device: String,
    /// Its MTU.
    pub mtu: u32,
    /// Its queueing disciplines: the root first, then the child of the root's class 1, and so on.
    pub disciplines: Vec<Discipline>,
}

/// A queueing discipline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Discipline {
    /// What the kernel calls it: `fq_codel`.
    pub kind: String,
    /// The content of its `TCA_OPTIONS`, as the kernel wants it.
    pub options: Vec<u8>,
    /// Further options that one attribute has no room for, each for a change of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<Vec<u8>>,
    /// What is done to each packet that comes, before it is queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filter>,
}

/// A filter of a queueing discipline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Filter {
    /// The kernel's name of the filter: `matchall`.
    pub kind: String,
    /// The content of its `TCA_OPTIONS`.
    pub options: Vec<u8>,
}

/// Traffic between two hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// The side that opens connections (and with `Udp` sends).
    pub client: Side,
    /// The side that listens.
    pub server: Side,
    /// When it begins, after the start of the experiment.
    pub start: u64,
    /// What is sent.
    pub traffic: Traffic,
}

/// One side of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// The number of the host.
    pub host: usize,
    /// Which of its namespaces.
    pub namespace: usize,
    /// Its address for this flow.
    pub address: Ipv4Addr,
    /// Its port: the one it listens at or, for a flow that is one connection, the one it connects
    /// from; clients that open several use this and the following ones.
    pub port: u16,
    /// What its congestion control draws from; other connections of the flow begin one number further each.
    pub seed: u64,
    /// The options of its sockets.
    pub socket: SocketOptions,
}

/// The options of a socket; nothing means the kernel's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SocketOptions {
    /// `TCP_CONGESTION`.
    pub congestion_control: Option<String>,
    /// `SO_MAX_PACING_RATE` in bytes a second, which turns pacing on.
    pub pacing: Option<u64>,
    /// `TCP_NODELAY`.
    pub no_delay: bool,
    /// `TCP_MAXSEG`.
    pub max_segment: Option<u32>,
    /// `SO_RCVBUF`.
    pub receive_buffer: Option<u32>,
    /// `SO_SNDBUF`.
    pub send_buffer: Option<u32>,
    /// `TCP_WINDOW_CLAMP`.
    pub window_clamp: Option<u32>,
    /// `TCP_NOTSENT_LOWAT`.
    pub most_unsent: Option<u32>,
    /// `TCP_USER_TIMEOUT`.
    pub user_timeout_ms: Option<u32>,
    /// `SO_KEEPALIVE`.
    pub keepalive: Option<Keepalive>,
    /// `TCP_FASTOPEN_CONNECT` for those that connect, `TCP_FASTOPEN` for those that listen.
    pub fast_open: bool,
}

/// How a socket looks whether its peer is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keepalive {
    /// `TCP_KEEPIDLE`.
    pub idle_s: u32,
    /// `TCP_KEEPINTVL`.
    pub interval_s: u32,
    /// `TCP_KEEPCNT`.
    pub probes: u32,
}

/// What is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Traffic {
    /// The client sends as fast as it can, `size` bytes or until the experiment ends.
    Bulk {
        /// How much.
        size: Option<u64>,
        /// How much in one `write`; nothing means as much as the socket takes.
        write: Option<u64>,
    },
    /// The client sends as fast as it can, from and until these times after the flow's start.
    OnOff {
        /// In order, without overlap.
        periods: Vec<(u64, u64)>,
    },
    /// The client sends so many bytes over a connection of its own, at each of these times after the
    /// flow's start.
    Transfers(Vec<(u64, u64)>),
    /// Users of the client's host each send one thing after another, over a connection of its own.
    Users(Users),
    /// The client asks, the server answers, the client thinks, over one connection.
    Requests {
        /// The bytes of a question.
        request: u64,
        /// The bytes of an answer.
        response: u64,
        /// The time from the question's last byte to the first of its answer.
        server_time: u64,
        /// The time from the answer's last byte to the next question.
        think: u64,
        /// How many questions; nothing means until the experiment ends.
        count: Option<u64>,
    },
    /// The client asks for things and is answered: for the next one as soon as it has room.
    Sessions(Sessions),
    /// The client sends datagrams.
    Udp {
        /// When each leaves.
        pace: Pace,
        /// The data in each.
        payload: u64,
    },
    /// Programs of the machine, started in the two hosts: the server before the experiment begins,
    /// the client at the flow's start. Their output goes to `/output/<flow>-server.txt` and
    /// `-client.txt`.
    Command {
        /// The server's command line, for `sh -c`.
        server: String,
        /// The client's command line, for `sh -c`.
        client: String,
    },
}

/// Users, each with one transfer at a time; all begin at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Users {
    /// The bytes of the transfers of each user, more than the time allows.
    pub sizes: Vec<Vec<u64>>,
    /// The time from the arrival of a transfer's last byte to the next transfer of its user.
    pub think: u64,
    /// How many transfers all users begin together, at most.
    pub most: usize,
}

/// Things that the client asks for, each with one question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sessions {
    /// The bytes of each question and of its answer, in the order in which they are asked for.
    pub loads: Vec<(u64, u64)>,
    /// The time from a question's last byte to the first of its answer.
    pub server_time: u64,
    /// How many go on at once.
    pub at_once: usize,
    /// Whether a connection serves one session after another; else each has its own.
    pub persistent: bool,
}

impl Traffic {
    /// How many connections, sessions or requests a flow has at most; nothing for those that are known
    /// when they appear.
    pub fn parts(&self) -> Option<usize> {
        match self {
            Self::Transfers(transfers) => Some(transfers.len()),
            Self::Users(users) => Some(users.most),
            Self::Sessions(sessions) => Some(sessions.loads.len()),
            Self::Requests { count, .. } => {
                Some(count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX)))
            }
            Self::Command { .. } => None,
            _ => Some(1),
        }
    }

    /// Whether it is over when so much has arrived, rather than with the experiment.
    pub fn ends(&self) -> bool {
        match self {
            Self::Bulk { size, .. } => size.is_some(),
            Self::Transfers(_) | Self::Users(_) | Self::Sessions(_) => true,
            Self::Requests { count, .. } => count.is_some(),
            Self::Udp { pace, .. } => pace.packets.is_some(),
            Self::OnOff { .. } | Self::Command { .. } => false,
        }
    }

    /// How many ports of the client a flow takes: one for each connection that the guest opens.
    pub fn connections(&self) -> usize {
        match self {
            Self::Sessions(sessions) if sessions.persistent => sessions.at_once,
            Self::Requests { .. } => 1,
            other => other.parts().unwrap_or(1),
        }
    }
}

/// What the kernel records, besides a summary of each connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// How often connections are sampled; nothing means never, 0 at every ACK.
    pub samples: Option<u64>,
    /// How often lanes are sampled; nothing means never.
    pub links: Option<u64>,
    /// The part of the run that results are of, if counters are to be told at its marks.
    pub window: Option<Window>,
}
