//! The proof that nothing is left. Every process that a test's sessions started, however often it forked and whatever
//! its parent is now, works below the test's own folder or has the lock of one of its sessions open: paths that no
//! other process uses. No process's environment is read for that. A process with neither is found by `cargo xtask
//! test`, which is the parent of every orphan.

use crate::patience::ends_within;
use ostler_sys::process::{Identity, Pidfd, Stat, command_line};
use rustix::process::Signal;
use std::path::Path;
use std::time::{Duration, Instant};

/// The descriptor at which an agent, and what it starts, has its session's lock.
const AGENT_LOCK: i32 = 31;

/// Helpers exit a moment after they have published the outcome, later on a busy machine. A process that was forgotten
/// lives longer than this.
const MOMENT: Duration = Duration::from_secs(30);

/// Every living process that works below one of these folders or has a lock from there.
pub fn alive(folders: &[&Path]) -> Vec<Identity> {
    let me = std::process::id().to_string();
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    processes
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| *name != me)
        .filter_map(|name| name.parse().ok())
        .filter(|&pid: &i32| pid > 1 && belongs(pid, folders))
        .filter_map(|pid| Stat::read(pid).ok().flatten())
        .filter(|stat| !stat.is_zombie())
        .map(|stat| stat.identity())
        .collect()
}

fn belongs(pid: i32, folders: &[&Path]) -> bool {
    let leads_there = |link: &str| {
        std::fs::read_link(format!("/proc/{pid}/{link}"))
            .is_ok_and(|target| folders.iter().any(|folder| target.starts_with(folder)))
    };
    leads_there("cwd") || leads_there(&format!("fd/{AGENT_LOCK}"))
}

/// Gives all processes of these folders time to exit. Returns a description of those that have not, and ends them.
pub fn settle(folders: &[&Path]) -> Vec<String> {
    let deadline = Instant::now() + MOMENT;
    loop {
        // A process that exits may have started another one first.
        let left = alive(folders);
        if left.is_empty() {
            return Vec::new();
        }
        let ends = |process| ends_within(process, deadline.saturating_duration_since(Instant::now()));
        if !left.iter().all(ends) {
            break;
        }
    }
    let left = alive(folders);
    let words = left.iter().map(|process| format!("{} {}", process.pid(), command_line(process.pid()).join(" ")));
    let words = words.collect();
    end(folders);
    words
}

/// Kills all processes of these folders, until none is left.
pub fn end(folders: &[&Path]) {
    let deadline = Instant::now() + MOMENT;
    loop {
        let left = alive(folders);
        if left.is_empty() || Instant::now() > deadline {
            return;
        }
        for process in &left {
            if let Ok(Some(pidfd)) = Pidfd::open(process) {
                // The process may have exited meanwhile.
                let _ = pidfd.signal(Signal::KILL);
            }
        }
        for process in &left {
            ends_within(process, deadline.saturating_duration_since(Instant::now()));
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_that_has_hidden_is_found_by_the_folder_it_works_in_and_ended() {
        let home = tempfile::tempdir().unwrap();
        let script = "setsid sh -c 'sleep 600 & echo $!' </dev/null";
        let mut hiding = Command::new("sh");
        hiding.args(["-c", script]).current_dir(home.path()).stdout(Stdio::piped());
        let mut hiding = hiding.spawn().unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(hiding.stdout.take().unwrap()), &mut line).unwrap();
        hiding.wait().unwrap();
        let pid: i32 = line.trim().parse().unwrap();
        let found = alive(&[home.path()]);
        assert_eq!(found.iter().map(Identity::pid).collect::<Vec<_>>(), [pid]);
        end(&[home.path()]);
        assert!(!found[0].may_live());
        assert!(alive(&[home.path()]).is_empty());
    }
}
