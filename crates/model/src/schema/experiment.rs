//! The experiment as a whole.

use super::{
    Advise, Change, Flow, Host, Let, Network, Record, Repeat, SOME_TIME, Stack, Sweep, Variants,
};
use crate::read::table;
use std::collections::BTreeMap;
use tcplab_units::Duration;

/// Tables hold whole numbers with a sign.
pub(crate) const MOST_SEED: u64 = i64::MAX as u64;

table! {
    /// An experiment: a network, the traffic that crosses it and the transport that each flow uses.
    pub struct Experiment {
        /// What tables and plots call the experiment, like "two algorithms, one bottleneck".
        pub name: String = "experiment".into(),
        /// How long to simulate: "60 s".
        pub duration: Duration [SOME_TIME],
        /// Where the random numbers start. The same seed gives the same run, to the last bit.
        pub seed: u64 [0..=MOST_SEED] = 1,
        /// How often to run each variant: repetition r, from 0, has the seed `seed + r`. All
        /// variants of a sweep use the same seeds, so that they can be compared in pairs.
        ///
        /// `"2 %"`, or `{ until = "2 %", at_most = 100 }`, runs so many repetitions that the mean
        /// goodput of each class of flows is known to within 2 %.
        pub repeat: Repeat = Repeat::Times(1),
        /// The nodes and the links between them.
        pub network: Network = Network::default(),
        /// Settings of single hosts, by name: `[hosts.server]`. A `*` in the name stands for
        /// a number: `[hosts."left*"]`; what is said for a name without one counts more.
        pub hosts: BTreeMap<String, Host> = BTreeMap::new(),
        /// The transport of all hosts and flows, where they say nothing else.
        pub stack: Stack = Stack::default(),
        /// The traffic, one entry for each kind of flow.
        pub flows: Vec<Flow> = Vec::new(),
        /// Which kernel runs it, by its name in `tcplab kernel list`: "6.12". Only the backend `linux`
        /// has one.
        pub kernel: Option<String> = None,
        /// The part of the experiment that results are of: `measure = { from = "200 s", to = "800 s" }`.
        /// By default all of it.
        pub measure: Option<Measure> = None,
        /// How long the intervals of the table `intervals` are, in which each flow has a row: "1 s".
        /// They follow each other from the beginning of the measured part to its end, where the last
        /// one may be shorter. By default there are none.
        pub every: Option<Duration> [SOME_TIME] = None,
        /// Settings that change while the run goes on: `at = "30 s"`, and from then on
        /// `"flows[0].cc" = "bbr"`. Keys stand by their path as in `sweep`, parameters by their name. What
        /// can change is the congestion control of flows, and the rate, the delay and the queue of
        /// links. Swept as `"change.flows[0].cc" = ["cubic", "bbr"]`, all runs go on from one state.
        pub change: Option<Change> = None,
        /// What to write down.
        pub record: Record = Record::default(),
        /// Parameters: values by name, `rtt = "40 ms"`. Where a value stands, in tables, lists and
        /// other parameters too, the text `"$rtt"` stands for it. A text that is to be `$rtt` itself
        /// is written `"$$rtt"`.
        pub r#let: Let = Let::default(),
        /// Lists of values for any parameter by its name, or key by its path: `rtt = ["10 ms", "40 ms"]`,
        /// `"flows[0].cc" = ["newreno", "cubic"]`. All combinations are run; the first key changes
        /// slowest.
        pub sweep: Sweep = Sweep::default(),
        /// Tables like `sweep`, whose keys step together: with `[[zip]]`, `rate = ["1 Mbit/s", "1 Gbit/s"]`
        /// and `rtt = ["200 ms", "2 ms"]` are two variants. Each `[[zip]]` is combined with all
        /// others, and with the sweep, which changes faster.
        pub zip: Vec<Sweep> = Vec::new(),
        /// Settings by the name of a variant, like `[variants.tuned]`: parameters by their name, keys by
        /// their path, or tables, which are merged into those that are there (a table with a `kind`
        /// takes their place). Each variant runs with everything that is swept; tables and charts have
        /// its name as `variant`. The first variant comes first.
        pub variants: Variants = Variants::default(),
        /// The question for `tcplab advise`. Runs do not depend on it.
        pub advise: Option<Advise> = None,
    }
}

impl Experiment {
    /// A duration that all flows begin in, and that holds the part that results are of.
    pub(crate) fn least_duration(&self) -> Duration {
        let starts = self.flows.iter().map(|flow| flow.start);
        let measured = self.measure.iter().flat_map(|it| [it.from, it.to]).flatten();
        starts.chain(measured).fold(Duration::ZERO, Duration::max) + Duration::from_secs(1)
    }
}

table! {
    /// The part of an experiment that results are of. It begins with what happens at `from`, and ends
    /// before what happens at `to`. What is written down over time is of the whole experiment.
    pub struct Measure {
        /// When it begins, after the start of the experiment: "200 s". By default with the experiment.
        pub from: Option<Duration> = None,
        /// When it ends, after the start of the experiment: "800 s". By default with the experiment.
        pub to: Option<Duration> [SOME_TIME] = None,
    }
}
