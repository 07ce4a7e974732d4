//! Smaller parts of the state of a session.

use crate::event::StopHow;
use serde::{Deserialize, Serialize};

/// Whether messages can be given to the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Conversation {
    /// Its opening is under way.
    Opening {
        /// It takes longer than allowed.
        no_answer: bool,
    },
    Open,
    /// The agent cannot open it, and why.
    Refused {
        reason: String,
        /// Milliseconds since boot.
        at_ms: u64,
    },
}

/// The request to end the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    pub by: String,
    pub why: String,
    pub how: StopHow,
    pub grace_ms: u64,
    pub at_ms: u64,
    /// A turn ran when it was made.
    pub in_turn: bool,
}

impl Stop {
    /// The first request stays on record; a later one can only be more urgent.
    pub(super) fn and(&mut self, later: &Stop) {
        let urgency = |how| match how {
            StopHow::AfterTurn => 0,
            StopHow::Interrupt => 1,
            StopHow::Kill => 2,
        };
        if urgency(later.how) > urgency(self.how) {
            self.how = later.how;
            self.at_ms = later.at_ms;
            self.grace_ms = later.grace_ms;
        } else if later.how == self.how {
            // The earlier of the two ends.
            let ends = |stop: &Stop| stop.at_ms.saturating_add(stop.grace_ms);
            let ends = ends(self).min(ends(later));
            self.grace_ms = ends.saturating_sub(self.at_ms);
        }
    }
}

/// The keepers of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keepers {
    pub starts: u32,
    /// Pid and start time of the newest one.
    pub newest: Option<(i32, u64)>,
}

/// How far output has been understood and kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Output up to here has been decoded and taken into the state.
    pub understood: u64,
    /// A line after that position which is already too long.
    pub long_line: Option<LongLine>,
    /// Where the output of the newest turn begins; when that is over, where it ended.
    pub turn_begins: u64,
    /// Standard error has been read for retries up to here.
    pub err_read: u64,
    /// The oldest output up to here was dropped; `trimmed_err` is the same for standard error.
    pub trimmed: u64,
    pub trimmed_err: u64,
    /// Why output is paused, while it is.
    pub held: Option<Held>,
}

/// A line in an agent's output that is too long to read: where it begins, and up to where no end was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongLine {
    pub start: u64,
    pub to: u64,
}

/// Why output is paused, and what a person can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    pub why: String,
    pub remedy: String,
}

impl Held {
    /// What people are told while it lasts.
    #[must_use]
    pub fn alarm(&self) -> String {
        format!("output is paused: {}; {}", self.why, self.remedy)
    }
}
