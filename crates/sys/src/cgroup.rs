//! Containment: a cgroup per session, where we may make one.
//!
//! Whatever a program starts stays in its cgroup, double-forked, re-parented or not, so the kernel itself can list and
//! end all of it. Where we may not write a cgroup v2 folder every function here says `None` and the caller falls back to
//! walking the tree.
//!
//! A session started inside a kept one must outlive it, so the groups of all sessions are siblings: ours is made beside
//! the outermost one we are in, never below it.

use rustix::fd::{AsFd, BorrowedFd};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::dir::Dir;

const PREFIX: &str = "ostler-";

/// A cgroup that holds one session's agent and all it started.
#[derive(Debug)]
pub struct Group {
    path: PathBuf,
    dir: Dir,
}

impl Group {
    /// Makes a group that nobody has yet. `None`: we may not, or it exists already.
    #[must_use]
    pub fn make(base: &Base, name: &str) -> Option<Group> {
        let path = base.path.join(format!("{PREFIX}{name}"));
        std::fs::create_dir(&path).ok()?;
        Group::open(&path)
    }

    /// A group made earlier. Only a path that looks like one of ours is believed: a damaged record must not make us
    /// end somebody else's group.
    #[must_use]
    pub fn open(path: &Path) -> Option<Group> {
        let ours = path.file_name()?.to_str()?.starts_with(PREFIX);
        let dir = Dir::open(path).ok()?;
        let is_cgroup = dir.stat("cgroup.procs").ok()?.is_some();
        (ours && is_cgroup).then(|| Group { path: path.to_owned(), dir })
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Every process in the group and the groups below it.
    pub fn processes(&self) -> io::Result<Vec<i32>> {
        let mut found = Vec::new();
        let mut open = vec![self.path.clone()];
        while let Some(folder) = open.pop() {
            let text = match std::fs::read_to_string(folder.join("cgroup.procs")) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            found.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()).filter(|&pid| pid > 1));
            for entry in std::fs::read_dir(&folder)? {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    open.push(entry.path());
                }
            }
        }
        Ok(found)
    }

    /// Ends everything in it at once, forks in flight included. `false` where the kernel is too old for it.
    #[must_use]
    pub fn kill(&self) -> bool {
        std::fs::OpenOptions::new()
            .write(true)
            .open(self.path.join("cgroup.kill"))
            .and_then(|mut file| file.write_all(b"1"))
            .is_ok()
    }

    /// Removes the empty group.
    pub fn remove(&self) {
        let mut folders = vec![self.path.clone()];
        let mut next = 0;
        while let Some(folder) = folders.get(next) {
            let below: Vec<PathBuf> = std::fs::read_dir(folder)
                .into_iter()
                .flatten()
                .flatten()
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path())
                .collect();
            folders.extend(below);
            next += 1;
        }
        for folder in folders.iter().rev() {
            // One that is not empty stays, and doctor names it.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

impl AsFd for Group {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }
}

/// The folder in which session groups are made.
#[derive(Debug)]
pub struct Base {
    path: PathBuf,
    /// We are inside a session's group ourselves and a new holder must leave it.
    nested: bool,
}

impl Base {
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The group that a new holder must be started in, when it must not stay in ours.
    #[must_use]
    pub fn to_leave_for(&self) -> Option<Dir> {
        if self.nested { Dir::open(&self.path).ok() } else { None }
    }
}

/// Where session groups go: our own cgroup, or the one around the outermost session that we are in.
#[must_use]
pub fn base() -> Option<Base> {
    let mounts = read_at_once("/proc/self/mountinfo")?;
    let (root, mount) = mounts.lines().find_map(cgroup2_mount)?;
    let ours = read_at_once("/proc/self/cgroup")?;
    let ours = ours.lines().find_map(|line| line.strip_prefix("0::"))?;
    let below = Path::new(ours).strip_prefix(&root).ok()?;
    let outside: PathBuf = below.iter().take_while(|part| !part.to_string_lossy().starts_with(PREFIX)).collect();
    let nested = outside.as_path() != below;
    Some(Base { path: Path::new(&mount).join(outside), nested })
}

/// A file that the kernel writes as it is read. It has no size to go by, and every further call costs as much as the first,
/// so the first one asks for more than there usually is.
fn read_at_once(path: &str) -> Option<String> {
    let mut text = String::with_capacity(16 * 1024);
    std::fs::File::open(path).ok()?.take(1 << 20).read_to_string(&mut text).ok()?;
    Some(text)
}

/// (root inside the hierarchy, mount point) of a mountinfo line, when it is a cgroup v2 mount. The usual place is only
/// the usual place.
fn cgroup2_mount(line: &str) -> Option<(String, String)> {
    let (left, right) = line.split_once(" - ")?;
    if right.split(' ').next()? != "cgroup2" {
        return None;
    }
    let mut fields = left.split(' ').skip(3);
    Some((unescape(fields.next()?), unescape(fields.next()?)))
}

/// mountinfo writes blanks in names as octal escapes.
fn unescape(field: &str) -> String {
    field.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_is_found_where_mountinfo_says() {
        let hybrid = "36 25 0:30 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw";
        assert_eq!(cgroup2_mount(hybrid), Some(("/".to_owned(), "/sys/fs/cgroup/unified".to_owned())));
        assert_eq!(cgroup2_mount("31 25 0:26 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids"), None);
    }

    #[test]
    fn a_path_that_is_not_one_of_our_groups_is_not_believed() {
        assert!(Group::open(Path::new("/sys/fs/cgroup")).is_none());
        assert!(Group::open(Path::new("/tmp")).is_none());
    }
}
