//! What the table says of an algorithm. Listings, `tcplab explain`, the documentation and the test
//! battery follow it; what an algorithm does and what its parameters and probes mean is read from the
//! comments of its own file, so that it is written once.

use crate::{BuildError, CongestionControl, Init, Params};
use serde_json::Value;

/// One algorithm, as the table describes it.
#[derive(Clone, Copy, Debug)]
pub struct Algorithm {
    /// What experiments call it.
    pub name: &'static str,
    /// What it goes by.
    pub kind: Kind,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Where it is defined.
    pub reference: &'static str,
    /// When it was first published.
    pub year: u16,
    /// What it needs marks of congestion for.
    pub marks: Marks,
    /// Its file: `include_str!("newreno.rs")`.
    pub source: &'static str,
    /// Sets of parameters that have a name.
    pub presets: &'static [Preset],
    /// Its parameters and their defaults.
    pub defaults: fn() -> Value,
    /// Starts it for one flow.
    pub build: Build,
}

/// Starts an algorithm for one flow.
pub type Build = fn(&Init, &Params) -> Result<Box<dyn CongestionControl>, BuildError>;

/// What an algorithm takes for a sign of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Losses, and marks if there are any.
    Loss,
    /// Delay; losses where there is nothing else.
    Delay,
    /// Losses, and delay decides how far the window goes.
    LossAndDelay,
    /// A model of the path: its rate and its least RTT.
    Model,
    /// How many marks there are.
    Marks,
}

impl Kind {
    /// As lists say it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Delay => "delay",
            Self::LossAndDelay => "loss and delay",
            Self::Model => "model",
            Self::Marks => "marks",
        }
    }
}

/// What an algorithm asks of explicit congestion notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// Nothing: it is used if the stack is set so, and a mark counts as a loss (RFC 3168).
    AsSet,
    /// It is used, and receivers echo every change at once (RFC 8257 §3.2).
    Echoed,
    /// It is used with the code point of L4S, and receivers count marks (RFC 9331 §4.1).
    Counted,
}

/// Parameters that have a name: those of a paper, of a system of some day.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Behind the algorithm's name and a slash.
    pub name: &'static str,
    /// Whose they are.
    pub summary: &'static str,
    /// Where that is written.
    pub source: &'static str,
    /// The parameters that differ from the defaults, as a JSON object.
    pub params: &'static str,
}

/// A parameter, as listings describe it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// What experiments call it.
    pub name: String,
    /// Its default.
    pub default: Value,
    /// What it means.
    pub meaning: String,
}

/// A quantity that samples record, as listings describe it.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// Its name: behind that of the algorithm, the column of `samples`.
    pub name: String,
    /// The meaning, with the unit.
    pub meaning: String,
}

impl Algorithm {
    /// The parameters of a preset.
    ///
    /// # Errors
    ///
    /// There is none of that name.
    pub fn preset(&self, name: &str) -> Result<Params, BuildError> {
        let known = || self.presets.iter().map(|preset| preset.name);
        let found = self.presets.iter().find(|preset| preset.name == name).ok_or_else(|| {
            BuildError::UnknownPreset {
                algorithm: self.name.into(),
                name: name.into(),
                known: known().collect(),
            }
        })?;
        let read = serde_json::from_str(found.params);
        Ok(Params(read.expect("the battery reads every preset")))
    }

    /// What it does, in a page: the comment at the beginning of its file, in Markdown.
    pub fn explanation(&self) -> String {
        let lines = self.source.lines().map_while(|line| line.strip_prefix("//!"));
        lines.map(without_margin).collect::<Vec<_>>().join("\n")
    }

    /// Its parameters, with what its `Config` says of them.
    pub fn parameters(&self) -> Vec<Parameter> {
        let defaults = (self.defaults)();
        let defaults = defaults.as_object().into_iter().flatten();
        let parameter = |(name, default): (&String, &Value)| Parameter {
            name: name.clone(),
            default: default.clone(),
            meaning: self.meaning(name),
        };
        defaults.map(parameter).collect()
    }

    fn meaning(&self, parameter: &str) -> String {
        let field = format!("pub {parameter}: ");
        let mut said = Vec::new();
        let config = self.source.lines().skip_while(|line| !line.starts_with("pub struct Config"));
        for line in config.map(str::trim) {
            if let Some(comment) = line.strip_prefix("///") {
                said.push(without_margin(comment));
            } else if line.starts_with(&field) {
                return said.join(" ");
            } else if !line.starts_with("#[") {
                said.clear();
            }
        }
        String::new()
    }

    /// The columns that it records, each with the comment above the call that does so.
    pub fn probes(&self) -> Vec<Probe> {
        let mut probes: Vec<Probe> = Vec::new();
        let mut said = Vec::new();
        let mut is_within = false;
        for line in self.source.lines() {
            if line.starts_with("    fn probe(") {
                is_within = true;
            } else if line == "    }" {
                is_within = false;
            } else if !is_within {
                continue;
            }
            let line = line.trim();
            if let Some(comment) = line.strip_prefix("//") {
                said.push(without_margin(comment));
                continue;
            }
            let recorded = line.strip_prefix("record(\"").and_then(|call| call.split_once('"'));
            // A second implementation of the algorithm records what the first one does, and more.
            if let Some((name, _)) = recorded
                && probes.iter().all(|known| known.name != name)
            {
                probes.push(Probe { name: name.into(), meaning: said.join(" ") });
            }
            said.clear();
        }
        probes
    }
}

fn without_margin(comment: &str) -> &str {
    comment.strip_prefix(' ').unwrap_or(comment)
}

#[cfg(test)]
mod tests {
    use crate::ALGORITHMS;

    #[test]
    fn the_page_and_the_meanings_are_those_of_the_file() {
        let newreno = ALGORITHMS.iter().find(|it| it.name == "newreno").unwrap();
        let page = newreno.explanation();
        assert!(page.starts_with("NewReno: probe by one segment per round trip"), "{page}");
        assert!(page.contains("\n\n- RFC 5681 §3.1: slow start"), "{page}");
        let beta = &newreno.parameters()[0];
        assert_eq!(
            (beta.name.as_str(), beta.meaning.as_str()),
            ("beta", "Share kept after a loss.")
        );
    }
}
