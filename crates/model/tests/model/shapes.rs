//! Shapes of networks and their links.

use crate::common::{SIM, message, messages, plan, plans, small_with};
use std::fs;
use tcplab_model::{Mistakes, Plan, from_toml};
use tcplab_units::Duration;

fn ms(millis: &[u64]) -> Vec<Duration> {
    millis.iter().map(|&millis| Duration::from_millis(millis)).collect()
}

fn rtts(plan: &Plan) -> Vec<Duration> {
    plan.flows.iter().map(|flow| flow.base_rtt).collect()
}

fn way(plan: &Plan, lanes: &[usize]) -> Vec<String> {
    lanes.iter().map(|lane| plan.lanes[*lane].name.clone()).collect()
}

/// A star whose hosts all send to the hub.
fn star(settings: &str) -> String {
    format!(
        "duration = \"1 s\"\nflows = [{{ from = \"host*\", to = \"hub\" }}]\n[network.star]\n\
         rate = \"10 Mbit/s\"\n{settings}\n"
    )
}

#[test]
fn the_hosts_of_a_star_have_the_rtts_that_are_listed() {
    let listed = plan(&star("rtts = [\"10 ms\", \"81 ms\", \"0 ms\"]"));
    assert_eq!(rtts(&listed), ms(&[10, 81, 0]));
    assert_eq!(listed.nodes.to_vec(), ["host1", "hub", "host2", "host3"]);
    let equal = plan(&star("hosts = 2\ndelay = \"3 ms\"\nback.delay = \"4 ms\""));
    assert_eq!(rtts(&equal), ms(&[7, 7]));
    assert_eq!(
        message(&star("delay = \"1 ms\"")),
        "line 3: network.star.hosts: is missing; write it like 5"
    );
    assert_eq!(
        message(&star("hosts = 3\nrtts = [\"1 ms\", \"2 ms\"]")),
        "line 6: network.star.rtts: are 2, and `hosts` is 3"
    );
    assert_eq!(
        message(&star("delay = \"1 ms\"\nrtts = [\"1 ms\", \"2 ms\"]")),
        "line 6: network.star.rtts: take the place of `delay`; give one of them"
    );
    assert_eq!(message(&star("rtts = []")), "line 5: network.star.rtts: has no RTTs");
}

#[test]
fn the_pairs_of_a_dumbbell_have_the_rtts_that_are_listed() {
    // The bottleneck alone takes 40 ms.
    let with = |settings: &str| {
        let text = small_with("delay = ", &format!("{settings}\ndelay = "));
        text.replace("left1", "left*").replace("right1", "right*")
    };
    let listed = plan(&with("rtts = [\"40 ms\", \"100 ms\", \"55 ms\"]"));
    assert_eq!(rtts(&listed), ms(&[40, 100, 55]));
    assert_eq!(
        message(&with("rtts = [\"100 ms\", \"39 ms\"]")),
        "line 5: network.dumbbell.rtts: asks for 39 ms, but the bottleneck alone takes 40 ms"
    );
    assert_eq!(
        message(&with("rtt = [\"50 ms\", \"60 ms\"]\nrtts = [\"100 ms\"]")),
        "line 6: network.dumbbell.rtts: are given a second time as `rtt`; give one of them"
    );
    assert_eq!(
        message(&with("access.delay = \"1 ms\"\nrtts = [\"100 ms\"]")),
        "line 6: network.dumbbell.rtts: takes the place of `access.delay`; give one of them"
    );
}

#[test]
fn drawn_rtts_are_those_of_the_seed() {
    let uniform = "hosts = 1000\nrtts = { kind = \"uniform\", least = \"10 ms\", most = \"50 ms\" }";
    let twice = plans(&format!("repeat = 2\n{}", star(uniform))).unwrap();
    let (first, second) = (rtts(&twice[0]), rtts(&twice[1]));
    assert_ne!(first, second);
    // A repetition equals the single run with its seed.
    let alone = plan(&format!("seed = 2\n{}", star(uniform)));
    assert_eq!((&alone.id, rtts(&alone)), (&twice[1].id, second));
    assert!(first.iter().all(|rtt| ms(&[10, 50])[0] <= *rtt && *rtt <= ms(&[10, 50])[1]));
    // The mean is 30 ms; the standard error of a thousand is 40 / sqrt(12) / sqrt(1000) = 0.365 ms.
    let mean = first.iter().map(|rtt| rtt.as_millis_f64()).sum::<f64>() / 1000.0;
    assert!((mean - 30.0).abs() < 3.0 * 0.365, "{mean}");
    // One more host leaves the RTTs of the others as they are.
    let more = plan(&star(&uniform.replace("1000", "1001")));
    assert_eq!(rtts(&more)[..1000], first);
}

#[test]
fn a_fat_tree_has_the_routes_of_its_routing_tables() {
    let tree = |k: u64| {
        format!(
            "duration = \"1 s\"\n[network.fat_tree]\nk = {k}\nrate = \"1 Gbit/s\"\ndelay = \"10 us\"\n\
             [[flows]]\nname = \"a\"\nfrom = \"host1\"\nto = \"host2\"\n\
             [[flows]]\nname = \"b\"\nfrom = \"host1\"\nto = \"host16\"\n"
        )
    };
    let four = plan(&tree(4));
    assert_eq!(four.nodes.len(), 16 + 20);
    assert_eq!(four.lanes.len(), 2 * 48);
    assert_eq!(way(&four, &four.flows[0].forward), ["host1>edge1-1", "edge1-1>host2"]);
    // Host 16 is the second of its switch, and host 1 the first: (1 + 0) mod 2 = 1 is the second
    // aggregation switch, and (1 + 1) mod 2 = 0 its first core switch. Back, (0 + 1) mod 2 = 1 and
    // (0 + 1) mod 2 = 1.
    assert_eq!(
        way(&four, &four.flows[1].forward),
        [
            "host1>edge1-1",
            "edge1-1>aggregation1-2",
            "aggregation1-2>core3",
            "core3>aggregation4-2",
            "aggregation4-2>edge4-2",
            "edge4-2>host16",
        ]
    );
    assert_eq!(
        way(&four, &four.flows[1].back)[1..4],
        ["edge4-2>aggregation4-2", "aggregation4-2>core4", "core4>aggregation1-2"]
    );
    assert_eq!(
        messages(&tree(5))[0],
        "line 3: network.fat_tree.k: is 5: half of the ports of a switch lead up; give an even number"
    );
    assert_eq!(
        messages(&tree(66))[0],
        "line 3: network.fat_tree.k: 66 is outside the range from 2 to 64"
    );
    let bare = tree(4).replace("rate = \"1 Gbit/s\"\n", "");
    assert_eq!(message(&bare), "line 2: network.fat_tree.rate: is missing; write it like \"10 Mbit/s\"");
}

/// The plans of an experiment beside a file.
fn beside(name: &str, content: &str, toml: &str) -> Result<Vec<Plan>, Mistakes> {
    let folder = std::env::temp_dir().join(format!("tcplab-graph-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(name), content).unwrap();
    let plans = from_toml(toml)?.in_folder(&folder).plans(&SIM);
    fs::remove_dir_all(&folder).unwrap();
    plans
}

const GRAPH: &str = r#"duration = "1 s"
flows = [{ from = "a", to = "c" }]

[network.graph]
file = "net.csv"
rate = "5 Mbit/s"
"#;

#[test]
fn a_network_comes_from_a_file() {
    let csv = "from,to,delay,rate\na,b,5 ms,\nb,c,7 ms,2 Mbit/s\n";
    let read = beside("net.csv", csv, GRAPH).unwrap();
    let links = GRAPH.replace(
        "file = \"net.csv\"",
        "links = [{ between = [\"a\", \"b\"], delay = \"5 ms\" }, { between = [\"b\", \"c\"], delay = \
         \"7 ms\", rate = \"2 Mbit/s\" }]",
    );
    // The plan does not contain the file.
    assert_eq!(read[0].id, plan(&links).id);
    assert_eq!(rtts(&read[0]), ms(&[24]));
    // The name of a file may be a parameter's value.
    let named = GRAPH.replace("net.csv", "$net") + "[let]\nnet = \"x.csv\"\n[sweep]\nnet = [\"net.csv\"]\n";
    assert_eq!(beside("net.csv", csv, &named).unwrap()[0].id, read[0].id);
}

#[test]
fn mistakes_in_a_network_file_name_their_place() {
    let says = |csv: &str| beside("net.csv", csv, GRAPH).unwrap_err().to_string();
    assert_eq!(
        says("from,to\na,b\n"),
        "line 5: network.graph.file: the file \"net.csv\" in line 2: \"a\" - \"b\" has no delay; where \
         a file says none, `network.graph` needs it"
    );
    let missing = from_toml(GRAPH).unwrap().plans(&SIM).unwrap_err().to_string();
    assert!(missing.starts_with("line 5: network.graph.file: the file \"net.csv\" cannot be read"));
    assert_eq!(missing.lines().count(), 1, "{missing}");
    assert_eq!(
        message(&GRAPH.replace("file = \"net.csv\"\n", "")),
        "line 4: network.graph: has no links; give the `file` of a network, or `links`"
    );
}
