//! Debian packages, unpacked into a folder: nothing is installed, not even by root.

use super::Progress;
use super::error::{At, Error, reason};
use super::process::{self, Watch};
use super::tools::find;
use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The message of `apt-get` for a package that is in none of its lists.
const NOT_THERE: &str = "Unable to locate package";

/// Whether a package was not unpacked because it is in none of the lists.
pub(super) fn is_not_there(error: &Error, package: &str) -> bool {
    matches!(error, Error::Refused { at, problem } if at == package && problem.contains(NOT_THERE))
}

/// Whether packages are available here at all.
pub(super) fn is_there() -> bool {
    find("apt-get").is_some() && find("dpkg-deb").is_some()
}

/// Whether the user can install packages.
pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Downloads and unpacks packages, with those of their dependencies that are not installed.
pub(super) fn unpack(
    packages: &[&str],
    into: &Path,
    scratch: &Path,
    watch: &mut Watch<'_>,
) -> Result<(), Error> {
    let mut apt = Apt { options: Vec::new(), folder: scratch.join("apt") };
    let mut seen = BTreeSet::new();
    let mut todo: Vec<String> = packages.iter().map(|&name| name.to_owned()).collect();
    while let Some(package) = todo.pop() {
        if !seen.insert(package.clone()) {
            continue;
        }
        let archive = apt.download(&package, watch)?;
        proceed(watch(Progress::stage(format!("unpacking {package}"))))?;
        fs::create_dir_all(into).at(into)?;
        output(program("dpkg-deb").arg("-x").arg(&archive).arg(into))
            .map_err(|said| Error::refused(package.as_str(), said))?;
        fs::remove_file(&archive).at(&archive)?;
        todo.extend(apt.dependencies(&package).into_iter().filter(|name| !is_installed(name)));
    }
    Ok(())
}

/// The lists that apt uses: the machine's own or, if these are empty, some of tcplab's.
struct Apt {
    options: Vec<String>,
    folder: PathBuf,
}

impl Apt {
    fn download(&mut self, package: &str, watch: &mut Watch<'_>) -> Result<PathBuf, Error> {
        let folder = self.folder.join(package);
        fs::create_dir_all(&folder).at(&folder)?;
        let mut said = self.get(&["download", package], &folder, package, watch)?;
        if said.is_some() && self.options.is_empty() {
            for part in ["state/lists/partial", "cache/archives/partial"] {
                let part = self.folder.join(part);
                fs::create_dir_all(&part).at(&part)?;
            }
            for (name, part) in [("State", "state"), ("Cache", "cache")] {
                let part = self.folder.join(part);
                self.options.extend(["-o".into(), format!("Dir::{name}={}", part.display())]);
            }
            said = self.get(&["update", "-qq"], &folder, "the list of packages", watch)?;
            if said.is_none() {
                said = self.get(&["download", package], &folder, package, watch)?;
            }
        }
        if let Some(said) = said {
            return Err(Error::refused(package, said));
        }
        let mut files = fs::read_dir(&folder).at(&folder)?;
        match files.next() {
            Some(file) => Ok(file.at(&folder)?.path()),
            None => Err(Error::refused(package, "apt-get has downloaded nothing")),
        }
    }

    /// Runs `apt-get`. An error has its output.
    fn get(
        &self,
        words: &[&str],
        folder: &Path,
        what: &str,
        watch: &mut Watch<'_>,
    ) -> Result<Option<String>, Error> {
        let mut command = program("apt-get");
        // Unsigned packages are not downloaded, whatever the machine's settings allow.
        command.args(["-o", "APT::Get::AllowUnauthenticated=false"]);
        command.args(["-o", "Acquire::AllowInsecureRepositories=false"]);
        command.args(&self.options).args(words).current_dir(folder);
        let mut log = fs::File::create("/dev/null").at(Path::new("/dev/null"))?;
        let mut said = String::new();
        let status = process::run(&command, &mut log, &mut |line| {
            if let Some(line) = line {
                said += line;
                said.push('\n');
            }
            watch(Progress::stage(format!("downloading {what}")))
        })?;
        Ok((!status.success()).then(|| complaint(&said)))
    }

    fn dependencies(&self, package: &str) -> Vec<String> {
        let listed = output(program("apt-cache").args(&self.options).args(["depends", package]));
        let listed = listed.unwrap_or_default();
        let names = listed.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
        names.filter(|name| !name.starts_with('<')).map(str::to_owned).collect()
    }
}

/// Rejects a file of an installed package that differs from the package.
pub(super) fn check_installed(package: &str, file: &Path) -> Result<(), Error> {
    if !is_installed(package) {
        return Ok(());
    }
    // One line for each file that differs, with its path as the last word.
    let mut verify = program("dpkg");
    let said = verify.args(["--verify", package]).output().at(Path::new("dpkg"))?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    if said.lines().any(|line| line.split_whitespace().last().map(Path::new) == Some(file)) {
        let problem = format!(
            "differs from the file in Debian's package (`dpkg --verify {package}`); install the \
             package again"
        );
        return Err(Error::refused(file.display().to_string(), problem));
    }
    Ok(())
}

fn is_installed(package: &str) -> bool {
    let status = output(program("dpkg-query").args(["-W", "-f=${db:Status-Status}", package]));
    status.is_ok_and(|status| status == "installed")
}

/// A program with tcplab's environment, including proxies, and English messages.
fn program(name: &str) -> Command {
    let mut command = process::clean(name);
    command.envs(std::env::vars_os());
    command.env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// The output of a program, or why it failed.
fn output(command: &mut Command) -> Result<String, String> {
    let done = command.output().map_err(|error| reason(&error))?;
    if done.status.success() {
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    } else {
        Err(complaint(&String::from_utf8_lossy(&done.stderr)))
    }
}

/// The errors in a program's output, in one line.
fn complaint(said: &str) -> String {
    let errors: Vec<_> = said.lines().filter_map(|line| line.strip_prefix("E: ")).collect();
    if errors.is_empty() { said.trim().to_owned() } else { errors.join("; ") }
}

pub(super) fn proceed(verdict: ControlFlow<()>) -> Result<(), Error> {
    match verdict {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Stopped),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apt_errors_are_extracted() {
        let said = "Reading package lists...\nE: Unable to locate package x\nW: z\nE: b\n";
        assert_eq!(complaint(said), "Unable to locate package x; b");
        assert_eq!(complaint("no such luck\n"), "no such luck");
    }
}
