//! Which turn broke it: a check is run with the files as they were after some of the turns, in a folder of its own.

use super::{Opened, Snapshot, store_folder};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::purge::Purge;
use crate::session_ref::SessionRef;
use crate::worktrees::FailedCheck;
use ostler_core::id::SessionId;
use ostler_core::outcome::Kind;
use ostler_git::worktree::Listed;
use ostler_store::home::{Home, Place};
use ostler_sys::{lock, ready};
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

/// One check that was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// With the files as they were after this turn.
    pub turn: u32,
    /// Whether it succeeded.
    pub good: bool,
}

/// The result of a bisect.
#[derive(Clone, Debug, PartialEq)]
pub enum Bisected {
    /// This turn broke it. `mixed`: or the next one, which had begun when the snapshot was taken.
    #[expect(missing_docs, reason = "the fields are named after what they are")]
    Broken { turn: u32, mixed: bool, good: u32, prompt: Option<String>, diff: Vec<u8>, check: FailedCheck },
    /// It fails with the files with which the session began.
    BadAtStart(FailedCheck),
    /// It succeeds with the files as they were after the last turn.
    GoodAtEnd {
        /// That turn.
        turn: u32,
    },
}

const LOCK: &str = "lock";

/// The folder for the files of the snapshots that are checked.
pub(super) fn folder(home: &Home, id: SessionId) -> PathBuf {
    store_folder(home, id).with_extension("bisect")
}

/// A folder that is deleted with this value.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is removed by the next bisect.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Engine {
    /// Looks for the first turn after which a command of the shell fails. When `leave` can be read, the check is ended
    /// and its files are removed, and [`Error::Left`] is returned.
    pub fn bisect(
        &self,
        place: &Place,
        command: &str,
        leave: BorrowedFd<'_>,
        tell: &mut dyn FnMut(Checked),
    ) -> Result<Bisected> {
        match self.search_turns(place, command, leave, tell) {
            // A key that interrupts in a terminal ends git as well.
            Err(Error::Git(_)) if ready::is_readable(leave)? => Err(Error::Left),
            came => came,
        }
    }

    fn search_turns(
        &self,
        place: &Place,
        command: &str,
        leave: BorrowedFd<'_>,
        tell: &mut dyn FnMut(Checked),
    ) -> Result<Bisected> {
        self.check_later_command(command)?;
        let opened = self.open_turns(place)?;
        // Only one bisect at a time. What a killed bisect has left, its check and its files, is removed first.
        let top = folder(&self.home, place.id);
        std::fs::create_dir_all(&top)?;
        let lock = File::options().read(true).write(true).create(true).truncate(false).open(top.join(LOCK))?;
        let _alone = lock::try_exclusive(lock.into())?.ok_or(Error::InUse { id: place.id })?;
        self.end_checks_in(&[Listed { path: top.clone(), ..Listed::default() }])?;
        let _gone = Folder(top);
        let ends: Vec<Snapshot> = opened.history.ends().into_iter().cloned().collect();
        let Some(last) = ends.len().checked_sub(1) else { return Err(opened.none_of(0)) };
        let mut failed = match self.try_turn(&opened, &ends[last], command, leave, tell)? {
            None => return Ok(Bisected::GoodAtEnd { turn: ends[last].turn }),
            Some(failed) => failed,
        };
        // All before `good` succeed, and `bad` fails.
        let (mut good, mut bad) = (0, last);
        while good < bad {
            let middle = good.midpoint(bad);
            let came = self.try_turn(&opened, &ends[middle], command, leave, tell);
            if matches!(came, Err(Error::Left)) {
                self.forget_check(&failed);
            }
            match came? {
                None => good = middle + 1,
                Some(now) => {
                    self.forget_check(&failed);
                    failed = now;
                    bad = middle;
                }
            }
        }
        let Some(before) = bad.checked_sub(1) else { return Ok(Bisected::BadAtStart(failed)) };
        let (before, bad) = (&ends[before], &ends[bad]);
        Ok(Bisected::Broken {
            turn: bad.turn,
            mixed: bad.mixed,
            good: before.turn,
            prompt: self.prompt_of(place, &opened.view, bad.turn)?,
            diff: opened.store.difference(&before.commit, &bad.commit)?,
            check: failed,
        })
    }

    /// `None`: the check succeeded.
    fn try_turn(
        &self,
        opened: &Opened,
        snapshot: &Snapshot,
        command: &str,
        leave: BorrowedFd<'_>,
        tell: &mut dyn FnMut(Checked),
    ) -> Result<Option<FailedCheck>> {
        let path = folder(&self.home, opened.view.id).join(snapshot.turn.to_string());
        let folder = Folder(path);
        match std::fs::remove_dir_all(&folder.0) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            Ok(()) | Err(_) => std::fs::create_dir_all(&folder.0)?,
        }
        opened.store.check_out(&snapshot.commit, &folder.0)?;
        let failed = self.check(command, &self.place_in(opened, &folder.0), opened.view.id, Some(leave))?;
        let kind = failed.as_ref().and_then(|failed| failed.outcome.as_ref()).map(|outcome| outcome.kind);
        match kind {
            None if failed.is_none() => {}
            Some(Kind::Failed) => {}
            // A person stopped it, or the machine did: that says nothing about the files.
            Some(Kind::Succeeded | Kind::Interrupted | Kind::Stopped | Kind::Lost) | None => {
                return Err(Error::CheckStopped { session: SessionRef::from(&opened.view) });
            }
        }
        tell(Checked { turn: snapshot.turn, good: failed.is_none() });
        Ok(failed)
    }

    /// The folder in which the session works, in a copy of its tree.
    fn place_in(&self, opened: &Opened, folder: &Path) -> PathBuf {
        let below = self.tree_of(&opened.view).ok().and_then(|tree| {
            let top = std::fs::canonicalize(tree.top).ok()?;
            let cwd = std::fs::canonicalize(&opened.view.cwd).ok()?;
            cwd.strip_prefix(top).map(Path::to_owned).ok()
        });
        below.map(|below| folder.join(below)).filter(|path| path.is_dir()).unwrap_or_else(|| folder.to_owned())
    }

    /// Deletes the session of a check whose result is not the one that is shown.
    fn forget_check(&self, failed: &FailedCheck) {
        if let Ok(Some(place)) = self.home.place_of(failed.id) {
            // A session that cannot be deleted is only listed for longer.
            let _ = self.purge(&place, &Purge::default(), &mut |_| {});
        }
    }
}
