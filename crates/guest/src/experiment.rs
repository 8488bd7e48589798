//! The experiment from beginning to end.

use crate::failure::Failure;
use crate::netlink::Netlink;
use crate::{channel, clock, hosts, job_file, links, machine, programs, traffic};
use tcplab_guest::Job;

/// Carries out the job. After that, only turning the machine off remains.
pub(crate) fn run() -> Result<(), Failure> {
    machine::mount_basics()?;
    channel::open()?;
    machine::lift_limits()?;
    // Threads use these until the machine is off.
    let job: &'static Job = Box::leak(Box::new(job_file::read()?));
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
