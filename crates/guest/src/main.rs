//! Process 1 of the guest: carries out a [`tcplab_guest::Job`], reports, and turns the machine off.
//!
//! A system call costs tens of microseconds here, while computation takes no simulated time,
//! because the clock stands still while code runs. The guest therefore makes few system calls, and
//! sleeps with nanosecond precision.

mod capabilities;
mod channel;
mod clock;
mod experiment;
mod failure;
mod flow;
mod hosts;
mod job_file;
mod kernel_sandbox;
mod links;
mod machine;
mod netlink;
mod program_sandbox;
mod programs;
mod start;
mod traffic;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    match words.next() {
        Some(word) if word == start::WORD => {
            eprintln!("error: the kernel does not start: {}", start::launch(words));
            return ExitCode::from(2);
        }
        Some(word) if word == programs::WORD => {
            eprintln!("tcplab: the program does not start: {}", programs::become_one(words));
            return ExitCode::from(126);
        }
        _ => {}
    }
    // In any other process, turning the machine off would be harmful.
    if std::process::id() != 1 {
        eprintln!("error: this is process 1 of a tcplab guest, and nothing else");
        return ExitCode::from(2);
    }
    std::panic::set_hook(Box::new(|panic| channel::fail(&panic.to_string())));
    match experiment::run() {
        Ok(()) => machine::power_off(),
        Err(failure) => channel::fail(&failure.to_string()),
    }
}
