//! The description of an algorithm in the table. Listings, `tcplab explain`, the documentation and
//! the test battery use it. Explanations of the algorithm, its parameters and probes are read from
//! the comments of its source file, so that they are written once.

use crate::{BuildError, CongestionControl, Init, Params};
use serde_json::Value;

/// One algorithm, as the table describes it.
#[derive(Clone, Copy, Debug)]
pub struct Algorithm {
    /// The name in experiments.
    pub name: &'static str,
    /// The signal to which it reacts.
    pub kind: Kind,
    /// A summary in one line.
    pub summary: &'static str,
    /// The document that defines it.
    pub reference: &'static str,
    /// The year of the first publication.
    pub year: u16,
    /// Its use of congestion marks.
    pub marks: Marks,
    /// The source file: `include_str!("newreno.rs")`.
    pub source: &'static str,
    /// Named sets of parameters.
    pub presets: &'static [Preset],
    /// The parameters and their defaults.
    pub defaults: fn() -> Value,
    /// Starts the algorithm for one flow.
    pub build: Build,
}

/// Starts an algorithm for one flow.
pub type Build = fn(&Init, &Params) -> Result<Box<dyn CongestionControl>, BuildError>;

/// The congestion signal of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Losses, and marks if there are any.
    Loss,
    /// Delay, and losses.
    Delay,
    /// Losses; delay decides the size of changes.
    LossAndDelay,
    /// A model of the path: its rate and its minimum RTT.
    Model,
    /// The number of marks.
    Marks,
}

impl Kind {
    /// The word in listings.
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

/// The use of explicit congestion notification by an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// By the stack's setting; a mark counts as a loss (RFC 3168).
    AsSet,
    /// Always used, with an exact echo of changes by receivers (RFC 8257 §3.2).
    Echoed,
    /// Always used, with the L4S code point and counting receivers (RFC 9331 §4.1).
    Counted,
}

/// A named set of parameters: those of a paper, or of a system at some time.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The name behind the algorithm's and a slash.
    pub name: &'static str,
    /// The origin of the parameters.
    pub summary: &'static str,
    /// The document with the parameters.
    pub source: &'static str,
    /// The parameters that differ from the defaults, as a JSON object.
    pub params: &'static str,
}

/// A parameter, as listings describe it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The name in experiments.
    pub name: String,
    /// Its default.
    pub default: Value,
    /// The meaning of the column.
    pub meaning: String,
}

/// A quantity that samples record, as listings describe it.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// The name, which follows that of the algorithm in the column of `samples`.
    pub name: String,
    /// The meaning, with the unit.
    pub meaning: String,
}

impl Algorithm {
    /// The parameters of a preset.
    ///
    /// # Errors
    ///
    /// There is no preset of that name.
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

    /// The explanation on the algorithm's page: the comment at the beginning of its file, in
    /// Markdown.
    pub fn explanation(&self) -> String {
        let lines = self.source.lines().map_while(|line| line.strip_prefix("//!"));
        lines.map(without_margin).collect::<Vec<_>>().join("\n")
    }

    /// The parameters, with the descriptions in `Config`.
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

    /// The recorded columns, each with the comment above the call that records it.
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
            // A second implementation of the algorithm records the columns of the first, and more.
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
    fn explanation_and_parameter_meanings_come_from_the_source_file() {
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
