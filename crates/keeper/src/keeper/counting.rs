//! What a turn used, for an agent that does not report it at the end of the turn, as in a terminal. The agent's
//! transcript has it, but is written a little later. So the transcript is looked at a few times after the turn, and for
//! the last time before the outcome is written. The agent records the cost of the conversation when it exits.

use super::{Keeper, KeeperError};
use crate::writer_lock;
use ostler_core::event::Event;
use ostler_core::record::Speaks;
use ostler_sys::clock::since_boot_ms;
use ostler_view::proof::{self, Kept};
use std::path::PathBuf;

/// How long after the turn the transcript is looked at. Measured: the end of a turn was on disk after 102 ms at the
/// latest.
const LOOKS_MS: [u64; 4] = [0, 150, 1000, 5000];

/// What is not counted yet.
#[derive(Default)]
pub(super) struct Counting {
    turns: Vec<Open>,
    /// The conversation that the agent was in when we last looked.
    conversation: Option<String>,
    /// The conversation that the agent has left, until the agent's record has its cost.
    left: Option<Left>,
}

/// A conversation from which the agent changed to another one, in the same process. Measured: after `/resume` the agent
/// records what the earlier conversation had cost, and counts from zero; after `/clear` it records nothing and
/// continues to count.
struct Left {
    native_id: String,
    looks: Looks,
}

struct Open {
    turn: u32,
    transcript: PathBuf,
    marks: Vec<String>,
    looks: Looks,
}

/// The looks at a file that is written a little later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Looks {
    since_ms: u64,
    taken: usize,
}

impl Looks {
    fn since(since_ms: u64) -> Looks {
        Looks { since_ms, taken: 0 }
    }

    /// When the next look is due; `None`: not before the end.
    fn due_ms(self) -> Option<u64> {
        LOOKS_MS.get(self.taken).map(|after_ms| self.since_ms + after_ms)
    }

    /// Whether a look is due now; it then counts as taken.
    fn take(&mut self, now_ms: u64) -> bool {
        let due = self.due_ms().is_some_and(|due_ms| due_ms <= now_ms);
        self.taken += usize::from(due);
        due
    }
}

impl Counting {
    /// A turn that is not counted yet.
    fn open(&mut self, turn: u32, transcript: PathBuf, marks: Vec<String>, now_ms: u64) {
        self.turns.push(Open { turn, transcript, marks, looks: Looks::since(now_ms) });
    }

    fn has(&self, turn: u32) -> bool {
        self.turns.iter().any(|open| open.turn == turn)
    }

    /// The agent is in this conversation now. It may have left another one.
    fn is_at(&mut self, native_id: Option<&String>, now_ms: u64) {
        if self.conversation.as_ref() != native_id {
            let before = std::mem::replace(&mut self.conversation, native_id.cloned());
            self.left = before.map(|native_id| Left { native_id, looks: Looks::since(now_ms) });
        }
    }
}

impl Keeper {
    /// The newest turn is to be counted, if the agent did not report what it used.
    pub(super) fn count_what_is_open(&mut self) {
        let uncounted = self.state.spending.turns().last().filter(|spent| spent.tokens.is_none());
        let (Some(turn), Some(end)) = (uncounted.map(|spent| spent.turn), self.state.last_turn()) else {
            return;
        };
        if self.counting.has(turn)
            || self.record.plan.speaks() != Speaks::Hooks
            || self.agent.count(&end.messages).is_none()
        {
            return;
        }
        if let Some(Kept::File { path: transcript, .. }) = Kept::of(&self.record, &self.state) {
            self.counting.open(turn, transcript, end.messages.clone(), since_boot_ms());
        }
    }

    pub(super) fn count_when_due(&mut self) -> Result<(), KeeperError> {
        let now = since_boot_ms();
        self.note_cost_of_left_conversation(now)?;
        for mut open in std::mem::take(&mut self.counting.turns) {
            let held = |open: &Open| proof::holds(self.agent, &open.transcript, 0, &open.marks).unwrap_or(false);
            if open.looks.take(now) && held(&open) {
                self.count(&open)?;
                continue;
            }
            if let Some(due) = open.looks.due_ms() {
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
        if self.record.plan.speaks() != Speaks::Hooks || self.agent.costs_record(&writer_lock::variable).is_none() {
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
            self.agent.costs_record(&writer_lock::variable).filter(|_| self.record.plan.speaks() == Speaks::Hooks)?;
        // A file of the agent, which may be missing.
        self.agent.cost_in(&std::fs::read(record).ok()?, &self.session.cwd, native_id, exited)
    }

    /// The agent records the cost a moment after it has changed to another conversation.
    fn note_cost_of_left_conversation(&mut self, now: u64) -> Result<(), KeeperError> {
        self.counting.is_at(self.state.native_id.as_ref(), now);
        let Some(mut left) = self.counting.left.take() else {
            return Ok(());
        };
        while left.looks.take(now) {
            let began_at = self.state.spending.began_at(self.record.run);
            // The cost at the beginning of this run is not new: after `/clear` nothing is written.
            if let Some(usd) = self.cost_of(&left.native_id, false).filter(|usd| Some(*usd) != began_at) {
                return self.note(Event::Cost { usd, left: true });
            }
        }
        if let Some(due_ms) = left.looks.due_ms() {
            self.wake_by(due_ms);
            self.counting.left = Some(left);
        }
        Ok(())
    }

    /// When the transcript cannot be read, what the turn used stays unknown.
    fn count(&mut self, open: &Open) -> Result<(), KeeperError> {
        match proof::turn_tokens(self.agent, &open.transcript, &open.marks) {
            Ok(Some(tokens)) => self.note(Event::Counted { turn: open.turn, tokens }),
            Ok(None) | Err(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_looked_at_a_few_times_and_then_not_before_the_end() {
        let mut looks = Looks::since(1000);
        let mut taken = Vec::new();
        while let Some(due_ms) = looks.due_ms() {
            assert!(due_ms == 1000 || !looks.take(due_ms - 1), "it is too early");
            assert!(looks.take(due_ms));
            taken.push(due_ms - 1000);
        }
        assert_eq!(taken, LOOKS_MS);
        assert!(!looks.take(u64::MAX));
    }

    #[test]
    fn a_conversation_that_was_left_is_looked_at_from_then_on() {
        let (first, second) = ("first".to_owned(), "second".to_owned());
        let mut counting = Counting::default();
        counting.is_at(None, 0);
        counting.is_at(Some(&first), 100);
        assert!(counting.left.is_none(), "there was none before it");
        counting.is_at(Some(&first), 200);
        assert!(counting.left.is_none());
        counting.is_at(Some(&second), 300);
        let left = counting.left.map(|left| (left.native_id, left.looks));
        assert_eq!(left, Some((first, Looks::since(300))));
    }

    #[test]
    fn a_turn_is_counted_once() {
        let mut counting = Counting::default();
        counting.open(3, PathBuf::from("transcript"), Vec::new(), 0);
        assert!(counting.has(3) && !counting.has(4));
    }
}
