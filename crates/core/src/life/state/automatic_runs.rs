//! Runs that begin by themselves: whether there is a next one, and when.

use super::State;
use crate::outcome::{Kind, kind_of};
use crate::record::Mode;
use crate::rules::{ALIVE_MS, OWN_CODES, Restart, SHORT_PAUSE_MS, YOUNG_MS};
use crate::start_when::Begin;
use serde::{Deserialize, Serialize};

/// The runs that followed each other without anybody asking for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AutomaticRuns {
    /// When the first of them began, in milliseconds since boot.
    pub began_ms: u64,
    /// How many began because the one before had gone wrong, one after the other.
    pub restarts: u32,
    /// How often it went on after a usage limit without progress since.
    #[serde(default)]
    pub continued: u32,
    /// When the limit before was to be reset, in seconds since 1970.
    #[serde(default)]
    pub reset_at: Option<i64>,
    /// What the session had done and spent before the first of them.
    #[serde(default)]
    pub turns_before: u32,
    #[serde(default)]
    pub usd_before: f64,
}

/// A run that lived so long without failing has shown that it works.
const WORKED_MS: u64 = 600_000;

impl AutomaticRuns {
    /// A person has started or resumed it, after so many turns and dollars.
    pub(super) fn beginning(began_ms: u64, turns_before: u32, usd_before: f64) -> AutomaticRuns {
        AutomaticRuns { began_ms, turns_before, usd_before, ..AutomaticRuns::default() }
    }
}

impl State {
    /// Since its process has ended, the session waits for the next one to begin by itself: when, in milliseconds since boot.
    /// What was asked to stop never begins again.
    #[must_use]
    pub fn restarts_at_ms(&self) -> Option<u64> {
        // What never began would not do so the next time either.
        let may =
            self.stop.is_none() && self.outcome.is_none() && self.begin == Begin::Begun && self.handover.is_none();
        let restart = self.plan.rules.restart.filter(|_| may)?;
        let exit = self.exit()?;
        let went_wrong = match restart {
            Restart::OnFailure { .. } => {
                // One that was to stay and did not is a failure, however well its last turn went.
                let stays = self.plan.keep || self.plan.mode() == Mode::Terminal;
                let left = stays && !self.takes_one_turn() && exit.code != Some(0);
                left || matches!(kind_of(self), Kind::Failed | Kind::Lost)
            }
            Restart::WhenKilled => exit.code.is_none_or(|code| !OWN_CODES.contains(&code)),
            Restart::Unknown => false,
        };
        let mut pause_ms = restart.pause_ms(self.restarts_in_a_row()).filter(|_| went_wrong)?;
        if restart == Restart::WhenKilled && self.lived_ms() >= ALIVE_MS {
            // It came further than its own start: others kill it, and a pause would help nobody.
            pause_ms = pause_ms.min(SHORT_PAUSE_MS);
        }
        // At once is at once, also for a clock that began anew since.
        Some(if self.hurries { 0 } else { self.exit_ms().saturating_add(pause_ms) })
    }

    /// How many restarts there were without this run or the one before having shown that it works.
    fn restarts_in_a_row(&self) -> u32 {
        let worked = match self.plan.rules.restart {
            Some(Restart::WhenKilled) => self.progress || self.lived_ms() >= YOUNG_MS,
            Some(Restart::OnFailure { .. } | Restart::Unknown) | None => self.lived_ms() >= WORKED_MS,
        };
        if worked { 0 } else { self.automatic.restarts }
    }

    fn lived_ms(&self) -> u64 {
        self.exit_ms().saturating_sub(self.started_ms().unwrap_or(0))
    }

    /// What the next run is told of the ones before, when it begins by itself.
    pub(super) fn automatic_of_next(&self) -> AutomaticRuns {
        // By now the outcome of this run is written.
        let ended = State { outcome: None, ..self.clone() };
        let restarts = if ended.restarts_at_ms().is_some() { ended.restarts_in_a_row() + 1 } else { 0 };
        AutomaticRuns { restarts, ..self.automatic }
    }
}
