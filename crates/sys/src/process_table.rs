//! What the kernel shows about any process: which exist, their user, their folder, and what they have open.
//!
//! Only links below `/proc/<pid>` are read, never the environment, which may have other people's keys. A process that
//! ends in between, or that may not be looked at, gives no result.

use crate::process::{Identity, Stat};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The pids of all processes.
pub fn pids() -> io::Result<Vec<i32>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        found.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    Ok(found)
}

/// Whether the process belongs to this user.
#[must_use]
pub fn is_of_this_user(pid: i32) -> bool {
    std::fs::metadata(folder(pid)).is_ok_and(|folder| folder.uid() == rustix::process::geteuid().as_raw())
}

/// The living process of this user that has this pid now.
pub fn of_this_user(pid: i32) -> io::Result<Option<Identity>> {
    if pid <= 1 || !is_of_this_user(pid) {
        return Ok(None);
    }
    Ok(Stat::read(pid)?.filter(|stat| !stat.is_zombie()).map(|stat| stat.identity()))
}

/// The pids of all processes except this one.
pub fn others() -> io::Result<Vec<i32>> {
    let me = i32::try_from(std::process::id()).unwrap_or(0);
    Ok(pids()?.into_iter().filter(|&pid| pid != me).collect())
}

/// A chain of parents that changes meanwhile must not cause an endless loop.
const DEEPEST: usize = 1000;

/// Whether a process was started by another one, or by a descendant of that one.
#[must_use]
pub fn descends_from(pid: i32, ancestor: i32) -> bool {
    let mut current = pid;
    for _ in 0..DEEPEST {
        match Stat::read(current) {
            Ok(Some(stat)) if stat.parent == ancestor => return true,
            Ok(Some(stat)) if stat.parent > 1 => current = stat.parent,
            Ok(Some(_) | None) | Err(_) => return false,
        }
    }
    false
}

/// The working folder of the process.
#[must_use]
pub fn cwd(pid: i32) -> Option<PathBuf> {
    std::fs::read_link(cwd_link(pid)).ok()
}

/// All processes except this one that work in this folder or below it, as far as we may see their working folders.
pub fn others_in(folder: &Path) -> io::Result<Vec<i32>> {
    let folder = std::fs::canonicalize(folder)?;
    Ok(others()?.into_iter().filter(|&pid| cwd(pid).is_some_and(|cwd| cwd.starts_with(&folder))).collect())
}

/// Whether any process whose descriptors we may see has this file open.
pub fn is_open(file: &Path) -> io::Result<bool> {
    let file = std::fs::canonicalize(file)?;
    let leads_there = |pid: i32| {
        let descriptors = std::fs::read_dir(folder(pid).join("fd")).into_iter().flatten().flatten();
        descriptors.map(|entry| entry.path()).any(|link| std::fs::read_link(link).is_ok_and(|target| target == file))
    };
    Ok(others()?.into_iter().any(leads_there))
}

/// A path into the working folder of the process, which is valid even if that folder was renamed or deleted.
#[must_use]
pub fn in_cwd(pid: i32, name: &str) -> PathBuf {
    cwd_link(pid).join(name)
}

/// The path of a working folder without the mark that [`cwd`] adds to a deleted one, and whether it was deleted.
#[must_use]
pub fn undeleted(cwd: &Path) -> (PathBuf, bool) {
    match cwd.to_str().and_then(|text| text.strip_suffix(" (deleted)")) {
        Some(path) => (PathBuf::from(path), true),
        None => (cwd.to_owned(), false),
    }
}

/// Whether the process runs the same program file as this process, under any name.
#[must_use]
pub fn is_this_program(pid: i32) -> bool {
    let file = |pid: &str| std::fs::metadata(format!("/proc/{pid}/exe")).map(|file| (file.dev(), file.ino())).ok();
    file(&pid.to_string()).is_some_and(|theirs| Some(theirs) == file("self"))
}

/// What the descriptor with this number leads to in that process.
#[must_use]
pub fn descriptor(pid: i32, number: i32) -> Option<PathBuf> {
    std::fs::read_link(folder(pid).join(format!("fd/{number}"))).ok()
}

/// An open file of a process.
#[derive(Debug)]
pub struct Opened {
    link: PathBuf,
    /// Whether the process may write there.
    pub for_writing: bool,
}

impl Opened {
    /// The path that it leads to.
    #[must_use]
    pub fn path(&self) -> Option<PathBuf> {
        std::fs::read_link(&self.link).ok()
    }

    /// Device and inode of what is open.
    #[must_use]
    pub fn file(&self) -> Option<(u64, u64)> {
        std::fs::metadata(&self.link).ok().map(|file| (file.dev(), file.ino()))
    }
}

/// All open files of a process.
pub fn opened(pid: i32) -> impl Iterator<Item = Opened> {
    let links = std::fs::read_dir(folder(pid).join("fd")).into_iter().flatten().flatten();
    links.filter_map(|link| {
        let link = link.path();
        let for_writing = is_for_writing(&link)?;
        Some(Opened { link, for_writing })
    })
}

/// The files below one of these folders that a process could write to at any moment.
#[must_use]
pub fn writable_files(pid: i32, below: &[&Path]) -> Vec<PathBuf> {
    let links = std::fs::read_dir(folder(pid).join("fd")).into_iter().flatten().flatten();
    let is_below = |file: &PathBuf| below.iter().any(|folder| file.starts_with(folder));
    // Nearly all files are elsewhere, so only for the others it is asked how they were opened.
    let found = links.filter_map(|link| {
        let link = link.path();
        let file = std::fs::read_link(&link).ok().filter(is_below)?;
        is_for_writing(&link)?.then_some(file)
    });
    found.collect()
}

/// Whether a file was opened for writing, by the permissions of the link to it.
fn is_for_writing(link: &Path) -> Option<bool> {
    Some(std::fs::symlink_metadata(link).ok()?.mode() & 0o200 != 0)
}

/// The controlling terminal of the process by its usual name.
#[must_use]
pub fn terminal(pid: i32) -> Option<String> {
    terminal_in(&std::fs::read(folder(pid).join("stat")).ok()?)
}

/// The folders of its control group, from the top.
#[must_use]
pub fn control_groups(pid: i32) -> Vec<String> {
    let text = std::fs::read_to_string(folder(pid).join("cgroup")).unwrap_or_default();
    let paths = text.lines().filter_map(|line| line.strip_prefix("0::")).flat_map(|path| path.split('/'));
    paths.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// The namespace in which our pids are valid.
pub fn namespace() -> io::Result<String> {
    Ok(std::fs::read_link("/proc/self/ns/pid")?.to_string_lossy().into_owned())
}

fn folder(pid: i32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}"))
}

fn cwd_link(pid: i32) -> PathBuf {
    folder(pid).join("cwd")
}

/// The terminal in a line of `/proc/<pid>/stat`.
fn terminal_in(stat: &[u8]) -> Option<String> {
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    let text = std::str::from_utf8(&stat[end + 1..]).ok()?;
    // State, parent, group and session come before it.
    let device: u32 = text.split_ascii_whitespace().nth(4)?.parse().ok()?;
    let (major, minor) = ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xf_ff00));
    match major {
        136..=143 => Some(format!("pts/{}", minor + (major - 136) * 256)),
        4 if minor < 64 => Some(format!("tty{minor}")),
        _ => None,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_has_the_name_that_people_know_it_by() {
        let line = |device: u32| format!("7 (a) b) S 1 7 7 {device} 7 0 0").into_bytes();
        assert_eq!(terminal_in(&line(34816 + 3)).as_deref(), Some("pts/3"));
        assert_eq!(terminal_in(&line((136 << 8) | 0x2c | (1 << 20))).as_deref(), Some("pts/300"));
        assert_eq!(terminal_in(&line((4 << 8) | 1)).as_deref(), Some("tty1"));
        assert_eq!(terminal_in(&line(0)), None);
    }

    #[test]
    fn only_what_is_open_for_writing_below_the_folder_counts() {
        let root = tempfile::tempdir().unwrap();
        let below = std::fs::canonicalize(root.path()).unwrap();
        let (written, read) = (below.join("written"), below.join("read"));
        std::fs::write(&read, "").unwrap();
        let _writing = std::fs::File::create(&written).unwrap();
        let _reading = std::fs::File::open(&read).unwrap();
        let me = i32::try_from(std::process::id()).unwrap();
        assert_eq!(writable_files(me, &[&below]), [written]);
        assert!(writable_files(me, &[&below.join("elsewhere")]).is_empty());
    }

    #[test]
    fn a_deleted_folder_is_told_from_its_name() {
        assert_eq!(undeleted(Path::new("/a/b (deleted)")), (PathBuf::from("/a/b"), true));
        assert_eq!(undeleted(Path::new("/a/b")), (PathBuf::from("/a/b"), false));
    }
}
