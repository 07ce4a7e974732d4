//! The proof that a turn is saved: it is found in the agent's own transcript or database.
//!
//! Agents write late (up to about 100 ms after the end of the turn is reported), so the transcript is watched until the
//! proof is found or the time is up: with inotify if an instance is available, otherwise by looking repeatedly.

use super::{Keeper, KeeperError};
use ostler_core::event::Event;
use ostler_core::outcome::Saved;
use ostler_sys::clock::since_boot_ms;
use ostler_sys::notify::Watcher;
use ostler_sys::pause_points::{self, Point};
use ostler_view::proof::{self, Kept};
use std::io;

/// The interval without inotify.
const LOOK_AGAIN_MS: u64 = 20;

/// The proof of one turn after the other.
#[derive(Default)]
pub(super) struct Proof {
    /// The turn that is to be proven now.
    open: Option<Open>,
}

struct Open {
    watcher: Option<Watcher>,
}

/// The result of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looked {
    Settled(Saved),
    /// The turn is not there yet; the next look is at this time, if nothing is written before.
    Again(u64),
}

impl Proof {
    /// Watches the place where the conversation is stored. True when it was not watched before: what was written until
    /// now is not reported.
    ///
    /// The folder of the transcript is watched, because the file itself may not exist yet. A database is not watched:
    /// it has other conversations too, and each write to them would wake the keeper.
    fn begin_watch(&mut self, kept: &Kept) -> bool {
        if self.open.is_some() {
            return false;
        }
        let watcher = match kept {
            Kept::File { path, .. } => Watcher::beside(path),
            Kept::Database { .. } => None,
        };
        self.open.insert(Open { watcher }).watcher.is_some()
    }

    /// Takes the result of the last look, which decides unless there is time for another.
    fn looked(&mut self, found: bool, until_ms: u64, now_ms: u64) -> Looked {
        let saved = if found {
            Saved::Verified
        } else if now_ms >= until_ms {
            Saved::Unverified
        } else {
            let again_ms = if self.watcher().is_some() { until_ms } else { until_ms.min(now_ms + LOOK_AGAIN_MS) };
            return Looked::Again(again_ms);
        };
        self.open = None;
        Looked::Settled(saved)
    }

    /// What to poll for changes.
    pub fn watcher(&self) -> Option<&Watcher> {
        self.open.as_ref().and_then(|open| open.watcher.as_ref())
    }

    /// Something was written: the next look may find the turn.
    pub fn changed(&self) -> io::Result<()> {
        match self.watcher() {
            Some(watcher) => watcher.changed().map(drop),
            None => Ok(()),
        }
    }
}

impl Keeper {
    /// True when it is settled whether the last turn is saved.
    pub(super) fn prove(&mut self, until_ms: u64) -> Result<bool, KeeperError> {
        self.name_conversation()?;
        self.learn_transcript()?;
        let Some(kept) = Kept::of(&self.record, &self.state).filter(|_| !self.typed_a_command()) else {
            self.note(Event::Saved { saved: Saved::NotApplicable })?;
            return Ok(true);
        };
        let marks = self.marks()?;
        // Without a watch if the first look finds the turn: the kernel takes 7 to 14 ms to close one.
        let found = self.is_held(&kept, &marks)? || self.proof.begin_watch(&kept) && self.is_held(&kept, &marks)?;
        match self.proof.looked(found, until_ms, since_boot_ms()) {
            Looked::Settled(saved) => {
                pause_points::at(Point::TurnProved);
                self.note(Event::Saved { saved })?;
                Ok(true)
            }
            Looked::Again(ms) => {
                self.wake_by(ms);
                Ok(false)
            }
        }
    }

    fn marks(&self) -> Result<Vec<String>, KeeperError> {
        let so_far = self.reader.messages_so_far();
        Ok(proof::marks(self.agent, &self.folder, &self.state, so_far)?)
    }

    /// The agent changes to another conversation in the middle of a run (`native_id` is the id of the new one). Whether
    /// the last turn of the old conversation is saved has to be checked now, in its own transcript, which is complete
    /// when the new conversation begins.
    pub(super) fn prove_before_leaving(&mut self, native_id: &str) -> Result<(), KeeperError> {
        let leaves = self.state.native_id.as_deref().is_some_and(|now| now != native_id);
        let open = self.state.last_turn().is_some() && self.state.saved.is_none() && !self.state.turn_is_told();
        if let Some(kept) = Kept::of(&self.record, &self.state).filter(|_| leaves && open) {
            let saved = self.is_held(&kept, &self.marks()?)?;
            self.note(Event::Saved { saved: if saved { Saved::Verified } else { Saved::Unverified } })?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_is_watched_until_the_turn_is_found_or_the_time_is_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("transcript.jsonl");
        let mut proof = Proof::default();
        let kept = Kept::File { path: path.clone(), from: 0 };
        assert!(proof.begin_watch(&kept) || proof.watcher().is_none());
        let again = proof.looked(false, 5000, 1000);
        // When no inotify instance is left, the transcript is looked at repeatedly.
        let due = if proof.watcher().is_some() { 5000 } else { 1000 + LOOK_AGAIN_MS };
        assert_eq!(again, Looked::Again(due));
        if let Some(watcher) = proof.watcher() {
            std::fs::write(&path, "written late").unwrap();
            let ready = ostler_sys::ready::is_readable(rustix::fd::AsFd::as_fd(watcher)).unwrap();
            assert!(ready, "a file that did not exist before wakes us");
            proof.changed().unwrap();
        }
        assert_eq!(proof.looked(true, 5000, 2000), Looked::Settled(Saved::Verified));
        assert!(proof.watcher().is_none());
        assert!(proof.begin_watch(&kept) || proof.watcher().is_none());
        assert_eq!(proof.looked(false, 5000, 5000), Looked::Settled(Saved::Unverified));
    }

    #[test]
    fn a_database_is_looked_into_again_and_again() {
        let mut proof = Proof::default();
        proof.begin_watch(&Kept::Database { path: "db".into(), native_id: "id".to_owned(), since_ms: 0 });
        assert_eq!(proof.looked(false, 5000, 1000), Looked::Again(1000 + LOOK_AGAIN_MS));
        assert_eq!(proof.looked(false, 5000, 4990), Looked::Again(5000));
        assert!(proof.watcher().is_none());
    }
}
