//! The job of one boot, in the kernel's own terms. All times are in nanoseconds.

use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use tcplab_pace::Pace;
use tcplab_tables::Window;

/// The file with the guest's job.
pub const PATH: &str = "/job.json";

/// The file to which the guest writes reports and commands: one of tcplab's part of the kernel.
pub const CHANNEL: &str = "/proc/tcplab";

/// The folder with the output of programs.
pub const OUTPUT: &str = "/output";

/// The limit of the output of all programs of a run, in bytes.
pub const MOST_OUTPUT: u64 = 64 << 20;

/// The file with the output of one side of a flow of programs.
pub fn output(flow: usize, side: &str) -> String {
    format!("{OUTPUT}/{flow}-{side}.txt")
}

/// The job of one boot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The duration of the experiment.
    pub duration: u64,
    /// Kernel files with settings common to all hosts, which are written first:
    /// `/sys/module/tcp_cubic/parameters/hystart`.
    pub settings: Vec<(String, String)>,
    /// The hosts and routers; a host's number is its index.
    pub hosts: Vec<Host>,
    /// The pairs of devices between hosts.
    pub links: Vec<Link>,
    /// The traffic.
    pub flows: Vec<Flow>,
    /// The kernel's records.
    pub record: Record,
    /// The user and the access of programs; `None` without programs.
    pub programs: Option<Programs>,
}

/// The user and the access of programs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Programs {
    /// The user's id, not 0.
    pub user: u32,
    /// The group's id, not 0.
    pub group: u32,
    /// Files and folders of the machine that programs may read: absolute paths.
    pub reads: Vec<String>,
    /// Folders within these that appear empty.
    pub hidden: Vec<String>,
}

/// A host or router.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// The name, also as the hostname.
    pub name: String,
    /// The network namespaces, one for each set of settings. Links end at the first; the others
    /// share its devices.
    pub namespaces: Vec<Namespace>,
}

/// A network namespace of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Namespace {
    /// The addresses, which belong to the loopback device and are reached over any other.
    pub addresses: Vec<Ipv4Addr>,
    /// Files below `/proc/sys` with their content: `("net/ipv4/tcp_sack", "0")`.
    pub settings: Vec<(String, String)>,
    /// Routes to addresses of other hosts.
    pub routes: Vec<Route>,
}

/// The route to one address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Route {
    /// The address.
    pub to: Ipv4Addr,
    /// The outgoing device.
    pub device: String,
    /// The path MTU.
    pub mtu: Option<u32>,
    /// The initial congestion window, in segments.
    pub initial_window: Option<u32>,
    /// The minimum retransmission timeout, in milliseconds.
    pub min_rto_ms: Option<u32>,
    /// Whether ACKs are never delayed.
    pub quick_ack: bool,
    /// The first advertised window, in segments.
    pub initial_receive_window: Option<u32>,
    /// The congestion control of all connections on this route, whatever their sockets request.
    pub congestion_control: Option<String>,
}

/// A pair of devices joined back to back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// The two ends.
    pub ends: [End; 2],
}

/// A device, with its outgoing direction.
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
    /// The kernel's name: `fq_codel`.
    pub kind: String,
    /// The content of its `TCA_OPTIONS` attribute.
    pub options: Vec<u8>,
    /// Further options that do not fit one attribute, each for a separate change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<Vec<u8>>,
    /// A filter that processes each packet before it is queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filter>,
}

/// A filter of a queueing discipline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Filter {
    /// The kernel's name of the filter: `matchall`.
    pub kind: String,
    /// The content of its `TCA_OPTIONS` attribute.
    pub options: Vec<u8>,
}

/// Traffic between two hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// The side that opens connections (and sends, with `Udp`).
    pub client: Side,
    /// The side that listens.
    pub server: Side,
    /// The start, after the start of the experiment.
    pub start: u64,
    /// The traffic.
    pub traffic: Traffic,
}

/// One side of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// The number of the host.
    pub host: usize,
    /// The number of its namespace.
    pub namespace: usize,
    /// Its address for this flow.
    pub address: Ipv4Addr,
    /// The port: the listening one, or for a flow with a single connection the client's; clients
    /// with several connections use this and the following ports.
    pub port: u16,
    /// The seed of its congestion control; each further connection of the flow adds one.
    pub seed: u64,
    /// The options of its sockets.
    pub socket: SocketOptions,
}

/// The options of a socket; `None` means the kernel's default.
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
    /// `TCP_FASTOPEN_CONNECT` for clients, `TCP_FASTOPEN` for servers.
    pub fast_open: bool,
}

/// The keepalive settings of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keepalive {
    /// `TCP_KEEPIDLE`.
    pub idle_s: u32,
    /// `TCP_KEEPINTVL`.
    pub interval_s: u32,
    /// `TCP_KEEPCNT`.
    pub probes: u32,
}

/// The traffic of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Traffic {
    /// The client sends as fast as possible, `size` bytes or until the experiment ends.
    Bulk {
        /// The number of bytes.
        size: Option<u64>,
        /// The bytes of one `write`; `None` means as much as the socket accepts.
        write: Option<u64>,
    },
    /// The client sends as fast as possible in these periods after the flow's start.
    OnOff {
        /// In order, without overlap.
        periods: Vec<(u64, u64)>,
    },
    /// The client sends so many bytes over a separate connection, at each of these times after the
    /// flow's start.
    Transfers(Vec<(u64, u64)>),
    /// Users on the client's host each send one transfer after another, over separate connections.
    Users(Users),
    /// Requests and responses over one connection, with think times of the client.
    Requests {
        /// The bytes of a request.
        request: u64,
        /// The bytes of a response.
        response: u64,
        /// The time from the request's last byte to the first byte of the response.
        server_time: u64,
        /// The time from the response's last byte to the next request.
        think: u64,
        /// The number of requests; `None` means until the experiment ends.
        count: Option<u64>,
    },
    /// The client requests objects, the next one as soon as a connection is free.
    Sessions(Sessions),
    /// The client sends datagrams.
    Udp {
        /// The schedule of datagrams.
        pace: Pace,
        /// The data in each datagram.
        payload: u64,
    },
    /// Programs of the machine on the two hosts: the server is started before the experiment
    /// begins, the client at the flow's start. Their output goes to `/output/<flow>-server.txt` and
    /// `-client.txt`.
    Command {
        /// The server's command line, for `sh -c`.
        server: String,
        /// The client's command line, for `sh -c`.
        client: String,
    },
}

/// Users with one transfer at a time; all begin at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Users {
    /// The sizes of each user's transfers, more than the time allows.
    pub sizes: Vec<Vec<u64>>,
    /// The time from the arrival of a transfer's last byte to the user's next transfer.
    pub think: u64,
    /// The most transfers of all users together.
    pub most: usize,
}

/// Objects that the client requests, one by one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sessions {
    /// The bytes of each request and its response, in order.
    pub loads: Vec<(u64, u64)>,
    /// The time from a request's last byte to the first byte of the response.
    pub server_time: u64,
    /// The most sessions at once.
    pub at_once: usize,
    /// Whether a connection serves one session after another; otherwise each has its own.
    pub persistent: bool,
}

impl Traffic {
    /// The most connections, sessions or requests of a flow; `None` for those known only when they
    /// appear.
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

    /// Whether the flow ends with a given amount of data, rather than with the experiment.
    pub fn ends(&self) -> bool {
        match self {
            Self::Bulk { size, .. } => size.is_some(),
            Self::Transfers(_) | Self::Users(_) | Self::Sessions(_) => true,
            Self::Requests { count, .. } => count.is_some(),
            Self::Udp { pace, .. } => pace.packets.is_some(),
            Self::OnOff { .. } | Self::Command { .. } => false,
        }
    }

    /// The number of the client's ports of a flow: one for each connection that the guest opens.
    pub fn connections(&self) -> usize {
        match self {
            Self::Sessions(sessions) if sessions.persistent => sessions.at_once,
            Self::Requests { .. } => 1,
            other => other.parts().unwrap_or(1),
        }
    }
}

/// The kernel's records, besides a summary of each connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The sampling interval of connections; `None` means never, 0 at every ACK.
    pub samples: Option<u64>,
    /// The sampling interval of lanes; `None` means never.
    pub links: Option<u64>,
    /// The measuring window, if counters are reported at its marks.
    pub window: Option<Window>,
}
