//! The experiment from beginning to end.

use crate::failure::{Failure, Trying};
use crate::netlink::Netlink;
use crate::{channel, clock, hosts, links, machine, programs, traffic};
use tcplab_guest::job::{self, Job};

/// Carries out the job. After that, only turning the machine off remains.
pub(crate) fn run() -> Result<(), Failure> {
    machine::mount_basics()?;
    channel::open()?;
    machine::lift_limits()?;
    // Threads use these until the machine is off.
    let job: &'static Job = Box::leak(Box::new(read()?));
    for (file, value) in &job.settings {
        machine::set(file, value)?;
    }
    if let Some(spec) = &job.programs {
        programs::prepare(spec)?;
    }
    // In the first namespace, which has none of the devices of links.
    let outside = Netlink::open()?;
    let hosts = hosts::make(&job.hosts)?.leak();
    links::make(job, hosts, &outside)?;

    job.flows.iter().for_each(channel::set_draws);
    let ends = job.links.iter().flat_map(|link| &link.ends);
    let devices = ends.map(|end| job.hosts[end.host].namespaces.len()).sum();
    let start = clock::next_start(clock::now(), devices);
    traffic::start(job, hosts, start);
    clock::settle();
    channel::begin(start, job.duration, &job.record);
    clock::sleep_until(start + job.duration);
    traffic::report_unfinished();
    programs::end();
    channel::end();
    Ok(())
}

/// The job, as written by the host side.
pub(crate) fn read() -> Result<Job, Failure> {
    let text = std::fs::read_to_string(job::PATH).trying(|| job::PATH.into())?;
    serde_json::from_str(&text).map_err(|error| Failure::new(job::PATH, error.to_string()))
}
