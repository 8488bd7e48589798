//! Reads a network from a file of nodes and links: `GraphML`, or CSV.

mod graphml;
mod table;

use crate::mistake::{Mistake, Problem};
use crate::read::{Place, Read};
use crate::schema::{Loss, Queue};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tcplab_units::{Duration, Rate};

/// The most links that a run can have.
const MOST_LINKS: usize = 200_000;

/// The size limit of a file in bytes; the largest networks of the Internet Topology Zoo have less
/// than 1 MB.
pub(crate) const MOST_BYTES: u64 = 20_000_000;

/// The mean radius of the Earth (IUGG 1980), in km.
const RADIUS_KM: f64 = 6371.0088;

/// The propagation delay of a kilometre of fibre, in µs (ITU-T G.114, annex A).
const US_PER_KM: f64 = 5.0;

/// The content of a file.
#[derive(Debug, Default)]
struct Graph {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

/// A node of the file.
#[derive(Debug, Default)]
struct Node {
    id: String,
    /// The node's name, if that is not its id.
    label: Option<String>,
    latitude: Option<f64>,
    longitude: Option<f64>,
}

/// A link of the file, with its line.
#[derive(Debug, Default)]
struct Edge {
    line: usize,
    from: String,
    to: String,
    settings: Map<String, Value>,
}

/// The links of a file of this name in the form of `network.graph.links`. `given` are the table's
/// defaults for links.
pub(crate) fn links(name: &str, text: &str, given: &Map<String, Value>) -> Result<Value, String> {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    let graph = match ending.as_deref() {
        Some("graphml" | "xml") => graphml::read(text)?,
        Some("csv") => table::read(text)?,
        _ => return Err("is neither GraphML (.graphml) nor a table of links (.csv)".into()),
    };
    let nodes: BTreeMap<&str, &Node> =
        graph.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let names = names(&graph.nodes)?;
    if graph.edges.is_empty() {
        return Err("has no links".into());
    }
    let mut links = Vec::new();
    for edge in &graph.edges {
        let in_line = |reason: String| format!("in line {}: {reason}", edge.line);
        let end = |id: &str| {
            let node = nodes.get(id).copied();
            node.ok_or_else(|| in_line(format!("no node has the id \"{}\"", start_of(id))))
        };
        let (from, to) = (end(&edge.from)?, end(&edge.to)?);
        let [one, other] = [from, to].map(|node| &names[node.id.as_str()]);
        if one == other {
            return Err(in_line(format!("a link connects \"{one}\" with itself")));
        }
        let mut link = edge.settings.clone();
        if !link.contains_key("delay")
            && let Some(delay) = delay(from, to)
        {
            link.insert("delay".into(), delay.to_string().into());
        }
        for key in ["rate", "delay"] {
            if !link.contains_key(key) && !given.contains_key(key) {
                let asked = "where a file says none, `network.graph` needs it";
                return Err(in_line(format!("\"{one}\" - \"{other}\" has no {key}; {asked}")));
            }
        }
        link.insert("between".into(), json!([one, other]));
        links.push(Value::Object(link));
    }
    Ok(links.into())
}

/// The names of nodes by id: their labels in the characters allowed in names, with the id added
/// where several nodes have the same label.
fn names(nodes: &[Node]) -> Result<BTreeMap<&str, String>, String> {
    let plain = |text: &str| -> String {
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        let letters = text.trim().chars().map(|c| if is_plain(c) { c } else { '-' });
        letters.collect()
    };
    let label = |node: &Node| {
        let label = node.label.as_deref().map(plain).filter(|label| !label.is_empty());
        label.unwrap_or_else(|| plain(&node.id))
    };
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for node in nodes {
        *times.entry(label(node)).or_default() += 1;
    }
    let (mut names, mut taken) = (BTreeMap::new(), BTreeSet::new());
    for node in nodes {
        let label = label(node);
        let name = if times[&label] > 1 { format!("{label}-{}", plain(&node.id)) } else { label };
        if name.is_empty() {
            return Err("has a node without a name".into());
        }
        if names.insert(node.id.as_str(), name.clone()).is_some() {
            return Err(format!("has two nodes with the id \"{}\"", start_of(&node.id)));
        }
        if !taken.insert(name.clone()) {
            return Err(format!("has two nodes that would be called \"{}\"", start_of(&name)));
        }
    }
    Ok(names)
}

/// The propagation delay in fibre along the great circle between two nodes, if both positions are
/// known.
fn delay(from: &Node, to: &Node) -> Option<Duration> {
    let place = |node: &Node| Some((node.latitude?.to_radians(), node.longitude?.to_radians()));
    let ((latitude, longitude), (other_latitude, other_longitude)) = (place(from)?, place(to)?);
    // The haversine formula, which is exact for short distances too.
    let half = |angle: f64| libm::pow(libm::sin(angle / 2.0), 2.0);
    let chord = half(other_latitude - latitude)
        + libm::cos(latitude) * libm::cos(other_latitude) * half(other_longitude - longitude);
    let km = 2.0 * RADIUS_KM * libm::asin(libm::sqrt(chord.clamp(0.0, 1.0)));
    Some(Duration::from_micros(libm::round(km * US_PER_KM) as u64))
}

/// Latitude or longitude in degrees.
fn degrees(text: &str, most: f64, line: usize) -> Result<f64, String> {
    let number = text.trim().parse().ok().filter(|degrees: &f64| degrees.abs() <= most);
    number.ok_or_else(|| {
        format!("in line {line}: \"{}\" is not a number of degrees up to {most}", start_of(text))
    })
}

/// Adds an attribute of a link under a known name. Other names are ignored.
fn set(edge: &mut Edge, name: &str, text: &str) -> Result<(), String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(());
    }
    let value = match name {
        // In bit/s, as in the Internet Topology Zoo.
        "LinkSpeedRaw" => match text.parse::<f64>() {
            Ok(bits) if (1.0..1e18).contains(&bits) => {
                format!("{} bit/s", libm::round(bits) as u64).into()
            }
            _ => {
                let reason = format!("\"{}\" is not a rate in bit/s", start_of(text));
                return Err(format!("in line {}: {reason}", edge.line));
            }
        },
        _ => Value::from(text),
    };
    let (key, mistake) = match name {
        "rate" | "LinkSpeedRaw" => ("rate", mistake::<Rate>(&value)),
        "delay" => ("delay", mistake::<Duration>(&value)),
        "queue" => ("queue", mistake::<Queue>(&value)),
        "loss" => ("loss", mistake::<Loss>(&value)),
        _ => return Ok(()),
    };
    if let Some(problem) = mistake {
        return Err(format!("in line {}: {key}: {problem}", edge.line));
    }
    // An attribute with tcplab's own name takes precedence.
    if name == key || !edge.settings.contains_key(key) {
        edge.settings.insert(key.into(), value);
    }
    Ok(())
}

/// The problem of a value, if it has one.
fn mistake<T: Read>(value: &Value) -> Option<Problem> {
    let mut mistakes: Vec<Mistake> = Vec::new();
    T::read(value, &Place::Root, &mut mistakes);
    mistakes.into_iter().next().map(|mistake| mistake.problem)
}

/// The start of a text, for a message.
fn start_of(text: &str) -> String {
    text.chars().take(40).collect()
}

fn too_many() -> String {
    format!("has more than {MOST_LINKS} links or nodes")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(keys: &[&str]) -> Map<String, Value> {
        keys.iter().map(|key| ((*key).into(), Value::Null)).collect()
    }

    #[test]
    fn the_delay_is_that_of_light_in_fibre() {
        let node = |latitude, longitude| Node {
            latitude: Some(latitude),
            longitude: Some(longitude),
            ..Node::default()
        };
        // A degree of a great circle is 2 pi 6371.0088 / 360 = 111.195 km, at 5 us each 555.97 us.
        let degree = Duration::from_micros(556);
        assert_eq!(delay(&node(0.0, 10.0), &node(0.0, 11.0)), Some(degree));
        assert_eq!(delay(&node(-31.0, 179.5), &node(-30.0, 179.5)), Some(degree));
        // Across the date line, and from pole to pole: half of 40,030.23 km.
        assert_eq!(delay(&node(0.0, 179.5), &node(0.0, -179.5)), Some(degree));
        let half = Duration::from_micros(100_076);
        assert_eq!(delay(&node(90.0, 0.0), &node(-90.0, 77.0)), Some(half));
        assert_eq!(delay(&node(48.0, 2.0), &Node::default()), None);
    }

    #[test]
    fn a_csv_table_of_links_has_a_header() {
        let text = "from,to,rate,delay,queue,note\na,b,10 Mbit/s,5 ms,20 packets,x\n\"b\",c, 1 Gbit/s ,2 ms,,\n";
        assert_eq!(
            links("x.csv", text, &given(&[])).unwrap(),
            json!([
                { "rate": "10 Mbit/s", "delay": "5 ms", "queue": "20 packets", "between": ["a", "b"] },
                { "rate": "1 Gbit/s", "delay": "2 ms", "between": ["b", "c"] },
            ])
        );
        let says = |text: &str| links("x.csv", text, &given(&["rate"])).unwrap_err();
        assert_eq!(says("from,rate\na,b\n"), "has no column \"to\"; it needs from, to");
        assert_eq!(
            says("from,to,delay\na,b,5 msec\n"),
            "in line 2: delay: `msec` is not a unit of time; the units are ps, ns, us, ms, s, µs, min, h"
        );
        assert_eq!(
            says("from,to\nb,a\n"),
            "in line 2: \"b\" - \"a\" has no delay; where a file says none, `network.graph` needs it"
        );
        assert_eq!(
            says("from,to,delay\na,a,1 ms\n"),
            "in line 2: a link connects \"a\" with itself"
        );
        assert_eq!(says("from,to\n"), "has no links");
        assert_eq!(says("from,to\na\n"), "in line 2: 1 fields, and the first line has 2");
    }

    const ZOO: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="label" attr.type="string" for="node" id="d33" />
  <key attr.name="Latitude" attr.type="double" for="node" id="d29" />
  <key attr.name="Longitude" attr.type="double" for="node" id="d32" />
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d35" />
  <key attr.name="queue" for="edge" id="q"><default>2 BDP</default></key>
  <graph edgedefault="undirected">
    <node id="0"><data key="d33">New York</data><data key="d29">0</data><data key="d32">1</data></node>
    <node id="1"><data key="d33">A &amp; B</data><data key="d29">0.0</data><data key="d32">2.0</data></node>
    <node id="2"><data key="d33">New York</data></node>
    <node id="3"/>
    <edge source="0" target="1"><data key="d35">10000000000.0</data></edge>
    <edge source="1" target="2"><data key="q">9 packets</data></edge>
    <edge source="2" target="3"/>
  </graph>
</graphml>
"#;

    #[test]
    fn the_topology_zoo_is_read() {
        let read = links("zoo.GraphML", ZOO, &given(&["rate", "delay"])).unwrap();
        assert_eq!(
            read,
            json!([
                {
                    "rate": "10000000000 bit/s", "queue": "2 BDP", "delay": "556 us",
                    "between": ["New-York-0", "A---B"],
                },
                { "queue": "9 packets", "between": ["A---B", "New-York-2"] },
                { "queue": "2 BDP", "between": ["New-York-2", "3"] },
            ])
        );
        assert_eq!(
            links("zoo.graphml", ZOO, &given(&["rate"])).unwrap_err(),
            "in line 14: \"A---B\" - \"New-York-2\" has no delay; where a file says none, \
             `network.graph` needs it"
        );
    }

    #[test]
    fn invalid_graphml_is_refused() {
        let says = |text: &str| links("x.graphml", text, &given(&["rate", "delay"])).unwrap_err();
        let graph = |inside: &str| says(&format!("<graphml>\n<graph>{inside}</graph></graphml>"));
        assert_eq!(graph("<edge source='a' target='b'/>"), "in line 2: no node has the id \"a\"");
        assert_eq!(graph("<node id='a'/><node id='a'/>"), "has two nodes with the id \"a\"");
        assert_eq!(graph("<node/>"), "in line 2: a node without an `id`");
        assert!(graph("<hyperedge/>").contains("hyperedge"));
        assert!(graph("<node id='a'><graph/></node>").contains("within another"));
        assert!(graph("<edge source='a' target='b' directed='true'/>").contains("directed"));
        assert!(says("<graphml><graph edgedefault='directed'/></graphml>").contains("directed"));
        assert_eq!(says("<html/>"), "is not GraphML: it begins with <html>");
        assert_eq!(says(""), "is not GraphML: it has no <graphml>");
        assert!(says("<graphml><graph></graphml>").starts_with("is not GraphML: "));
        assert_eq!(says("<graphml><graph/></graphml>"), "has no links");
        assert_eq!(links("x.txt", "", &given(&[])).unwrap_err().split(' ').next(), Some("is"));
    }

    #[test]
    fn xml_bombs_are_refused() {
        let says = |text: &str| links("x.graphml", text, &given(&["rate", "delay"])).unwrap_err();
        let entities = "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>";
        assert!(says(&format!("{entities}<graphml>&b;</graphml>")).contains("document type"));
        let deep = format!("<graphml>{}", "<x>".repeat(1_000_000));
        assert!(says(&deep).contains("too deeply"), "{}", says(&deep));
        let attributes: String =
            (0..300_000).fold(String::new(), |text, i| text + &format!(" a{i}=''"));
        assert_eq!(says(&format!("<graphml><graph{attributes}/></graphml>")), "has no links");
    }
}
