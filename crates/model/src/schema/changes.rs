//! Changing links: rate, delay, and outages.

use super::{MILLION, SOME_TIME};
use crate::mistake::{Mistake, Problem};
use crate::read::{Definitions, Fields, Place, Read, Table, choice, define, table, wrong_type};
use crate::stored::as_written;
use serde::Serialize;
use serde_json::{Value, json};
use tcplab_units::{Duration, Rate};

/// The capacity of a delivery opportunity: a full Ethernet packet with its IP header.
pub const OPPORTUNITY_BYTES: u64 = 1500;

/// How the rate of a link changes over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RateChanges {
    /// Steps at these times to these rates.
    Steps(Vec<(Duration, Rate)>),
    /// Packets leave at the delivery opportunities of a trace, whatever the rate.
    Trace(Trace),
    /// Changes by a rule.
    Rule(RateRule),
}

table! {
    /// Delivery opportunities, as in the files of Mahimahi.
    pub struct Trace {
        /// The milliseconds with opportunities, ascending, each with their number:
        /// `[[1, 1], [3, 2]]`. The last millisecond ends the trace, which then repeats.
        pub opportunities: Vec<(u64, u64)>,
    }
}

choice! {
    /// A rule for changes of the rate.
    #[what("kind of change")]
    pub enum RateRule {
        /// The rate oscillates around the rate of the link.
        "sine" => Sine,
        /// The rate follows a random walk.
        "random-walk" => RandomWalk,
    }
}

table! {
    /// A rate that oscillates around the rate of the link.
    pub struct Sine {
        /// The amplitude of the oscillation: "4 Mbit/s". Less than the rate of the link.
        pub amplitude: Rate,
        /// The period of the oscillation: "10 s".
        pub period: Duration [SOME_TIME],
        /// The time between changes of the rate: "100 ms".
        pub every: Duration [SOME_TIME] = Duration::from_millis(100),
    }
}

table! {
    /// A random walk that begins at the rate of the link.
    pub struct RandomWalk {
        /// The largest step. Steps are uniform up to this size, up or down.
        pub step: Rate,
        /// The time between changes of the rate: "100 ms".
        pub every: Duration [SOME_TIME] = Duration::from_millis(100),
        /// The lowest rate, at which the walk is reflected: "1 Mbit/s".
        pub least: Rate,
        /// The highest rate, at which the walk is reflected: "20 Mbit/s".
        pub most: Rate,
    }
}

/// How the delay of a link changes over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum DelayChanges {
    /// Steps at these times to these delays.
    Steps(Vec<(Duration, Duration)>),
    /// Changes by a rule.
    Rule(DelayRule),
}

choice! {
    /// A rule for changes of the delay.
    #[what("kind of change")]
    pub enum DelayRule {
        /// A new delay is drawn at intervals, as when one satellite hands over to the next.
        "handover" => Handover,
    }
}

table! {
    /// A new delay is drawn at the start, and at intervals.
    pub struct Handover {
        /// The time from one handover to the next: "15 s".
        pub every: Duration [SOME_TIME] = Duration::from_secs(15),
        /// The minimum delay: "20 ms".
        pub least: Duration,
        /// The maximum delay: "45 ms". Delays are uniform between the two.
        pub most: Duration,
    }
}

/// Outages, during which nothing leaves and packets wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Outages {
    /// The start and length of each outage.
    Listed(Vec<(Duration, Duration)>),
    /// Outages by a rule.
    Rule(OutageRule),
}

choice! {
    /// A rule for outages.
    #[what("kind of outage")]
    pub enum OutageRule {
        /// Outages of fixed length at fixed intervals.
        "periodic" => Periodic,
        /// Outages with exponentially distributed lengths and gaps.
        "random" => RandomOutages,
    }
}

table! {
    /// Outages of fixed length at fixed intervals.
    pub struct Periodic {
        /// The time between the starts of outages, and until the first one: "15 s".
        pub every: Duration [SOME_TIME],
        /// The length of each outage: "200 ms".
        pub lasts: Duration [SOME_TIME],
    }
}

table! {
    /// Random outages.
    pub struct RandomOutages {
        /// The mean time from the end of one outage, or the start, to the next: "30 s".
        pub up: Duration [SOME_TIME],
        /// The mean length of an outage: "500 ms".
        pub down: Duration [SOME_TIME],
    }
}

as_written!(Trace);

/// Reads steps, whose times must ascend.
fn steps<T: Read>(
    value: &Value,
    at: &Place<'_>,
    mistakes: &mut Vec<Mistake>,
) -> Option<Vec<(Duration, T)>> {
    let steps: Vec<(Duration, T)> = Read::read(value, at, mistakes)?;
    for (i, pair) in steps.windows(2).enumerate() {
        if pair[0].0 >= pair[1].0 {
            let problem = Problem::Invalid("is not later than the one before".into());
            mistakes.push(problem.at(at.index(i + 1)));
            return None;
        }
    }
    Some(steps)
}

/// The JSON Schema of a list of steps, of a file, and of tables.
fn forms(steps: Value, file: Option<&str>, tables: impl IntoIterator<Item = Value>) -> Value {
    let file = file.map(|about| {
        json!({
            "type": "object",
            "properties": { "trace": { "type": "string", "minLength": 1, "description": about } },
            "required": ["trace"],
            "additionalProperties": false,
        })
    });
    let forms: Vec<_> = std::iter::once(steps).chain(file).chain(tables).collect();
    json!({ "anyOf": forms })
}

impl Read for RateChanges {
    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        match value {
            Value::Array(_) => steps(value, at, mistakes).map(Self::Steps),
            Value::Object(table) if !table.contains_key("kind") => {
                let known = ["trace", "kind", "opportunities"];
                if let Some(key) = table.keys().find(|key| !known.contains(&key.as_str())) {
                    let known = known.map(String::from).into();
                    mistakes.push(Problem::UnknownKey { key: key.clone(), known }.at(at.key(key)));
                    return None;
                }
                // A file name without other keys has been replaced with `opportunities` by now.
                if table.contains_key("trace") {
                    let reason = "is the name of a file as text, with no other key beside it";
                    mistakes.push(Problem::Invalid(reason.into()).at(at.key("trace")));
                    return None;
                }
                let mut table = Table::open(value, at, &[Trace::KEYS], mistakes)?;
                let trace = Trace::fields(&mut table)?;
                if let Err(problem) = trace.check() {
                    mistakes.push(problem.at(at));
                    return None;
                }
                Some(Self::Trace(trace))
            }
            Value::Object(_) => RateRule::read(value, at, mistakes).map(Self::Rule),
            _ => {
                let problem = wrong_type(value, "a list like [[\"10 s\", \"5 Mbit/s\"]]");
                mistakes.push(problem.at(at));
                None
            }
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        let steps = Vec::<(Duration, Rate)>::schema(definitions);
        let tables = [Trace::schema(definitions), RateRule::schema(definitions)];
        let file =
            "A file of milliseconds, one for each delivery opportunity (the format of Mahimahi).";
        define("RateChanges", definitions, |_| forms(steps, Some(file), tables))
    }
}

impl Trace {
    /// The period after which the trace repeats, in milliseconds.
    pub fn period_ms(&self) -> u64 {
        self.opportunities.last().map_or(1, |last| last.0)
    }

    /// The number of opportunities in one period.
    pub fn count(&self) -> u64 {
        self.opportunities.iter().map(|(_, count)| count).sum()
    }

    /// The mean rate of the trace.
    pub fn mean_rate(&self) -> Rate {
        let bits = u128::from(self.count()) * u128::from(OPPORTUNITY_BYTES) * 8 * 1000;
        let rate = bits / u128::from(self.period_ms());
        Rate::from_bits_per_second(u64::try_from(rate).unwrap_or(u64::MAX).max(1))
    }

    /// Checks the trace.
    fn check(&self) -> Result<(), Problem> {
        let list = &self.opportunities;
        let reason = if list.len() as u64 > MILLION {
            let (what, number) = ("milliseconds with opportunities", list.len() as u128);
            return Err(Problem::TooMany { what, number, most: MILLION });
        } else if list.last().is_none_or(|last| last.0 == 0) {
            "has no delivery opportunity after its first millisecond; a trace takes some time"
        } else if list.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
            "has milliseconds that do not ascend"
        } else if list.iter().any(|(ms, count)| {
            *count == 0 || u32::try_from(*count).is_err() || u32::try_from(*ms).is_err()
        }) {
            "has numbers that are zero or too large"
        } else {
            return Ok(());
        };
        Err(Problem::Invalid(reason.into()))
    }
}

impl Read for DelayChanges {
    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        match value {
            Value::Array(_) => steps(value, at, mistakes).map(Self::Steps),
            Value::Object(_) => DelayRule::read(value, at, mistakes).map(Self::Rule),
            _ => {
                let problem = wrong_type(value, "a list like [[\"10 s\", \"40 ms\"]]");
                mistakes.push(problem.at(at));
                None
            }
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        let steps = Vec::<(Duration, Duration)>::schema(definitions);
        let tables = [DelayRule::schema(definitions)];
        let file = "A file whose lines are a time in seconds and a delay in milliseconds.";
        define("DelayChanges", definitions, |_| forms(steps, Some(file), tables))
    }
}

impl Read for Outages {
    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        match value {
            Value::Array(_) => {
                let outages: Vec<(Duration, Duration)> = steps(value, at, mistakes)?;
                for (i, pair) in outages.windows(2).enumerate() {
                    if pair[0].0 + pair[0].1 >= pair[1].0 {
                        let reason = "begins before the one before is over";
                        mistakes.push(Problem::Invalid(reason.into()).at(at.index(i + 1)));
                        return None;
                    }
                }
                if let Some(i) = outages.iter().position(|outage| outage.1.is_zero()) {
                    mistakes.push(Problem::Zero.at(at.index(i).index(1)));
                    return None;
                }
                Some(Self::Listed(outages))
            }
            Value::Object(_) => {
                let rule = OutageRule::read(value, at, mistakes)?;
                if let OutageRule::Periodic(it) = &rule
                    && it.lasts >= it.every
                {
                    let reason = format!("is {}, and the next begins after {}", it.lasts, it.every);
                    mistakes.push(Problem::Invalid(reason).at(at.key("lasts")));
                    return None;
                }
                Some(Self::Rule(rule))
            }
            _ => {
                let problem = wrong_type(value, "a list like [[\"10 s\", \"500 ms\"]]");
                mistakes.push(problem.at(at));
                None
            }
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        let listed = Vec::<(Duration, Duration)>::schema(definitions);
        let tables = [OutageRule::schema(definitions)];
        define("Outages", definitions, |_| forms(listed, None, tables))
    }
}

impl RateChanges {
    /// An empty list means no changes.
    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Self::Steps(steps) if steps.is_empty())
    }

    /// The name in the table of features of backends.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Steps(_) => "steps",
            Self::Trace(_) => "trace",
            Self::Rule(rule) => rule.word(),
        }
    }

    /// Checks the changes on a link of this rate. An error has the key and the problem.
    pub(crate) fn check(&self, rate: Rate) -> Result<(), (&'static str, Problem)> {
        let found = match self {
            Self::Rule(RateRule::Sine(it)) if it.amplitude >= rate => {
                ("amplitude", format!("is {}, and the rate of the link {rate}", it.amplitude))
            }
            Self::Rule(RateRule::RandomWalk(it)) if it.least >= it.most => {
                ("most", format!("is {}, and `least` is {}", it.most, it.least))
            }
            Self::Rule(RateRule::RandomWalk(it)) if !(it.least..=it.most).contains(&rate) => {
                let (least, most) = (it.least, it.most);
                ("least", format!("the walk is from {least} to {most}, and begins at {rate}"))
            }
            Self::Rule(RateRule::RandomWalk(it))
                if it.step.bits_per_second()
                    > it.most.bits_per_second() - it.least.bits_per_second() =>
            {
                ("step", format!("is {}, which is more than there is room for", it.step))
            }
            _ => return Ok(()),
        };
        Err((found.0, Problem::Invalid(found.1)))
    }

    /// The highest rate of a link with this initial rate; `None` for a trace, in which packets take
    /// no transmission time of their own.
    pub fn highest(&self, rate: Rate) -> Option<Rate> {
        let bits = Rate::bits_per_second;
        match self {
            Self::Steps(steps) => Some(steps.iter().map(|step| step.1).fold(rate, Rate::max)),
            Self::Trace(_) => None,
            Self::Rule(RateRule::Sine(it)) => {
                Some(Rate::from_bits_per_second(bits(rate).saturating_add(bits(it.amplitude))))
            }
            Self::Rule(RateRule::RandomWalk(it)) => Some(it.most.max(rate)),
        }
    }

    /// The mean number of changes in this time.
    pub(crate) fn changes_in(&self, duration: Duration) -> u64 {
        match self {
            Self::Steps(steps) => steps.len() as u64,
            Self::Trace(trace) => trace.opportunities.len() as u64,
            Self::Rule(RateRule::Sine(it)) => duration.as_picos() / it.every.as_picos(),
            Self::Rule(RateRule::RandomWalk(it)) => duration.as_picos() / it.every.as_picos(),
        }
    }
}

impl DelayChanges {
    /// An empty list means no changes, for a direction of a link whose other direction has some.
    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Self::Steps(steps) if steps.is_empty())
    }

    /// The name in the table of features of backends.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Steps(_) => "steps",
            Self::Rule(rule) => rule.word(),
        }
    }

    /// The lowest delay of a link with this initial delay.
    pub fn least(&self, delay: Duration) -> Duration {
        match self {
            Self::Steps(steps) => steps.iter().fold(delay, |least, step| least.min(step.1)),
            Self::Rule(DelayRule::Handover(it)) => delay.min(it.least),
        }
    }

    pub(crate) fn check(&self) -> Result<(), (&'static str, Problem)> {
        match self {
            Self::Rule(DelayRule::Handover(it)) if it.least > it.most => {
                let reason = format!("is {}, and `least` is {}", it.most, it.least);
                Err(("most", Problem::Invalid(reason)))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn changes_in(&self, duration: Duration) -> u64 {
        match self {
            Self::Steps(steps) => steps.len() as u64,
            Self::Rule(DelayRule::Handover(it)) => duration.as_picos() / it.every.as_picos(),
        }
    }
}

impl Outages {
    /// An empty list means no outages.
    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Self::Listed(outages) if outages.is_empty())
    }

    /// The end of the last listed outage.
    pub(crate) fn last(&self) -> Duration {
        let Self::Listed(outages) = self else { return Duration::ZERO };
        outages.iter().fold(Duration::ZERO, |last, outage| last.max(outage.0 + outage.1))
    }

    pub(crate) fn changes_in(&self, duration: Duration) -> u64 {
        let picos = duration.as_picos();
        let every = match self {
            Self::Listed(outages) => return 2 * outages.len() as u64,
            Self::Rule(OutageRule::Periodic(it)) => it.every.as_picos(),
            Self::Rule(OutageRule::RandomOutages(it)) => (it.up + it.down).as_picos(),
        };
        2 * (picos / every)
    }
}
