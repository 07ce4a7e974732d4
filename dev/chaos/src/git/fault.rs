//! What happens to ostler and git in the middle of an operation.

use super::operation::Operation;
use super::world::{Order, World};
use crate::random::Random;
use ostler_sys::process::{Identity, Pidfd};
use ostler_testkit::{Started, patience};
use rustix::process::Signal;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    KillOstler,
    /// One of the git processes that ostler starts.
    KillGit,
    /// Both at the same moment.
    KillBoth,
    KillKeeper,
    KillHolder,
    DiskFull,
    /// A lock of the person's own, left by a git that was killed.
    StaleLock,
}

impl Fault {
    pub const ALL: [Fault; 7] = [
        Fault::KillOstler,
        Fault::KillGit,
        Fault::KillBoth,
        Fault::KillKeeper,
        Fault::KillHolder,
        Fault::DiskFull,
        Fault::StaleLock,
    ];

    /// The faults that are possible during an operation: an operation that starts no session has no helpers.
    #[must_use]
    pub fn possible(operation: Operation) -> Vec<Fault> {
        let helpers = |fault: &Fault| matches!(fault, Fault::KillKeeper | Fault::KillHolder);
        Fault::ALL.into_iter().filter(|fault| !helpers(fault) || operation.starts_a_session()).collect()
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Fault::KillOstler => "ostler killed",
            Fault::KillGit => "git killed",
            Fault::KillBoth => "ostler and git killed",
            Fault::KillKeeper => "keeper killed",
            Fault::KillHolder => "holder killed",
            Fault::DiskFull => "disk full",
            Fault::StaleLock => "stale index.lock",
        }
    }
}

/// The fault comes at the latest after this time.
const LATEST: Duration = Duration::from_secs(20);

impl World {
    /// Runs the operation, with the fault. False: there was nothing to kill.
    pub(super) fn under_fault(&mut self, operation: Operation, fault: Fault, random: &mut Random) -> bool {
        match fault {
            Fault::DiskFull => {
                self.fill_disk(random.below(300_000) as u64);
                let started = self.start(operation);
                // A session whose output finds no room waits for room, and so does a command that follows it.
                self.until_held_or_over(&started);
                self.free_disk();
                started.finish();
                true
            }
            Fault::StaleLock => {
                self.leave_lock();
                self.start(operation).finish();
                self.person_removes_lock();
                true
            }
            // The command only waits for the turn; another process takes the snapshot.
            Fault::KillOstler if operation == Operation::Snapshot && random.below(4) > 0 => {
                let after = Duration::from_micros(random.below(60_000) as u64);
                let started = self.start(operation);
                let injected = self.kill_snapshot(after, &started);
                started.finish();
                injected
            }
            Fault::KillOstler => {
                let started = self.start(operation);
                let moment = Duration::from_micros(random.below(self.usual(operation)) as u64);
                patience::let_pass(moment);
                let injected = kill(started.process());
                drop(started);
                injected
            }
            Fault::KillGit | Fault::KillBoth => {
                let order = Order {
                    which: match random.below(2) {
                        0 => (1 + random.below(operation.gits())).to_string(),
                        _ => random.pick(operation.delicate()).to_owned(),
                    },
                    after_us: random.below(20_000),
                    both: fault == Fault::KillBoth,
                };
                self.order_kill(&order);
                self.start(operation).finish();
                if operation == Operation::Snapshot {
                    self.let_turns_end();
                }
                self.was_killed()
            }
            Fault::KillKeeper | Fault::KillHolder => {
                let which = 1 + random.below(2);
                let holder = fault == Fault::KillHolder;
                let started = self.start(operation);
                let injected = self.kill_helper(which, holder, &started);
                started.finish();
                injected
            }
        }
    }

    fn kill_helper(&self, which: usize, holder: bool, started: &Started) -> bool {
        let mut seen = HashSet::new();
        let deadline = Instant::now() + LATEST;
        while started.process().may_live() && Instant::now() < deadline {
            for process in self.helpers(holder) {
                if process.may_live() && seen.insert(process.pid()) && seen.len() >= which {
                    return kill(&process);
                }
            }
        }
        false
    }
}

/// True when the process was alive until now.
pub(super) fn kill(process: &Identity) -> bool {
    let Ok(Some(pidfd)) = Pidfd::open(process) else { return false };
    pidfd.signal(Signal::KILL).unwrap_or(false)
}
