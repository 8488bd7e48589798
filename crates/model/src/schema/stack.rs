//! The transport: the behaviour of a host's or a flow's TCP.

use super::{AT_LEAST_ONE, OrOff, SOME_TIME};
use crate::mistake::{Mistake, Problem};
use crate::read::{Definitions, Place, Read, define, table, words, wrong_type};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::ops::RangeInclusive;
use tcplab_units::{Bytes, Duration, Rate};

/// RFC 7323 §2.3: a window has at most 30 bits.
const WINDOW: RangeInclusive<Bytes> = Bytes(1)..=Bytes(1 << 30);
/// Linux does not accept less than two packets need.
const MOST_ASKED: RangeInclusive<Bytes> = Bytes(4608)..=Bytes(1 << 30);
/// Linux does not accept a smaller clamp: half of the minimum buffer (`SOCK_MIN_RCVBUF`).
const CLAMP: RangeInclusive<Bytes> = Bytes(1152)..=Bytes(1 << 30);
/// `TCP_NOTSENT_LOWAT` is a 32-bit number, of which 0 means the system's default.
const UNSENT: RangeInclusive<Bytes> = Bytes(1)..=Bytes(u32::MAX as u64);
/// Sockets count rates in whole bytes a second.
const PACE: RangeInclusive<Rate> =
    Rate::from_bits_per_second(8)..=Rate::from_bits_per_second(u64::MAX);
/// The payload of the minimum MTU (RFC 791) and of the largest packet.
const SEGMENT: RangeInclusive<u64> = 28..=65_495;

/// Declares each option once: optional in a file (`Stack`), resolved in a plan (`StackPlan`).
macro_rules! options {
    ($($(#[doc = $doc:literal])+ pub $field:ident: $type:ty $([$range:expr])?,)*) => {
        table! {
            /// The transport: a profile that sets all options, and options that differ from it.
            #[derive(Default)]
            pub struct Stack {
                /// The system whose behaviour is the starting point: "linux-6.12" (the default),
                /// "rfc", ...
                pub profile: Option<Profile> = None,
                $($(#[doc = $doc])+ pub $field: Option<$type> $([$range])? = None,)*
            }
        }

        /// The transport with every option resolved.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        pub struct StackPlan {
            $($(#[doc = $doc])+ pub $field: $type,)*
        }

        impl StackPlan {
            /// Overrides options with those that `stack` sets.
            pub(crate) fn apply(&mut self, stack: &Stack) {
                $(if let Some(value) = &stack.$field {
                    self.$field.clone_from(value);
                })*
            }

            /// The transport, if `stack` sets every option.
            pub(crate) fn decided(stack: Stack) -> Option<Self> {
                Some(Self { $($field: stack.$field?,)* })
            }
        }
    };
}

options! {
    /// The behaviour where the standards leave a choice: RTO estimation, delayed ACKs, timer
    /// granularity, rounding of windows: "rfc" or "linux".
    pub flavour: Flavour,
    /// The congestion control: "cubic", "cubic/2008" with a preset of parameters, or
    /// `{ name = "cubic", beta = 0.5 }` with parameters.
    pub cc: CongestionControl,
    /// Whether receivers send selective acknowledgements (SACK, RFC 2018).
    pub sack: bool,
    /// Whether receivers report duplicate segments (DSACK, RFC 2883).
    pub dsack: bool,
    /// Whether, with SACK and without RACK, a hole counts as lost as soon as a segment arrived
    /// `dup_thresh` segments above it (FACK, Mathis and Mahdavi 1996; Linux until 4.14).
    pub fack: bool,
    /// The loss recovery without SACK: "tahoe", "reno", "newreno" or "newreno-steady".
    pub recovery: Recovery,
    /// How ACKs count when the window grows: "off" (each as one segment, however much it covers),
    /// "segment" (as many segments as it covers), or with byte counting the most segments that one
    /// ACK may count for, 1 or 2 (Appropriate Byte Counting, RFC 3465).
    pub abc: AckCounting,
    /// The maximum delay of an ACK: "200 ms", or "off".
    pub delayed_ack: OrOff<Duration> [SOME_TIME],
    /// The number of full segments that one ACK covers: 2.
    pub ack_every: u64 [AT_LEAST_ONE],
    /// The number of segments at the start of a connection that are acknowledged at once: 16.
    pub quick_ack: u64,
    /// Whether segments carry timestamps (RFC 7323).
    pub timestamps: bool,
    /// Whether window scaling is used, for windows above 64 KiB (RFC 7323).
    pub window_scaling: bool,
    /// Explicit congestion notification: true (RFC 3168), false, or "accurate" if the ends count
    /// marks (accurate ECN, RFC 9768). Congestion controls that need marks use them without this
    /// option.
    pub ecn: Ecn,
    /// The initial window, in segments: 10.
    pub initial_window: u64 [1..=65_535],
    /// The minimum retransmission timeout: "200 ms".
    pub min_rto: Duration [SOME_TIME],
    /// The maximum retransmission timeout: "60 s".
    pub max_rto: Duration [SOME_TIME],
    /// The retransmission timeout before the first RTT sample: "1 s".
    pub initial_rto: Duration [SOME_TIME],
    /// The receive buffer: "6 MB". At most 1 GiB.
    pub rmem: Bytes [WINDOW],
    /// The send buffer: "4 MB".
    pub wmem: Bytes,
    /// The receive buffer that the program requests (`SO_RCVBUF`): "64 kB", or "off". Such a buffer
    /// does not grow. Linux doubles its size, for the memory that packets take beside their data.
    pub so_rcvbuf: OrOff<Bytes> [WINDOW],
    /// The send buffer that the program requests (`SO_SNDBUF`): "64 kB", or "off". Treated like
    /// `so_rcvbuf`.
    pub so_sndbuf: OrOff<Bytes> [WINDOW],
    /// The limit of `so_rcvbuf` (sysctl `net.core.rmem_max`): "212992 B".
    pub rmem_max: Bytes [MOST_ASKED],
    /// The limit of `so_sndbuf` (sysctl `net.core.wmem_max`): "212992 B".
    pub wmem_max: Bytes [MOST_ASKED],
    /// The largest window that the program wants to advertise (`TCP_WINDOW_CLAMP`): "256 kB", or
    /// "off". In Linux 6.12 the clamp only lasts as the scale of the window, which stops at the
    /// next power of two: "256 kB" allows windows of up to 262140 bytes, "300 kB" of up to 524280.
    pub window_clamp: OrOff<Bytes> [CLAMP],
    /// The first advertised window, in segments (`ip route ... initrwnd`): 10, or "off" for the
    /// window that the receive buffer allows.
    pub initial_receive_window: OrOff<u64> [1..=65_535],
    /// The limit of unsent data in the send buffer (`TCP_NOTSENT_LOWAT`): "128 kB", or "off". A
    /// program writes no further ahead, however large `wmem` is.
    pub notsent_lowat: OrOff<Bytes> [UNSENT],
    /// The part of the receive buffer that is reserved for the application and not advertised, as
    /// in Linux: `1 / 2^app_win` of the buffer; 0 reserves nothing.
    pub app_win: u64 [0..=31],
    /// The limits of the memory that all connections of a host take together, in addition to the
    /// limits of each: `{ low = "1 MB", pressure = "1.5 MB", high = "2 MB" }`, or "off".
    pub mem: OrOff<Memory>,
    /// Whether small writes are coalesced while an ACK is outstanding (Nagle's algorithm).
    pub nagle: bool,
    /// Whether the first two duplicate ACKs release new segments (limited transmit, RFC 3042).
    pub limited_transmit: bool,
    /// Whether the window is reset after an idle period (RFC 5681 §4.1).
    pub restart_after_idle: bool,
    /// Whether segments are paced over the round trip.
    pub pacing: bool,
    /// The maximum sending rate of the connection (`SO_MAX_PACING_RATE`): "20 Mbit/s", or "off".
    /// The rate counts data without headers, and turns `pacing` on.
    pub max_pacing_rate: OrOff<Rate> [PACE],
    /// Whether losses are detected by time (RACK, RFC 8985).
    pub rack: bool,
    /// Whether a probe detects losses at the end of a flight (TLP, RFC 8985).
    pub tlp: bool,
    /// How the window is reduced after a loss: "at-once", by "halving" (Linux until 3.1), or
    /// "proportional" (PRR, RFC 9937).
    pub reduction: Reduction,
    /// Whether spurious timeouts are detected and undone (F-RTO, RFC 5682).
    pub frto: bool,
    /// Whether spurious window reductions are undone, as detected by timestamps (RFC 3522,
    /// RFC 4015) and by reports of duplicates (DSACK).
    pub undo: bool,
    /// Whether segments leave in bursts, as with TCP segmentation offload (TSO).
    pub tso: bool,
    /// Whether slow start ends when delays grow (HyStart++, RFC 9406), for congestion controls that
    /// have a parameter of this name. That parameter takes precedence.
    pub hystart: bool,
    /// The base of a window reduction: the data in flight ("flight", RFC 5681) or the window
    /// ("cwnd", as in Linux).
    pub cut_base: CutBase,
    /// The number of duplicate ACKs that indicate a loss: 3.
    pub dup_thresh: u64 [1..=255],
    /// The number of retransmissions of an unanswered SYN: 6.
    pub syn_retries: u64 [0..=255],
    /// The number of additional retransmissions before the timeout of the SYN begins to double, as
    /// in Linux since 6.5: 4. With 0 each retransmission doubles the timeout (RFC 6298 §5.5).
    pub syn_linear_timeouts: u64 [0..=127],
    /// The number of retransmissions of an unanswered SYN-ACK: 5.
    pub syn_ack_retries: u64 [0..=255],
    /// The number of retransmissions of unacknowledged data before the connection fails: 15.
    pub retries: u64 [0..=255],
    /// The time without an answer after which the connection fails, regardless of the number of
    /// retransmissions (RFC 5482): "30 s", or "off". If set, it replaces `retries`.
    pub user_timeout: OrOff<Duration> [SOME_TIME],
    /// Keepalive probes of a silent peer, which end the connection if the peer does not answer (RFC
    /// 9293 §3.8.4): `{ idle = "2 h", interval = "75 s", probes = 9 }`, or "off".
    pub keepalive: OrOff<Keepalive>,
    /// Whether data is sent with the SYN, to a server that has given a cookie before (TCP Fast
    /// Open, RFC 7413). Both ends must have the option; the first connection between two hosts gets
    /// the cookie.
    pub fast_open: bool,
    /// Whether the path MTU is "known" from the beginning, or "discovered": then packets are as
    /// large as the first link's MTU, until a router reports that they are too large (RFC 1191).
    pub path_mtu: PathMtu,
    /// When larger packets are tried to find the path MTU without router messages (RFC 4821):
    /// "off", "on-black-hole" (after a long time without answers) or "always".
    pub mtu_probing: MtuProbing,
    /// The duration of TIME-WAIT, in which a closed connection answers stray segments: "60 s".
    pub time_wait: Duration,
    /// The maximum segment size (MSS) in bytes: 1460. The path's MTU limits it too.
    pub mss: u64 [SEGMENT],
}

table! {
    /// Limits of the memory of all connections of a host, in ascending order.
    #[derive(Copy, Eq)]
    pub struct Memory {
        /// Send buffers stop growing above this limit, and pressure ends below it.
        pub low: Bytes,
        /// Memory pressure begins at this limit: windows stop growing, and connections with more
        /// than their share of `high` cannot write.
        pub pressure: Bytes,
        /// No connection can write above this limit, and out-of-order data is dropped.
        pub high: Bytes,
    }
}

table! {
    /// Keepalive probes of a silent peer. No probes are sent while data is outstanding.
    #[derive(Copy, Eq)]
    pub struct Keepalive {
        /// The silent time before the first probe.
        pub idle: Duration [SOME_TIME] = Duration::from_secs(7_200),
        /// The time between probes.
        pub interval: Duration [SOME_TIME] = Duration::from_secs(75),
        /// The number of unanswered probes after which the connection fails; a `user_timeout` takes
        /// precedence.
        pub probes: u64 [1..=127] = 9,
    }
}

words! {
    /// A system whose behaviour is the starting point.
    #[what("profile")]
    pub enum Profile {
        /// The current standards.
        "rfc" => Rfc,
        /// Linux 6.12 (2024).
        "linux-6.12" => Linux612,
        /// Linux 6.1 (2022).
        "linux-6.1" => Linux61,
        /// Linux 2.6.26 (2008).
        "linux-2.6.26" => Linux2626,
        /// Linux 2.6.20 (2007).
        "linux-2.6.20" => Linux2620,
        /// The network simulator ns-2.
        "ns2" => Ns2,
        /// The network simulator ns-3.
        "ns3" => Ns3,
        /// FreeBSD 9.2 (2013).
        "freebsd-9.2" => FreeBsd92,
        /// Windows 7 (2009).
        "windows-7" => Windows7,
    }
}

words! {
    /// The behaviour where the standards leave a choice.
    #[what("flavour")]
    pub enum Flavour {
        /// As in the RFCs.
        "rfc" => Rfc,
        /// As in the Linux kernel.
        "linux" => Linux,
    }
}

words! {
    /// The loss recovery without SACK.
    #[what("loss recovery")]
    pub enum Recovery {
        /// Slow start from one segment, as after a timeout, but on duplicate ACKs (1988).
        "tahoe" => Tahoe,
        /// Fast recovery that ends with the first ACK of new data (RFC 2581).
        "reno" => Reno,
        /// Fast recovery until all outstanding data is acknowledged; only the first partial ACK
        /// restarts the timer (RFC 6582; "impatient").
        "newreno" => NewReno,
        /// NewReno in which each partial ACK restarts the timer ("slow but steady").
        "newreno-steady" => NewRenoSteady,
    }
}

words! {
    /// How a window is reduced after a loss.
    #[what("reduction")]
    pub enum Reduction {
        /// At once: nothing is sent until the data in flight fits the new window (RFC 5681, RFC
        /// 6675).
        "at-once" => AtOnce,
        /// One segment is sent for every second ACK (rate halving).
        "halving" => Halving,
        /// Segments are sent in proportion to the delivered data (PRR, RFC 9937).
        "proportional" => Proportional,
    }
}

words! {
    /// The base of a multiplicative decrease.
    #[what("base of the cut")]
    pub enum CutBase {
        /// The window, as in Linux.
        "cwnd" => Cwnd,
        /// The outstanding data, as in RFC 5681 §3.1.
        "flight" => FlightSize,
    }
}

words! {
    /// How the sender learns the path MTU.
    #[what("way to know the path's MTU")]
    pub enum PathMtu {
        /// The path MTU is known from the beginning.
        "known" => Known,
        /// Routers report packets that are too large.
        "discovered" => Discovered,
    }
}

words! {
    /// When the sender probes for the path MTU.
    #[what("way to probe for the path's MTU")]
    pub enum MtuProbing {
        /// Never.
        "off" => Off,
        /// After a long time without answers.
        "on-black-hole" => OnBlackHole,
        /// From the beginning, with small packets first.
        "always" => Always,
    }
}

/// How ACKs count when the window grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckCounting {
    /// One segment for each ACK: `"off"`.
    Ack,
    /// As many segments as the ACK covers: `"segment"`.
    Segment,
    /// The acknowledged bytes, up to `limit` segments in slow start (RFC 3465): the limit.
    Byte {
        /// L of RFC 3465.
        limit: u64,
    },
}

impl Serialize for AckCounting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Ack => serializer.serialize_str("off"),
            Self::Segment => serializer.serialize_str("segment"),
            Self::Byte { limit } => serializer.serialize_u64(*limit),
        }
    }
}

impl Read for AckCounting {
    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        match (value.as_str(), value.as_u64()) {
            (Some("off"), _) => return Some(Self::Ack),
            (Some("segment"), _) => return Some(Self::Segment),
            (_, Some(limit @ (1 | 2))) => return Some(Self::Byte { limit }),
            _ => {}
        }
        let problem = wrong_type(value, "\"off\", \"segment\", 1 or 2");
        mistakes.push(problem.at(at));
        None
    }

    fn schema(definitions: &mut Definitions) -> Value {
        define("AckCounting", definitions, |_| {
            json!({
                "anyOf": [
                    { "enum": ["off", "segment"] },
                    { "type": "integer", "minimum": 1, "maximum": 2 },
                ],
            })
        })
    }
}

/// Explicit congestion notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// Off: `false`.
    Off,
    /// Feedback once a round trip (RFC 3168): `true`.
    Classic,
    /// Feedback of the number of marks (accurate ECN, RFC 9768): `"accurate"`.
    Accurate,
}

impl Serialize for Ecn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_bool(false),
            Self::Classic => serializer.serialize_bool(true),
            Self::Accurate => serializer.serialize_str("accurate"),
        }
    }
}

impl Read for Ecn {
    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        match (value.as_bool(), value.as_str()) {
            (Some(false), _) => return Some(Self::Off),
            (Some(true), _) => return Some(Self::Classic),
            (_, Some("accurate")) => return Some(Self::Accurate),
            _ => {}
        }
        mistakes.push(wrong_type(value, "true, false or \"accurate\"").at(at));
        None
    }

    fn schema(definitions: &mut Definitions) -> Value {
        define(
            "Ecn",
            definitions,
            |_| json!({ "anyOf": [{ "type": "boolean" }, { "enum": ["accurate"] }] }),
        )
    }
}

/// A congestion control and its parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CongestionControl {
    /// The name: `"cubic"`; with a preset of parameters, `"cubic/2008"`.
    pub name: String,
    /// The parameters by name, as a table, which only the algorithm interprets.
    pub params: Value,
}

impl CongestionControl {
    /// The algorithm without a preset: `cubic` of `cubic/2008`.
    pub fn algorithm(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }

    /// The algorithm of this name, with its own defaults.
    pub fn named(name: &str) -> Self {
        Self { name: name.into(), params: Value::Object(Map::new()) }
    }
}

impl Read for CongestionControl {
    const EXAMPLE: &'static str = "\"cubic\"";

    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        let Value::Object(table) = value else {
            if value.is_string() {
                return String::read(value, at, mistakes).map(|name| Self::named(&name));
            }
            let problem = wrong_type(value, "a name or a table with a `name`");
            mistakes.push(problem.at(at));
            return None;
        };
        let Some(name) = table.get("name") else {
            let problem = Problem::Missing { example: Self::EXAMPLE };
            mistakes.push(problem.at(at.key("name")));
            return None;
        };
        let name = String::read(name, &at.key("name"), mistakes)?;
        let params = table.iter().filter(|(key, _)| *key != "name");
        let mut params = Value::Object(params.map(|(k, v)| (k.clone(), v.clone())).collect());
        // The order of parameters has no meaning and must not change an id.
        params.sort_all_objects();
        Some(Self { name, params })
    }

    fn schema(definitions: &mut Definitions) -> Value {
        define("CongestionControl", definitions, |_| {
            json!({
                "description": "A congestion control: its name, or a table with its `name` and its \
                    parameters.",
                "anyOf": [
                    { "type": "string", "minLength": 1 },
                    {
                        "type": "object",
                        "properties": { "name": { "type": "string", "minLength": 1 } },
                        "required": ["name"],
                    },
                ],
            })
        })
    }
}
