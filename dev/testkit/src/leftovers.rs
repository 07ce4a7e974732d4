//! The proof that nothing is left. Whatever a test's sessions started, however often it forked and no matter what its parent is
//! now, works below the test's own folder or carries the lock of one of its sessions: paths that exist nowhere else on the
//! machine. Nobody's environment is read for that; what should hide from both is found by `cargo xtask test`, which is
//! the parent of every orphan.

use crate::patience::ends_within;
use ostler_sys::process::{Identity, Pidfd, Stat, command_line};
use rustix::process::Signal;
use std::path::Path;
use std::time::{Duration, Instant};

/// The number under which an agent, and what it starts, carries its session's lock.
const AGENT_LOCK: i32 = 31;

/// Helpers leave a moment after they have published the outcome; a busy machine lets them wait for it. What was forgotten stays
/// for longer than this.
const MOMENT: Duration = Duration::from_secs(30);

/// Every living process that works below one of these folders or carries a lock from there.
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

/// Gives everything of these folders a moment to be gone. Returns what is not, in words, and ends it.
pub fn settle(folders: &[&Path]) -> Vec<String> {
    let deadline = Instant::now() + MOMENT;
    loop {
        // What ends may have started something first.
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

/// Kills everything of these folders, until nothing is left of it.
pub fn end(folders: &[&Path]) {
    let deadline = Instant::now() + MOMENT;
    loop {
        let left = alive(folders);
        if left.is_empty() || Instant::now() > deadline {
            return;
        }
        for process in &left {
            if let Ok(Some(pidfd)) = Pidfd::open(process) {
                // Gone in between is gone.
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
