//! All processes that we started, directly or indirectly, and the proof that none of them is left.
//!
//! As a child subreaper we become the parent of every orphan below us, so our descendants are complete: no process can
//! leave that tree. A process is identified by its id together with its start time, and a signal is sent through a
//! pidfd that was compared with both. Process ids are reused within minutes on a busy machine, and a foreign process
//! must never be signalled.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions};

/// Ticks of /proc/PID/stat per second: part of the kernel's interface, the same on every architecture.
const TICKS_PER_SECOND: u64 = 100;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Identity {
    pid: i32,
    start_ticks: u64,
}

#[derive(Clone, Debug)]
pub struct Process {
    pub identity: Identity,
    pub command: String,
    parent: i32,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Identity { pid, start_ticks } = self.identity;
        write!(f, "pid {pid}, started {}, {}", clock_time(start_ticks), self.command)
    }
}

/// Makes this process the parent of every orphan below it.
pub fn become_subreaper() -> Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).context("cannot become a child subreaper")
}

impl Identity {
    /// The process that has this id now.
    pub fn of(pid: i32) -> Result<Self> {
        let (_, start_ticks) = parent_and_start(pid).with_context(|| format!("no process {pid}"))?;
        Ok(Self { pid, start_ticks })
    }

    pub fn pid(self) -> i32 {
        self.pid
    }

    /// A pidfd of exactly this process; `None` when it has exited.
    pub fn open(self) -> Option<OwnedFd> {
        let pidfd = rustix::process::pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::empty()).ok()?;
        // The pidfd refers to the same process from here on. Only now is the comparison reliable.
        (Self::of(self.pid).ok()? == self).then_some(pidfd)
    }

    /// Sends a signal to exactly this process. It is not an error if the process has exited.
    pub fn signal(self, signal: Signal) -> Result<()> {
        match self.open().map(|pidfd| rustix::process::pidfd_send_signal(pidfd, signal)) {
            None | Some(Ok(()) | Err(Errno::SRCH)) => Ok(()),
            Some(Err(error)) => Err(error).with_context(|| format!("cannot signal process {}", self.pid)),
        }
    }

    fn is_over(self) -> bool {
        self.open().is_none_or(|pidfd| is_readable(&pidfd, Duration::ZERO))
    }
}

/// The processes that existed before; all others below us are newcomers.
pub struct Baseline(HashSet<Identity>);

impl Baseline {
    /// All processes below us are newcomers.
    pub fn none() -> Self {
        Self(HashSet::new())
    }

    pub fn now() -> Result<Self> {
        Ok(Self(living_descendants()?.into_iter().map(|process| process.identity).collect()))
    }

    pub fn newcomers(&self) -> Result<Vec<Process>> {
        let mut all = living_descendants()?;
        all.retain(|process| !self.0.contains(&process.identity));
        Ok(all)
    }

    /// Waits until every newcomer has exited; returns those that are still alive when the time is up.
    pub fn settle(&self, limit: Duration) -> Result<Vec<Process>> {
        let deadline = Instant::now() + limit;
        let mut seen_empty = false;
        loop {
            let newcomers = self.newcomers()?;
            // One look at /proc is not atomic: a process may start another and exit between two entries.
            if newcomers.is_empty() && seen_empty {
                return Ok(newcomers);
            }
            seen_empty = newcomers.is_empty();
            let left = deadline.saturating_duration_since(Instant::now());
            if !newcomers.is_empty() && left.is_zero() {
                return Ok(newcomers);
            }
            // All must exit, so it is right to wait for any of them. Then /proc is read again, because it may have left
            // children.
            if let Some(pidfd) = newcomers.first().and_then(|process| process.identity.open()) {
                is_readable(&pidfd, left);
            }
        }
    }

    /// Ends every newcomer, however often they replace each other.
    pub fn end_newcomers(&self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let newcomers = self.newcomers()?;
            if newcomers.is_empty() {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("cannot end {}", newcomers.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
            }
            for process in &newcomers {
                process.identity.signal(Signal::KILL)?;
            }
            self.settle(Duration::from_millis(200))?;
        }
    }
}

/// Asks the kernel whether we have no descendants: a subreaper without children has none.
pub fn is_childless() -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(rustix::process::waitid(WaitId::All, look), Err(Errno::CHILD))
}

/// True once the descriptor is readable; false when the time is up.
pub fn is_readable(fd: &OwnedFd, limit: Duration) -> bool {
    let limit = Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(limit.subsec_nanos()),
    };
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    matches!(poll(&mut fds, Some(&limit)), Ok(1..))
}

/// All processes below some processes, as found at one moment. They are ended when this is dropped. For the programs
/// that tools keep: a tool that exits relies on the hang-up of the terminal to end them. That has no effect on
/// processes that ignore SIGHUP (all of them, when we run under nohup).
pub struct Tree(Vec<Process>);

impl Tree {
    pub fn below(pids: Vec<i32>) -> Result<Self> {
        Ok(Self(living_below(pids)?))
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        for process in &self.0 {
            if let Err(error) = process.identity.signal(Signal::KILL) {
                eprintln!("{process}: {error:#}");
            }
        }
    }
}

/// Our living descendants. The exits of the others are collected.
fn living_descendants() -> Result<Vec<Process>> {
    living_below(vec![rustix::process::getpid().as_raw_nonzero().get()])
}

fn living_below(mut parents: Vec<i32>) -> Result<Vec<Process>> {
    let mut children_of: HashMap<i32, Vec<Process>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").context("cannot look into /proc")? {
        let Some(pid) = entry.ok().and_then(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) else {
            continue;
        };
        // A process that has exited before we read it is skipped.
        let Some((parent, start_ticks)) = parent_and_start(pid) else {
            continue;
        };
        let identity = Identity { pid, start_ticks };
        children_of.entry(parent).or_default().push(Process { identity, command: command_of(pid), parent });
    }
    let me = rustix::process::getpid().as_raw_nonzero().get();
    let mut found = Vec::new();
    while let Some(parent) = parents.pop() {
        for process in children_of.remove(&parent).unwrap_or_default() {
            parents.push(process.identity.pid);
            found.push(process);
        }
    }
    found.retain(|process| {
        let over = process.identity.is_over();
        if over && process.parent == me {
            // No other process can collect its exit. An error only means that it was collected already.
            let _ = rustix::process::waitpid(Pid::from_raw(process.identity.pid), WaitOptions::NOHANG);
        }
        !over
    });
    Ok(found)
}

fn parent_and_start(pid: i32) -> Option<(i32, u64)> {
    parse_stat(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Parent and start time. The name in brackets may contain blanks and brackets, so fields are counted after the last
/// bracket.
fn parse_stat(stat: &str) -> Option<(i32, u64)> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    let start_ticks = fields.nth(17)?.parse().ok()?;
    Some((parent, start_ticks))
}

fn command_of(pid: i32) -> String {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = words.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect::<Vec<_>>().join(" ");
    match line.trim() {
        "" => format!("[{}]", std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim()),
        line => line.to_owned(),
    }
}

/// The time of day, in UTC, of a time that the kernel counts from the start of the machine.
fn clock_time(start_ticks: u64) -> String {
    let booted = std::fs::read_to_string("/proc/stat")
        .ok()
        .and_then(|stat| stat.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse::<u64>().ok()))
        .unwrap_or(0);
    let seconds = booted + start_ticks / TICKS_PER_SECOND;
    format!("{:02}:{:02}:{:02} UTC", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}

/// Held by every test that has children: looking for processes collects exits, and would collect those of another test.
#[cfg(test)]
pub static CHILDREN: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks_does_not_shift_the_fields() {
        let stat = "77 (a) b (c)) S 12 77 77 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 98765 1 2 3";
        assert_eq!(parse_stat(stat), Some((12, 98765)));
        assert_eq!(parse_stat("77 (cut off"), None);
    }

    #[test]
    fn another_start_time_is_another_process_and_gets_no_signal() {
        let _mine = CHILDREN.lock().unwrap();
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let real = Identity::of(i32::try_from(child.id()).unwrap()).unwrap();
        let foreign = Identity { start_ticks: real.start_ticks + 1, ..real };
        foreign.signal(Signal::KILL).unwrap();
        assert!(child.try_wait().unwrap().is_none());
        real.signal(Signal::KILL).unwrap();
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_newcomer_is_seen_and_its_end_is_awaited() {
        let _mine = CHILDREN.lock().unwrap();
        let before = Baseline::now().unwrap();
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        assert!(before.newcomers().unwrap().iter().any(|process| process.identity.pid == pid));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(before.newcomers().unwrap().iter().all(|process| process.identity.pid != pid));
    }
}
