//! The files of the machine that programs may read, and the confinement of the kernel's process.

use landlock::{
    AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated, RulesetError,
};
use rustix::process::{getgid, getuid};
use rustix::thread::secure_computing_mode;
use std::path::PathBuf;
use tcplab_guest::job::Programs;

/// Files that all programs may read: the machine's programs and libraries, and the files of `/etc`
/// that these need. Users, passwords, host names and keys are not included.
const SYSTEM: [&str; 17] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
];

/// The user of programs started by root: `nobody`.
const NOBODY: u32 = 65534;

/// Files that the programs of a run may read besides the machine's programs and libraries.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Files and folders.
    pub reads: Vec<PathBuf>,
    /// Folders within these that appear empty.
    pub hidden: Vec<PathBuf>,
}

impl Access {
    /// The job's part about programs. They run as the user who starts them, and may read that
    /// user's files among those above, or as `nobody` if started by root.
    pub(crate) fn programs(&self) -> Programs {
        let ordinary = |number: u32| if number == 0 { NOBODY } else { number };
        let text = |path: &PathBuf| path.to_str().map(String::from);
        let reads = SYSTEM.into_iter().map(String::from);
        Programs {
            user: ordinary(getuid().as_raw()),
            group: ordinary(getgid().as_raw()),
            reads: reads.chain(self.reads.iter().filter_map(text)).collect(),
            hidden: self.hidden.iter().filter_map(text).collect(),
        }
    }
}

/// The confinements of the kernel's process that this machine lacks.
pub fn missing() -> Vec<&'static str> {
    fn landlock() -> Result<RulesetCreated, RulesetError> {
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        ruleset.handle_access(AccessFs::Execute)?.create()
    }
    let mut missing = Vec::new();
    if landlock().is_err() {
        missing.push("Landlock");
    }
    if secure_computing_mode().is_err() {
        missing.push("seccomp");
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_never_root() {
        let programs = Access { reads: vec!["/srv/data".into()], hidden: vec![] }.programs();
        assert!(programs.user != 0 && programs.group != 0);
        assert_eq!(programs.reads.last().unwrap(), "/srv/data");
        assert!(!programs.reads.iter().any(|path| path == "/etc" || path == "/"));
    }
}
