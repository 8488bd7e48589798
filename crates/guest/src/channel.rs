//! The channel to the host side: a file of tcplab's part of the kernel. One write is one record.

use crate::failure::{Failure, Trying};
use crate::machine;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::OnceLock;
use tcplab_guest::Report;
use tcplab_guest::job::{CHANNEL, Flow, Record};
use tcplab_units::{Duration, Time};

static OPENED: OnceLock<File> = OnceLock::new();

/// The limit of a reason in characters, with which it fits the longest record of the kernel.
const LONGEST_REASON: usize = 1000;

pub(crate) fn open() -> Result<(), Failure> {
    let file = OpenOptions::new().write(true).open(CHANNEL).trying(|| CHANNEL.into())?;
    OPENED.get_or_init(|| file);
    Ok(())
}

pub(crate) fn report(report: &Report) {
    write(&text(report));
}

fn text(report: &Report) -> String {
    serde_json::to_string(report).expect("a report has no maps with other keys than text")
}

/// Begins another session on the connection of this client's port.
pub(crate) fn begin_session(port: u16, report: &Report) {
    write(&format!("session {port} {}", text(report)));
}

/// Sets the seeds of congestion controls on both sides of a flow.
pub(crate) fn set_draws(flow: &Flow) {
    let Flow { client, server, traffic, .. } = flow;
    let last = usize::from(client.port) + traffic.connections().max(1) - 1;
    let last = last.min(u16::MAX.into());
    let (port, seeds, hosts) =
        (client.port, (client.seed, server.seed), (client.host, server.host));
    write(&format!("draws {port} {last} {} {} {} {}", seeds.0, seeds.1, hosts.0, hosts.1));
}

/// Makes the kernel record from `start` on, a time of the clock.
pub(crate) fn begin(start: u64, duration: u64, record: &Record) {
    let samples = match record.samples {
        None => "off".into(),
        Some(0) => "ack".into(),
        Some(interval) => interval.to_string(),
    };
    let links = record.links.map_or("off".into(), |interval| interval.to_string());
    let marks = record.window.map_or(String::new(), |window| {
        let [from, to] = [window.from(), window.to()].map(|time| time.since(Time::ZERO).as_nanos());
        format!(" {from} {to} {}", window.every().map_or(0, Duration::as_nanos))
    });
    write(&format!("begin {start} {duration} {samples} {links}{marks}"));
}

/// Ends the experiment.
pub(crate) fn end() {
    write("end");
}

/// Reports a failure, and turns the machine off.
pub(crate) fn fail(reason: &str) -> ! {
    // Also printed on the console, since the channel itself may have failed.
    eprintln!("tcplab: {reason}");
    if OPENED.get().is_some() {
        report(&Report::Failed { reason: reason.chars().take(LONGEST_REASON).collect() });
        // The kernel buffers records until there are many, or until this.
        end();
    }
    machine::power_off()
}

fn write(text: &str) {
    let mut file = OPENED.get().expect("the channel is opened before anything is reported");
    if let Err(error) = file.write_all(text.as_bytes()) {
        eprintln!("tcplab: {CHANNEL}: {error}: {text}");
        machine::power_off();
    }
}
