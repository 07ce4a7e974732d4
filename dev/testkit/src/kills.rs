//! Kills processes of all sessions there are at random, with a seed: one, or two at once, so that the second death also meets the time in
//! which the first has not been made good.

use crate::harness::Harness;
use crate::patience;
use crate::session::Who;
use ostler_sys::process::{Identity, Pidfd};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Another seed than the usual one.
const SEED: &str = "OSTLER_TEST_SEED";

/// Between two deaths that belong together there are at most so many milliseconds.
const TOGETHER_MS: u64 = 12;

/// One that was killed.
#[derive(Clone, Debug)]
pub struct Killed {
    pub id: String,
    pub who: Who,
    /// Right after the one before, which had no replacement yet.
    pub together: bool,
}

impl fmt::Display for Killed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?} of {}", if self.together { "+ " } else { "" }, self.who, self.id)
    }
}

/// Which process dies next, and when.
#[derive(Debug)]
pub struct Killer {
    seed: u64,
    state: u64,
    /// Between two of them, at most.
    pause_ms: u64,
    killed: Vec<Killed>,
}

impl Killer {
    /// Another seed may come from `OSTLER_TEST_SEED`.
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

    /// What was killed so far.
    #[must_use]
    pub fn killed(&self) -> &[Killed] {
        &self.killed
    }

    /// How many of each kind, and how many together with the one before.
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

    /// Kills until so many are dead since the beginning. Fails when `over` says that there will be nobody left to kill. `may` says which
    /// of the processes may be killed; of the second of two, with `together`.
    #[track_caller]
    pub fn kill_up_to(
        &mut self,
        harness: &Harness,
        count: usize,
        over: impl Fn() -> bool,
        may: impl Fn(&Killed) -> bool,
    ) {
        while self.killed.len() < count {
            // A moment at random: that is what is tested.
            let pause = self.below(self.pause_ms);
            patience::readable(&[], Duration::from_millis(pause));
            let mut living = living(harness);
            living.retain(|(one, _)| may(one));
            if living.is_empty() {
                assert!(!over(), "over after {} of {count} kills", self.killed.len());
                continue;
            }
            let at = self.below(living.len() as u64) as usize;
            let (first, process) = living.swap_remove(at);
            if !strike(&process) {
                continue;
            }
            let id = first.id.clone();
            self.killed.push(first);
            if self.killed.len() < count && self.below(3) == 0 {
                // Of the same session, every other time.
                let same = self.below(2) == 0;
                living.retain(|(one, _)| !same || one.id == id);
                for (one, _) in &mut living {
                    one.together = true;
                }
                let pause = self.below(TOGETHER_MS);
                patience::readable(&[], Duration::from_millis(pause));
                let at = self.below(living.len() as u64) as usize;
                if let Some((second, process)) = living.get(at)
                    && may(second)
                    && strike(process)
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
        let of = |who: Who| {
            let process = harness.session(&one.id).recorded_if_there(who).filter(Identity::may_live)?;
            Some((Killed { id: one.id.clone(), who, together: false }, process))
        };
        [Who::Agent, Who::Holder, Who::Keeper].into_iter().filter_map(of).collect::<Vec<_>>()
    });
    processes.collect()
}

/// Whether it lived until now.
fn strike(process: &Identity) -> bool {
    match Pidfd::open(process) {
        Ok(Some(pidfd)) => !pidfd.has_exited().unwrap_or(true) && pidfd.signal(Signal::KILL).is_ok(),
        Ok(None) | Err(_) => false,
    }
}
