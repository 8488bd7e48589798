//! Kernel sources: their origin, their identity, and a copy that a build may change.

use super::Progress;
use super::apt::{self, proceed};
use super::error::{At, Error};
use super::options;
use super::process::{self, Watch};
use super::recipe::{KCONFIG, digits, read};
use super::request;
use super::tools::{self, Tools};
use super::{hash, permissions, symlinks};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where Debian's source packages are installed.
const DEBIAN: &str = "/usr/src";

/// The endings of tarballs' names.
const TARBALLS: [&str; 6] = [".tar", ".tar.xz", ".tar.gz", ".tgz", ".tar.bz2", ".tar.zst"];

const MEGABYTE: u64 = 1_000_000;

/// A source on this machine.
#[derive(Debug)]
pub(super) struct Source {
    form: Form,
    /// The origin as recorded in a kernel.
    pub(super) text: String,
    /// The hash of the content.
    pub(super) key: String,
}

#[derive(Debug)]
enum Form {
    Tarball(PathBuf),
    Tree { folder: PathBuf, files: BTreeSet<PathBuf> },
}

impl Source {
    /// Finds a source, or downloads it into `folder`, and reads all of it.
    pub(super) fn find(
        wanted: &request::Source,
        folder: &Path,
        scratch: &Path,
        watch: &mut Watch<'_>,
    ) -> Result<Self, Error> {
        let (path, signed) = match wanted {
            request::Source::Debian(version) => debian(version, folder, scratch, watch)?,
            request::Source::Path(path) => (path.clone(), None),
        };
        let kind = fs::metadata(&path).at(&path)?;
        let absolute = std::path::absolute(&path).at(&path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let form = if kind.is_dir() {
            check(&path, &path)?;
            Form::Tree { files: files(&path)?, folder: absolute.clone() }
        } else if kind.is_file() && TARBALLS.iter().any(|ending| name.ends_with(ending)) {
            Form::Tarball(absolute.clone())
        } else {
            let problem =
                format!("is neither a source tree nor a tarball of one ({})", TARBALLS.join(", "));
            return Err(Error::refused(path.display().to_string(), problem));
        };
        let text = match wanted {
            request::Source::Debian(version) => package(version),
            request::Source::Path(_) => absolute.display().to_string(),
        };
        let hash = form.hash(&format!("reading {text}"), watch)?;
        if signed.is_some_and(|signed| signed != hash::text(hash.clone())) {
            let problem = "has changed since it was downloaded and verified (its SHA-256 \
                           differs): remove it, and the next build downloads it again";
            return Err(Error::refused(path.display().to_string(), problem));
        }
        let key = digits(hash);
        Ok(Self { form, text, key })
    }

    /// Copies the source into a folder; returns the top of the tree.
    pub(super) fn copy(
        &self,
        into: &Path,
        tools: &Tools,
        log: &mut File,
        watch: &mut Watch<'_>,
    ) -> Result<PathBuf, Error> {
        fs::create_dir_all(into).at(into)?;
        match &self.form {
            Form::Tarball(path) => {
                let mut tar = tools.command("tar");
                tar.args(["--extract", "--no-same-owner", "--file"]).arg(path).current_dir(into);
                let stage = format!("unpacking {}", self.text);
                let mut said = String::new();
                let done = process::run(&tar, log, &mut |line| {
                    said += &line.map(|line| format!("{line}\n")).unwrap_or_default();
                    watch(Progress::stage(stage.as_str()))
                })?;
                if !done.success() {
                    let problem =
                        format!("cannot be unpacked: {}", said.trim().replace('\n', "; "));
                    return Err(Error::refused(path.display().to_string(), problem));
                }
                symlinks::check(into, path)?;
                let tree = top(into)?;
                check(&tree, path)?;
                Ok(tree)
            }
            Form::Tree { folder, files } => {
                let mut done = 0;
                for file in files {
                    if let Some(entry) = entry(folder, file)? {
                        entry.copy(&into.join(file))?;
                    }
                    done += 1;
                    if done % 256 == 0 {
                        let stage = format!("copying {}", self.text);
                        let total = files.len() as u64;
                        proceed(watch(Progress { stage, done, total, unit: "files" }))?;
                    }
                }
                Ok(into.to_owned())
            }
        }
    }
}

fn package(version: &str) -> String {
    format!("linux-source-{version}")
}

/// Debian's tarball of this version: installed, downloaded before, or downloaded now. A download
/// comes with its expected SHA-256, since the archive that contained it had the one signed by
/// Debian.
fn debian(
    version: &str,
    folder: &Path,
    scratch: &Path,
    watch: &mut Watch<'_>,
) -> Result<(PathBuf, Option<String>), Error> {
    let package = package(version);
    let file = format!("{package}.tar.xz");
    let [installed, downloaded] = [Path::new(DEBIAN), folder].map(|place| place.join(&file));
    if installed.is_file() {
        permissions::check(&installed)?;
        proceed(watch(Progress::stage(format!("checking {package}"))))?;
        apt::check_installed(&package, &installed)?;
        return Ok((installed, None));
    }
    permissions::check(folder)?;
    let record = folder.join(format!("{file}.sha256"));
    // A download without a record is downloaded again.
    if downloaded.is_file()
        && let Ok(signed) = fs::read_to_string(&record)
    {
        return Ok((downloaded, Some(signed.trim().to_owned())));
    }
    if !apt::is_there() {
        return Err(match tools::missing(&[&package]) {
            Error::Missing { what, how } => {
                Error::Missing { what, how: how + "; or name a source tree with `--source`" }
            }
            other => other,
        });
    }
    let unpacked = scratch.join("package");
    if let Err(error) = apt::unpack(&[&package], &unpacked, scratch, watch) {
        if !apt::is_not_there(&error, &package) {
            return Err(error);
        }
        let problem = format!(
            "Debian has no package {package} here; `apt-cache pkgnames linux-source-` lists those it has, \
             and `--source` takes a tree or tarball of any other version"
        );
        return Err(Error::refused(format!("--version {version}"), problem));
    }
    let fetched = unpacked.join("usr/src").join(&file);
    if !fetched.is_file() {
        let problem = format!("the package does not have the file {DEBIAN}/{file}");
        return Err(Error::refused(package, problem));
    }
    let signed = hash::of(&fetched)?;
    permissions::make(folder)?;
    fs::rename(&fetched, &downloaded).at(&fetched)?;
    fs::write(&record, format!("{signed}\n")).at(&record)?;
    let _ = fs::remove_dir_all(unpacked);
    Ok((downloaded, Some(signed)))
}

/// The top of an unpacked tree: tarballs have a top folder.
fn top(unpacked: &Path) -> Result<PathBuf, Error> {
    let entries = fs::read_dir(unpacked).at(unpacked)?;
    let entries: Vec<_> = entries.collect::<Result<_, _>>().at(unpacked)?;
    match entries.as_slice() {
        [only] if only.path().is_dir() => Ok(only.path()),
        _ => Ok(unpacked.to_owned()),
    }
}

/// Rejects unsuitable trees, under the name known to the user.
fn check(tree: &Path, named: &Path) -> Result<(), Error> {
    let refused = |problem| Error::refused(named.display().to_string(), problem);
    let kconfig = tree.join(KCONFIG);
    if !kconfig.is_file() {
        return Err(refused(format!("has no ARCH=um ({KCONFIG})")));
    }
    let text = read(&kconfig)?;
    if !options::defined(&text).any(|name| name == "UML_TIME_TRAVEL_SUPPORT") {
        return Err(refused(format!(
            "is too old for virtual time: {KCONFIG} has no UML_TIME_TRAVEL_SUPPORT"
        )));
    }
    Ok(())
}

impl Form {
    /// The hash of everything that will be copied; for a tarball, that of the file.
    fn hash(&self, stage: &str, watch: &mut Watch<'_>) -> Result<Sha256, Error> {
        let mut hash = Sha256::new();
        match self {
            Self::Tarball(path) => {
                let mut file = File::open(path).at(path)?;
                let (mut bytes, total) = (0, file.metadata().at(path)?.len() / MEGABYTE);
                let mut part = vec![0; 1 << 20];
                loop {
                    let count = file.read(&mut part).at(path)?;
                    if count == 0 {
                        break;
                    }
                    hash.update(&part[..count]);
                    bytes += count as u64;
                    let (stage, done) = (stage.into(), bytes / MEGABYTE);
                    proceed(watch(Progress { stage, done, total, unit: "MB" }))?;
                }
            }
            Self::Tree { folder, files } => {
                let (mut done, total) = (0, files.len() as u64);
                for file in files {
                    if let Some(entry) = entry(folder, file)? {
                        entry.hash(file, &mut hash)?;
                    }
                    done += 1;
                    if done % 256 == 0 {
                        let stage = stage.into();
                        proceed(watch(Progress { stage, done, total, unit: "files" }))?;
                    }
                }
            }
        }
        Ok(hash)
    }
}

/// An entry of a tree that is copied.
enum Entry {
    File(PathBuf),
    /// A link within the same tree. Other links are copied as their targets, because a build might
    /// write there.
    Link(PathBuf),
}

/// The entry at this place of a tree, if it is to be copied.
fn entry(folder: &Path, file: &Path) -> Result<Option<Entry>, Error> {
    let path = folder.join(file);
    let Ok(kind) = fs::symlink_metadata(&path) else {
        // Git still lists files that were removed since the last commit.
        return Ok(None);
    };
    if kind.is_symlink() {
        let target = fs::read_link(&path).at(&path)?;
        let top = folder.canonicalize().at(folder)?;
        let Ok(meant) = path.canonicalize() else {
            // A build could write to the target.
            let stays = symlinks::leads_inside(folder, file, &target);
            return Ok(stays.then_some(Entry::Link(target)));
        };
        if target.is_relative() && meant.starts_with(top) {
            return Ok(Some(Entry::Link(target)));
        }
        return Ok(meant.is_file().then_some(Entry::File(meant)));
    }
    Ok(kind.is_file().then_some(Entry::File(path)))
}

impl Entry {
    fn hash(&self, name: &Path, hash: &mut Sha256) -> Result<(), Error> {
        let (kind, content) = match self {
            Self::File(path) => (b'f', fs::read(path).at(path)?),
            Self::Link(target) => (b'l', target.as_os_str().as_bytes().to_vec()),
        };
        let name = name.as_os_str().as_bytes();
        hash.update([kind]);
        for part in [name, &content] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Ok(())
    }

    fn copy(&self, to: &Path) -> Result<(), Error> {
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).at(folder)?;
        }
        match self {
            Self::File(path) => fs::copy(path, to).map(|_| ()).at(path),
            Self::Link(target) => std::os::unix::fs::symlink(target, to).at(to),
        }
    }
}

/// The source files of a tree.
fn files(tree: &Path) -> Result<BTreeSet<PathBuf>, Error> {
    if tree.join(".git").exists()
        && let Some(files) = known_to_git(tree)
    {
        return Ok(files);
    }
    let mut files = BTreeSet::new();
    collect(tree, Path::new(""), &mut files)?;
    Ok(files)
}

/// Tracked files, and untracked ones that are not ignored: everything except build products.
fn known_to_git(tree: &Path) -> Option<BTreeSet<PathBuf>> {
    let mut git = Command::new("git");
    git.arg("-C").arg(tree).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let listed = git.output().ok().filter(|listed| listed.status.success())?;
    let names = listed.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Some(names.map(|name| PathBuf::from(std::ffi::OsStr::from_bytes(name))).collect())
}

fn collect(tree: &Path, folder: &Path, files: &mut BTreeSet<PathBuf>) -> Result<(), Error> {
    let place = tree.join(folder);
    for item in fs::read_dir(&place).at(&place)? {
        let item = item.at(&place)?;
        let path = folder.join(item.file_name());
        let is_folder = item.file_type().at(&place)?.is_dir();
        if is_product(&path, is_folder) {
        } else if is_folder {
            collect(tree, &path, files)?;
        } else {
            files.insert(path);
        }
    }
    Ok(())
}

/// Whether builds create files of this name in this place.
fn is_product(path: &Path, is_folder: bool) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let place = path.parent().unwrap_or(Path::new(""));
    if is_folder {
        return name == ".git"
            || (name == "generated" && place.ends_with("include"))
            || (name == "config" && place == Path::new("include"));
    }
    let endings = [".o", ".a", ".ko", ".so", ".cmd", ".mod", ".mod.c", ".order", ".symvers"];
    endings.iter().any(|ending| name.ends_with(ending))
        || name.starts_with(".config")
        || name.starts_with(".tmp_")
        || (place == Path::new("") && ["linux", "vmlinux", "System.map"].contains(&&*name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::ControlFlow;

    /// A tree with the relevant files.
    fn tree(test: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("tcplab-tree-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("arch/um")).unwrap();
        fs::write(folder.join(KCONFIG), "config UML_TIME_TRAVEL_SUPPORT\n\tbool\n").unwrap();
        fs::create_dir_all(folder.join("net/ipv4")).unwrap();
        fs::write(folder.join("net/ipv4/tcp.c"), "int x;\n").unwrap();
        folder
    }

    fn found(tree: &Path) -> Result<Source, Error> {
        let wanted = request::Source::Path(tree.to_owned());
        Source::find(
            &wanted,
            Path::new("/no"),
            Path::new("/no"),
            &mut |_| ControlFlow::Continue(()),
        )
    }

    #[test]
    fn keys_depend_on_sources_and_not_on_products() {
        let tree = tree("keys");
        let first = found(&tree).unwrap().key;
        for product in ["net/ipv4/tcp.o", "net/ipv4/.tcp.o.cmd", ".config", "linux"] {
            fs::write(tree.join(product), "made").unwrap();
        }
        fs::create_dir_all(tree.join("include/generated")).unwrap();
        fs::write(tree.join("include/generated/autoconf.h"), "made").unwrap();
        assert_eq!(found(&tree).unwrap().key, first);
        fs::write(tree.join("net/ipv4/tcp.c"), "int y;\n").unwrap();
        let second = found(&tree).unwrap().key;
        assert_ne!(second, first);
        fs::rename(tree.join("net/ipv4/tcp.c"), tree.join("net/ipv4/tcq.c")).unwrap();
        assert_ne!(found(&tree).unwrap().key, second);
        fs::remove_dir_all(tree).unwrap();
    }

    #[test]
    fn copied_links_do_not_lead_to_the_original() {
        let tree = tree("copies");
        let outside = tree.with_extension("outside");
        fs::write(&outside, "theirs").unwrap();
        std::os::unix::fs::symlink(&outside, tree.join("net/link.c")).unwrap();
        std::os::unix::fs::symlink("ipv4/tcp.c", tree.join("net/inside.c")).unwrap();
        let source = found(&tree).unwrap();
        let copy = tree.with_extension("copy");
        let tools = Tools::get(Path::new("/no"), Path::new("/no"), &mut |_| ControlFlow::Break(()));
        let mut log = File::create("/dev/null").unwrap();
        let go_on = &mut |_| ControlFlow::Continue(());
        if let Ok(tools) = tools {
            source.copy(&copy, &tools, &mut log, go_on).unwrap();
            assert!(!copy.join("net/link.c").is_symlink());
            assert_eq!(fs::read_to_string(copy.join("net/link.c")).unwrap(), "theirs");
            assert_eq!(fs::read_link(copy.join("net/inside.c")).unwrap(), Path::new("ipv4/tcp.c"));
            fs::remove_dir_all(copy).unwrap();
        }
        fs::remove_dir_all(tree).unwrap();
        fs::remove_file(outside).unwrap();
    }

    type Prepare<'a> = &'a dyn Fn(&Path);

    /// A tarball of a tree, with additions made by GNU tar's own options.
    fn tarball(test: &str, prepare: impl Fn(&Path), more: &[&str]) -> PathBuf {
        let tree = tree(test);
        prepare(&tree);
        let file = tree.with_extension("tar");
        let mut tar = Command::new("tar");
        tar.args(["--create", "--absolute-names", "--file"]).arg(&file).args(more);
        let name = tree.file_name().unwrap();
        assert!(tar.arg("-C").arg(tree.parent().unwrap()).arg(name).status().unwrap().success());
        fs::remove_dir_all(tree).unwrap();
        file
    }

    /// Unpacks a tarball; returns the error, or "fine".
    fn unpacked(file: &Path) -> String {
        let into = file.with_extension("into");
        let go_on = &mut |_| ControlFlow::Continue(());
        let tools = Tools::get(Path::new("/no"), Path::new("/no"), go_on).unwrap();
        let mut log = File::create("/dev/null").unwrap();
        let copied = found(file).unwrap().copy(&into, &tools, &mut log, go_on);
        fs::remove_dir_all(into).unwrap();
        copied.map_or_else(|error| error.to_string(), |_| "fine".into())
    }

    #[test]
    fn tarballs_do_not_write_outside_their_folder() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        use std::os::unix::fs::symlink;
        let outside = std::env::temp_dir().join(format!("tcplab-outside-{}", std::process::id()));
        let _ = fs::remove_dir_all(&outside);
        fs::create_dir(&outside).unwrap();
        let target = outside.join("written");
        let link = |to: &Path, name: &'static str| {
            let to = to.to_owned();
            move |tree: &Path| symlink(&to, tree.join(name)).unwrap()
        };
        let up = Path::new("../../../../../../../../../..").join(target.strip_prefix("/").unwrap());
        let chain = |tree: &Path| {
            symlink("../..", tree.join("arch/um/l")).unwrap();
            symlink("arch/um/l/../..", tree.join("m")).unwrap();
        };
        let pipe = |tree: &Path| {
            mknodat(CWD, tree.join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        };
        let folder = |tree: &Path| symlink(&outside, tree.join("d")).unwrap();
        let cases: [(&str, Prepare<'_>, &str); 6] = [
            (
                "absolute",
                &link(&target, ".config"),
                "has the symbolic link `.config`, which leads out",
            ),
            ("dots", &link(&up, ".config"), "has the symbolic link `.config`, which leads out"),
            ("chain", &chain, "has the symbolic link `m`, which leads out"),
            ("folder", &folder, "has the symbolic link `d`, which leads out"),
            ("pipe", &pipe, "has `pipe`, which is neither a file nor a folder nor a link"),
            ("fine", &link(Path::new("net/ipv4"), "four"), ""),
        ];
        for (test, prepare, expected) in cases {
            let file = tarball(&format!("walls-{test}"), prepare, &[]);
            let said = unpacked(&file);
            fs::remove_file(&file).unwrap();
            if expected.is_empty() {
                assert_eq!(said, "fine");
            } else {
                assert!(said.contains(expected), "{test}: {said}");
            }
        }
        // Members with such names are treated as relative to the folder, or rejected.
        let evil = outside.join("evil");
        fs::write(&evil, "evil").unwrap();
        let name = evil.to_str().unwrap().to_owned();
        for (test, rule) in [
            ("name", format!("--transform=s,.*/tcp.c,{name}.absolute,")),
            ("climb", format!("--transform=s,.*/tcp.c,../../../../../../../../..{name}.climb,")),
        ] {
            let file = tarball(&format!("walls-{test}"), |_| {}, &[&rule]);
            unpacked(&file);
            fs::remove_file(&file).unwrap();
        }
        // A link that leads outside, and then a file in the folder of that name.
        let file = tarball("walls-swap", folder, &[]);
        let again = tree("walls-swap");
        fs::create_dir(again.join("d")).unwrap();
        fs::write(again.join("d/written"), "evil").unwrap();
        let mut append = Command::new("tar");
        append.args(["--append", "--file"]).arg(&file).arg("-C").arg(again.parent().unwrap());
        let member = Path::new(again.file_name().unwrap()).join("d/written");
        assert!(append.arg(member).status().unwrap().success());
        fs::remove_dir_all(again).unwrap();
        let said = unpacked(&file);
        fs::remove_file(&file).unwrap();
        assert_ne!(said, "fine");
        // Writing to a hard link would change the file outside.
        let file = tarball(
            "walls-hard",
            |tree| fs::hard_link(&evil, tree.join(".config")).unwrap(),
            &[&name],
        );
        let said = unpacked(&file);
        fs::remove_file(&file).unwrap();
        assert_ne!(said, "fine");
        let left: Vec<_> =
            fs::read_dir(&outside).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(left, ["evil"]);
        assert_eq!(fs::read_to_string(&evil).unwrap(), "evil");
        fs::remove_dir_all(outside).unwrap();
    }

    #[test]
    fn a_download_with_another_digest_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let tarball = folder.path().join("linux-source-9.99.tar.xz");
        fs::write(&tarball, "abc").unwrap();
        // FIPS 180-4, the SHA-256 of "abc".
        let signed = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n";
        fs::write(folder.path().join("linux-source-9.99.tar.xz.sha256"), signed).unwrap();
        let find = || {
            let wanted = request::Source::Debian("9.99".into());
            let go_on = &mut |_| ControlFlow::Continue(());
            Source::find(&wanted, folder.path(), Path::new("/no"), go_on)
        };
        assert!(find().is_ok());
        fs::write(&tarball, "abd").unwrap();
        let said = find().unwrap_err().to_string();
        assert!(said.contains("has changed since it was downloaded and verified"), "{said}");
    }

    #[test]
    fn paths_that_are_no_kernel_source_are_refused() {
        let folder = tree("refused");
        let refusal = |path: &Path| {
            let text = found(path).unwrap_err().to_string();
            text.replace(&path.display().to_string(), "IT")
        };
        fs::write(folder.join(KCONFIG), "config UML\n\tbool\n").unwrap();
        let old = "IT: is too old for virtual time: arch/um/Kconfig has no UML_TIME_TRAVEL_SUPPORT";
        assert_eq!(refusal(&folder), old);
        fs::remove_file(folder.join(KCONFIG)).unwrap();
        assert_eq!(refusal(&folder), "IT: has no ARCH=um (arch/um/Kconfig)");
        assert!(
            refusal(&folder.join("net/ipv4/tcp.c")).starts_with("IT: is neither a source tree")
        );
        assert_eq!(refusal(&folder.join("none.tar")), "IT: no such file or directory");
        fs::remove_dir_all(folder).unwrap();
    }
}
