//! What kernel is asked for: which source, with what changes, under which name.

use super::congestion;
use super::error::{At, Error};
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// The version of the kernel that is built if nothing else is asked for, and its name.
pub const DEFAULT: &str = "6.12";

/// The frequency of the kernel's timer if nothing else is asked for: fine enough for TCP's timers,
/// and what most servers' kernels have had at most.
pub const DEFAULT_HZ: u32 = 1000;

/// The kernel's own arithmetic of time holds between these.
const HZ: std::ops::RangeInclusive<u32> = 100..=1000;

/// A kernel to be built.
#[derive(Clone, Debug)]
pub struct Request {
    /// Where its source comes from.
    pub source: Source,
    /// How often its timer ticks in a second, from 100 to 1000.
    pub hz: u32,
    /// C files with congestion controls to compile in.
    pub congestion_controls: Vec<PathBuf>,
    /// Its name in the cache; by default its version, and what differs from the default.
    pub name: Option<String>,
    /// How many files are compiled at once; by default as many as there are processors.
    pub jobs: Option<NonZeroUsize>,
}

/// Where the source of a kernel comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Debian's package of the source, by its version: `6.12`.
    Debian(String),
    /// A source tree, or a tarball of one.
    Path(PathBuf),
}

impl Default for Request {
    fn default() -> Self {
        Self {
            source: Source::Debian(DEFAULT.into()),
            hz: DEFAULT_HZ,
            congestion_controls: Vec::new(),
            name: None,
            jobs: None,
        }
    }
}

/// A congestion control of the user's.
#[derive(Debug)]
pub(super) struct Control {
    /// The name of the file.
    pub(super) file: String,
    /// Where it was found.
    pub(super) path: PathBuf,
    /// The source.
    pub(super) text: Vec<u8>,
    /// The names it registers.
    pub(super) names: Vec<String>,
}

impl Control {
    fn read(path: &Path) -> Result<Self, Error> {
        let refused = |problem: &str| Error::refused(path.display().to_string(), problem);
        let text = fs::read(path).at(path)?;
        let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
        let stem = file.strip_suffix(".c").unwrap_or_default();
        if stem.is_empty() || !stem.chars().all(is_plain) {
            return Err(refused(
                "the name of a congestion control's file has letters, digits, `_` and `-`, and ends \
                 in `.c`, like `tcp_mine.c`",
            ));
        }
        let names =
            congestion::registered(&String::from_utf8_lossy(&text)).map_err(|variable| {
                refused(&format!(
                    "`{variable}` is registered without a name that can be read here: expected \
                 `.name = \"...\"` with at most 15 letters, digits, `_`, `-` or `.`",
                ))
            })?;
        if names.is_empty() {
            return Err(refused(
                "registers no congestion control: expected a `struct tcp_congestion_ops mine = \
                 { .name = \"mine\", ... }` and `tcp_register_congestion_control(&mine)`",
            ));
        }
        Ok(Self { file, path: path.to_owned(), text, names })
    }

    /// The name of the file without `.c`.
    pub(super) fn stem(&self) -> &str {
        self.file.strip_suffix(".c").unwrap_or(&self.file)
    }
}

impl Request {
    /// Refuses what cannot be built whatever the source, and reads the user's files.
    pub(super) fn controls(&self) -> Result<Vec<Control>, Error> {
        if let Some(name) = &self.name {
            check_name(name)?;
        }
        if !HZ.contains(&self.hz) {
            let problem = format!("{} is not from {} to {}", self.hz, HZ.start(), HZ.end());
            return Err(Error::refused("hz", problem));
        }
        if let Source::Debian(version) = &self.source {
            let mut parts = version.split('.');
            let is_number = |part: &str| {
                (1..=3).contains(&part.len()) && part.bytes().all(|digit| digit.is_ascii_digit())
            };
            if parts.clone().count() != 2 || !parts.all(is_number) {
                let problem = format!("{version:?} is not like \"6.12\" or \"6.1\"");
                return Err(Error::refused("version", problem));
            }
        }
        let controls = self.congestion_controls.iter().map(|path| Control::read(path));
        let controls = controls.collect::<Result<Vec<_>, _>>()?;
        for (number, control) in controls.iter().enumerate() {
            for earlier in &controls[..number] {
                let at = control.path.display().to_string();
                if control.file == earlier.file {
                    let problem = format!("{} has the same name", earlier.path.display());
                    return Err(Error::refused(at, problem));
                }
                if let Some(name) = control.names.iter().find(|name| earlier.names.contains(name)) {
                    let problem = format!("registers `{name}`, as {} does", earlier.file);
                    return Err(Error::refused(at, problem));
                }
            }
        }
        Ok(controls)
    }

    /// What a kernel of this release is called if the request does not say: its version and what
    /// differs from the default. Debian's kernels of a version replace each other, others do not.
    pub(super) fn name_for(&self, release: &str, control_names: &[String]) -> String {
        if let Some(name) = &self.name {
            return name.clone();
        }
        let version = match &self.source {
            Source::Debian(version) => version.clone(),
            Source::Path(_) => release.to_owned(),
        };
        let hz = (self.hz != DEFAULT_HZ).then(|| format!("hz{}", self.hz));
        let parts: Vec<_> =
            [version].into_iter().chain(hz).chain(control_names.iter().cloned()).collect();
        parts.join("-")
    }
}

/// Refuses what cannot be the name of a kernel, which is also a folder's.
pub(super) fn check_name(name: &str) -> Result<(), Error> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._+-".contains(letter);
    let begins_well = name.starts_with(|letter: char| letter.is_ascii_alphanumeric());
    if begins_well && name.len() <= 64 && name.chars().all(is_plain) {
        Ok(())
    } else {
        Err(Error::Name(name.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_differs_from_the_default() {
        let debian = Request::default();
        assert_eq!(debian.name_for("6.12.90", &[]), "6.12");
        let slow = Request { hz: 250, ..Request::default() };
        assert_eq!(slow.name_for("6.12.90", &["mine".into()]), "6.12-hz250-mine");
        let tree = Request { source: Source::Path("linux".into()), ..Request::default() };
        assert_eq!(tree.name_for("6.13.0-rc3", &[]), "6.13.0-rc3");
        let named = Request { name: Some("patched".into()), ..tree };
        assert_eq!(named.name_for("6.13.0-rc3", &[]), "patched");
    }

    #[test]
    fn names_are_plain() {
        for good in ["6.12", "6.12-hz250", "a", "net_next+1"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", ".hidden", "a/b", "a b", "-x", "ä", "a\n", &"a".repeat(65)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn impossible_requests_are_refused() {
        let refusal = |request: Request| request.controls().unwrap_err().to_string();
        let fast = Request { hz: 5000, ..Request::default() };
        assert_eq!(refusal(fast), "hz: 5000 is not from 100 to 1000");
        for version in ["", "6", "6.12.3", "latest", "6.", "6.12; reboot", "-o.x"] {
            let request = Request { source: Source::Debian(version.into()), ..Request::default() };
            assert!(refusal(request).contains("is not like \"6.12\""), "{version}");
        }
        let missing =
            Request { congestion_controls: vec!["/no/tcp_x.c".into()], ..Request::default() };
        assert_eq!(refusal(missing), "/no/tcp_x.c: no such file or directory");
    }
}
