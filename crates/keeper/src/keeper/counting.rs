//! What a turn used, from an agent that does not tell at its end, as in a terminal. Its transcript says, and is written a
//! little later; so it is looked at a few times after the turn, and for the last time before the outcome is written. What
//! the conversation has cost it notes as it leaves.

use super::{Keeper, KeeperError};
use crate::writing;
use ostler_core::event::Event;
use ostler_core::record::Speaks;
use ostler_sys::clock::since_boot_ms;
use ostler_view::proof::{self, Kept};
use std::path::PathBuf;

/// How long after the turn it is looked at. Measured: the end of a turn was on disk after 102 ms at the latest.
const LOOKS_MS: [u64; 4] = [0, 150, 1000, 5000];

/// What is not counted yet.
#[derive(Default)]
pub(super) struct Counting {
    turns: Vec<Open>,
    /// The conversation that the agent was in when we last looked.
    conversation: Option<String>,
    /// The one that it has left, until its record says what that had cost.
    left: Option<Left>,
}

/// A conversation that the agent went on from, in the same process. Measured: after `/resume` it notes what
/// the conversation before had cost, and counts from zero; after `/clear` it notes nothing and counts on.
struct Left {
    native_id: String,
    at_ms: u64,
    looks: usize,
}

struct Open {
    turn: u32,
    transcript: PathBuf,
    marks: Vec<String>,
    ended_ms: u64,
    looks: usize,
}

impl Open {
    /// When it is looked at next; `None`: not before the end.
    fn due_ms(&self) -> Option<u64> {
        LOOKS_MS.get(self.looks).map(|after_ms| self.ended_ms + after_ms)
    }
}

impl Keeper {
    /// The newest turn is to be counted, when nobody told.
    pub(super) fn count_what_is_open(&mut self) {
        let uncounted = self.state.spending.turns().last().filter(|spent| spent.tokens.is_none());
        let (Some(turn), Some(end)) = (uncounted.map(|spent| spent.turn), self.state.last_turn()) else {
            return;
        };
        let known = self.counting.turns.iter().any(|open| open.turn == turn);
        if known || self.record.plan.speaks() != Speaks::Hooks || self.agent.count(&end.messages).is_none() {
            return;
        }
        if let Some(Kept::File { path: transcript, .. }) = Kept::of(&self.record, &self.state) {
            let (marks, ended_ms) = (end.messages.clone(), since_boot_ms());
            self.counting.turns.push(Open { turn, transcript, marks, ended_ms, looks: 0 });
        }
    }

    pub(super) fn count_when_due(&mut self) -> Result<(), KeeperError> {
        let now = since_boot_ms();
        self.note_cost_of_left_conversation(now)?;
        for mut open in std::mem::take(&mut self.counting.turns) {
            let held = |open: &Open| proof::holds(self.agent, &open.transcript, 0, &open.marks).unwrap_or(false);
            if open.due_ms().is_some_and(|due| due <= now) {
                open.looks += 1;
                if held(&open) {
                    self.count(&open)?;
                    continue;
                }
            }
            if let Some(due) = open.due_ms() {
                self.wake_by(due);
            }
            self.counting.turns.push(open);
        }
        Ok(())
    }

    /// Whatever is in the transcript now is all that there will be.
    pub(super) fn count_at_the_end(&mut self) -> Result<(), KeeperError> {
        std::mem::take(&mut self.counting.turns).iter().try_for_each(|open| self.count(open))?;
        match self.cost_so_far(true) {
            Some(usd) => self.note(Event::Cost { usd, left: false }),
            None => Ok(()),
        }
    }

    /// What the conversation had cost before this run.
    pub(super) fn note_cost_before(&mut self) -> Result<(), KeeperError> {
        if self.record.plan.speaks() != Speaks::Hooks || self.agent.costs_record(&writing::variable).is_none() {
            return Ok(());
        }
        let usd = self.cost_so_far(false).unwrap_or(0.0);
        self.note(Event::Cost { usd, left: false })
    }

    fn cost_so_far(&self, exited: bool) -> Option<f64> {
        self.cost_of(self.state.native_id.as_ref().or(self.record.native_id.as_ref())?, exited)
    }

    fn cost_of(&self, native_id: &str, exited: bool) -> Option<f64> {
        let record =
            self.agent.costs_record(&writing::variable).filter(|_| self.record.plan.speaks() == Speaks::Hooks)?;
        // The agent's own file, which it may have lost.
        self.agent.cost_in(&std::fs::read(record).ok()?, &self.session.cwd, native_id, exited)
    }

    /// The agent writes it a moment after it has gone on with another conversation.
    fn note_cost_of_left_conversation(&mut self, now: u64) -> Result<(), KeeperError> {
        if self.counting.conversation != self.state.native_id {
            let before = std::mem::replace(&mut self.counting.conversation, self.state.native_id.clone());
            self.counting.left = before.map(|native_id| Left { native_id, at_ms: now, looks: 0 });
        }
        let Some(mut left) = self.counting.left.take() else {
            return Ok(());
        };
        let due = |left: &Left| LOOKS_MS.get(left.looks).map(|after_ms| left.at_ms + after_ms);
        while due(&left).is_some_and(|due_ms| due_ms <= now) {
            left.looks += 1;
            let began_at = self.state.spending.began_at(self.record.run);
            // What it says of the time before this run is no news: after `/clear` nothing is written.
            if let Some(usd) = self.cost_of(&left.native_id, false).filter(|usd| Some(*usd) != began_at) {
                return self.note(Event::Cost { usd, left: true });
            }
        }
        if let Some(due_ms) = due(&left) {
            self.wake_by(due_ms);
            self.counting.left = Some(left);
        }
        Ok(())
    }

    /// A transcript that cannot be read says nothing, and what it would have said is not known.
    fn count(&mut self, open: &Open) -> Result<(), KeeperError> {
        match proof::turn_tokens(self.agent, &open.transcript, &open.marks) {
            Ok(Some(tokens)) => self.note(Event::Counted { turn: open.turn, tokens }),
            Ok(None) | Err(_) => Ok(()),
        }
    }
}
