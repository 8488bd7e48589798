//! The programs that a build needs: found, downloaded, or reported as missing.

use super::apt;
use super::error::Error;
use super::permissions;
use super::process::{Watch, clean};
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Programs and their Debian packages. The first list must be installed by the machine's owner; the
/// others work from any folder.
const COMPILER: [(&str, &str); 2] = [("gcc", "gcc"), ("make", "make")];
const MOVABLE: [(&str, &str); 4] =
    [("flex", "flex"), ("bison", "bison"), ("bc", "bc"), ("xz", "xz-utils")];

/// The package of the C library's headers, whose absence shows only when the compiler is used.
const HEADERS: &str = "libc6-dev";

/// The default path of programs.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The path of the program of this name.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    find_in(&path(), program)
}

fn path() -> OsString {
    env::var_os("PATH").unwrap_or_else(|| USUAL_PATH.into())
}

fn find_in(path: &OsStr, program: &str) -> Option<PathBuf> {
    env::split_paths(path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// The environment of a build: none of the user's variables could change the result.
#[derive(Debug)]
pub(super) struct Tools {
    variables: Vec<(&'static str, OsString)>,
}

impl Tools {
    /// Finds all programs, and downloads those that need no installation.
    pub(super) fn get(folder: &Path, scratch: &Path, watch: &mut Watch<'_>) -> Result<Self, Error> {
        permissions::check(folder)?;
        let mut tools = Self::with(folder);
        let movable = tools.missing(&MOVABLE);
        let mut fixed = tools.missing(&COMPILER);
        if find("gcc").is_some() && !tools.has_headers() {
            fixed.push(HEADERS);
        }
        if !fixed.is_empty() {
            return Err(missing(&[fixed, movable].concat()));
        }
        if movable.is_empty() {
            return Ok(tools);
        }
        if !apt::is_there() {
            return Err(missing(&movable));
        }
        apt::unpack(&movable, folder, scratch, watch)?;
        tools = Self::with(folder);
        match tools.missing(&MOVABLE) {
            still if still.is_empty() => Ok(tools),
            still => Err(missing(&still)),
        }
    }

    /// The machine's programs, and those unpacked into tcplab's folder.
    fn with(folder: &Path) -> Self {
        let bin = folder.join("usr/bin");
        let folders =
            [bin.clone()].into_iter().chain(env::split_paths(&path()).collect::<Vec<_>>());
        let path = env::join_paths(folders).unwrap_or_else(|_| path());
        let mut variables = vec![("PATH", path), ("LC_ALL", "C".into())];
        for kept in ["HOME", "TMPDIR"] {
            variables.extend(env::var_os(kept).map(|value| (kept, value)));
        }
        // These programs find each other by the paths where Debian installs them.
        if bin.join("m4").exists() {
            variables.push(("M4", bin.join("m4").into()));
        }
        if bin.join("bison").exists() {
            variables.push(("BISON_PKGDATADIR", folder.join("usr/share/bison").into()));
        }
        let libraries = ["usr/lib", "lib"].map(|part| folder.join(part).join("x86_64-linux-gnu"));
        let libraries: Vec<_> = libraries.into_iter().filter(|folder| folder.exists()).collect();
        if let (false, Ok(libraries)) = (libraries.is_empty(), env::join_paths(libraries)) {
            variables.push(("LD_LIBRARY_PATH", libraries));
        }
        Self { variables }
    }

    /// A program of the build.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = clean(program);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    fn missing(&self, programs: &[(&str, &'static str)]) -> Vec<&'static str> {
        let path = &self.variables[0].1;
        let missing = programs.iter().filter(|(program, _)| find_in(path, program).is_none());
        missing.map(|(_, package)| *package).collect()
    }

    fn has_headers(&self) -> bool {
        let mut compiler = self.command("gcc");
        compiler.args(["-E", "-include", "stdio.h", "-x", "c", "/dev/null"]);
        compiler.stdout(Stdio::null()).stderr(Stdio::null());
        compiler.status().is_ok_and(|status| status.success())
    }
}

/// A message about packages to install, and how.
pub(super) fn missing(packages: &[&str]) -> Error {
    let what = match packages {
        [one] => format!("{one} is"),
        [most @ .., last] => format!("{} and {last} are", most.join(", ")),
        [] => "nothing is".into(),
    };
    let how = if apt::is_there() {
        let sudo = if apt::is_root() { "" } else { "sudo " };
        format!("install with: {sudo}apt-get install {}", packages.join(" "))
    } else {
        "install it with the system's package manager (these are the names in Debian)".into()
    };
    Error::Missing { what, how }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_packages_are_listed() {
        let text = |packages: &[&str]| missing(packages).to_string();
        assert!(text(&["bc"]).starts_with("bc is needed to build a kernel and not installed; "));
        assert!(text(&["flex", "bison", "bc"]).starts_with("flex, bison and bc are needed"));
    }

    #[test]
    fn unpacked_programs_come_first_in_the_path() {
        let tools = Tools::with(Path::new("/no/tools"));
        let path = tools.variables[0].1.to_str().unwrap();
        assert!(path.starts_with("/no/tools/usr/bin:"), "{path}");
        assert_eq!(tools.missing(&[("sh", "dash"), ("no-such", "package")]), ["package"]);
    }
}
