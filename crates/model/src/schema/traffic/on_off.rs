//! Bulk traffic in on periods.

use super::{Setting, invalid};
use crate::mistake::Problem;
use crate::read::table;
use crate::schema::{MILLION, SOME_TIME};
use serde::{Deserialize, Serialize};
use tcplab_units::Duration;

table! {
    /// Sends as fast as the transport allows in on periods: either those of `periods`, or `on` and
    /// `off` in turn.
    pub struct OnOff {
        /// The on periods, from the start of the flow: `[["250 s", "500 s"], ["750 s", "1000 s"]]`.
        pub periods: Vec<(Duration, Duration)> = Vec::new(),
        /// The length of an on period: "2 s".
        pub on: Option<Duration> [SOME_TIME] = None,
        /// The length of the pause between on periods: "1 s".
        pub off: Option<Duration> [SOME_TIME] = None,
    }
}

/// Bulk traffic in on periods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OnOffPlan {
    /// The on periods, from the start of the flow: in order, without overlap.
    pub periods: Vec<(Duration, Duration)>,
}

impl OnOff {
    pub(super) fn plan(&self, setting: &Setting<'_>) -> Result<OnOffPlan, Problem> {
        let periods = periods(&self.periods, self.on, self.off, setting.duration)?;
        let needed = || invalid("needs `periods`, or both `on` and `off`");
        Ok(OnOffPlan { periods: periods.ok_or_else(needed)? })
    }
}

/// The on periods of an application; `None` if no key sets any.
pub(super) fn periods(
    given: &[(Duration, Duration)],
    on: Option<Duration>,
    off: Option<Duration>,
    duration: Duration,
) -> Result<Option<Vec<(Duration, Duration)>>, Problem> {
    match (given.is_empty(), on, off) {
        (true, Some(on), Some(off)) => {
            let cycle = on + off;
            let number = u128::from(duration.as_picos().div_ceil(cycle.as_picos()));
            if number > u128::from(MILLION) {
                return Err(Problem::TooMany { what: "periods", number, most: MILLION });
            }
            let starts = (0..number as u64).map(|k| cycle.saturating_mul(k));
            Ok(Some(starts.map(|start| (start, start + on)).collect()))
        }
        (false, None, None) => {
            let mut end = Duration::ZERO;
            for (from, to) in given {
                if from >= to {
                    return Err(invalid("has a period that ends before it begins"));
                }
                if *from < end {
                    return Err(invalid("has a period that begins before the one before it ends"));
                }
                end = *to;
            }
            Ok(Some(given.to_vec()))
        }
        (true, None, None) => Ok(None),
        (true, ..) => Err(invalid("needs `periods`, or both `on` and `off`")),
        (false, ..) => Err(invalid("has `periods` and `on` or `off`; give one of them")),
    }
}
