//! Kills processes of all sessions at random, with a seed: one, or two in quick succession, so that the second kill can
//! happen before the first process was replaced.

use crate::harness::Harness;
use crate::patience;
use crate::session::ProcessKind;
use ostler_sys::process::{Identity, Pidfd};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Selects another seed.
const SEED: &str = "OSTLER_TEST_SEED";

/// At most this many milliseconds are between two kills that belong together.
const TOGETHER_MS: u64 = 12;

/// A process that was killed.
#[derive(Clone, Debug)]
pub struct Killed {
    pub id: String,
    pub who: ProcessKind,
    /// Right after the kill before it, whose process had no replacement yet.
    pub together: bool,
}

impl fmt::Display for Killed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?} of {}", if self.together { "+ " } else { "" }, self.who, self.id)
    }
}

/// Decides which process is killed next, and when.
#[derive(Debug)]
pub struct Killer {
    seed: u64,
    state: u64,
    /// The longest pause between two kills.
    pause_ms: u64,
    killed: Vec<Killed>,
}

impl Killer {
    /// `OSTLER_TEST_SEED` can set another seed.
    #[must_use]
    pub fn new(seed: u64, pause_ms: u64) -> Killer {
        let told = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()).filter(|seed| *seed != 0);
        let seed = told.unwrap_or(seed);
        Killer { seed, state: seed, pause_ms, killed: Vec::new() }
    }

    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// xorshift64*: small, and the same on every machine.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit.max(1)
    }

    /// The processes that were killed so far.
    #[must_use]
    pub fn killed(&self) -> &[Killed] {
        &self.killed
    }

    /// How many of each kind were killed, and how many together with the kill before.
    #[must_use]
    pub fn counted(&self) -> String {
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        for one in &self.killed {
            *kinds.entry(format!("{:?}", one.who).to_lowercase()).or_default() += 1;
        }
        let together = self.killed.iter().filter(|one| one.together).count();
        let kinds: Vec<String> = kinds.into_iter().map(|(kind, count)| format!("{count} × {kind}")).collect();
        format!("{}; {together} at once with another", kinds.join(", "))
    }

    /// Kills until this many processes were killed since the beginning. Fails when `over` says that there will be no
    /// more processes to kill. `may` says which processes may be killed; for the second of two kills, `together` is
    /// set.
    #[track_caller]
    pub fn kill_up_to(
        &mut self,
        harness: &Harness,
        count: usize,
        over: impl Fn() -> bool,
        may: impl Fn(&Killed) -> bool,
    ) {
        while self.killed.len() < count {
            // A random moment: that is what is tested.
            let pause = self.below(self.pause_ms);
            patience::let_pass(Duration::from_millis(pause));
            let mut living = living(harness);
            living.retain(|(one, _)| may(one));
            if living.is_empty() {
                assert!(!over(), "over after {} of {count} kills", self.killed.len());
                continue;
            }
            let at = self.below(living.len() as u64) as usize;
            let (first, process) = living.swap_remove(at);
            if !kill(&process) {
                continue;
            }
            let id = first.id.clone();
            self.killed.push(first);
            if self.killed.len() < count && self.below(3) == 0 {
                // In half of the cases a process of the same session.
                let same = self.below(2) == 0;
                living.retain(|(one, _)| !same || one.id == id);
                for (one, _) in &mut living {
                    one.together = true;
                }
                let pause = self.below(TOGETHER_MS);
                patience::let_pass(Duration::from_millis(pause));
                let at = self.below(living.len() as u64) as usize;
                if let Some((second, process)) = living.get(at)
                    && may(second)
                    && kill(process)
                {
                    self.killed.push(second.clone());
                }
            }
        }
    }
}

/// Every process of a session that has not ended.
fn living(harness: &Harness) -> Vec<(Killed, Identity)> {
    let sessions = harness.ls().into_iter().filter(|one| !one.ended);
    let processes = sessions.flat_map(|one| {
        let of = |who: ProcessKind| {
            let process = harness.session(&one.id).recorded_if_there(who).filter(Identity::may_live)?;
            Some((Killed { id: one.id.clone(), who, together: false }, process))
        };
        [ProcessKind::Agent, ProcessKind::Holder, ProcessKind::Keeper].into_iter().filter_map(of).collect::<Vec<_>>()
    });
    processes.collect()
}

/// Whether the process was alive until now.
fn kill(process: &Identity) -> bool {
    match Pidfd::open(process) {
        Ok(Some(pidfd)) => !pidfd.has_exited().unwrap_or(true) && pidfd.signal(Signal::KILL).is_ok(),
        Ok(None) | Err(_) => false,
    }
}
