//! A table of links: CSV (RFC 4180) whose first line names the columns.

use super::{Edge, Graph, MOST_LINKS, Node, set, start_of, too_many};
use std::collections::BTreeSet;

/// Reads `from,to,rate,delay,queue,loss`, in any order, of which `from` and `to` must be there.
pub(super) fn read(text: &str) -> Result<Graph, String> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let wrong = |error: csv::Error| {
        if let csv::ErrorKind::UnequalLengths { pos: Some(position), expected_len, len } =
            error.kind()
        {
            let line = position.line();
            return format!("in line {line}: {len} fields, and the first line has {expected_len}");
        }
        let reason: String = error.to_string().chars().take(200).collect();
        format!("is not a table: {reason}")
    };
    let head = reader.headers().map_err(wrong)?.clone();
    for (i, name) in head.iter().enumerate() {
        if head.iter().take(i).any(|other| other == name) {
            return Err(format!("has two columns \"{}\"", start_of(name)));
        }
    }
    let column = |name: &str| {
        let found = head.iter().position(|column| column == name);
        found.ok_or_else(|| format!("has no column \"{name}\"; it needs from, to"))
    };
    let (from, to) = (column("from")?, column("to")?);
    let (mut graph, mut known) = (Graph::default(), BTreeSet::new());
    for record in reader.records() {
        // The error of a row with too few or too many fields has the line.
        let record = record.map_err(wrong)?;
        let line = record.position().map_or(0, csv::Position::line) as usize;
        let [from, to] = [from, to].map(|column| record[column].to_owned());
        for id in [&from, &to] {
            if id.is_empty() {
                return Err(format!("in line {line}: a node has no name"));
            }
            if known.insert(id.clone()) {
                graph.nodes.push(Node { id: id.clone(), ..Node::default() });
            }
        }
        let mut edge = Edge { line, from, to, ..Edge::default() };
        for (name, text) in head.iter().zip(&record) {
            set(&mut edge, name, text)?;
        }
        graph.edges.push(edge);
        if graph.edges.len() > MOST_LINKS {
            return Err(too_many());
        }
    }
    Ok(graph)
}
