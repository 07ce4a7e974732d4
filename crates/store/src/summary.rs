//! The summary of a session that has ended: what it says, and how that stays true.
//!
//! The outcome of the newest run has a second name in the session's own folder, but only while the session is at rest: it has
//! ended, and nothing has happened to it since. One file then tells a list all that there is to tell. Whoever is about to write
//! into its inbox or to begin another run takes that name away first. Both happen under a lock of session.json, so there is no
//! moment at which the note stands beside something newer; who is killed in between leaves no note, and one looks closer.

use crate::folder::{Folder, RENAMED, RunFolder, read};
use crate::{StoreError, ended, inbox};
use ostler_core::SCHEMA;
use ostler_core::id::SessionId;
use ostler_core::outcome::{Closing, Outcome};
use ostler_sys::dir::Dir;
use ostler_sys::lock::{self, Held};
use rustix::fs::OFlags;
use std::io;

const AT_REST: &str = "outcome.json";
/// It is in every folder, and nobody else locks it. A lock of the folder itself would do, but not on every file system.
pub(crate) const LOCKED: &str = "session.json";

impl Folder {
    /// Notes that the session is at rest since this run has ended, with so much of its inbox read. Best effort: without the
    /// note one looks closer.
    pub fn write_summary(&self, run: &RunFolder, inbox_read: u64) {
        let rests = || self.newest_run().is_ok_and(|newest| newest == run.number);
        // What its keeper knows of it is from before that.
        let same_name = || self.dir().stat(RENAMED).is_ok_and(|stat| stat.is_none());
        let nothing_new = || inbox::size(self.dir()).is_ok_and(|size| size <= inbox_read);
        // The holder of the lock is about to change it.
        let held = self.dir().file(LOCKED, OFlags::RDWR).and_then(lock::try_exclusive);
        if matches!(held, Ok(Some(_))) && rests() && nothing_new() && same_name() {
            let _ = run.dir().link("outcome.json", self.dir(), AT_REST);
        }
    }

    /// From here on the session is not at rest, and as long as this is held nobody lays it to rest: for whoever is about to
    /// write into its inbox or to begin another run.
    pub fn drop_summary(&self) -> Result<Held, StoreError> {
        let drop_it = || {
            let held = lock::exclusive(self.dir().file(LOCKED, OFlags::RDWR)?)?;
            if self.dir().stat(AT_REST)?.is_some() {
                self.note_woken()?;
                self.dir().remove(AT_REST)?;
                // After a power cut the note must not be there beside what happened next.
                self.dir().sync()?;
            }
            Ok(held)
        };
        drop_it().map_err(StoreError::io(LOCKED))
    }

    /// What is written down of ended sessions counts for this one no more.
    fn note_woken(&self) -> io::Result<()> {
        let home = self.dir().open_dir("../..")?;
        match self.session() {
            Ok(session) => ended::note(&home, session.id),
            // Its record is damaged, and its folder may have any name.
            Err(_) => home.remove(ended::NAME),
        }
    }
}

/// What the summary says of a session that has ended. `None`: one must look closer, also when anything about it is
/// odd. `sessions` is the folder in which its folder is.
#[must_use]
pub fn read_summary(sessions: &Dir, id: SessionId) -> Option<(Outcome, Closing)> {
    let mut outcome = read::<Outcome>(sessions, &format!("{id}/{AT_REST}")).ok()??;
    let closing = *outcome.closing.take()?;
    let session = &closing.session;
    let size = sessions.stat(&format!("{id}/session.json")).ok()??.size;
    (session.id == id && session.schema <= SCHEMA && size == closing.session_size).then_some((outcome, closing))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::folder::After;
    use crate::folder::tests::record;

    #[test]
    fn a_session_is_at_rest_only_when_nothing_came_after_its_newest_run_and_nobody_is_about_to_wake_it() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(Dir::open(home.path()).unwrap());
        let run = folder.make_run(1).unwrap();
        run.dir().create("outcome.json", b"{}").unwrap();
        folder.dir().create(LOCKED, b"{}").unwrap();
        let rests = || home.path().join(AT_REST).exists();

        let waking = folder.drop_summary().unwrap();
        folder.write_summary(&run, 0);
        assert!(!rests(), "it is about to change");
        drop(waking);
        folder.write_summary(&run, 0);
        assert!(rests());

        drop(folder.drop_summary().unwrap());
        assert!(!rests());
        folder.dir().create(inbox::NAME, b"a line").unwrap();
        folder.write_summary(&run, 0);
        assert!(!rests(), "a message came later");
        folder.write_summary(&run, 6);
        assert!(rests());

        let second = folder.begin_run(&record(2), After::Rest).unwrap();
        assert!(!rests(), "the next run has begun");
        folder.write_summary(&run, 6);
        assert!(!rests(), "the first run is not the newest");
        second.dir().create("outcome.json", b"{}").unwrap();
        folder.write_summary(&second, 6);
        assert!(rests());
    }
}
