//! The experiment as a whole.

use super::{
    Advise, Change, Flow, Host, Let, Network, Record, Repeat, SOME_TIME, Stack, Sweep, Variants,
};
use crate::read::table;
use std::collections::BTreeMap;
use tcplab_units::Duration;

/// Tables hold signed 64-bit integers.
pub(crate) const MOST_SEED: u64 = i64::MAX as u64;

table! {
    /// An experiment: a network, its traffic, and the transport of each flow.
    pub struct Experiment {
        /// The name of the experiment in tables and plots, like "two algorithms, one bottleneck".
        pub name: String = "experiment".into(),
        /// The simulated time: "60 s".
        pub duration: Duration [SOME_TIME],
        /// The seed of all random numbers. The same seed gives the same run, to the last bit.
        pub seed: u64 [0..=MOST_SEED] = 1,
        /// The number of repetitions of each variant: repetition r, from 0, has the seed
        /// `seed + r`. All variants of a sweep use the same seeds, so that they can be compared in
        /// pairs.
        ///
        /// `"2 %"`, or `{ until = "2 %", at_most = 100 }`, repeats until the mean goodput of each
        /// class of flows is known to within 2 %.
        pub repeat: Repeat = Repeat::Times(1),
        /// The nodes and the links between them.
        pub network: Network = Network::default(),
        /// Settings of single hosts, by name: `[hosts.server]`. A `*` in the name stands for a
        /// number: `[hosts."left*"]`. A name without a `*` takes precedence.
        pub hosts: BTreeMap<String, Host> = BTreeMap::new(),
        /// The transport of all hosts and flows, unless they set their own.
        pub stack: Stack = Stack::default(),
        /// The traffic, with one entry for each kind of flow.
        pub flows: Vec<Flow> = Vec::new(),
        /// The kernel to use, by its name in `tcplab kernel list`: "6.12". Only for the backend
        /// `linux`.
        pub kernel: Option<String> = None,
        /// The part of the experiment that results cover:
        /// `measure = { from = "200 s", to = "800 s" }`. By default all of it.
        pub measure: Option<Measure> = None,
        /// The length of the intervals in the table `intervals`, which has a row for each flow and
        /// interval: "1 s". Intervals cover the measured part from its beginning; the last one may
        /// be shorter. By default there are none.
        pub every: Option<Duration> [SOME_TIME] = None,
        /// Settings that change during the run: `at = "30 s"`, and from then on
        /// `"flows[0].cc" = "bbr"`. Keys are given by path as in `sweep`, and parameters by name.
        /// The congestion control of flows can change, and the rate, delay and queue of links.
        /// Swept as `"change.flows[0].cc" = ["cubic", "bbr"]`, all runs continue from one shared
        /// state.
        pub change: Option<Change> = None,
        /// The data to record.
        pub record: Record = Record::default(),
        /// Parameters: values by name, `rtt = "40 ms"`. The text `"$rtt"` stands for the value,
        /// also in tables, lists and other parameters. A literal `$rtt` is written `"$$rtt"`.
        pub r#let: Let = Let::default(),
        /// Lists of values for any parameter by name, or key by path: `rtt = ["10 ms", "40 ms"]`,
        /// `"flows[0].cc" = ["newreno", "cubic"]`. All combinations are run; the first key changes
        /// slowest.
        pub sweep: Sweep = Sweep::default(),
        /// Tables like `sweep`, whose keys change together: with `[[zip]]`,
        /// `rate = ["1 Mbit/s", "1 Gbit/s"]` and `rtt = ["200 ms", "2 ms"]` are two variants. Each
        /// `[[zip]]` is combined with all others, and with the sweep, which changes faster.
        pub zip: Vec<Sweep> = Vec::new(),
        /// Settings by the name of a variant, like `[variants.tuned]`: parameters by name, keys by
        /// path, or tables, which are merged into the existing ones (a table with a `kind` replaces
        /// the existing one). Each variant is run with the whole sweep. Tables and charts have its
        /// name in the column `variant`. The first variant comes first.
        pub variants: Variants = Variants::default(),
        /// The question for `tcplab advise`. Runs do not depend on it.
        pub advise: Option<Advise> = None,
    }
}

impl Experiment {
    /// A duration in which all flows begin, and which contains the measured part.
    pub(crate) fn least_duration(&self) -> Duration {
        let starts = self.flows.iter().map(|flow| flow.start);
        let measured = self.measure.iter().flat_map(|it| [it.from, it.to]).flatten();
        starts.chain(measured).fold(Duration::ZERO, Duration::max) + Duration::from_secs(1)
    }
}

table! {
    /// The part of an experiment that results cover. Events at `from` are included, and events at
    /// `to` are not. Samples and other time series cover the whole experiment.
    pub struct Measure {
        /// The beginning, after the start of the experiment: "200 s". By default its start.
        pub from: Option<Duration> = None,
        /// The end, after the start of the experiment: "800 s". By default its end.
        pub to: Option<Duration> [SOME_TIME] = None,
    }
}
