//! The requested kernel: its source, changes and name.

use super::congestion;
use super::error::{At, Error};
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// The default kernel version, which is also its name.
pub const DEFAULT: &str = "6.12";

/// The default timer frequency: fine enough for TCP's timers, and the maximum in common server
/// kernels.
pub const DEFAULT_HZ: u32 = 1000;

/// The range for which the kernel's own time arithmetic works.
const HZ: std::ops::RangeInclusive<u32> = 100..=1000;

/// A kernel to be built.
#[derive(Clone, Debug)]
pub struct Request {
    /// The origin of the source.
    pub source: Source,
    /// The timer frequency, from 100 to 1000.
    pub hz: u32,
    /// C files with congestion controls to compile in.
    pub congestion_controls: Vec<PathBuf>,
    /// The name in the cache; by default the version and the differences from the default.
    pub name: Option<String>,
    /// The number of files compiled in parallel; by default the number of processors.
    pub jobs: Option<NonZeroUsize>,
}

/// The origin of a kernel's source.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A Debian source package, by version: `6.12`.
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

/// A congestion control of the user.
#[derive(Debug)]
pub(super) struct Control {
    /// The name of the file.
    pub(super) file: String,
    /// Where it was found.
    pub(super) path: PathBuf,
    /// The source.
    pub(super) text: Vec<u8>,
    /// The names that the source registers.
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
    /// Rejects requests that cannot be built with any source, and reads the user's files.
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

    /// The default name of a kernel with this release: its version and the differences from the
    /// default. Debian kernels of one version replace each other, others do not.
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

/// Rejects invalid names of kernels, which are also names of folders.
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
    fn default_names_show_what_differs_from_the_default() {
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
    fn kernel_names_are_restricted_to_plain_characters() {
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
