//! What a turn changed, and what a session without a worktree has changed since it began.

use super::{Opened, TAKES};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::notice::Notice;
use crate::session_ref::SessionRef;
use ostler_git::turns::Bounds;
use ostler_store::home::Place;
use ostler_store::progress;
use std::time::Instant;

/// The name of a snapshot that is taken only for a comparison, and is not kept.
const NOW: &str = "now";

impl Engine {
    /// Lets git show a person what a turn has changed: all of it, or a summary. Returns git's exit code.
    pub fn show_turn(&self, place: &Place, turn: u32, summary: bool) -> Result<i32> {
        let opened = self.open_turns(place)?;
        if turn == 0 {
            let (session, turns) = (SessionRef::from(&opened.view), opened.view.turns);
            return Err(Error::NothingBeforeStart { session, turns });
        }
        let after = opened.end_of(turn)?;
        let before = opened.history.before(turn).ok_or_else(|| opened.none_of(turn.saturating_sub(1)))?;
        Ok(opened.store.show_difference(&before.commit, &after.commit, summary)?)
    }

    /// The same for everything since the session began: until the end of its last turn when it has ended, and until now
    /// otherwise.
    pub(crate) fn show_since_first(&self, place: &Place, summary: bool, tell: &mut dyn FnMut(Notice)) -> Result<i32> {
        let opened = self.open_turns(place)?;
        let Some(first) = opened.history.first() else { return Err(opened.none_of(0)) };
        let newest = self.newest_files(place, &opened, tell)?;
        Ok(opened.store.show_difference(&first.commit, &newest, summary)?)
    }

    /// Whether a session has changed something since it began.
    pub(crate) fn has_changed_since_first(&self, place: &Place) -> Result<bool> {
        let opened = self.open_turns(place)?;
        let Some(first) = opened.history.first() else { return Err(opened.none_of(0)) };
        let newest = self.newest_files(place, &opened, &mut |_| {})?;
        Ok(!opened.store.differences(&first.commit, &newest)?.is_empty())
    }

    /// The files as a session has left them. After its end others may work in the same folder, so the files there now
    /// may not be its work. They are used only where its last turn has no snapshot, because nothing else shows what it
    /// did.
    fn newest_files(&self, place: &Place, opened: &Opened, tell: &mut dyn FnMut(Notice)) -> Result<String> {
        if !opened.view.ended {
            return self.files_now(opened);
        }
        let folder = place.open()?;
        let plan = folder.run(folder.newest_run()?)?.record()?.plan;
        let cut_off = progress::past(folder.dir(), &plan)?.state.turn_running();
        match opened.history.ends().last().filter(|last| last.turn == opened.view.turns && !cut_off) {
            Some(last) => Ok(last.commit.clone()),
            None => {
                let now = self.files_now(opened)?;
                tell(Notice::DiffOfNow { session: SessionRef::from(&opened.view) });
                Ok(now)
            }
        }
    }

    fn files_now(&self, opened: &Opened) -> Result<String> {
        let tree = self.tree_of(&opened.view)?;
        let bounds =
            Bounds { largest_file: self.config.snapshot_file_limit, until: Instant::now().checked_add(TAKES * 6) };
        Ok(self.hold_turns(&opened.view, &tree)?.take(&tree, NOW, &bounds)?.commit)
    }
}
