//! Copying the transcript while a turn runs, so that one that is lost or rewritten costs seconds. Between turns there is
//! nothing new to copy, and no clock runs.

use super::{Keeper, KeeperError};
use ostler_core::event::Event;
use ostler_store::checkpoints::{self, Saving};
use ostler_store::{StoreError, is_full_disk};
use ostler_sys::clock::{self, since_boot_ms};
use ostler_view::proof;
use std::path::Path;

/// However seldom it is copied: by then an agent has written what it says late.
const LATE_MS: u64 = 1000;

pub(super) struct Autosave {
    /// `None`: not wanted.
    every_ms: Option<u64>,
    due_ms: Option<u64>,
    turn_ran: bool,
    /// What was told last, which is not told twice.
    told: Option<String>,
}

impl Autosave {
    pub(super) fn new(every_ms: Option<u64>) -> Autosave {
        Autosave { every_ms, due_ms: None, turn_ran: false, told: None }
    }
}

impl Keeper {
    /// Saves when it is time: every so often during a turn, at its end, and once more after that, because agents write late.
    pub(super) fn autosave(&mut self) -> Result<(), KeeperError> {
        let Some(every) = self.autosave.every_ms else {
            return Ok(());
        };
        let (now, runs) = (since_boot_ms(), self.state.turn_running());
        let ended = std::mem::replace(&mut self.autosave.turn_ran, runs) && !runs;
        let due = self.autosave.due_ms.is_some_and(|due| due <= now);
        if due || ended {
            self.save_now()?;
            let last = ended.then_some(now + LATE_MS);
            self.autosave.due_ms = if runs { Some(now + every) } else { last };
        } else if runs && self.autosave.due_ms.is_none() {
            self.autosave.due_ms = Some(now + every);
        }
        if let Some(due) = self.autosave.due_ms {
            self.wake_by(due);
        }
        Ok(())
    }

    /// Copies what is new of the transcript. A disk without room for it has other worries, and shows them; a copy is then
    /// made with the next turn.
    pub(super) fn save_now(&mut self) -> Result<(), KeeperError> {
        let transcript = proof::own_transcript(&self.record, &self.state);
        let (Some(_), Some(transcript)) = (self.autosave.every_ms, transcript) else {
            return Ok(());
        };
        let words = match self.copy_if_there_is_room(Path::new(transcript)) {
            Ok(saving) => saving.and_then(|saving| saving.words(self.session.id)),
            Err(StoreError::Io { error, .. }) if is_full_disk(&error) => None,
            Err(error) => Some(format!("its transcript cannot be copied: {error}")),
        };
        match words {
            Some(text) if self.autosave.told.as_ref() != Some(&text) => {
                self.autosave.told = Some(text.clone());
                self.note(Event::Alarm { text })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn copy_if_there_is_room(&self, transcript: &Path) -> Result<Option<Saving>, StoreError> {
        let bytes = checkpoints::missing(&self.folder, transcript)?;
        if !self.output.leaves_min_free(self.run.dir(), bytes).map_err(StoreError::io("the disk"))? {
            return Ok(None);
        }
        checkpoints::save(&self.folder, transcript, clock::now()).map(Some)
    }
}
