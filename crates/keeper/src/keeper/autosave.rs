//! Copying the transcript while a turn runs, so that a transcript that is lost or rewritten costs only seconds of work.
//! Between turns there is nothing new to copy, and no timer runs.

use super::{Keeper, KeeperError};
use ostler_core::event::Event;
use ostler_store::checkpoints::{self, Saving};
use ostler_store::{StoreError, is_full_disk};
use ostler_sys::clock::{self, since_boot_ms};
use ostler_view::proof;
use std::path::Path;

/// The last copy is made this long after the end of a turn, whatever the interval: by then an agent has written its
/// late output.
const LATE_MS: u64 = 1000;

pub(super) struct Autosave {
    /// `None`: no copies were asked for.
    every_ms: Option<u64>,
    due_ms: Option<u64>,
    turn_ran: bool,
    /// The transcripts of conversations that the agent has left (`/clear`): what is written to them late is copied
    /// together with the new one.
    left: Vec<String>,
    /// The last problem that was reported; it is not reported twice.
    told: Option<String>,
}

impl Autosave {
    pub(super) fn new(every_ms: Option<u64>) -> Autosave {
        Autosave { every_ms, due_ms: None, turn_ran: false, left: Vec::new(), told: None }
    }

    fn is_wanted(&self) -> bool {
        self.every_ms.is_some()
    }

    /// Whether to save now: at an interval during a turn, at its end, and once more after that, because agents write
    /// late.
    fn is_due(&mut self, turn_runs: bool, now_ms: u64) -> bool {
        let Some(every_ms) = self.every_ms else {
            return false;
        };
        let ended = std::mem::replace(&mut self.turn_ran, turn_runs) && !turn_runs;
        let due = ended || self.due_ms.is_some_and(|due_ms| due_ms <= now_ms);
        if due {
            let last = ended.then_some(now_ms + LATE_MS);
            self.due_ms = if turn_runs { Some(now_ms + every_ms) } else { last };
        } else if turn_runs && self.due_ms.is_none() {
            self.due_ms = Some(now_ms + every_ms);
        }
        due
    }

    /// The problem, unless it was the last one reported.
    fn news(&mut self, words: Option<String>) -> Option<String> {
        let news = words.filter(|words| self.told.as_ref() != Some(words));
        if news.is_some() {
            self.told.clone_from(&news);
        }
        news
    }
}

impl Keeper {
    /// Saves when it is time.
    pub(super) fn autosave(&mut self) -> Result<(), KeeperError> {
        if self.autosave.is_due(self.state.turn_running(), since_boot_ms()) {
            self.save_now()?;
        }
        if let Some(due_ms) = self.autosave.due_ms {
            self.wake_by(due_ms);
        }
        Ok(())
    }

    /// Copies what is new in the transcript. A full disk causes no alarm here, because it is reported elsewhere; a copy is
    /// then made with the next turn.
    pub(super) fn save_now(&mut self) -> Result<(), KeeperError> {
        if !self.autosave.is_wanted() {
            return Ok(());
        }
        let own = proof::own_transcript(&self.record, &self.state).cloned();
        let all: Vec<String> = self.autosave.left.iter().cloned().chain(own).collect();
        for transcript in all {
            let words = match self.copy_if_there_is_room(Path::new(&transcript)) {
                Ok(saving) => saving.and_then(|saving| saving.words(self.session.id)),
                Err(StoreError::Io { error, .. }) if is_full_disk(&error) => None,
                Err(error) => Some(format!("its transcript cannot be copied: {error}")),
            };
            if let Some(text) = self.autosave.news(words) {
                self.note(Event::Alarm { text })?;
            }
        }
        Ok(())
    }

    /// The same before the agent changes to another conversation.
    pub(super) fn save_before_leaving(&mut self) -> Result<(), KeeperError> {
        self.save_now()?;
        let own = proof::own_transcript(&self.record, &self.state).cloned();
        let new = own.filter(|own| !self.autosave.left.contains(own));
        self.autosave.left.extend(new);
        Ok(())
    }

    fn copy_if_there_is_room(&self, transcript: &Path) -> Result<Option<Saving>, StoreError> {
        let bytes = checkpoints::missing(&self.folder, transcript)?;
        if !self.output.leaves_min_free(self.run.dir(), bytes).map_err(StoreError::io("the disk"))? {
            return Ok(None);
        }
        checkpoints::save(&self.folder, transcript, clock::now()).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_saved_while_it_runs_at_its_end_and_once_after() {
        let mut autosave = Autosave::new(Some(10_000));
        assert!(!autosave.is_due(false, 0), "nothing has run");
        assert!(!autosave.is_due(true, 1000));
        assert!(!autosave.is_due(true, 10_999));
        assert!(autosave.is_due(true, 11_000));
        assert!(!autosave.is_due(true, 11_001));
        assert!(autosave.is_due(false, 12_000), "the turn has ended");
        assert_eq!(autosave.due_ms, Some(12_000 + LATE_MS));
        assert!(autosave.is_due(false, 12_000 + LATE_MS));
        assert_eq!(autosave.due_ms, None, "no clock runs between turns");
        assert!(!autosave.is_due(false, u64::MAX));
    }

    #[test]
    fn what_is_not_wanted_is_never_due() {
        let mut autosave = Autosave::new(None);
        assert!(![true, false].map(|runs| autosave.is_due(runs, u64::MAX)).contains(&true));
        assert_eq!(autosave.due_ms, None);
    }

    #[test]
    fn the_same_problem_is_told_once() {
        let mut autosave = Autosave::new(Some(1));
        let words = |text: &str| Some(text.to_owned());
        assert_eq!(autosave.news(words("one")), words("one"));
        assert_eq!(autosave.news(words("one")), None);
        assert_eq!(autosave.news(None), None);
        assert_eq!(autosave.news(words("two")), words("two"));
    }
}
