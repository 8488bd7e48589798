//! A broken law and its place.

use std::fmt;
use tcplab_tables::{Part, Row as Declared, Values, integer};

/// The laws that no run may break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// Columns hold valid numbers.
    Value,
    /// Times are in order.
    Time,
    /// RTTs and delays are at least those of the path.
    Rtt,
    /// Links do not exceed their rate.
    Rate,
    /// Queues do not exceed their limit.
    Queue,
    /// Data is written before it is sent, and sent before it is received.
    Bytes,
    /// A flow's outcome and its numbers agree.
    Outcome,
    /// Packets do not vanish.
    Packets,
    /// Each drop is counted and listed.
    Drops,
}

impl Law {
    /// All laws.
    pub const ALL: [Self; 9] = [
        Self::Value,
        Self::Time,
        Self::Rtt,
        Self::Rate,
        Self::Queue,
        Self::Bytes,
        Self::Outcome,
        Self::Packets,
        Self::Drops,
    ];

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::Time => "time",
            Self::Rtt => "rtt",
            Self::Rate => "rate",
            Self::Queue => "queue",
            Self::Bytes => "bytes",
            Self::Outcome => "outcome",
            Self::Packets => "packets",
            Self::Drops => "drops",
        }
    }

    /// The statement of the law.
    pub fn statement(self) -> &'static str {
        match self {
            Self::Value => {
                "every column holds numbers: none is infinite or NaN, and no required value is missing"
            }
            Self::Time => "times are in order and within the run, and counts never fall",
            Self::Rtt => {
                "no RTT or one-way delay is shorter than the path's propagation and transmission time"
            }
            Self::Rate => "no link transmits faster than its rate, over any time",
            Self::Queue => "no queue holds more than its limit",
            Self::Bytes => {
                "bytes received are not more than sent, sent not more than written, and segments \
                 retransmitted or datagrams lost not more than sent"
            }
            Self::Outcome => "a flow's outcome and its numbers agree",
            Self::Packets => {
                "packets that entered a link have left it, were dropped or lost, or are still there"
            }
            Self::Drops => "the drops listed for a link are those that it counted",
        }
    }
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The table's name.
    pub table: &'static str,
    /// The index in the table, from 0.
    pub number: usize,
    /// The values by column.
    pub cells: Vec<(String, String)>,
}

impl Row {
    fn of<R: Declared>(part: &Part<'_, R>, number: usize) -> Self {
        let cells = part.columns().map(|(name, values)| {
            let cell = match &*values {
                Values::Text(values) => values
                    .get(number)
                    .and_then(|&label| part.text(label))
                    .map(|text| format!("{text:?}")),
                Values::Integer(values) => {
                    values.get(number).and_then(integer).map(|value| value.to_string())
                }
                Values::Number(values) => values
                    .get(number)
                    .and_then(tcplab_tables::number)
                    .map(|value| value.to_string()),
            };
            (name.to_owned(), cell.unwrap_or_else(|| "nothing".into()))
        });
        Self { table: R::TABLE, number: part.first() + number, cells: cells.collect() }
    }
}

/// A broken law, with its place and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The law.
    pub law: Law,
    /// The reason, with the numbers.
    pub what: String,
    /// The row; `None` if it concerns no single row.
    pub row: Option<Row>,
}

impl Broken {
    /// A broken law in a row of part of a table.
    #[expect(clippy::unnecessary_box_returns, reason = "errors are boxed everywhere")]
    pub(crate) fn at<R: Declared>(
        law: Law,
        part: &Part<'_, R>,
        number: usize,
        what: impl Into<String>,
    ) -> Box<Self> {
        Box::new(Self { law, what: what.into(), row: Some(Row::of(part, number)) })
    }

    /// A broken law that concerns no single row.
    #[expect(clippy::unnecessary_box_returns, reason = "errors are boxed everywhere")]
    pub(crate) fn in_all(law: Law, what: impl Into<String>) -> Box<Self> {
        Box::new(Self { law, what: what.into(), row: None })
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { law, what, row } = self;
        write!(f, "the law `{}` is broken ({}): {what}", law.name(), law.statement())?;
        let Some(row) = row else { return Ok(()) };
        write!(f, "\n  {}, row {}:", row.table, row.number)?;
        for (number, (name, cell)) in row.cells.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            write!(f, "{comma} {name} = {cell}")?;
        }
        Ok(())
    }
}
