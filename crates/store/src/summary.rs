//! The summary of a session that has ended: what it says, and how that stays true.
//!
//! The outcome of the newest run has a second name in the session's own folder, but only while the session is at rest:
//! it has ended, and nothing has happened to it since. Then one file has everything that a list needs. A process that
//! is about to write into the inbox or to begin another run removes that name first. Both happen under a lock on
//! session.json, so the summary never exists beside something newer. If a process is killed in between, there is no
//! summary, and readers look into the folder.

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
/// It is in every folder, and is not locked for anything else. A lock on the folder itself would be enough, but does
/// not work on every file system.
pub(crate) const LOCKED: &str = "session.json";

impl Folder {
    /// Notes that the session is at rest since this run has ended, with so much of its inbox read. Best effort: without
    /// the summary readers look into the folder.
    pub fn write_summary(&self, run: &RunFolder, inbox_read: u64) {
        let rests = || self.newest_run().is_ok_and(|newest| newest == run.number);
        // Its keeper knows only the name from before a rename.
        let same_name = || self.dir().stat(RENAMED).is_ok_and(|stat| stat.is_none());
        let nothing_new = || inbox::size(self.dir()).is_ok_and(|size| size <= inbox_read);
        // If the lock is held, its owner is about to change the session.
        let held = self.dir().file(LOCKED, OFlags::RDWR).and_then(lock::try_exclusive);
        if matches!(held, Ok(Some(_))) && rests() && nothing_new() && same_name() {
            let _ = run.dir().link("outcome.json", self.dir(), AT_REST);
        }
    }

    /// Removes what only a session that runs needs: the records of its helpers and how its process ended, which are
    /// both in the outcome as well, and empty files. Empty lock files stay: two processes that wait for a lock must not
    /// get different files. Best effort: what stays does no harm.
    ///
    /// The caller holds `keeper.lock` and has published the outcome. The next run begins under the lock that is taken
    /// here, and its holder writes its record after that, so nothing of the next run is removed.
    pub fn tidy(&self, run: &RunFolder) {
        let held = self.dir().file(LOCKED, OFlags::RDWR).and_then(lock::try_exclusive);
        let newest = || self.newest_run().is_ok_and(|newest| newest == run.number);
        if matches!(held, Ok(Some(_))) && newest() && run.outcome().is_ok_and(|outcome| outcome.is_some()) {
            for name in ["holder.json", "keeper.json"] {
                let _ = self.dir().remove(name);
            }
            let _ = run.dir().remove("exit.json");
            for name in ["in", "fed.jsonl", "out", "err", "out.times", "err.times"] {
                if matches!(run.dir().stat(name), Ok(Some(stat)) if stat.size == 0) {
                    let _ = run.dir().remove(name);
                }
            }
            run.merge_record();
        }
    }

    /// Removes the summary. As long as the result is held, no summary is written. For a process that is about to write
    /// into the inbox or to begin another run.
    pub fn drop_summary(&self) -> Result<Held, StoreError> {
        let drop_it = || {
            let held = lock::exclusive(self.dir().file(LOCKED, OFlags::RDWR)?)?;
            if self.dir().stat(AT_REST)?.is_some() {
                self.note_woken()?;
                self.dir().remove(AT_REST)?;
                // After a power cut the summary must not exist beside what happened next.
                self.dir().sync()?;
            }
            Ok(held)
        };
        drop_it().map_err(StoreError::io(LOCKED))
    }

    /// The record of this session in the index of ended sessions is not valid any more.
    fn note_woken(&self) -> io::Result<()> {
        let home = self.dir().open_dir("../..")?;
        match self.session() {
            Ok(session) => ended::note(&home, session.id),
            // Its record is damaged, and the name of its folder may be wrong.
            Err(_) => home.remove(ended::NAME),
        }
    }
}

/// What the summary says of a session that has ended. `None`: its folder has to be read, also when anything about the
/// summary is odd. `sessions` is the folder in which its folder is.
#[must_use]
pub fn read_summary(sessions: &Dir, id: SessionId) -> Option<(Outcome, Closing)> {
    let (mut outcome, size) = match read::<Outcome>(sessions, &format!("{id}/{AT_REST}")) {
        Ok(outcome) => (outcome?, sessions.stat(&format!("{id}/{LOCKED}")).ok()??.size),
        // Not a folder: it may be packed.
        Err(_) => {
            let packed = sessions.open_dir_or_link(id.as_str()).ok()?;
            (read::<Outcome>(&packed, AT_REST).ok()??, packed.stat(LOCKED).ok()??.size)
        }
    };
    let closing = *outcome.closing.take()?;
    let session = &closing.session;
    (session.id == id && session.schema <= SCHEMA && size == closing.session_size).then_some((outcome, closing))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::folder::After;
    use crate::folder::tests::record;

    #[test]
    fn a_session_is_at_rest_only_when_nothing_came_after_its_newest_run_and_no_process_is_about_to_change_it() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(Dir::open(home.path()).unwrap());
        let run = folder.make_run(1).unwrap();
        run.dir().create("outcome.json", b"{}").unwrap();
        folder.dir().create(LOCKED, b"{}").unwrap();
        let rests = || home.path().join(AT_REST).exists();

        let dropped = folder.drop_summary().unwrap();
        folder.write_summary(&run, 0);
        assert!(!rests(), "it is about to change");
        drop(dropped);
        folder.write_summary(&run, 0);
        assert!(rests());

        drop(folder.drop_summary().unwrap());
        assert!(!rests());
        let message = b"a request";
        let read = message.len() as u64;
        folder.dir().create(inbox::NAME, message).unwrap();
        folder.write_summary(&run, 0);
        assert!(!rests(), "a message came later");
        folder.write_summary(&run, read);
        assert!(rests());

        let second = folder.begin_run(&record(2), After::Rest).unwrap();
        assert!(!rests(), "the next run has begun");
        folder.write_summary(&run, read);
        assert!(!rests(), "the first run is not the newest");
        second.dir().create("outcome.json", b"{}").unwrap();
        folder.write_summary(&second, read);
        assert!(rests());
    }

    #[test]
    fn what_only_a_running_session_needs_is_removed_when_it_has_ended_and_nothing_of_the_next_run_is() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::new(Dir::open(home.path()).unwrap());
        let run = folder.make_run(1).unwrap();
        let fill = || {
            for name in [LOCKED, "holder.json", "keeper.json", "keeper.lock", "runs/1/exit.json", "runs/1/out"] {
                std::fs::write(home.path().join(name), "{}").unwrap();
            }
            for name in ["runs/1/in", "runs/1/fed.jsonl", "runs/1/err"] {
                std::fs::write(home.path().join(name), "").unwrap();
            }
        };
        let names = || {
            let mut names = [folder.dir().names().unwrap(), run.dir().names().unwrap()].concat();
            names.sort();
            names
        };
        fill();
        let before = names();
        folder.tidy(&run);
        assert_eq!(names(), before, "it has not ended");
        let outcome = ostler_core::outcome::judge(&ostler_core::life::State::new(record(1).plan), 0);
        run.publish_outcome(&outcome, &record(1)).unwrap();
        let dropped = folder.drop_summary().unwrap();
        folder.tidy(&run);
        assert!(names().len() > before.len(), "its next run may be about to begin");
        drop(dropped);
        folder.tidy(&run);
        assert_eq!(names(), ["keeper.lock", "out", "outcome.json", "runs", LOCKED]);
        fill();
        folder.begin_run(&record(2), After::Rest).unwrap();
        folder.tidy(&run);
        assert!(home.path().join("holder.json").exists(), "that of the next run");
    }
}
