//! The cache of kernels: a folder for each, `kernels/NAME/{linux,kernel.json,config}`.

use super::error::{At, Error};
use super::hash;
use super::permissions;
use super::recipe;
use super::request::check_name;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// The description of a kernel, in its folder.
pub(super) const DESCRIPTION: &str = "kernel.json";

/// The kernel itself, in its folder.
pub(super) const BINARY: &str = "linux";

/// A kernel in the cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    /// The name: `6.12`.
    pub name: String,
    /// The release: `6.12.90`.
    pub release: String,
    /// The hash of the kernel's source, configuration and tcplab's additions (`build`).
    pub key: String,
    /// The timer frequency in hertz.
    pub hz: u32,
    /// The origin of the source.
    pub source: String,
    /// The names of the kernel's congestion controls, in alphabetical order.
    pub congestion_controls: Vec<String>,
    /// The compiler.
    pub compiler: String,
    /// The hash of tcplab's additions.
    pub(super) fingerprint: String,
    /// The SHA-256 of the program. Missing in kernels built by older versions of tcplab.
    #[serde(default)]
    pub(super) sha256: String,
    /// The kernel's folder.
    #[serde(skip)]
    pub folder: PathBuf,
}

impl Kernel {
    /// The kernel's program, after checks that no other user can have changed it and that its
    /// content is unchanged.
    ///
    /// # Errors
    ///
    /// If others can write to it, or its content differs from what was built.
    pub fn binary(&self) -> Result<PathBuf, Error> {
        let binary = self.folder.join(BINARY);
        permissions::check(&binary)?;
        permissions::check(&self.folder.join(DESCRIPTION))?;
        if hash::of_unchanged(&binary)? == self.sha256 {
            return Ok(binary);
        }
        let name = &self.name;
        let problem = format!(
            "has changed since it was built (its SHA-256 differs): run `tcplab kernel remove \
             {name}` and build it again"
        );
        Err(Error::refused(binary.display().to_string(), problem))
    }

    /// Whether the kernel was built by a version of tcplab with other additions, or one that kept
    /// no hash.
    pub fn is_outdated(&self) -> bool {
        self.fingerprint != recipe::fingerprint() || self.sha256.is_empty()
    }

    /// The kernel with the hash that an older version did not store; otherwise unchanged.
    pub(super) fn hashed(self) -> Result<Self, Error> {
        if !self.sha256.is_empty() {
            return self.binary().map(|_| self);
        }
        let hashed = Self { sha256: hash::of(&self.folder.join(BINARY))?, ..self };
        hashed.describe(&hashed.folder)?;
        Ok(hashed)
    }

    /// Writes the kernel's description, as the last of its files.
    pub(super) fn describe(&self, folder: &Path) -> Result<(), Error> {
        let file = folder.join(DESCRIPTION);
        let text = serde_json::to_string_pretty(self).expect("it is plain data");
        fs::write(&file, text + "\n").at(&file)
    }
}

/// The folder of kernels and of files that builds need.
#[derive(Clone, Debug)]
pub struct Cache {
    pub(super) folder: PathBuf,
}

impl Cache {
    /// The user's cache: `$TCPLAB_CACHE`, or else `~/.cache/tcplab`. It need not exist.
    ///
    /// # Errors
    ///
    /// If neither `$TCPLAB_CACHE` nor `$HOME` is set.
    pub fn open() -> Result<Self, Error> {
        let named = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let folder = match (named("TCPLAB_CACHE"), named("HOME")) {
            (Some(folder), _) => PathBuf::from(folder),
            (None, Some(home)) => Path::new(&home).join(".cache/tcplab"),
            (None, None) => return Err(Error::NoCache),
        };
        Self::at(&folder)
    }

    /// A cache in a given folder.
    ///
    /// # Errors
    ///
    /// If the path is relative and the current folder no longer exists.
    pub fn at(folder: &Path) -> Result<Self, Error> {
        Ok(Self { folder: std::path::absolute(folder).at(folder)? })
    }

    /// The cache's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// All kernels, sorted by name.
    ///
    /// # Errors
    ///
    /// If the folder exists and cannot be read, or others can write to it.
    pub fn list(&self) -> Result<Vec<Kernel>, Error> {
        let folder = self.kernels();
        permissions::check(&folder)?;
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.at(&folder)?,
        };
        let mut kernels = Vec::new();
        for entry in entries {
            kernels.extend(read(&entry.at(&folder)?.path()));
        }
        kernels.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(kernels)
    }

    /// The kernel of this name.
    ///
    /// # Errors
    ///
    /// If there is none, or the name is invalid.
    pub fn find(&self, name: &str) -> Result<Kernel, Error> {
        check_name(name)?;
        permissions::check(&self.kernels())?;
        if let Some(kernel) = read(&self.kernels().join(name)) {
            return Ok(kernel);
        }
        let names: Vec<_> = self.list()?.into_iter().map(|kernel| kernel.name).collect();
        let known = match tcplab_model::suggest(name, &names) {
            Some(near) => format!("did you mean {near:?}?"),
            None if names.is_empty() => "there are none; `tcplab kernel build` makes one".into(),
            None => format!("there are {}", names.join(", ")),
        };
        Err(Error::Unknown { name: name.into(), known })
    }

    /// Removes the kernel of this name. Runs that use it are not affected.
    ///
    /// # Errors
    ///
    /// If there is none, or it cannot be removed.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        let folder = self.find(name)?.folder;
        // Without its description the folder is no kernel, should the rest fail.
        let description = folder.join(DESCRIPTION);
        fs::remove_file(&description).at(&description)?;
        fs::remove_dir_all(&folder).at(&folder)
    }

    /// The folder of kernels.
    pub(super) fn kernels(&self) -> PathBuf {
        self.folder.join("kernels")
    }
}

/// The kernel in a folder, if it is complete.
fn read(folder: &Path) -> Option<Kernel> {
    let text = fs::read_to_string(folder.join(DESCRIPTION)).ok()?;
    let described: Kernel = serde_json::from_str(&text).ok()?;
    let is_whole = folder.file_name()? == described.name.as_str() && folder.join(BINARY).is_file();
    is_whole.then(|| Kernel { folder: folder.to_owned(), ..described })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::PermissionsExt;

    fn kernel(name: &str) -> Kernel {
        Kernel {
            name: name.into(),
            release: "6.12.90".into(),
            key: "0123456789abcdef".into(),
            hz: 1000,
            source: "linux-source-6.12".into(),
            congestion_controls: vec!["cubic".into(), "reno".into()],
            compiler: "gcc 12".into(),
            fingerprint: recipe::fingerprint(),
            // The SHA-256 of no bytes (FIPS 180-4).
            sha256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".into(),
            folder: PathBuf::new(),
        }
    }

    fn cache(test: &str) -> Cache {
        let folder =
            std::env::temp_dir().join(format!("tcplab-cache-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        Cache::at(&folder).unwrap()
    }

    fn put(cache: &Cache, kernel: &Kernel) {
        let folder = cache.kernels().join(&kernel.name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(BINARY), "").unwrap();
        kernel.describe(&folder).unwrap();
    }

    #[test]
    fn kernels_are_listed_found_and_removed() {
        let cache = cache("all");
        assert_eq!(cache.list().unwrap(), []);
        let none = cache.find("6.12").unwrap_err().to_string();
        assert!(none.ends_with("there are none; `tcplab kernel build` makes one"), "{none}");
        let old = Kernel { fingerprint: "another".into(), ..kernel("6.12-old") };
        put(&cache, &old);
        put(&cache, &kernel("6.1"));
        let names: Vec<_> = cache.list().unwrap().into_iter().map(|kernel| kernel.name).collect();
        assert_eq!(names, ["6.1", "6.12-old"]);
        assert!(cache.find("6.12-old").unwrap().is_outdated());
        let found = cache.find("6.1").unwrap();
        assert!(!found.is_outdated());
        assert_eq!(found.binary().unwrap(), cache.folder().join("kernels/6.1/linux"));
        let near = cache.find("6.2").unwrap_err().to_string();
        assert_eq!(near, "no kernel is called \"6.2\"; did you mean \"6.1\"?");
        cache.remove("6.1").unwrap();
        assert!(cache.find("6.1").is_err());
        assert!(cache.remove("..").is_err());
        fs::remove_dir_all(cache.folder()).unwrap();
    }

    #[test]
    fn a_changed_kernel_binary_is_refused() {
        let cache = cache("exchanged");
        put(&cache, &kernel("6.1"));
        let found = cache.find("6.1").unwrap();
        let binary = found.binary().unwrap();
        fs::write(&binary, "evil").unwrap();
        let said = found.binary().unwrap_err().to_string();
        assert!(said.contains("has changed since it was built"), "{said}");
        // The same size and time, but another file.
        let time = fs::metadata(&binary).unwrap().modified().unwrap();
        fs::write(&binary, "").unwrap();
        assert!(found.binary().is_ok());
        let other = binary.with_extension("other");
        fs::write(&other, "").unwrap();
        fs::rename(&other, &binary).unwrap();
        File::options().write(true).open(&binary).unwrap().set_modified(time).unwrap();
        assert!(found.binary().is_ok());
        let unhashed = Kernel { sha256: String::new(), ..kernel("6.12") };
        assert!(unhashed.is_outdated());
        fs::set_permissions(&binary, fs::Permissions::from_mode(0o777)).unwrap();
        let said = found.binary().unwrap_err().to_string();
        assert!(said.contains("everyone can write to it (mode 0777)"), "{said}");
        fs::remove_dir_all(cache.folder()).unwrap();
    }

    #[test]
    fn a_cache_writable_by_others_is_refused() {
        let cache = cache("open");
        put(&cache, &kernel("6.1"));
        for folder in [cache.folder().to_owned(), cache.kernels()] {
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
            for refused in [cache.list().err(), cache.find("6.1").err(), cache.remove("6.1").err()]
            {
                let said = refused.unwrap().to_string();
                assert!(said.contains("everyone can write to it (mode 0777)"), "{said}");
            }
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        }
        assert!(cache.find("6.1").is_ok());
        fs::remove_dir_all(cache.folder()).unwrap();
    }

    #[test]
    fn incomplete_cache_entries_are_no_kernels() {
        let cache = cache("half");
        put(&cache, &kernel("6.1"));
        fs::remove_file(cache.kernels().join("6.1/linux")).unwrap();
        put(&cache, &kernel("6.12"));
        fs::write(cache.kernels().join("6.12/kernel.json"), "{").unwrap();
        put(&cache, &kernel("a"));
        fs::rename(cache.kernels().join("a"), cache.kernels().join("b")).unwrap();
        assert_eq!(cache.list().unwrap(), []);
        fs::remove_dir_all(cache.folder()).unwrap();
    }
}
