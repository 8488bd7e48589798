//! Checks that all links in a folder stay in it: a build reads and writes through links.

use super::error::{At, Error};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// The number of links that the kernel follows on one path.
const MOST_LINKS: u32 = 40;

/// Rejects an unpacked tree if any part of it leads outside, or is not a file, folder or link.
/// `named` is the name known to the user.
pub(super) fn check(folder: &Path, named: &Path) -> Result<(), Error> {
    let refused = |problem| Err(Error::refused(named.display().to_string(), problem));
    // For each device and inode, the number of names found here, and the total number of links.
    let mut files: BTreeMap<(u64, u64), (u64, u64, PathBuf)> = BTreeMap::new();
    let mut todo = vec![PathBuf::new()];
    while let Some(at) = todo.pop() {
        let place = folder.join(&at);
        for item in fs::read_dir(&place).at(&place)? {
            let path = at.join(item.at(&place)?.file_name());
            let full = folder.join(&path);
            let found = fs::symlink_metadata(&full).at(&full)?;
            // Users name paths below the top folder of a tarball.
            let shown = shown(&path);
            if found.is_dir() {
                todo.push(path);
            } else if found.is_symlink() {
                let target = fs::read_link(&full).at(&full)?;
                if !leads_inside(folder, &path, &target) {
                    let target = target.display();
                    return refused(format!(
                        "has the symbolic link `{shown}`, which leads out of the tree, to \
                         `{target}`"
                    ));
                }
            } else if !found.is_file() {
                return refused(format!(
                    "has `{shown}`, which is neither a file nor a folder nor a link"
                ));
            } else if found.nlink() > 1 {
                let entry = files.entry((found.dev(), found.ino()));
                entry.or_insert_with(|| (0, found.nlink(), path)).0 += 1;
            }
        }
    }
    match files.values().find(|(here, all, _)| here < all) {
        Some((.., path)) => {
            refused(format!("has `{}`, a hard link to a file outside of the tree", shown(path)))
        }
        None => Ok(()),
    }
}

fn shown(path: &Path) -> String {
    let below: PathBuf = path.components().skip(1).collect();
    if below.as_os_str().is_empty() { path } else { &below }.display().to_string()
}

/// Whether the link at this place of a folder leads to a place inside, existing or not.
pub(super) fn leads_inside(folder: &Path, link: &Path, target: &Path) -> bool {
    let mut reached: Vec<OsString> = parts(link.parent().unwrap_or(Path::new("")));
    let mut todo: VecDeque<OsString> = parts(target).into();
    if target.is_absolute() {
        return false;
    }
    let mut links = 1;
    while let Some(part) = todo.pop_front() {
        if part == ".." {
            if reached.pop().is_none() {
                return false;
            }
            continue;
        }
        reached.push(part);
        let place: PathBuf = folder.iter().chain(reached.iter().map(OsString::as_os_str)).collect();
        let Ok(next) = fs::read_link(place) else { continue };
        links += 1;
        if next.is_absolute() || links > MOST_LINKS {
            return false;
        }
        reached.pop();
        for part in parts(&next).into_iter().rev() {
            todo.push_front(part);
        }
    }
    true
}

fn parts(path: &Path) -> Vec<OsString> {
    let named = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
    path.components().filter(named).map(|part| part.as_os_str().to_owned()).collect()
}
