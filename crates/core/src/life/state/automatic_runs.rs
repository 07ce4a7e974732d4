//! Runs that begin automatically: whether there is a next one, and when.

use super::State;
use crate::outcome::{Kind, kind_of};
use crate::record::Mode;
use crate::rules::{ALIVE_MS, OWN_CODES, Restart, SHORT_PAUSE_MS, YOUNG_MS};
use crate::start_when::Begin;
use serde::{Deserialize, Serialize};

/// The runs that followed each other automatically.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AutomaticRuns {
    /// When the first of them began, in milliseconds since boot.
    pub began_ms: u64,
    /// How many in a row began because the run before had failed.
    pub restarts: u32,
    /// How often the session continued after a usage limit without progress since.
    #[serde(default)]
    pub continued: u32,
    /// When the previous limit was to be reset, in seconds since 1970.
    #[serde(default)]
    pub reset_at: Option<i64>,
    /// What the session had done and spent before the first of them.
    #[serde(default)]
    pub turns_before: u32,
    #[serde(default)]
    pub usd_before: f64,
}

/// A run that lasted so long without failing has shown that it works.
const WORKED_MS: u64 = 600_000;

impl AutomaticRuns {
    /// A person has started or resumed the session, which had taken so many turns and cost so many dollars before.
    pub(super) fn beginning(began_ms: u64, turns_before: u32, usd_before: f64) -> AutomaticRuns {
        AutomaticRuns { began_ms, turns_before, usd_before, ..AutomaticRuns::default() }
    }
}

impl State {
    /// When the next run begins automatically after the process has ended, in milliseconds since boot; `None` when
    /// there is no next run. There is never one after a request to stop.
    #[must_use]
    pub fn restarts_at_ms(&self) -> Option<u64> {
        // A program that was never started would not be started the next time either.
        let may =
            self.stop.is_none() && self.outcome.is_none() && self.begin == Begin::Begun && self.handover.is_none();
        let restart = self.plan.rules.restart.filter(|_| may)?;
        let exit = self.exit()?;
        let went_wrong = match restart {
            Restart::OnFailure { .. } => {
                // A process that was to stay and did not has failed, however well its last turn went.
                let stays = self.plan.keep || self.plan.mode() == Mode::Terminal;
                let left = stays && !self.takes_one_turn() && exit.code != Some(0);
                left || matches!(kind_of(self), Kind::Failed | Kind::Lost)
            }
            Restart::WhenKilled => exit.code.is_none_or(|code| !OWN_CODES.contains(&code)),
            Restart::Unknown => false,
        };
        let mut pause_ms = restart.pause_ms(self.restarts_in_a_row()).filter(|_| went_wrong)?;
        if restart == Restart::WhenKilled && self.lived_ms() >= ALIVE_MS {
            // It got past its own start: it is killed from outside, and a longer pause would not help.
            pause_ms = pause_ms.min(SHORT_PAUSE_MS);
        }
        // 0 means at once, even if the machine was booted since and the clock began again.
        Some(if self.skips_pause { 0 } else { self.exit_ms().saturating_add(pause_ms) })
    }

    /// How many restarts in a row there were, if this run has not shown that it works.
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

    /// What the next run takes over from the runs before, when it begins automatically.
    pub(super) fn automatic_of_next(&self) -> AutomaticRuns {
        // By now the outcome of this run is written.
        let ended = State { outcome: None, ..self.clone() };
        let restarts = if ended.restarts_at_ms().is_some() { ended.restarts_in_a_row() + 1 } else { 0 };
        AutomaticRuns { restarts, ..self.automatic }
    }
}
