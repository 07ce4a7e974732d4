//! Containment: a cgroup per session, where we may make one.
//!
//! Whatever a program starts stays in its cgroup, also when it is double-forked or re-parented, so the kernel itself
//! can list and end all of it. If we may not write a cgroup v2 folder, every function here returns `None` and the
//! caller walks the process tree instead.
//!
//! A session that is started inside another session must outlive it, so the groups of all sessions are siblings: a new
//! group is made beside the outermost session's group that this process is in, never below it.
//!
//! * [`mounts`]: where the hierarchies are mounted, and this process's place in them.
//! * [`bounds`]: limits, in the group if it has the controllers, otherwise in groups of version 1 beside it.

pub mod bounds;
pub mod mounts;

use crate::dir::Dir;
use mounts::{Mounts, Spot};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::Access;
use rustix::time::Timespec;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The beginning of the name of each of our groups.
pub const PREFIX: &str = "ostler-";

/// A cgroup with one session's agent and all processes that it started.
#[derive(Debug)]
pub struct Group {
    path: PathBuf,
    dir: Dir,
}

impl Group {
    /// Makes a new group. `None`: we may not, or it exists already.
    #[must_use]
    pub fn make(base: &Base, name: &str) -> Option<Group> {
        let path = base.path.join(format!("{PREFIX}{name}"));
        std::fs::create_dir(&path).ok()?;
        Group::open(&path)
    }

    /// A group made earlier. Only a path that looks like one of ours is accepted: a damaged record must not make us end
    /// a foreign group.
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

    /// Kills all processes in the group at once, including forks in flight. `false` if the kernel is too old for it.
    #[must_use]
    pub fn kill(&self) -> bool {
        std::fs::OpenOptions::new()
            .write(true)
            .open(self.path.join("cgroup.kill"))
            .and_then(|mut file| file.write_all(b"1"))
            .is_ok()
    }

    /// Waits until no process in the group lives, or for this long.
    pub fn wait_until_empty(&self, limit_ms: u64) -> io::Result<()> {
        let deadline = crate::clock::since_boot_ms() + limit_ms;
        loop {
            // Opened anew each time: from then on the kernel reports a change.
            let events = match std::fs::File::open(self.path.join("cgroup.events")) {
                Ok(events) => events,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(error),
            };
            let text = io::read_to_string(&events)?;
            let left = deadline.saturating_sub(crate::clock::since_boot_ms());
            if !text.lines().any(|line| line == "populated 1") || left == 0 {
                return Ok(());
            }
            let timeout = Timespec {
                tv_sec: i64::try_from(left / 1000).unwrap_or(0),
                tv_nsec: i64::try_from(left % 1000).unwrap_or(0) * 1_000_000,
            };
            match poll(&mut [PollFd::new(&events, PollFlags::PRI)], Some(&timeout)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
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
            // A group that is not empty stays, and `doctor` reports it.
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
    /// This process is inside a session's group itself, and a new holder must leave that group.
    nested: bool,
}

impl Base {
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fails when we may not make groups in it.
    pub fn is_ours_to_write(&self) -> io::Result<()> {
        Ok(rustix::fs::access(&self.path, Access::WRITE_OK | Access::EXEC_OK)?)
    }

    /// The group in which a new holder must be started, when it must not stay in ours: this one. If this one delegates
    /// its controllers and may have no processes itself, a group for the helpers of this session.
    #[must_use]
    pub fn to_leave_for(&self, session: &str) -> Option<Dir> {
        if !self.nested {
            return None;
        }
        // The inherited groups of version 1 belong to the session around this one.
        if let Some(mounts) = Mounts::look() {
            for spot in mounts.bound_and_nested() {
                // If we may not leave such a group, we stay and are counted there.
                let _ = std::fs::write(spot.path.join("cgroup.procs"), "0");
            }
        }
        if self.may_have_processes() {
            return Dir::open(&self.path).ok();
        }
        let helpers = self.path.join(format!("{PREFIX}{session}-helpers"));
        match std::fs::create_dir(&helpers) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(_) => return None,
        }
        Dir::open(&helpers).ok()
    }

    /// Only the top of a hierarchy may have both: processes of its own, and groups below it with controllers.
    fn may_have_processes(&self) -> bool {
        let handed_on = std::fs::read_to_string(self.path.join("cgroup.subtree_control")).unwrap_or_default();
        handed_on.trim().is_empty() || self.is_top()
    }

    /// The top of a hierarchy is the one group without a type.
    fn is_top(&self) -> bool {
        !self.path.join("cgroup.type").exists()
    }
}

/// The control groups that this process is in, as the kernel writes them: one hierarchy on a line.
#[must_use]
pub fn of_this_process() -> String {
    std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default()
}

/// Where session groups are made: our own cgroup, or the one around the outermost session that we are in.
#[must_use]
pub fn base() -> Option<Base> {
    base_in(&Mounts::look_at_unified()?)
}

fn base_in(mounts: &Mounts) -> Option<Base> {
    let Spot { path, nested } = mounts.spot(mounts.unified()?)?;
    Some(Base { path, nested })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_not_one_of_our_groups_is_not_believed() {
        assert!(Group::open(Path::new("/sys/fs/cgroup")).is_none());
        assert!(Group::open(Path::new("/tmp")).is_none());
    }
}
