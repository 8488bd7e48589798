//! Files that an experiment names. Their content replaces the name, so that plans do not depend on
//! anything outside.
//!
//! | where | a line of the file is |
//! |---|---|
//! | `rate_changes.trace` | the millisecond of a delivery opportunity (Mahimahi) |
//! | `delay_changes.trace` | a time in seconds and a delay in milliseconds |
//! | `light.trains.file` | a time, a delay and opportunities, in milliseconds (CellReplay) |
//! | `jitter.file`, `contention.access.file`, `rtts.file` | a time in milliseconds |
//! | `advise.over.KEY.file` | a value as the key takes it |
//!
//! `graph.file` names a network, see [`graph`](crate::graph).

use crate::graph;
use crate::mistake::{Mistake, Problem};
use crate::parameters::is_open;
use crate::read::Place;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// The largest file that is read, in bytes.
const MOST_BYTES: u64 = 100_000_000;

/// Turns the text of a file into the setting that it replaces, or says what is wrong with the file.
type Reader = fn(&str) -> Result<Value, String>;

/// The keys of links whose values may name a file, the key with the file's name, the reader, and a
/// valid line.
const NAMED: [(&str, &str, Reader, &str); 6] = [
    ("rate_changes", "trace", opportunities, "1000"),
    ("delay_changes", "trace", delays, "0 1"),
    ("trains", "file", trains, "0 1 0\n1 1 0"),
    ("jitter", "file", times, "1"),
    ("access", "file", times, "1"),
    ("rtts", "file", times, "1"),
];

/// Whether parameters have their values: before that, a file name may contain a parameter.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Parameters {
    AreOpen,
    AreFilled,
}

impl Parameters {
    /// Whether the text is the name of a file.
    fn leaves(self, name: &str) -> bool {
        self == Self::AreFilled || !is_open(name)
    }
}

/// Reads the files that an experiment names, relative to `folder`: those of its network, and those
/// of the ranges for advice.
pub(crate) fn expand(
    tree: &mut Value,
    folder: &Path,
    parameters: Parameters,
    mistakes: &mut Vec<Mistake>,
) {
    if let Some(Value::Object(over)) = tree.pointer_mut("/advise/over") {
        read_ranges(over, folder, mistakes);
    }
    let Some(network) = tree.get_mut("network") else { return };
    let at = Place::Root.key("network");
    if let Some(Value::Object(graph)) = network.get_mut("graph") {
        read_graph(graph, &at.key("graph"), (folder, parameters), mistakes);
    }
    walk(network, &at, (folder, parameters), mistakes);
}

/// Replaces the name of a file with its links.
fn read_graph(
    graph: &mut Map<String, Value>,
    at: &Place<'_>,
    (folder, parameters): (&Path, Parameters),
    mistakes: &mut Vec<Mistake>,
) {
    let Some(name) = graph.get("file").and_then(Value::as_str) else { return };
    // Links given beside the file are an error that the reader of the table reports.
    let has_links = graph.get("links").is_some_and(|links| !links.is_null());
    if has_links || !parameters.leaves(name) {
        return;
    }
    let name = name.to_owned();
    let text = content(&folder.join(&name), graph::MOST_BYTES);
    match text.and_then(|text| graph::links(&name, &text, graph)) {
        Ok(links) => {
            graph.shift_remove("file");
            graph.insert("links".into(), links);
        }
        Err(reason) => {
            let problem = Problem::Invalid(format!("the file \"{name}\" {reason}"));
            mistakes.push(problem.at(at.key("file")));
        }
    }
}

/// Puts the values of files in the place of their names.
fn read_ranges(over: &mut Map<String, Value>, folder: &Path, mistakes: &mut Vec<Mistake>) {
    let advise = Place::Root.key("advise");
    let at = advise.key("over");
    for (key, axis) in over {
        let Some(table) = axis.as_object().filter(|table| table.len() == 1) else { continue };
        let Some(name) = table.get("file").and_then(Value::as_str) else { continue };
        match content(&folder.join(name), MOST_BYTES).and_then(|text| values(&text)) {
            Ok(content) => *axis = content,
            Err(reason) => {
                let problem = Problem::Invalid(format!("the file \"{name}\" {reason}"));
                mistakes.push(problem.at(at.key(key).key("file")));
                *axis = json!([0]);
            }
        }
    }
}

fn walk(
    value: &mut Value,
    at: &Place<'_>,
    (folder, parameters): (&Path, Parameters),
    mistakes: &mut Vec<Mistake>,
) {
    match value {
        Value::Object(table) => {
            for (key, value) in table {
                let place = at.key(key);
                let named = NAMED.iter().find(|named| named.0 == key);
                let name = named.and_then(|(_, key, read, right)| {
                    let table = value.as_object().filter(|table| table.len() == 1)?;
                    let name = table.get(*key)?.as_str()?;
                    parameters.leaves(name).then_some((*key, name, read, right))
                });
                let Some((key, name, read, right)) = name else {
                    walk(value, &place, (folder, parameters), mistakes);
                    continue;
                };
                match content(&folder.join(name), MOST_BYTES).and_then(|text| read(&text)) {
                    Ok(content) => *value = content,
                    Err(reason) => {
                        let problem = Problem::Invalid(format!("the file \"{name}\" {reason}"));
                        mistakes.push(problem.at(place.key(key)));
                        // With a valid file in its place, the rest of the link is checked too.
                        *value = read(right).unwrap_or_default();
                    }
                }
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter_mut().enumerate() {
                walk(item, &at.index(i), (folder, parameters), mistakes);
            }
        }
        _ => {}
    }
}

/// The text of a file, if it is a regular file and not too large.
fn content(path: &Path, most: u64) -> Result<String, String> {
    let cannot = |error: std::io::Error| format!("cannot be read: {error}");
    if !path.metadata().map_err(cannot)?.is_file() {
        return Err("is not a file".into());
    }
    let mut text = String::new();
    let file = File::open(path).map_err(cannot)?;
    file.take(most + 1).read_to_string(&mut text).map_err(cannot)?;
    if text.len() as u64 > most {
        return Err(format!("is larger than {} MB", most / 1_000_000));
    }
    Ok(text)
}

/// The lines with content, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty())
}

/// A message about a wrong line, which it quotes in part.
fn wrong(number: usize, line: &str, why: &str) -> String {
    let start: String = line.chars().take(40).collect();
    format!("has \"{}\" in line {number}, {why}", crate::printable(&start))
}

/// Merges equal milliseconds, with a count for each.
fn opportunities(text: &str) -> Result<Value, String> {
    let mut counted: Vec<(u64, u64)> = Vec::new();
    for (number, line) in lines(text) {
        let why = "which is not a whole number of milliseconds";
        let ms: u64 = line.parse().map_err(|_| wrong(number, line, why))?;
        match counted.last_mut() {
            Some(last) if last.0 == ms => last.1 += 1,
            Some(last) if last.0 > ms => {
                return Err(wrong(number, line, "which is earlier than the line before"));
            }
            _ => counted.push((ms, 1)),
        }
    }
    Ok(json!({ "opportunities": counted }))
}

/// Numbers without a sign or an exponent, so that a unit can follow.
fn is_number(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit() || c == '.') && text.parse::<f64>().is_ok()
}

fn delays(text: &str) -> Result<Value, String> {
    let mut list = Vec::new();
    for (number, line) in lines(text) {
        let is_between = |c: char| c == ',' || c.is_whitespace();
        let parts: Vec<_> = line.split(is_between).filter(|part| !part.is_empty()).collect();
        match parts[..] {
            [time, delay] if is_number(time) && is_number(delay) => {
                list.push([format!("{time} s"), format!("{delay} ms")]);
            }
            _ => return Err(wrong(number, line, "not a time in seconds and a delay in ms")),
        }
    }
    Ok(json!(list))
}

/// Trains: the time of each, its delay, and its opportunities after the first packet.
fn trains(text: &str) -> Result<Value, String> {
    let mut list = Vec::new();
    for (number, line) in lines(text) {
        let mut parts = line.split_ascii_whitespace();
        let times = (parts.next(), parts.next());
        let (Some(at), Some(delay)) = times else {
            return Err(wrong(
                number,
                line,
                "not a time, a delay and opportunities in milliseconds",
            ));
        };
        if !is_number(at) || !is_number(delay) {
            return Err(wrong(number, line, "where the time or the delay is not in milliseconds"));
        }
        let opportunities: Result<Vec<u64>, _> = parts.map(str::parse).collect();
        let opportunities = opportunities
            .map_err(|_| wrong(number, line, "with an opportunity that is no whole number"))?;
        list.push(json!({
            "at": format!("{at} ms"),
            "delay": format!("{delay} ms"),
            "opportunities": opportunities,
        }));
    }
    Ok(json!(list))
}

fn times(text: &str) -> Result<Value, String> {
    let mut list = Vec::new();
    for (number, line) in lines(text) {
        if !is_number(line) {
            return Err(wrong(number, line, "which is not a time in milliseconds"));
        }
        list.push(format!("{line} ms"));
    }
    Ok(json!({ "kind": "empirical", "times": list }))
}

/// Values of any key: numbers, or text with a unit.
fn values(text: &str) -> Result<Value, String> {
    let list: Vec<Value> = lines(text).map(|(_, line)| crate::document::value(line)).collect();
    if list.is_empty() {
        return Err("has no values".into());
    }
    Ok(json!({ "kind": "empirical", "values": list }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbers_or_have_a_unit() {
        let read = values("21 ms\n\n0.01\n").unwrap();
        assert_eq!(read, json!({ "kind": "empirical", "values": ["21 ms", 0.01] }));
        assert_eq!(values("\n").unwrap_err(), "has no values");
    }

    #[test]
    fn opportunities_in_a_millisecond_are_counted() {
        let read = opportunities("1\n1\n3\n\n3\n3\n7\n").unwrap();
        assert_eq!(read, json!({ "opportunities": [[1, 2], [3, 3], [7, 1]] }));
        let says = |text| opportunities(text).unwrap_err();
        assert_eq!(says("3\n2\n"), "has \"2\" in line 2, which is earlier than the line before");
        assert!(says("1\n1.5\n").contains("line 2"));
    }

    #[test]
    fn a_line_of_trains_has_time_delay_and_opportunities() {
        assert_eq!(
            trains("0 25 0 0 3\n500 27.5 0\n").unwrap(),
            json!([
                { "at": "0 ms", "delay": "25 ms", "opportunities": [0, 0, 3] },
                { "at": "500 ms", "delay": "27.5 ms", "opportunities": [0] },
            ])
        );
        assert!(trains("500\n").unwrap_err().contains("line 1"));
        assert!(trains("0 25 0\n1 -2 0\n").unwrap_err().contains("line 2"));
        assert!(trains("0 25 0 1.5\n").is_err());
    }

    #[test]
    fn delays_and_times_get_their_units() {
        assert_eq!(
            delays("0 25\n15.5, 31.25\n").unwrap(),
            json!([["0 s", "25 ms"], ["15.5 s", "31.25 ms"]])
        );
        assert!(delays("1 2 3\n").is_err());
        assert!(delays("1 -2\n").is_err());
        let read = times("1.5\n0\n").unwrap();
        assert_eq!(read, json!({ "kind": "empirical", "times": ["1.5 ms", "0 ms"] }));
        assert!(times("1e3\n").is_err());
    }
}
