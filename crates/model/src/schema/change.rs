//! Settings that change during a run.

use crate::mistake::{Mistake, Problem};
use crate::read::{Definitions, Place, Read, define, wrong_type};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tcplab_units::Duration;

/// Settings, by path, that apply from a given time on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The time of the change, after the start of the experiment.
    pub at: Duration,
    /// Parameters by name, and keys by path.
    #[serde(flatten)]
    pub settings: Map<String, Value>,
}

impl Change {
    /// The key of the time; all other keys are settings.
    pub(crate) const AT: &str = "at";
}

impl Read for Change {
    fn read(value: &Value, at: &Place<'_>, mistakes: &mut Vec<Mistake>) -> Option<Self> {
        let Value::Object(table) = value else {
            mistakes.push(wrong_type(value, "a table with a time and settings").at(at));
            return None;
        };
        let mut settings = table.clone();
        let key = at.key(Self::AT);
        let Some(time) = settings.shift_remove(Self::AT).filter(|time| !time.is_null()) else {
            mistakes.push(Problem::Missing { example: "\"30 s\"" }.at(key));
            return None;
        };
        let time = Duration::read(&time, &key, mistakes)?;
        if time < Duration::from_nanos(1) {
            let reason = "must be a nanosecond after the start at least";
            mistakes.push(Problem::Invalid(reason.into()).at(key));
            return None;
        }
        if settings.is_empty() {
            let reason = "has no settings; what changes is written like \"flows[0].cc\" = \"bbr\"";
            mistakes.push(Problem::Invalid(reason.into()).at(at));
            return None;
        }
        Some(Self { at: time, settings })
    }

    fn schema(definitions: &mut Definitions) -> Value {
        define("Change", definitions, |_| json!({ "type": "object", "required": [Self::AT] }))
    }
}
