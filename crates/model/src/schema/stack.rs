//! The transport: which behaviour a host or flow has.

use super::{AT_LEAST_ONE, OrOff, SOME_TIME};
use crate::mistake::{Mistake, Problem};
use crate::read::{Definitions, Place, Read, define, table, words, wrong_type};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::ops::RangeInclusive;
use tcplab_units::{Bytes, Duration, Rate};

/// RFC 7323 §2.3: a window has at most 30 bits.
const WINDOW: RangeInclusive<Bytes> = Bytes(1)..=Bytes(1 << 30);
/// Linux takes no less than what two packets need.
const MOST_ASKED: RangeInclusive<Bytes> = Bytes(4608)..=Bytes(1 << 30);
/// Linux takes less for a clamp as this: half of the least buffer (`SOCK_MIN_RCVBUF`).
const CLAMP: RangeInclusive<Bytes> = Bytes(1152)..=Bytes(1 << 30);
/// `TCP_NOTSENT_LOWAT` is a number of 32 bits, of which 0 is the system's own.
const UNSENT: RangeInclusive<Bytes> = Bytes(1)..=Bytes(u32::MAX as u64);
/// Sockets count a rate in whole bytes a second.
const PACE: RangeInclusive<Rate> =
    Rate::from_bits_per_second(8)..=Rate::from_bits_per_second(u64::MAX);
/// What remains of the least MTU (RFC 791) and of the largest packet.
const SEGMENT: RangeInclusive<u64> = 28..=65_495;

/// Declares each option once: optional in a file (`Stack`), decided in a plan (`StackPlan`).
macro_rules! options {
    ($($(#[doc = $doc:literal])+ pub $field:ident: $type:ty $([$range:expr])?,)*) => {
        table! {
            /// The transport: a profile that sets all options, and options that differ from it.
            #[derive(Default)]
            pub struct Stack {
                /// Which system's behaviour to start from: "linux-6.12" (the default), "rfc", ...
                pub profile: Option<Profile> = None,
                $($(#[doc = $doc])+ pub $field: Option<$type> $([$range])? = None,)*
            }
        }

        /// The transport with every option decided.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        pub struct StackPlan {
            $($(#[doc = $doc])+ pub $field: $type,)*
        }

        impl StackPlan {
            /// Takes over what `stack` says.
            pub(crate) fn apply(&mut self, stack: &Stack) {
                $(if let Some(value) = &stack.$field {
                    self.$field.clone_from(value);
                })*
            }

            /// The transport of which `stack` decides every option.
            pub(crate) fn decided(stack: Stack) -> Option<Self> {
                Some(Self { $($field: stack.$field?,)* })
            }
        }
    };
}

options! {
    /// Whose way to go where the standards leave a choice: how RTTs become a timeout, when ACKs wait,
    /// the ticks of timers, how windows are rounded: "rfc" or "linux".
    pub flavour: Flavour,
    /// The congestion control: "cubic", "cubic/2008" with a preset of parameters, or
    /// `{ name = "cubic", beta = 0.5 }` with parameters.
    pub cc: CongestionControl,
    /// Whether receivers say which segments arrived out of order (RFC 2018).
    pub sack: bool,
    /// Whether receivers say what arrived twice (RFC 2883).
    pub dsack: bool,
    /// Whether, with SACK and without RACK, a hole counts as lost as soon as something arrived
    /// `dup_thresh` segments above it (FACK, Mathis and Mahdavi 1996; Linux until 4.14).
    pub fack: bool,
    /// How losses are repaired without SACK: "tahoe", "reno", "newreno" or "newreno-steady".
    pub recovery: Recovery,
    /// How ACKs count when the window grows: "off" (each as one segment, however much it covers),
    /// "segment" (as many segments as it covers), or the most segments that one ACK may count for
    /// when bytes are counted, 1 or 2 (Appropriate Byte Counting, RFC 3465).
    pub abc: AckCounting,
    /// How long an ACK may wait for another segment: "200 ms", or "off".
    pub delayed_ack: OrOff<Duration> [SOME_TIME],
    /// How many full segments an ACK waits for: 2.
    pub ack_every: u64 [AT_LEAST_ONE],
    /// How many segments at the start of a connection are acknowledged at once: 16.
    pub quick_ack: u64,
    /// Whether segments carry timestamps (RFC 7323).
    pub timestamps: bool,
    /// Whether windows can be larger than 64 KiB (RFC 7323).
    pub window_scaling: bool,
    /// Whether congestion can be signalled by marks: true (RFC 3168), false, or "accurate" if the two
    /// ends count them (RFC 9768). Congestion controls that need marks use them without this.
    pub ecn: Ecn,
    /// The first window, in segments: 10.
    pub initial_window: u64 [1..=65_535],
    /// The least retransmission timeout: "200 ms".
    pub min_rto: Duration [SOME_TIME],
    /// The longest retransmission timeout: "60 s".
    pub max_rto: Duration [SOME_TIME],
    /// The retransmission timeout before any RTT is known: "1 s".
    pub initial_rto: Duration [SOME_TIME],
    /// The receive buffer: "6 MB". At most 1 GiB.
    pub rmem: Bytes [WINDOW],
    /// The send buffer: "4 MB".
    pub wmem: Bytes,
    /// The receive buffer that the program asks for (`SO_RCVBUF`): "64 kB", or "off". The buffer does not
    /// grow then, and Linux makes it twice as large, for the memory that packets take beside their data.
    pub so_rcvbuf: OrOff<Bytes> [WINDOW],
    /// The send buffer that the program asks for (`SO_SNDBUF`): "64 kB", or "off". As for `so_rcvbuf`.
    pub so_sndbuf: OrOff<Bytes> [WINDOW],
    /// The most that a program gets by `so_rcvbuf` (sysctl `net.core.rmem_max`): "212992 B".
    pub rmem_max: Bytes [MOST_ASKED],
    /// The most that a program gets by `so_sndbuf` (sysctl `net.core.wmem_max`): "212992 B".
    pub wmem_max: Bytes [MOST_ASKED],
    /// The largest window that the program wants to offer (`TCP_WINDOW_CLAMP`): "256 kB", or "off". In
    /// Linux 6.12 it lasts as the scale of the window alone, which stops at the next power of two:
    /// "256 kB" allows windows of up to 262140 bytes, "300 kB" of up to 524280.
    pub window_clamp: OrOff<Bytes> [CLAMP],
    /// The first window that is offered, in segments (`ip route ... initrwnd`): 10, or "off" for what the
    /// receive buffer has room for.
    pub initial_receive_window: OrOff<u64> [1..=65_535],
    /// How much data may wait in the send buffer that has not left (`TCP_NOTSENT_LOWAT`): "128 kB", or
    /// "off". Then a program writes no further ahead, however large `wmem` is.
    pub notsent_lowat: OrOff<Bytes> [UNSENT],
    /// The part of the receive buffer that is kept for the application and not advertised, as in
    /// Linux: `1 / 2^app_win` of it; 0 keeps nothing.
    pub app_win: u64 [0..=31],
    /// The limits to the memory that all connections of a host take together, beside those of each:
    /// `{ low = "1 MB", pressure = "1.5 MB", high = "2 MB" }`, or "off".
    pub mem: OrOff<Memory>,
    /// Whether small writes wait for an ACK to be sent together (Nagle's algorithm).
    pub nagle: bool,
    /// Whether the first two duplicate ACKs send new segments (RFC 3042).
    pub limited_transmit: bool,
    /// Whether the window starts anew after a pause (RFC 5681 §4.1).
    pub restart_after_idle: bool,
    /// Whether segments are spread over the round trip.
    pub pacing: bool,
    /// The highest rate at which the connection sends (`SO_MAX_PACING_RATE`): "20 Mbit/s", or "off". It
    /// counts data without headers, and turns `pacing` on.
    pub max_pacing_rate: OrOff<Rate> [PACE],
    /// Whether losses are found by time (RACK, RFC 8985).
    pub rack: bool,
    /// Whether a probe finds losses at the end of a flight (TLP, RFC 8985).
    pub tlp: bool,
    /// How the window gets smaller after a loss: "at-once", by "halving" (Linux until 3.1), or
    /// "proportional" (PRR, RFC 9937).
    pub reduction: Reduction,
    /// Whether timeouts that were not needed are noticed and undone (F-RTO, RFC 5682).
    pub frto: bool,
    /// Whether reductions that were not needed are taken back, by timestamps (RFC 3522, RFC 4015) and
    /// by reports of what arrived twice.
    pub undo: bool,
    /// Whether segments leave in bursts, as they are made for segmentation offload.
    pub tso: bool,
    /// Whether slow start ends when delays grow (HyStart++, RFC 9406), for congestion controls that
    /// have a parameter of this name. What is said there counts more.
    pub hystart: bool,
    /// What a reduction starts from: the data in flight ("flight", RFC 5681) or the window
    /// ("cwnd", as in Linux).
    pub cut_base: CutBase,
    /// How many duplicate ACKs mean a loss: 3.
    pub dup_thresh: u64 [1..=255],
    /// How often an unanswered SYN is repeated: 6.
    pub syn_retries: u64 [0..=255],
    /// How often more, before its timeout begins to double, as in Linux since 6.5: 4. With 0 each
    /// repetition doubles it (RFC 6298 §5.5).
    pub syn_linear_timeouts: u64 [0..=127],
    /// How often an unanswered SYN-ACK is repeated: 5.
    pub syn_ack_retries: u64 [0..=255],
    /// How often unanswered data is repeated before the connection fails: 15.
    pub retries: u64 [0..=255],
    /// How long anything may stay without an answer before the connection fails, however often it was
    /// repeated (RFC 5482): "30 s", or "off". Where it is given, `retries` does not count.
    pub user_timeout: OrOff<Duration> [SOME_TIME],
    /// Probes of a peer that has not been heard, and the end of the connection if it stays silent
    /// (RFC 9293 §3.8.4): `{ idle = "2 h", interval = "75 s", probes = 9 }`, or "off".
    pub keepalive: OrOff<Keepalive>,
    /// Whether data leaves with the SYN, for a server that has given a cookie before (TCP Fast Open,
    /// RFC 7413). Both ends must have it; the first connection between two hosts gets the cookie.
    pub fast_open: bool,
    /// Whether the largest packet of the whole path is "known" from the beginning, or "discovered": then
    /// packets are as large as the first link takes, until a router says that it cannot pass them on
    /// (RFC 1191).
    pub path_mtu: PathMtu,
    /// Whether larger packets are tried, to find out how large they may be where no router says it
    /// (RFC 4821): "off", "on-black-hole" (once nothing is answered for long) or "always".
    pub mtu_probing: MtuProbing,
    /// How long a closed connection waits for stray segments: "60 s".
    pub time_wait: Duration,
    /// The most data in one segment, in bytes: 1460. The path's MTU limits it too.
    pub mss: u64 [SEGMENT],
}

table! {
    /// Limits to the memory of all connections of a host, from the least to the most.
    #[derive(Copy, Eq)]
    pub struct Memory {
        /// From here on send buffers do not grow, and pressure ends below it.
        pub low: Bytes,
        /// From here on there is pressure: windows do not grow, and whoever holds more than its share of
        /// `high` can write no more.
        pub pressure: Bytes,
        /// Nobody can write any more, and data out of order is dropped.
        pub high: Bytes,
    }
}

table! {
    /// Probes of a peer that has not been heard. Nothing is probed while data is under way.
    #[derive(Copy, Eq)]
    pub struct Keepalive {
        /// How long nothing was heard before the first.
        pub idle: Duration [SOME_TIME] = Duration::from_secs(7_200),
        /// How long each waits for an answer.
        pub interval: Duration [SOME_TIME] = Duration::from_secs(75),
        /// After how many without an answer the connection fails; with a `user_timeout`, that counts.
        pub probes: u64 [1..=127] = 9,
    }
}

words! {
    /// A system whose behaviour of its day is the starting point.
    #[what("profile")]
    pub enum Profile {
        /// What the current standards say.
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
    /// Whose way to go where the standards leave a choice.
    #[what("flavour")]
    pub enum Flavour {
        /// As the RFCs say.
        "rfc" => Rfc,
        /// As the Linux kernel does.
        "linux" => Linux,
    }
}

words! {
    /// How losses are repaired without SACK.
    #[what("loss recovery")]
    pub enum Recovery {
        /// Slow start from one segment, as after a timeout, but without waiting for it (1988).
        "tahoe" => Tahoe,
        /// Fast recovery, which ends with the first ACK of new data (RFC 2581).
        "reno" => Reno,
        /// Fast recovery until all is acknowledged that was outstanding; the first partial ACK restarts
        /// the timer (RFC 6582; "impatient").
        "newreno" => NewReno,
        /// The same, but each partial ACK restarts the timer ("slow but steady").
        "newreno-steady" => NewRenoSteady,
    }
}

words! {
    /// How a window gets smaller after a loss.
    #[what("reduction")]
    pub enum Reduction {
        /// At once: nothing leaves until so much is acknowledged (RFC 5681, RFC 6675).
        "at-once" => AtOnce,
        /// One segment leaves for every second ACK (rate halving).
        "halving" => Halving,
        /// Of each window acknowledged, as much leaves as the new window holds (RFC 9937).
        "proportional" => Proportional,
    }
}

words! {
    /// What a multiplicative decrease starts from.
    #[what("base of the cut")]
    pub enum CutBase {
        /// The window, as in Linux.
        "cwnd" => Cwnd,
        /// The data outstanding, as in RFC 5681 §3.1.
        "flight" => FlightSize,
    }
}

words! {
    /// Who says how large a packet may be.
    #[what("way to know the path's MTU")]
    pub enum PathMtu {
        /// It is known from the beginning.
        "known" => Known,
        /// Routers say it when a packet is too large for them.
        "discovered" => Discovered,
    }
}

words! {
    /// When larger packets are tried.
    #[what("way to probe for the path's MTU")]
    pub enum MtuProbing {
        /// Never.
        "off" => Off,
        /// Once nothing is answered for long.
        "on-black-hole" => OnBlackHole,
        /// From the beginning, with small packets first.
        "always" => Always,
    }
}

/// How much growth of the window an ACK is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckCounting {
    /// Each ACK as one segment: `"off"`.
    Ack,
    /// Each segment that it acknowledges: `"segment"`.
    Segment,
    /// The bytes that it acknowledges, up to `limit` segments in slow start (RFC 3465): the limit.
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

/// Whether congestion can be signalled by marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// No: `false`.
    Off,
    /// Once a round trip (RFC 3168): `true`.
    Classic,
    /// As many as there are (RFC 9768): `"accurate"`.
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
    /// Its name: `"cubic"`; with a preset of parameters, `"cubic/2008"`.
    pub name: String,
    /// Its parameters by name, as a table; they mean something to the algorithm alone.
    pub params: Value,
}

impl CongestionControl {
    /// The algorithm, without the preset that the name may end in: `cubic` of `cubic/2008`.
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
        // The order of parameters means nothing and must not change an id.
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
