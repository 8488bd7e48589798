//! Records of a compromised guest: a kernel's stream of records, changed at random, must lead to
//! tables, a broken law or an error, never to a panic. `TCPLAB_RECORDS` is the number of streams,
//! and `TCPLAB_RECORDS_FROM` the number of the first, which repeats a failure.

use crate::recorder::Recorder;
use crate::records::{Content, Stream, Tick, Unreadable};
use crate::translate::{self, Abilities};
use crate::{Access, NAME, Produced};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tcplab_engine::Random;
use tcplab_guest::Report;
use tcplab_guest::job::{Job, Traffic};
use tcplab_guest::report::Datagrams;
use tcplab_model::{Backend, Plan, Profile};

/// An experiment with every kind of traffic and record.
const EXPERIMENT: &str = r#"
duration = "2 s"
measure.from = "400 ms"
every = "600 ms"
record = { samples = "ack", links = "500 ms", captures = ["a>b"] }
network.links = [{ between = ["a", "b"], rate = "10 Mbit/s", delay = "10 ms", loss = "1 %" }]
flows = [
    { name = "bulk", from = "a", to = "b" },
    { name = "dctcp", from = "a", to = "b", cc = "dctcp", traffic = { kind = "bulk", size = "20 kB" } },
    { name = "vegas", from = "b", to = "a", cc = "vegas", traffic = { kind = "requests", response = "9 kB" } },
    { name = "page", from = "a", to = "b", traffic = { kind = "web", order = "parallel", connections = 2, persistent = true, classes = [{ name = "x", count = 4, size = "5 kB" }] } },
    { name = "arrivals", from = "a", to = "b", traffic = { kind = "arrivals", per_second = 5, sizes = "20 kB", transfers = 3 } },
    { name = "users", from = "a", to = "b", traffic = { kind = "arrivals", users = 2, think = "900 ms", sizes = "5 kB" } },
    { name = "udp", from = "a", to = "b", traffic = { kind = "udp", rate = "1 Mbit/s", packets = 10 } },
    { name = "programs", from = "a", to = "b", traffic = { kind = "command", server = "true", client = "true" } },
]
"#;

const QUICK: u64 = 20_000;

/// The beginning of the experiment by the kernel's clock.
const BEGIN: u64 = 2_000_000_000;

fn plan() -> Plan {
    let backend = Backend {
        name: NAME,
        profile: Profile::Linux612,
        version: &|_| "mutated".into(),
        unsupported: &|_| Vec::new(),
    };
    tcplab_model::from_toml(EXPERIMENT).unwrap().plans(&backend).unwrap().remove(0)
}

fn job(plan: &Plan) -> Job {
    let controls = ["cubic", "dctcp", "vegas"].map(String::from);
    let mut job = translate::job(plan, Abilities::new("6.12.0", &controls)).unwrap();
    job.programs = Some(Access::default().programs());
    job
}

/// A record before encoding.
#[derive(Clone, Debug)]
struct Written {
    kind: u16,
    id: u32,
    time: u64,
    content: Vec<u8>,
}

fn bytes(records: &[Written]) -> Vec<u8> {
    let mut stream = Vec::new();
    for Written { kind, id, time, content } in records {
        stream.extend(kind.to_le_bytes());
        stream.extend((content.len() as u16).to_le_bytes());
        stream.extend(id.to_le_bytes());
        stream.extend(time.to_le_bytes());
        stream.extend(content);
    }
    stream
}

/// Little-endian 64-bit words, padded to a length.
fn words(values: &[u64], length: usize) -> Vec<u8> {
    let mut content: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    content.resize(length, 0);
    content
}

/// The records of the kernel and of process 1 for the job.
fn records(job: &Job) -> Vec<Written> {
    let mut all = vec![Written { kind: 2, id: 1, time: BEGIN, content: vec![] }];
    let mut say = |kind, id, after: u64, content| {
        all.push(Written { kind, id, time: BEGIN + after, content });
    };
    let tell = |report: &Report| serde_json::to_vec(report).unwrap();
    let mut id = 0;
    for (flow, spec) in job.flows.iter().enumerate() {
        for number in 0..spec.traffic.connections() {
            let port = spec.client.port + number as u16;
            for is_client in [true, false] {
                id += 1;
                let (near, far) = if is_client {
                    ((spec.client.address, port), (spec.server.address, spec.server.port))
                } else {
                    ((spec.server.address, spec.server.port), (spec.client.address, port))
                };
                let mut socket = [near.0.octets(), far.0.octets()].concat();
                socket.extend([near.1.to_le_bytes(), far.1.to_le_bytes()].concat());
                socket.extend(u32::from(is_client).to_le_bytes());
                say(3, id, 1000, socket);
                for step in 1..4_u64 {
                    let mut sample = words(&[10 << 32 | step, 20_000, 3 << 32, 1448 * step], 80);
                    // INET_DIAG_VEGASINFO, _DCTCPINFO, _BBRINFO or none.
                    sample[52] = [0, 3, 9, 16][step as usize];
                    say(4, id, 40_000_000 * step, sample);
                }
                let mut summary = words(&[4344, 4344, 4344, 4344, 3, 0, 0, 0, 3, 66_000], 128);
                summary[80..96].copy_from_slice(&words(&[21_000, 23_000], 16));
                summary[104..109].copy_from_slice(b"cubic");
                summary[126] = 1;
                let mut marked = summary.clone();
                marked[124] = 2;
                say(5, id, 400_000_000, marked);
                say(5, id, 1_999_000_000, summary);
            }
        }
        for number in 0..spec.traffic.parts().unwrap_or(0).min(4) {
            let port = spec.client.port + (number % spec.traffic.connections()) as u16;
            if matches!(spec.traffic, Traffic::Sessions(_) | Traffic::Requests { .. }) {
                say(1, 0, 500_000_000, tell(&Report::Session { flow, number, port }));
            }
            let datagrams = matches!(spec.traffic, Traffic::Udp { .. });
            if datagrams {
                let report = Report::Datagrams { flow, sent: 5, arrived: 4, bytes: 400 };
                say(1, 0, 600_000_000, tell(&report));
            }
            let facts = Some(Box::default());
            let datagrams =
                datagrams.then(|| Datagrams { sent: 10, facts, ..Datagrams::default() });
            let report = Report::Connection {
                flow,
                number,
                port,
                start: 1000,
                received: Some(4344),
                complete: Some(900_000_000),
                datagrams,
                error: None,
            };
            say(1, 0, 900_000_000, tell(&report));
        }
        if spec.traffic.parts().is_none() {
            for side in ["server", "client"] {
                let report = Report::Exited { flow, side: side.into(), status: Some(0) };
                say(1, 0, 1_000_000_000, tell(&report));
            }
        }
    }
    for lane in 0..2_u32 {
        for interval in 1..=4_u64 {
            let state = words(&[0, 0, 0, 1, 0, interval, 1500 * interval, interval, interval], 136);
            say(6, lane, 500_000_000 * interval, state);
        }
        let mut drop = words(&[], 48);
        drop[12..16].copy_from_slice(&1500_u32.to_le_bytes());
        drop[16..32].copy_from_slice(b"LOST_ON_THE_WIRE");
        say(7, lane, 700_000_000, drop);
        say(8, lane, 700_000_000, words(&[1500, 0x45], 72));
    }
    for mark in [400_000_000, 1_000_000_000, 1_600_000_000] {
        say(2, 3, mark, vec![]);
    }
    say(2, 2, 2_000_000_000, vec![]);
    all
}

/// Values at which arithmetic overflows.
fn odd(random: &mut Random) -> u64 {
    match random.up_to(7) {
        0 => 0,
        1 => u64::MAX,
        2 => 1 << 63,
        3 => u64::from(u32::MAX),
        4 => BEGIN - 1,
        5 => u64::MAX - random.up_to(2_000),
        6 => random.up_to(300),
        _ => random.bits(),
    }
}

fn at(random: &mut Random, length: usize) -> usize {
    random.up_to(length.saturating_sub(1) as u64) as usize
}

/// Changes a record, with a correct length in its header.
fn forge(records: &mut Vec<Written>, random: &mut Random) {
    if records.is_empty() {
        return;
    }
    let one = at(random, records.len());
    let other = at(random, records.len());
    match random.up_to(8) {
        0 => records[one].kind = random.up_to(10) as u16,
        1 => records[one].id = odd(random) as u32,
        2 => records[one].time = odd(random),
        3 => records.swap(one, other),
        4 => drop(records.remove(one)),
        5 => records.insert(one, records[other].clone()),
        6 if records[one].kind == 1 => {
            // Each number of the report changes with a probability of a half.
            let text = String::from_utf8_lossy(&records[one].content).into_owned();
            let mut forged = String::new();
            for part in text.split_inclusive(|c: char| !c.is_ascii_digit()) {
                let number = part.trim_end_matches(|c: char| !c.is_ascii_digit());
                if number.is_empty() || random.up_to(1) == 0 {
                    forged.push_str(part);
                } else {
                    forged.push_str(&odd(random).to_string());
                    forged.push_str(&part[number.len()..]);
                }
            }
            records[one].content = forged.into_bytes();
        }
        _ => {
            let content = &mut records[one].content;
            let place = at(random, content.len() / 4 + 1) * 4;
            let value = odd(random).to_le_bytes();
            let length = content.len().saturating_sub(place).min(8);
            content[place..place + length].copy_from_slice(&value[..length]);
        }
    }
}

/// Changes bytes anywhere.
fn spoil(stream: &mut Vec<u8>, random: &mut Random) {
    if stream.is_empty() {
        return;
    }
    let (one, other) = (at(random, stream.len()), at(random, stream.len()));
    let length = at(random, (stream.len() - one.max(other)).min(300) + 1);
    match random.up_to(4) {
        0 => stream[one] ^= 1 << random.up_to(7),
        1 => stream[one] = random.bits() as u8,
        2 => stream.truncate(one),
        3 => stream.copy_within(other..other + length, one),
        _ => drop(stream.drain(one..one + length)),
    }
}

/// Processes a stream that arrives in pieces, as `boot::listen` does.
fn read(plan: &Plan, job: &Job, bytes: &[u8], piece: usize) -> Result<Produced, Unreadable> {
    let mut stream = Stream::default();
    let mut recorder = Recorder::new(plan, job);
    for piece in bytes.chunks(piece) {
        stream.extend(piece);
        while let Some(record) = stream.next()? {
            if record.content == Content::Tick(Tick::End) {
                return Ok(recorder.finish());
            }
            recorder.take(record)?;
        }
    }
    Ok(recorder.finish())
}

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

#[test]
fn the_unmutated_stream_is_valid() {
    let plan = plan();
    let job = job(&plan);
    let outcome = read(&plan, &job, &bytes(&records(&job)), 4096).unwrap();
    assert_eq!(outcome.tables.flows.len(), job.flows.len());
    // Four requests, four sessions, three transfers, six of users (each has time for three, of
    // which none takes less than 930 ms with its pause), and one connection of programs.
    assert_eq!(outcome.tables.transfers.len(), 18);
    assert!(outcome.tables.samples.len() > 10);
    assert_eq!(outcome.tables.links.len(), 8);
    assert_eq!(outcome.tables.drops.len(), 2);
    // Each flow begins with the run, and has rows until all of its data has arrived: only the five
    // without an end and programs have rows in all three intervals.
    assert!(outcome.tables.intervals.len() >= 3 * 4);
    assert!(outcome.files[0].1.len() > 100);
}

#[test]
fn forged_indices_are_errors_with_a_message() {
    let plan = plan();
    let job = job(&plan);
    let connection = |flow, number| Report::Connection {
        flow,
        number,
        port: 1,
        start: 0,
        received: None,
        complete: None,
        datagrams: None,
        error: None,
    };
    let exited = |flow, side: &str| Report::Exited { flow, side: side.into(), status: None };
    let forged = [
        (Report::Session { flow: 8, number: 0, port: 1 }, "flow 8, but there are only 8"),
        (Report::Session { flow: usize::MAX, number: 0, port: 1 }, "but there are only 8"),
        (Report::Session { flow: 3, number: 4, port: 1 }, "connection 4 of flow 3, which has 4"),
        (connection(0, usize::MAX), "of flow 0, which has 1"),
        (connection(5, 6), "connection 6 of flow 5, which has 6"),
        (connection(7, 0), "a connection of flow 7, of programs"),
        (Report::Datagrams { flow: 8, sent: 0, arrived: 0, bytes: 0 }, "has no datagrams"),
        (exited(0, "client"), "the program \"client\" of flow 0"),
        (exited(7, "../x"), "the program \"../x\" of flow 7"),
    ];
    let read = |kind, id, content: Vec<u8>| {
        let record = Written { kind, id, time: BEGIN, content };
        read(&plan, &job, &bytes(&[record]), 4096).unwrap_err().to_string()
    };
    for (report, expected) in forged {
        let said = read(1, 0, serde_json::to_vec(&report).unwrap());
        assert!(said.contains(expected), "{report:?}: {said}");
    }
    assert!(read(2, 3, vec![]).contains("a snapshot record at 0 that was not scheduled"));
    for (kind, length) in [(6, 136), (7, 48), (8, 72)] {
        let said = read(kind, 2, words(&[], length));
        assert!(said.contains("lane 2, but there are only 2"), "{kind}: {said}");
    }
}

#[test]
fn mutated_streams_end_in_tables_or_errors() {
    let plan = plan();
    let job = job(&plan);
    let good = records(&job);
    let first = from_environment("TCPLAB_RECORDS_FROM", 0);
    let (mut with_tables, mut lawful) = (0_u64, 0_u64);
    let number = from_environment("TCPLAB_RECORDS", QUICK);
    for case in first..first + number {
        let mut random = Random::new(case, "mutated");
        let mut mutated = good.clone();
        for _ in 0..random.up_to(5) {
            forge(&mut mutated, &mut random);
        }
        let mut stream = bytes(&mutated);
        // Corrupted bytes usually end the stream early, so half of the streams only have forged
        // records.
        for _ in 0..(random.up_to(1) * random.up_to(3)) {
            spoil(&mut stream, &mut random);
        }
        let piece = 1 + at(&mut random, 8192);
        let ended = catch_unwind(AssertUnwindSafe(|| {
            let Ok(Produced { tables, files }) = read(&plan, &job, &stream, piece) else { return };
            with_tables += 1;
            // The output is no larger than the input.
            let rows = tables.flows.len() + tables.samples.len() + tables.links.len();
            let size: usize = files.iter().map(|(_, content)| content.len()).sum();
            let rows = rows + tables.intervals.len();
            assert!(rows + tables.drops.len() <= 36 + stream.len() / 16, "{rows} rows");
            assert!(size <= 1000 + 10 * stream.len(), "{size} bytes");
            lawful += u64::from(tcplab_laws::check(&plan, tables).is_ok());
        }));
        assert!(
            ended.is_ok(),
            "TCPLAB_RECORDS=1 TCPLAB_RECORDS_FROM={case} repeats the panic above"
        );
    }
    println!("{number} streams: {with_tables} became tables, {lawful} of which keep all laws");
    assert!(number < 100 || with_tables > number / 10, "most streams are cut short");
}
