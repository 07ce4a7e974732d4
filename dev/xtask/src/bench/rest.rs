//! Detects from the outside, without asking them, that processes do nothing but wait.
//!
//! The kernel counts the context switches of each thread. A thread that sleeps and slept at the last look has a new number
//! if it ran in between. When all sleep and no number changes over several looks, everything that was about to happen has
//! happened.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::processes::{Identity, is_readable};

const LOOK_EVERY: Duration = Duration::from_millis(4);
const UNCHANGED_LOOKS: u32 = 8;
/// Some servers poll all the time and never rest; after this time they are measured as they are.
const LIMIT: Duration = Duration::from_secs(3);

/// Returns once all of these processes are at rest, or after `LIMIT`. It is an error if the first of them exits before.
pub fn until_at_rest(pids: &[i32]) -> Result<()> {
    rested_within(LIMIT, pids).map(drop)
}

/// Whether all of them came to rest before the limit.
fn rested_within(limit: Duration, pids: &[i32]) -> Result<bool> {
    let first = Identity::of(*pids.first().context("no process to look at")?)?;
    let pidfd = first.open().context("a process that should wait is gone")?;
    let deadline = Instant::now() + limit;
    let mut unchanged = 0;
    let mut before = switches(pids);
    while unchanged < UNCHANGED_LOOKS && Instant::now() < deadline {
        if is_readable(&pidfd, LOOK_EVERY) {
            bail!("a process that should wait has ended");
        }
        let now = switches(pids);
        // A thread that never stops to run has no context switches either.
        let all_sleep = !now.iter().any(|line| line.starts_with("State:\tR") || line.starts_with("State:\tD"));
        unchanged = if now == before && all_sleep { unchanged + 1 } else { 0 };
        before = now;
    }
    Ok(unchanged >= UNCHANGED_LOOKS)
}

/// The counters and the state of every thread; a thread that has exited has none.
fn switches(pids: &[i32]) -> Vec<String> {
    let threads = pids.iter().filter_map(|pid| std::fs::read_dir(format!("/proc/{pid}/task")).ok()).flatten().flatten();
    let statuses = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("status")).ok());
    let counters = |status: String| {
        status
            .lines()
            .filter(|line| line.contains("ctxt_switches") || line.starts_with("State:"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    statuses.flat_map(counters).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::*;
    use crate::processes::CHILDREN;

    #[test]
    fn a_process_that_runs_without_a_pause_is_not_at_rest() {
        let _mine = CHILDREN.lock().unwrap();
        let mut child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let rested = rested_within(LOOK_EVERY * 4 * UNCHANGED_LOOKS, &[i32::try_from(child.id()).unwrap()]).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!rested);
    }

    #[test]
    fn a_process_that_ended_is_not_taken_for_one_at_rest() {
        let _mine = CHILDREN.lock().unwrap();
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        until_at_rest(&[pid]).unwrap();
        drop(child.stdin.take());
        // Its exit is not collected yet, so its number still belongs to it.
        assert!(until_at_rest(&[pid]).is_err());
        child.wait().unwrap();
    }
}
