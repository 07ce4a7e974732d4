//! What the kernel tells about a process of this user: since when, where, on which terminal, and what it holds open.
//!
//! Links below `/proc/<pid>` and the process's own words only, never its environment: that holds other people's keys.

use jiff::Timestamp;
use ostler_sys::clock::{self, since_boot_ms};
use ostler_sys::process::{Identity, Stat, TICK_MS, command_line};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A process, for people to recognise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub identity: Identity,
    pub since: Timestamp,
    pub cwd: Option<String>,
    pub terminal: Option<String>,
    pub command: Vec<String>,
}

impl Process {
    /// Enough to find it: `process 4711 (pts/3, since 2026-11-15 07:11)`.
    pub fn words(&self) -> String {
        named(self.identity.pid(), self.terminal.as_deref(), self.since)
    }
}

/// A process, its terminal, and since when it runs, in the words of [`Process::words`].
pub fn named(pid: i32, terminal: Option<&str>, since: Timestamp) -> String {
    let since = since.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S");
    match terminal {
        Some(terminal) => format!("process {pid} ({terminal}, since {since})"),
        None => format!("process {pid} (since {since})"),
    }
}

/// Describes a living process; `None` once it is gone, or when the number is somebody else's by now.
pub fn describe(who: &Identity) -> Option<Process> {
    let pid = who.pid();
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let process = Process {
        identity: who.clone(),
        since: started(who.start()),
        cwd: std::fs::read_link(format!("/proc/{pid}/cwd")).ok().map(|path| path.to_string_lossy().into_owned()),
        terminal: terminal(&text),
        command: command_line(pid),
    };
    // Asked last: what was read before is about this process only if it still lives now.
    who.may_live().then_some(process)
}

/// The living process of this user that has this number now.
pub fn of_this_user(pid: i32) -> io::Result<Option<Identity>> {
    let is_mine = std::fs::metadata(format!("/proc/{pid}"))
        .is_ok_and(|folder| folder.uid() == rustix::process::geteuid().as_raw());
    if pid <= 1 || !is_mine {
        return Ok(None);
    }
    Ok(Stat::read(pid)?.filter(|stat| !stat.is_zombie()).map(|stat| stat.identity()))
}

/// The processes of this user that hold flock on a file.
pub fn with_lock_on(file: &std::fs::Metadata) -> io::Result<Vec<Identity>> {
    crate::locks::on(file, &crate::locks::now()?)
}

/// Every living process of this user but ourselves.
pub fn all_of_this_user() -> io::Result<Vec<Identity>> {
    let me = std::process::id();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let number = entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok());
        if let Some(pid) = number.filter(|&pid| u32::try_from(pid).is_ok_and(|pid| pid != me)) {
            found.extend(of_this_user(pid)?);
        }
    }
    Ok(found)
}

/// A chain of parents that changes under us must not keep us here.
const DEEPEST: usize = 1000;

/// Whether a process was started by another one, or by something that it has started.
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

/// The files below a folder that a process could write to at any moment. A process that does not let us look shows nothing.
pub fn writable_files(pid: i32, below: &Path) -> Vec<PathBuf> {
    let links = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    links
        .filter_map(|link| {
            let file = std::fs::read_link(link.path()).ok().filter(|file| file.starts_with(below))?;
            // The link's own permissions say what the file was opened for.
            let opened = std::fs::symlink_metadata(link.path()).ok()?;
            (opened.mode() & 0o200 != 0).then_some(file)
        })
        .collect()
}

/// When a process of this boot started.
pub fn started(ticks: u64) -> Timestamp {
    let age_ms = since_boot_ms().saturating_sub(ticks.saturating_mul(TICK_MS));
    let now_ms = clock::now().as_millisecond();
    Timestamp::from_millisecond(now_ms - i64::try_from(age_ms).unwrap_or(0)).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// The controlling terminal by its usual name, from a line of `/proc/<pid>/stat`.
fn terminal(stat: &[u8]) -> Option<String> {
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    let text = std::str::from_utf8(&stat[end + 1..]).ok()?;
    // State, parent, group and session stand before it.
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
        assert_eq!(terminal(&line(34816 + 3)).as_deref(), Some("pts/3"));
        assert_eq!(terminal(&line((136 << 8) | 0x2c | (1 << 20))).as_deref(), Some("pts/300"));
        assert_eq!(terminal(&line((4 << 8) | 1)).as_deref(), Some("tty1"));
        assert_eq!(terminal(&line(0)), None);
    }

    #[test]
    fn only_what_is_open_for_writing_below_the_folder_counts() {
        let _alone = crate::alone();
        let root = tempfile::tempdir().unwrap();
        let below = std::fs::canonicalize(root.path()).unwrap();
        let (written, read) = (below.join("written"), below.join("read"));
        std::fs::write(&read, "").unwrap();
        let _writing = std::fs::File::create(&written).unwrap();
        let _reading = std::fs::File::open(&read).unwrap();
        let me = i32::try_from(std::process::id()).unwrap();
        assert_eq!(writable_files(me, &below), [written]);
        assert!(writable_files(me, &below.join("elsewhere")).is_empty());
    }

    #[test]
    fn a_process_says_since_when_it_runs_and_one_that_is_gone_says_nothing() {
        let _alone = crate::alone();
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let who = of_this_user(i32::try_from(child.id()).unwrap()).unwrap().unwrap();
        let age = clock::now().as_millisecond() - describe(&who).unwrap().since.as_millisecond();
        assert!((-50..10_000).contains(&age), "{age} ms");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(describe(&who), None);
    }
}
