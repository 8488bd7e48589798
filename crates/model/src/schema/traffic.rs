//! What applications do: the data they send, and when.

use super::{AT_LEAST_ONE, MILLION, SOME_TIME};
use crate::read::{choice, table, words};
use std::ops::RangeInclusive;
use tcplab_units::{Bytes, Duration, Rate};

const POSITIVE: RangeInclusive<f64> = 1e-9..=1e9;

choice! {
    /// What the application does: a word (`"bulk"`) where the rest has defaults, or a table with
    /// its `kind`.
    #[what("kind of traffic")]
    pub enum Traffic {
        /// Sends as fast as the transport allows.
        "bulk" => Bulk,
        /// Sends as fast as the transport allows, at times.
        "on-off" => OnOff,
        /// Loads things like a web browser, over several connections.
        "web" => Web,
        /// New transfers begin at random, each over a connection of its own.
        "arrivals" => Arrivals,
        /// Sends datagrams at a constant pace, whatever becomes of them.
        "udp" => Udp,
        /// Asks, is answered, thinks, and asks again, over one connection.
        "requests" => Requests,
        /// Real programs do the sending. Only where there are real hosts.
        "command" => Command,
    }
}

table! {
    /// Sends as fast as the transport allows.
    pub struct Bulk {
        /// How much: "1 MB". Without a size it sends until the experiment ends.
        pub size: Option<Bytes> = None,
    }
}

table! {
    /// Sends as fast as the transport allows, at times: either in `periods` or `on` and `off` in
    /// turn.
    pub struct OnOff {
        /// From when to when it sends, counted from the start of the flow:
        /// `[["250 s", "500 s"], ["750 s", "1000 s"]]`.
        pub periods: Vec<(Duration, Duration)> = Vec::new(),
        /// How long it sends: "2 s".
        pub on: Option<Duration> [SOME_TIME] = None,
        /// How long it then pauses, before it sends again: "1 s".
        pub off: Option<Duration> [SOME_TIME] = None,
    }
}

table! {
    /// Loads things like a web browser: each session asks for one thing, which flows from `from`
    /// to `to`.
    pub struct Web {
        /// What is loaded, by class of size.
        pub classes: Vec<SessionClass>,
        /// Whether all sessions run at once ("parallel") or one after another ("sequential").
        pub order: Sessions = Sessions::Parallel,
        /// The most connections that are open at once: 6.
        pub connections: u64 [AT_LEAST_ONE] = 6,
        /// Whether one connection serves several sessions, as in HTTP/1.1.
        pub persistent: bool = true,
        /// The size of a request: "400 B".
        pub request: Bytes = Bytes(400),
    }
}

table! {
    /// Sessions that load as much as each other.
    pub struct SessionClass {
        /// What tables call it, like "large".
        pub name: String,
        /// How many sessions: 2.
        pub count: u64 [1..=MILLION],
        /// What each loads: "120 kB".
        pub size: Bytes,
    }
}

words! {
    /// Whether sessions run at once or one after another.
    #[what("order of sessions")]
    pub enum Sessions {
        /// As many at once as there may be connections.
        "parallel" => Parallel,
        /// One after another.
        "sequential" => Sequential,
    }
}

table! {
    /// New transfers begin at random (a Poisson process), each over a connection of its own.
    pub struct Arrivals {
        /// How many begin in a second, on average: 0.15.
        pub per_second: f64 [POSITIVE],
        /// How large they are: a size ("20 kB") or a distribution.
        pub sizes: Sizes,
        /// How many begin in total: 1000. Without a number they go on until the experiment ends.
        pub transfers: Option<u64> [AT_LEAST_ONE] = None,
    }
}

choice! {
    /// How large transfers are: one size (`"20 kB"`), or a table with the `kind` of distribution.
    #[what("distribution of sizes")]
    #[short(only_size)]
    pub enum Sizes {
        /// All the same.
        "fixed" => Fixed,
        /// Zipf's law: the n-th smallest size, of n times `unit`, has a probability of n^-exponent.
        "zipf" => Zipf,
        /// The Pareto distribution: many small, a few very large.
        "pareto" => Pareto,
        /// The log-normal distribution.
        "lognormal" => LogNormal,
        /// Sizes measured elsewhere.
        "empirical" => Empirical,
    }
}

table! {
    /// All the same size.
    pub struct Fixed {
        /// The size: "20 kB".
        pub size: Bytes,
    }
}

table! {
    /// Zipf's law.
    pub struct Zipf {
        /// The exponent: 1.7.
        pub exponent: f64 [POSITIVE],
        /// The step between sizes, which is also the smallest: "1 kB".
        pub unit: Bytes = Bytes(1000),
        /// The largest size: "1 GB".
        pub max: Bytes,
    }
}

table! {
    /// The Pareto distribution, cut off at `max`.
    pub struct Pareto {
        /// The shape: 1.2. The smaller it is, the more of the data is in large transfers.
        pub shape: f64 [POSITIVE],
        /// The smallest size: "4 kB".
        pub min: Bytes,
        /// The largest size: "100 MB".
        pub max: Option<Bytes> = None,
    }
}

table! {
    /// The log-normal distribution.
    pub struct LogNormal {
        /// The size that half of the transfers exceed: "10 kB".
        pub median: Bytes,
        /// The standard deviation of the logarithm: 1.5.
        pub sigma: f64 [POSITIVE],
        /// The largest size: "100 MB".
        pub max: Option<Bytes> = None,
    }
}

table! {
    /// Sizes measured elsewhere.
    pub struct Empirical {
        /// Sizes, any of which is as likely as the others: `["4 kB", "21 kB", "120 kB"]`.
        pub sizes: Vec<Bytes>,
    }
}

table! {
    /// Sends datagrams at a constant pace: either at a `rate` or at an `interval`.
    pub struct Udp {
        /// How fast, headers included: "2 Mbit/s".
        pub rate: Option<Rate> = None,
        /// The time from one datagram to the next: "2 us".
        pub interval: Option<Duration> [SOME_TIME] = None,
        /// The data in each datagram: "1472 B".
        pub payload: Bytes = Bytes(1472),
        /// How many: 10000. Without a number it sends until the experiment ends.
        pub packets: Option<u64> [AT_LEAST_ONE] = None,
    }
}

table! {
    /// Asks, is answered, thinks, and asks again, over one connection. Answers flow from `from` to
    /// `to`.
    pub struct Requests {
        /// The size of a question: "400 B".
        pub request: Bytes = Bytes(400),
        /// The size of an answer: "20 kB".
        pub response: Bytes,
        /// The time from an answer to the next question: "1 s".
        pub think: Duration = Duration::ZERO,
        /// How many questions: 100. Without a number they go on until the experiment ends.
        pub requests: Option<u64> [AT_LEAST_ONE] = None,
    }
}

table! {
    /// Real programs, started on real hosts.
    pub struct Command {
        /// The command line on the host `from`, started first: "iperf3 -s -1".
        pub server: String,
        /// The command line on the host `to`: "iperf3 -R -c {server}".
        pub client: String,
    }
}

impl Default for Traffic {
    fn default() -> Self {
        Self::Bulk(Bulk { size: None })
    }
}

/// Text that begins like a number is one size for all.
fn only_size(value: &serde_json::Value) -> Option<serde_json::Value> {
    let text = value.as_str()?;
    let is_word = text.trim_start().starts_with(|c: char| c.is_alphabetic());
    (!is_word).then(|| serde_json::json!({ "kind": "fixed", "size": text }))
}
