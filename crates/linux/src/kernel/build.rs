//! Builds a kernel for a request and stores it in the cache.
//!
//! Only one build at a time runs in a cache, which it locks. A build works in a folder beside the
//! kernels, and a finished kernel is moved among them, so there is never an incomplete one. The
//! next build removes the files of one that died.

use super::apt::proceed;
use super::cache::{BINARY, Cache, Kernel};
use super::error::{At, Error};
use super::process::{self, TICK, Watch};
use super::recipe::{self, KCONFIG, read};
use super::request::{Control, Request, check_name};
use super::source::Source;
use super::tools::Tools;
use super::{Progress, congestion, hash, log, options, permissions};
use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// The peak disk usage of a build: the source and all objects. A tree of 6.12, built by hand, was
/// 1.8 GiB.
const SPACE: u64 = 2_200_000_000;

/// The builder, host and time recorded in a kernel: constants, so that equal sources give equal
/// kernels.
const IDENTITY: [(&str, &str); 4] = [
    ("KBUILD_BUILD_TIMESTAMP", "1970-01-01"),
    ("KBUILD_BUILD_USER", "tcplab"),
    ("KBUILD_BUILD_HOST", "tcplab"),
    ("KBUILD_BUILD_VERSION", "1"),
];

impl Cache {
    /// Gets a kernel: an existing one, or else a new one. Another kernel of its name is replaced.
    ///
    /// `watch` is called several times a second with the progress, and can stop the build.
    ///
    /// # Errors
    ///
    /// If the request is impossible, a requirement is missing, the source does not compile, or
    /// `watch` stopped the build. The cache is then unchanged, except for the log.
    pub fn build(
        &self,
        request: &Request,
        watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Kernel, Error> {
        if cfg!(not(all(target_os = "linux", target_arch = "x86_64"))) {
            let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
            return Err(Error::Machine { system, machine });
        }
        let controls = request.controls()?;
        let kernels = self.kernels();
        permissions::check(&kernels)?;
        permissions::make(&kernels)?;
        let _lock = lock(&kernels.join(".lock"), watch)?;
        let scratch = Scratch::new(kernels.join(".building"), watch)?;
        let source =
            Source::find(&request.source, &self.folder.join("sources"), &scratch.0, watch)?;
        let key = key(&source, request.hz, &controls);
        let own = names(&controls);
        if let Some(same) = self.list()?.into_iter().find(|kernel| kernel.key == key) {
            let name = request.name_for(&same.release, &own);
            if let Ok(kernel) = self.find(&name)
                && kernel.key == key
            {
                return kernel.hashed();
            }
            // The same kernel exists under another name.
            let folder = scratch.0.join("kernel");
            fs::create_dir(&folder).at(&folder)?;
            for file in [BINARY, "config"] {
                let original = same.folder.join(file);
                fs::copy(&original, folder.join(file)).at(&original)?;
            }
            let sha256 = hash::of(&folder.join(BINARY))?;
            let copy = Kernel { name, sha256, ..same };
            copy.describe(&folder)?;
            return self.put(&folder, &copy.name, &scratch.0);
        }
        self.ensure_space(&scratch.0)?;
        let tools = Tools::get(&self.folder.join("tools"), &scratch.0, watch)?;
        let log = self.folder.join("build.log");
        let mut output = File::options()
            .create(true)
            .truncate(true)
            .read(true)
            .write(true)
            .open(&log)
            .at(&log)?;
        let tree = source.copy(&scratch.0.join("tree"), &tools, &mut output, watch)?;
        recipe::apply(&tree, &source.text, request.hz, &controls)?;
        let mut make = Make { tree, tools, log, output, watch, request };
        let release = make.kernel(&source.text, &controls)?;
        let sha256 = hash::of(&make.tree.join(BINARY))?;
        let kernel = Kernel {
            name: request.name_for(&release, &own),
            release,
            key,
            hz: request.hz,
            source: source.text,
            congestion_controls: make.congestion_controls()?,
            compiler: make.compiler(),
            fingerprint: recipe::fingerprint(),
            sha256,
            folder: PathBuf::new(),
        };
        let folder = scratch.0.join("kernel");
        fs::create_dir(&folder).at(&folder)?;
        for (file, name) in [(BINARY, BINARY), (".config", "config")] {
            let file = make.tree.join(file);
            fs::rename(&file, folder.join(name)).at(&file)?;
        }
        kernel.describe(&folder)?;
        self.put(&folder, &kernel.name, &scratch.0)
    }

    /// Moves a finished kernel among the others, replacing one of the same name.
    fn put(&self, folder: &Path, name: &str, scratch: &Path) -> Result<Kernel, Error> {
        let place = self.kernels().join(name);
        if place.exists() {
            fs::rename(&place, scratch.join("replaced")).at(&place)?;
        }
        fs::rename(folder, &place).at(&place)?;
        self.find(name)
    }

    /// Rejects a build for which the disk has no space.
    fn ensure_space(&self, scratch: &Path) -> Result<(), Error> {
        let disk = rustix::fs::statvfs(scratch).map_err(std::io::Error::from).at(scratch)?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        if free < SPACE {
            return Err(Error::Space { folder: self.folder.clone(), needed: SPACE, free });
        }
        Ok(())
    }
}

/// Waits until no other build runs.
fn lock(file: &Path, watch: &mut Watch<'_>) -> Result<File, Error> {
    let lock = File::create(file).at(file)?;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::Error(error)) => return Err(error).at(file),
            Err(TryLockError::WouldBlock) => {}
        }
        proceed(watch(Progress::stage("waiting for another build to end")))?;
        std::thread::sleep(TICK);
    }
}

/// A folder that is removed at the end of the build, even after a failure.
struct Scratch(PathBuf);

impl Scratch {
    fn new(folder: PathBuf, watch: &mut Watch<'_>) -> Result<Self, Error> {
        if folder.exists() {
            proceed(watch(Progress::stage("removing what another build has left")))?;
            fs::remove_dir_all(&folder).at(&folder)?;
        }
        fs::create_dir(&folder).at(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // If this fails, the next build tries again.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The hash of everything that decides a kernel's behaviour.
fn key(source: &Source, hz: u32, controls: &[Control]) -> String {
    let (fingerprint, hz) = (recipe::fingerprint(), hz.to_string());
    let ours = [source.key.as_bytes(), fingerprint.as_bytes(), hz.as_bytes()];
    let theirs = controls.iter().flat_map(|control| [control.file.as_bytes(), &control.text]);
    recipe::fingerprint_of(ours.into_iter().chain(theirs))
}

/// The names of the user's congestion controls.
fn names(controls: &[Control]) -> Vec<String> {
    controls.iter().flat_map(|control| control.names.clone()).collect()
}

/// A build in its source tree.
struct Make<'a> {
    tree: PathBuf,
    tools: Tools,
    log: PathBuf,
    output: File,
    watch: &'a mut Watch<'a>,
    request: &'a Request,
}

impl Make<'_> {
    /// Builds the kernel and returns its release.
    fn kernel(&mut self, source: &str, controls: &[Control]) -> Result<String, Error> {
        let stage = Progress::stage(format!("configuring {source}"));
        let failed = format!("{source} cannot be configured");
        self.make(&["tinyconfig"], stage.clone(), &failed)?;
        let known = self.known_options()?;
        let file = self.tree.join(".config");
        let text = read(&file)? + &options::lines(&known, self.request.hz);
        fs::write(&file, text).at(&file)?;
        self.make(&["olddefconfig"], stage, &failed)?;
        options::check(&read(&file)?, &known, self.request.hz, source)?;
        let release = self.release()?;
        check_name(&self.request.name_for(&release, &names(controls)))?;
        self.ensure_different(controls)?;
        // User code fails most often, and is compiled first.
        for control in controls {
            let object = format!("net/ipv4/{}.o", control.stem());
            let stage = Progress::stage(format!("compiling {}", control.file));
            let failed = format!("{} does not compile", control.path.display());
            self.make(&[&object], stage, &failed)?;
        }
        let stage = format!("compiling Linux {release}");
        let start = Progress { stage, done: 0, total: log::EXPECTED, unit: "files" };
        self.make(&["linux"], start, &format!("{source} does not compile"))?;
        Ok(release)
    }

    /// Runs `make`, counting the compiled files if the progress has a total.
    fn make(&mut self, targets: &[&str], start: Progress, failed: &str) -> Result<(), Error> {
        let jobs = self.request.jobs.or_else(|| std::thread::available_parallelism().ok());
        let mut make = self.tools.command("make");
        make.args(["ARCH=um", "LOCALVERSION="]).envs(IDENTITY).current_dir(&self.tree);
        make.arg(format!("-j{}", jobs.map_or(1, usize::from))).args(targets);
        let begun = self.output.metadata().at(&self.log)?.len();
        let mut progress = start;
        let watch = &mut *self.watch;
        let status = process::run(&make, &mut self.output, &mut |line| {
            match line.and_then(log::step) {
                Some(("CC", _)) if progress.total > 0 => {
                    progress.done += 1;
                    progress.total = progress.total.max(progress.done);
                }
                Some(("LD", "vmlinux.o")) => progress = Progress::stage("linking"),
                _ => {}
            }
            watch(progress.clone())
        })?;
        if status.success() {
            return Ok(());
        }
        let mut log = File::open(&self.log).at(&self.log)?;
        let mut said = Vec::new();
        std::io::Seek::seek(&mut log, std::io::SeekFrom::Start(begun)).at(&self.log)?;
        log.read_to_end(&mut said).at(&self.log)?;
        let lines = log::complaints(&String::from_utf8_lossy(&said));
        Err(Error::Failed { what: failed.into(), lines, log: self.log.clone() })
    }

    /// All options of this source.
    fn known_options(&self) -> Result<BTreeSet<String>, Error> {
        let mut known = BTreeSet::new();
        let mut folders = vec![self.tree.clone()];
        while let Some(folder) = folders.pop() {
            for item in fs::read_dir(&folder).at(&folder)? {
                let item = item.at(&folder)?;
                let kind = item.file_type().at(&folder)?;
                if kind.is_dir() {
                    folders.push(item.path());
                } else if item.file_name().to_string_lossy().starts_with("Kconfig") {
                    known.extend(options::defined(&read(&item.path())?).map(str::to_owned));
                }
            }
        }
        if known.is_empty() {
            let at = self.tree.join(KCONFIG).display().to_string();
            return Err(Error::refused(at, "defines no option"));
        }
        Ok(known)
    }

    fn release(&self) -> Result<String, Error> {
        let mut make = self.tools.command("make");
        make.args(["-s", "ARCH=um", "LOCALVERSION=", "kernelrelease"]).current_dir(&self.tree);
        let printed = make.output().at(Path::new("make"))?.stdout;
        Ok(String::from_utf8_lossy(&printed).trim().to_owned())
    }

    /// Rejects a user's congestion control with the name of one in the kernel: the second of a name
    /// would silently not be registered.
    fn ensure_different(&self, controls: &[Control]) -> Result<(), Error> {
        for (file, names) in self.sources()? {
            for control in controls.iter().filter(|control| control.file != file) {
                if let Some(name) = control.names.iter().find(|name| names.contains(name)) {
                    return Err(Error::refused(
                        control.path.display().to_string(),
                        format!(
                            "registers `{name}`, as the kernel's own {file} does; rename the \
                             algorithm, or name its file {file} to replace the kernel's"
                        ),
                    ));
                }
            }
        }
        Ok(())
    }

    /// The names of all compiled congestion controls.
    fn congestion_controls(&self) -> Result<Vec<String>, Error> {
        let mut names = BTreeSet::from(["reno".to_owned()]);
        for (file, found) in self.sources()? {
            let object = self.tree.join("net/ipv4").join(file).with_extension("o");
            if object.exists() {
                names.extend(found);
            }
        }
        Ok(names.into_iter().collect())
    }

    /// The C files that register congestion controls, with their names.
    fn sources(&self) -> Result<Vec<(String, Vec<String>)>, Error> {
        let folder = self.tree.join("net/ipv4");
        let mut sources = Vec::new();
        for item in fs::read_dir(&folder).at(&folder)? {
            let path = item.at(&folder)?.path();
            if path.extension().is_some_and(|extension| extension == "c") {
                let names = congestion::registered(&read(&path)?).unwrap_or_default();
                let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                sources.push((file, names));
            }
        }
        sources.sort();
        Ok(sources)
    }

    /// The compiler, by the first line of its version message.
    fn compiler(&self) -> String {
        let said = self.tools.command("gcc").arg("--version").output();
        let said = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned());
        said.unwrap_or_default().lines().next().unwrap_or_default().to_owned()
    }
}
