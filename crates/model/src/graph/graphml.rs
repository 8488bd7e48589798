//! The part of `GraphML` that networks need (Brandes et al.: `GraphML` Primer): nodes, undirected
//! edges, and their attributes under names that a `<key>` declares.
//!
//! Reads event by event, so that time is linear in the size of any file. Entity declarations are
//! rejected.

use super::{Edge, Graph, MOST_LINKS, Node, degrees, set, start_of, too_many};
use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use std::collections::BTreeMap;

/// The nesting limit: a graph has six levels, and extensions may add some.
const DEEPEST: usize = 100;

/// The limit of attribute declarations; the Internet Topology Zoo has 40.
const MOST_KEYS: usize = 200;

/// The attributes of nodes and edges that are used here.
const KNOWN: [&str; 8] =
    ["label", "Latitude", "Longitude", "rate", "LinkSpeedRaw", "delay", "queue", "loss"];

/// The limit of an attribute's text in bytes; no label or quantity is longer.
const LONGEST: usize = 1000;

/// A `<key>` declaration.
#[derive(Debug, Default)]
struct Key {
    name: String,
    /// `node`, `edge`, or any.
    of: String,
    /// The value where none is given.
    default: Option<String>,
}

/// An open element.
#[derive(Debug)]
enum Open {
    Graphml,
    Key(String),
    Default,
    Graph,
    Node,
    Edge,
    /// The value of the key with this id.
    Data(String),
    /// Any other element.
    Other,
}

/// Reads a graph.
pub(super) fn read(text: &str) -> Result<Graph, String> {
    let mut parser = Parser { text, ..Parser::default() };
    let mut reader = Reader::from_str(text);
    loop {
        let event = reader.read_event().map_err(|error| {
            parser.reach(reader.error_position() as usize);
            let reason: String = error.to_string().chars().take(200).collect();
            format!("is not GraphML: in line {}: {reason}", parser.line)
        })?;
        parser.reach(reader.buffer_position() as usize);
        match event {
            Event::Start(element) => parser.open(&element)?,
            Event::Empty(element) => {
                parser.open(&element)?;
                parser.close()?;
            }
            Event::End(_) => parser.close()?,
            Event::Text(text) => parser.say(&decoded(text.decode())?),
            Event::CData(text) => parser.say(&decoded(text.decode())?),
            Event::GeneralRef(entity) => {
                let letter = entity.resolve_char_ref().ok().flatten().map(String::from);
                let name = decoded(entity.decode())?;
                let meant = letter.or_else(|| resolve_predefined_entity(&name).map(Into::into));
                parser.say(&meant.ok_or_else(|| parser.wrong("has an entity of its own"))?);
            }
            Event::DocType(_) => {
                return Err(parser.wrong("has a document type, which graphs need not"));
            }
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::Eof => break,
        }
    }
    if !parser.open.is_empty() {
        return Err("is not GraphML: it ends within an element".into());
    }
    if !parser.began {
        return Err("is not GraphML: it has no <graphml>".into());
    }
    Ok(parser.graph)
}

/// Texts of files are UTF-8 already.
fn decoded<T: Into<String>, E>(text: Result<T, E>) -> Result<String, String> {
    text.map(Into::into).map_err(|_| "is not GraphML: it has letters that cannot be read".into())
}

#[derive(Default)]
struct Parser<'a> {
    text: &'a str,
    /// The position reached, and its line, from 1.
    reached: usize,
    line: usize,
    began: bool,
    has_graph: bool,
    keys: BTreeMap<String, Key>,
    open: Vec<Open>,
    /// The text of the innermost element.
    said: String,
    /// The attributes of the open node or edge, by name.
    about: BTreeMap<String, String>,
    graph: Graph,
}

impl Parser<'_> {
    /// Counts lines up to a byte.
    fn reach(&mut self, byte: usize) {
        self.line = self.line.max(1);
        let passed = self.text.get(self.reached..byte).unwrap_or_default();
        self.line += passed.matches('\n').count();
        self.reached = self.reached.max(byte);
    }

    fn wrong(&self, what: &str) -> String {
        format!("in line {}: {what}", self.line)
    }

    fn say(&mut self, text: &str) {
        let is_said = matches!(self.open.last(), Some(Open::Data(_) | Open::Default));
        if is_said && self.said.len() + text.len() <= LONGEST {
            self.said.push_str(text);
        }
    }

    fn open(&mut self, element: &BytesStart<'_>) -> Result<(), String> {
        self.said.clear();
        if self.open.len() >= DEEPEST {
            return Err(self.wrong("is nested too deeply"));
        }
        let name = element.local_name();
        let open = match (self.open.last(), name.as_ref()) {
            (None, b"graphml") => {
                self.began = true;
                Open::Graphml
            }
            (None, other) => {
                let name = start_of(&String::from_utf8_lossy(other));
                return Err(format!("is not GraphML: it begins with <{name}>"));
            }
            (Some(Open::Graphml), b"key") => self.key(element)?,
            (Some(Open::Key(_)), b"default") => Open::Default,
            (Some(Open::Graphml), b"graph") => {
                if std::mem::replace(&mut self.has_graph, true) {
                    return Err(self.wrong("a second graph"));
                }
                if attribute(element, "edgedefault")?.is_some_and(|it| it == "directed") {
                    return Err(self.wrong(DIRECTED));
                }
                Open::Graph
            }
            (Some(Open::Graph), b"node") => {
                let id = attribute(element, "id")?;
                let id = id.ok_or_else(|| self.wrong("a node without an `id`"))?;
                self.graph.nodes.push(Node { id, ..Node::default() });
                self.about.clear();
                Open::Node
            }
            (Some(Open::Graph), b"edge") => {
                if attribute(element, "directed")?.is_some_and(|it| it == "true") {
                    return Err(self.wrong(DIRECTED));
                }
                let end = |name| {
                    let end = attribute(element, name)?;
                    end.ok_or_else(|| self.wrong(&format!("an edge without a `{name}`")))
                };
                let (from, to) = (end("source")?, end("target")?);
                self.graph.edges.push(Edge { line: self.line, from, to, ..Edge::default() });
                self.about.clear();
                Open::Edge
            }
            (Some(Open::Graph), b"hyperedge") => {
                return Err(self.wrong("a hyperedge; links connect two nodes"));
            }
            (Some(Open::Node | Open::Edge), b"graph") => {
                return Err(self.wrong("a graph within another"));
            }
            (Some(Open::Node | Open::Edge), b"data") => {
                let key = attribute(element, "key")?;
                Open::Data(key.ok_or_else(|| self.wrong("data without a `key`"))?)
            }
            _ => Open::Other,
        };
        if self.graph.nodes.len() > MOST_LINKS || self.graph.edges.len() > MOST_LINKS {
            return Err(too_many());
        }
        self.open.push(open);
        Ok(())
    }

    fn key(&mut self, element: &BytesStart<'_>) -> Result<Open, String> {
        let id = attribute(element, "id")?;
        let id = id.ok_or_else(|| self.wrong("a key without an `id`"))?;
        let name = attribute(element, "attr.name")?.unwrap_or_else(|| id.clone());
        let of = attribute(element, "for")?.unwrap_or_else(|| "all".into());
        if KNOWN.contains(&name.as_str()) {
            self.keys.insert(id.clone(), Key { name, of, default: None });
        }
        if self.keys.len() > MOST_KEYS {
            return Err(format!("declares more than {MOST_KEYS} keys"));
        }
        Ok(Open::Key(id))
    }

    fn close(&mut self) -> Result<(), String> {
        let said = std::mem::take(&mut self.said);
        match self.open.pop() {
            Some(Open::Default) => {
                if let Some(Open::Key(id)) = self.open.last()
                    && let Some(key) = self.keys.get_mut(id)
                {
                    key.default = Some(said);
                }
            }
            Some(Open::Data(id)) => {
                if let Some(key) = self.keys.get(&id) {
                    self.about.insert(key.name.clone(), said);
                }
            }
            Some(Open::Node) => {
                self.add_defaults("node");
                let (line, about) = (self.line, &self.about);
                let place = |name, most| {
                    let text = about.get(name).filter(|text| !text.trim().is_empty());
                    text.map(|text| degrees(text, most, line)).transpose()
                };
                let (latitude, longitude) = (place("Latitude", 90.0)?, place("Longitude", 360.0)?);
                let label = about.get("label").cloned();
                if let Some(node) = self.graph.nodes.last_mut() {
                    (node.latitude, node.longitude, node.label) = (latitude, longitude, label);
                }
            }
            Some(Open::Edge) => {
                self.add_defaults("edge");
                if let Some(edge) = self.graph.edges.last_mut() {
                    for (name, text) in &self.about {
                        set(edge, name, text)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds the default attributes of all nodes or edges.
    fn add_defaults(&mut self, of: &str) {
        for key in self.keys.values().filter(|key| key.of == of || key.of == "all") {
            if let Some(default) = &key.default
                && !self.about.contains_key(&key.name)
            {
                self.about.insert(key.name.clone(), default.clone());
            }
        }
    }
}

const DIRECTED: &str =
    "a directed edge; links have both directions: write `edgedefault=\"undirected\"`";

/// An attribute of an element.
fn attribute(element: &BytesStart<'_>, name: &str) -> Result<Option<String>, String> {
    // The parser's check for duplicate attributes takes quadratic time.
    for attribute in element.attributes().with_checks(false) {
        let attribute = attribute.map_err(|error| format!("is not GraphML: {error}"))?;
        if attribute.key.as_ref() == name.as_bytes() {
            let value = attribute.unescape_value();
            return value
                .map(|value| Some(value.into()))
                .map_err(|_| format!("is not GraphML: `{name}` has an entity of its own"));
        }
    }
    Ok(None)
}
