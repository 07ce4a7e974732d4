//! A process of this user, described so that people recognise it: when it started, its folder, and its terminal.

use jiff::Timestamp;
use ostler_sys::clock::{self, since_boot_ms};
use ostler_sys::process::{Identity, TICK_MS, command_line};
use ostler_sys::process_table;

/// A process, described so that people recognise it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub identity: Identity,
    pub since: Timestamp,
    pub cwd: Option<String>,
    pub terminal: Option<String>,
    pub command: Vec<String>,
}

impl Process {
    /// Text with which a person can find it: `process 4711 (pts/3, since 2026-11-15 07:11:05)`.
    pub fn words(&self) -> String {
        named(self.identity.pid(), self.terminal.as_deref(), self.since)
    }
}

/// A process, its terminal, and its start time, as in [`Process::words`].
pub fn named(pid: i32, terminal: Option<&str>, since: Timestamp) -> String {
    let since = since.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S");
    match terminal {
        Some(terminal) => format!("process {pid} ({terminal}, since {since})"),
        None => format!("process {pid} (since {since})"),
    }
}

/// Describes a living process; `None` once it has exited, also if its pid now belongs to another process.
pub fn describe(who: &Identity) -> Option<Process> {
    let pid = who.pid();
    let process = Process {
        identity: who.clone(),
        since: started(who.start()),
        cwd: process_table::cwd(pid).map(|path| path.to_string_lossy().into_owned()),
        terminal: process_table::terminal(pid),
        command: command_line(pid),
    };
    // Asked last: what was read before is about this process only if it still lives now.
    who.may_live().then_some(process)
}

/// When a process of this boot started.
pub fn started(ticks: u64) -> Timestamp {
    let age_ms = since_boot_ms().saturating_sub(ticks.saturating_mul(TICK_MS));
    let now_ms = clock::now().as_millisecond();
    Timestamp::from_millisecond(now_ms - i64::try_from(age_ms).unwrap_or(0)).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_process_says_since_when_it_runs_and_one_that_is_gone_says_nothing() {
        let _alone = crate::alone();
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let who = process_table::of_this_user(i32::try_from(child.id()).unwrap()).unwrap().unwrap();
        let age = clock::now().as_millisecond() - describe(&who).unwrap().since.as_millisecond();
        assert!((-50..10_000).contains(&age), "{age} ms");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(describe(&who), None);
    }
}
