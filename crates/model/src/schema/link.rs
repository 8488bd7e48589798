//! Links, and the settings of each of their directions.

use super::{
    Contention, DelayChanges, Jitter, Light, Loss, MILLION, Outages, Probability, Queue,
    RateChanges, SOME_TIME,
};
use crate::mistake::{Mistake, Problem};
use crate::read::{Read, table};
use std::ops::RangeInclusive;
use tcplab_units::{Duration, Rate};

/// The most states of a timed loss model in one run; so many take a second.
const MOST_STATES: u64 = 10 * MILLION;

/// The most delivery opportunities of a trace between the outages of one run; so many take 160 MB.
const MOST_OPPORTUNITIES: u64 = 10 * MILLION;

/// From the minimum of IPv4 (RFC 791 §3.2) to the largest possible packet.
pub(crate) const MTU: RangeInclusive<u64> = 68..=65_535;

/// A table with its own keys, followed by all settings of a link.
macro_rules! link_table {
    ($(#$about:tt)+ pub struct $name:ident { $($own:tt)* }) => {
        $crate::read::table! {
            $(#$about)+
            pub struct $name {
                $($own)*
                /// The rate: "10 Mbit/s".
                pub rate: Option<Rate> = None,
                /// The one-way propagation delay: "20 ms".
                pub delay: Option<Duration> = None,
                /// The queue before the link: "1 BDP" (the default), "250 packets", "64 kB", or a
                /// table with the `kind` of discipline.
                pub queue: Option<Queue> = None,
                /// Packet loss on the link: "1 %", or a table with the `kind` of loss. By default
                /// none.
                pub loss: Option<Loss> = None,
                /// Random additions to the delay of each packet: uniform up to "1 ms", or a table
                /// with the `kind` of distribution. Packets stay in order, unless `overtaking` is
                /// true.
                pub jitter: Option<Jitter> = None,
                /// Changes of the delay: `[["10 s", "40 ms"], ["20 s", "20 ms"]]`, a file
                /// `{ trace = "orbit.txt" }`, or a table with the `kind` of change. A packet has
                /// the delay of the moment at which it leaves.
                pub delay_changes: Option<DelayChanges> = None,
                /// Whether packets overtake others with a longer delay, due to jitter or a change
                /// of the delay: false.
                pub overtaking: Option<bool> = None,
                /// Random reordering of packets. By default none.
                pub reordering: Option<Reordering> = None,
                /// The share of packets that are corrupted, and dropped for their checksum: "0.1
                /// %".
                pub corruption: Option<Probability> = None,
                /// The share of packets that are duplicated: "0.1 %".
                pub duplication: Option<Probability> = None,
                /// The MTU in bytes, with the IP header: 1500.
                pub mtu: Option<u64> [$crate::schema::link::MTU] = None,
                /// Whether the router before the link sends an ICMP message when a packet exceeds
                /// the MTU (RFC 1191): true. Otherwise such packets disappear, as in a black hole.
                pub icmp: Option<bool> = None,
                /// Changes of the rate: `[["10 s", "5 Mbit/s"], ["20 s", "10 Mbit/s"]]`, a file
                /// `{ trace = "lte.txt" }`, or a table with the `kind` of change.
                pub rate_changes: Option<RateChanges> = None,
                /// The delay and opportunities under light load, with the trace of a heavy load in
                /// `rate_changes`. By default none.
                pub light: Option<Light> = None,
                /// Outages, during which nothing leaves and packets wait: the start and length of
                /// each, `[["10 s", "500 ms"]]`, or a table with the `kind` of outages.
                pub outages: Option<Outages> = None,
                /// A channel for which stations contend, as in Wi-Fi. By default none.
                pub contention: Option<Contention> = None,
            }
        }

        impl From<&$name> for LinkSettings {
            fn from(table: &$name) -> Self {
                Self {
                    rate: table.rate,
                    delay: table.delay,
                    queue: table.queue.clone(),
                    loss: table.loss.clone(),
                    jitter: table.jitter.clone(),
                    delay_changes: table.delay_changes.clone(),
                    overtaking: table.overtaking,
                    reordering: table.reordering.clone(),
                    corruption: table.corruption,
                    duplication: table.duplication,
                    mtu: table.mtu,
                    icmp: table.icmp,
                    rate_changes: table.rate_changes.clone(),
                    light: table.light.clone(),
                    outages: table.outages.clone(),
                    contention: table.contention.clone(),
                }
            }
        }
    };
}
pub(crate) use link_table;

link_table! {
    /// Settings of a link, or of one of its directions.
    #[derive(Default)]
    pub struct LinkSettings {}
}

link_table! {
    /// A link between two nodes. Settings apply to both directions, unless `forward` or `back`
    /// differ.
    pub struct Link {
        /// The two nodes: `["client", "router"]`. Nodes need no other declaration.
        pub between: (String, String),
        /// Settings that differ in the direction from the first node to the second.
        pub forward: LinkSettings = LinkSettings::default(),
        /// Settings that differ in the direction from the second node to the first.
        pub back: LinkSettings = LinkSettings::default(),
    }
}

table! {
    /// Random reordering of packets.
    pub struct Reordering {
        /// The share of packets that are held back: "1 %".
        pub probability: Probability,
        /// How long they are held back: "5 ms".
        pub delay: Duration [SOME_TIME],
    }
}

/// One direction of a link, fully resolved except for the size of a relative queue limit.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    /// The table that describes it: `network.links[0].back`.
    pub place: String,
    pub rate: Rate,
    pub delay: Duration,
    pub queue: Queue,
    pub loss: Option<Loss>,
    pub jitter: Jitter,
    pub delay_changes: Option<DelayChanges>,
    pub overtaking: bool,
    pub reordering: Option<Reordering>,
    pub corruption: Probability,
    pub duplication: Probability,
    pub mtu: u64,
    pub icmp: bool,
    pub rate_changes: Option<RateChanges>,
    pub light: Option<Light>,
    pub outages: Option<Outages>,
    pub contention: Option<Contention>,
}

impl LinkSettings {
    /// Settings of `self`, or of `base` where `self` leaves them unset.
    pub(crate) fn or(&self, base: &Self) -> Self {
        Self {
            rate: self.rate.or(base.rate),
            delay: self.delay.or(base.delay),
            queue: self.queue.clone().or_else(|| base.queue.clone()),
            loss: self.loss.clone().or_else(|| base.loss.clone()),
            jitter: self.jitter.clone().or_else(|| base.jitter.clone()),
            delay_changes: self.delay_changes.clone().or_else(|| base.delay_changes.clone()),
            overtaking: self.overtaking.or(base.overtaking),
            reordering: self.reordering.clone().or_else(|| base.reordering.clone()),
            corruption: self.corruption.or(base.corruption),
            duplication: self.duplication.or(base.duplication),
            mtu: self.mtu.or(base.mtu),
            icmp: self.icmp.or(base.icmp),
            rate_changes: self.rate_changes.clone().or_else(|| base.rate_changes.clone()),
            light: self.light.clone().or_else(|| base.light.clone()),
            outages: self.outages.clone().or_else(|| base.outages.clone()),
            contention: self.contention.clone().or_else(|| base.contention.clone()),
        }
    }

    /// Fills in the defaults. A delay is required, and a rate unless a trace gives it.
    pub(crate) fn lane(&self, at: &str, mistakes: &mut Vec<Mistake>) -> Option<Lane> {
        // The rate of a trace is its mean.
        let carried = match &self.rate_changes {
            Some(RateChanges::Trace(trace)) => Some(trace.mean_rate()),
            _ => None,
        };
        let rate = self.rate.or(carried);
        if rate.is_none() {
            mistakes.push(Problem::Missing { example: Rate::EXAMPLE }.at(format!("{at}.rate")));
        }
        // The default delay is the mean of the trains' delays.
        let delay = self.delay.or(self.light.as_ref().map(|light| light.trains.mean_delay()));
        if delay.is_none() {
            mistakes
                .push(Problem::Missing { example: Duration::EXAMPLE }.at(format!("{at}.delay")));
        }
        let before = mistakes.len();
        self.check(at, mistakes);
        if mistakes.len() > before {
            return None;
        }
        Some(Lane {
            place: at.into(),
            rate: rate?,
            delay: delay?,
            queue: self.queue.clone().unwrap_or_default(),
            loss: self.loss.clone().filter(|loss| !loss.is_none()),
            jitter: self.jitter.clone().unwrap_or_default(),
            delay_changes: self.delay_changes.clone().filter(|it| !it.is_none()),
            overtaking: self.overtaking.unwrap_or(false),
            reordering: self.reordering.clone(),
            corruption: self.corruption.unwrap_or_default(),
            duplication: self.duplication.unwrap_or_default(),
            mtu: self.mtu.unwrap_or(1500),
            icmp: self.icmp.unwrap_or(true),
            rate_changes: self.rate_changes.clone().filter(|it| !it.is_none()),
            light: self.light.clone(),
            outages: self.outages.clone().filter(|it| !it.is_none()),
            contention: self.contention.clone(),
        })
    }

    /// Checks combinations of settings.
    fn check(&self, at: &str, mistakes: &mut Vec<Mistake>) {
        let mut add =
            |key: &str, problem: Problem| mistakes.push(problem.at(format!("{at}.{key}")));
        if let (Some(changes), Some(rate)) = (&self.rate_changes, self.rate)
            && let Err((key, problem)) = changes.check(rate)
        {
            add(&format!("rate_changes.{key}"), problem);
        }
        if let Some(Err((key, problem))) = self.delay_changes.as_ref().map(DelayChanges::check) {
            add(&format!("delay_changes.{key}"), problem);
        }
        if self.light.is_some() {
            let without = match &self.rate_changes {
                Some(RateChanges::Trace(_)) => None,
                _ => Some(("light", "needs the trace of a heavy load in `rate_changes`")),
            };
            let beside = [
                ("delay_changes", self.delay_changes.is_some()),
                ("outages", self.outages.is_some()),
            ];
            let beside = beside.into_iter().filter(|(_, is_there)| *is_there);
            let beside = beside.map(|(key, _)| (key, "cannot be on a link with `light`"));
            for (key, reason) in without.into_iter().chain(beside) {
                add(key, Problem::Invalid(reason.into()));
            }
        }
        if let Some(contention) = &self.contention {
            if let Err(problem) = contention.access.check() {
                add("contention.access", problem);
            }
            let what = match (&self.rate_changes, &self.outages) {
                (Some(RateChanges::Trace(_)), _) => "a trace, which says when packets leave",
                (_, Some(_)) => "outages",
                _ => return,
            };
            add("contention", Problem::Invalid(format!("cannot be on a link with {what}")));
        }
    }

    /// Rejects changes so frequent that they would fill the memory.
    pub(crate) fn check_changes(lane: &Lane, duration: Duration) -> Result<(), (&str, Problem)> {
        let changes = [
            ("rate_changes", lane.rate_changes.as_ref().map(|it| it.changes_in(duration))),
            ("delay_changes", lane.delay_changes.as_ref().map(|it| it.changes_in(duration))),
            ("outages", lane.outages.as_ref().map(|it| it.changes_in(duration))),
        ];
        // The time spent between two packets grows with the number of states, so their number is
        // limited.
        if let Some(Loss::GilbertTime(timed)) = &lane.loss {
            // The loss of a packet is decided when it has left, which may be after the end.
            let until = (duration + lane.rate.time_for(lane.mtu)).as_picos();
            let in_turn = 2 * (until / (timed.good + timed.bad).as_picos().max(1));
            // Where a state may follow itself, both states do so equally often on average, and such
            // long sequences are very unlikely.
            let in_a_row = 100.0 / timed.change.0.max(f64::MIN_POSITIVE);
            let shorter = until / timed.good.min(timed.bad).as_picos().max(1);
            let number = match timed.change.0 {
                change if change < 1.0 => shorter.min(in_turn.saturating_add(in_a_row as u64)),
                _ => in_turn,
            };
            if number > MOST_STATES {
                let (what, number) = ("changes of state", number.into());
                return Err(("loss", Problem::TooMany { what, number, most: MOST_STATES }));
            }
        }
        // Outages interrupt other parts of a trace in each of its periods.
        if let (Some(RateChanges::Trace(trace)), Some(outages)) =
            (&lane.rate_changes, &lane.outages)
        {
            let rounds = duration.max(outages.last()).as_millis() / trace.period_ms();
            let number = u128::from(rounds) * trace.opportunities.len() as u128;
            if number > u128::from(MOST_OPPORTUNITIES) {
                let what = "opportunities of a trace with outages";
                let most = MOST_OPPORTUNITIES;
                return Err(("outages", Problem::TooMany { what, number, most }));
            }
        }
        for (key, number) in changes {
            let number = number.unwrap_or(0);
            if number > MILLION {
                let (what, number) = ("changes", number.into());
                return Err((key, Problem::TooMany { what, number, most: MILLION }));
            }
        }
        Ok(())
    }
}
