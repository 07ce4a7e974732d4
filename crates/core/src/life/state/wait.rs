//! Waiting for a usage limit to be reset, and how the session continues afterwards.
//!
//! A turn that ends at a limit is followed by a wait when the rules say so. Three things then happen, each noted once:
//! the time comes (`wait_over`), the message to continue with is added to the messages (`returned`, or `accepted` and
//! `continued`), and that message is delivered like any other. Messages of people that came meanwhile follow it.

use super::State;
use crate::fact::{TurnEnd, Verdict};
use crate::outcome::Exit;
use crate::record::Mode;
use crate::rules::{CONTINUATIONS, OnLimit, limit_pause_ms};
use serde::{Deserialize, Serialize};

/// What a session waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// In words for people: `usage limit`.
    pub what: String,
    pub until: Until,
    /// The time has come.
    pub over: bool,
}

/// How long it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Until {
    /// Until the wall clock shows this: seconds since 1970.
    Time { second: i64 },
    /// It is unknown when the limit is reset: until this time, in milliseconds since boot.
    Pause { ms: u64 },
}

/// A turn that worked for so long before the limit has made progress.
const PROGRESS_MS: u64 = 60_000;

impl State {
    /// A turn has ended: decides whether the session waits now.
    pub(super) fn wait_after(&mut self, end: &TurnEnd, began_ms: u64, now_ms: u64) {
        let worked =
            end.tokens.is_some_and(|tokens| tokens.output > 0) || now_ms.saturating_sub(began_ms) >= PROGRESS_MS;
        let limited = self.limited.take().filter(|_| end.verdict == Verdict::Failed);
        if worked || limited.is_none() {
            self.automatic.continued = 0;
        }
        if limited.is_some() {
            self.hand_over_at_limit();
        }
        let waits = self.plan.rules.on_limit == Some(OnLimit::Wait) && self.stop.is_none();
        let Some(limit) = limited.filter(|_| waits && self.automatic.continued < CONTINUATIONS) else {
            return;
        };
        let pause = Until::Pause { ms: now_ms.saturating_add(limit_pause_ms(self.automatic.continued)) };
        // If a limit was to be reset at this time before and was not, the time is not trusted again.
        let time = limit.resets_at.filter(|second| self.automatic.reset_at != Some(*second));
        self.automatic.reset_at = limit.resets_at;
        let until = time.map_or(pause, |second| Until::Time { second });
        self.wait = Some(Wait { what: limit.what, until, over: false });
    }

    /// Whether the session waits when its turn ends like this.
    #[must_use]
    pub fn waits_after(&self, end: &TurnEnd) -> bool {
        let mut after = State {
            limited: self.limited.clone(),
            automatic: self.automatic,
            stop: self.stop.clone(),
            ..State::new(self.plan.clone())
        };
        after.wait_after(end, 0, 0);
        after.wait.is_some()
    }

    /// A turn begins. In a terminal a person may have typed what begins it: then the session does not wait any longer.
    pub(super) fn is_taken_up_by_a_person(&mut self) {
        if self.plan.mode() == Mode::Terminal {
            self.wait = None;
        }
    }

    /// The process has ended. A program that exits by itself in a terminal was quit by a person, and is not started
    /// again.
    pub(super) fn is_left_by_a_person(&mut self, exit: Exit) {
        if self.plan.mode() == Mode::Terminal && exit.code.is_some() {
            self.wait = None;
        }
    }

    /// The newest turn that is over ended at a usage limit.
    #[must_use]
    pub fn is_at_limit(&self) -> bool {
        self.last_turn.as_ref().is_some_and(|turn| turn.at_limit)
    }

    /// It waits, and nothing may be delivered.
    #[must_use]
    pub fn waits_for_limit(&self) -> bool {
        self.wait.is_some() && self.stop.is_none() && self.outcome.is_none()
    }

    /// It waits for a length of time, and not until a time of day.
    #[must_use]
    pub fn pauses(&self) -> bool {
        match self.wait.as_ref().filter(|_| self.waits_for_limit()) {
            Some(wait) => !wait.over && matches!(wait.until, Until::Pause { .. }),
            None => !self.skips_pause && self.restarts_at_ms().is_some(),
        }
    }

    pub(super) fn wait_is_over(&mut self) {
        self.skips_pause = self.has_exited();
        if let Some(wait) = &mut self.wait {
            wait.over = true;
        }
        self.end_wait();
    }

    /// The message with which it continues is among its messages.
    pub(super) fn is_prepared(&mut self) {
        self.continuation = true;
        self.end_wait();
    }

    fn end_wait(&mut self) {
        if self.continuation && self.wait.take_if(|wait| wait.over).is_some() {
            self.automatic.continued += 1;
            self.proceeds = true;
        }
    }

    /// The wait for a limit is over, and the next run is to begin.
    pub(in crate::life) fn proceeds(&self) -> bool {
        self.proceeds && self.stop.is_none() && !self.mail.queue.is_empty()
    }

    /// The agent needs a message before it continues: its newest turn did not end well, and no message is prepared.
    pub(in crate::life) fn lacks_words(&self) -> bool {
        let broken = self.turn_running() || self.last_turn().is_some_and(|end| end.verdict == Verdict::Failed);
        self.plan.speaks().converses() && broken && !self.continuation
    }
}
