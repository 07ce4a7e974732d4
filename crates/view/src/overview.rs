//! A look at many sessions: nothing is read or asked that can be known without it.

use crate::live_views::{self, Begun};
use crate::look::{Depth, blank, ended, look_at_processes, own};
use crate::newer_messages::Newer;
use ostler_core::id::SessionId;
use ostler_core::view::View;
use ostler_store::StoreError;
use ostler_store::branch;
use ostler_store::disk_reserve::is_nearly_full;
use ostler_store::folder::Folder;
use ostler_store::home::SessionsDir;
use ostler_store::live::LiveIndex;
use ostler_store::summary::read_summary;
use ostler_sys::dir::Dir;
use ostler_sys::lock;
use rustix::fs::OFlags;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;

/// A look at the sessions of one folder, in one thread.
#[derive(Debug)]
pub struct Overview<'a> {
    sessions_dir: &'a SessionsDir,
    /// Its own handle: the kernel counts each use of a handle that threads share, and the threads wait for each other's
    /// count.
    dir: Dir,
    depth: Depth,
    /// What earlier lists have found out about sessions that run; `None` where it may not be used.
    live: Option<&'a LiveIndex>,
    /// What git has checked out in their directories; many sessions work in the same one.
    branches: RefCell<HashMap<String, Option<String>>>,
}

impl<'a> Overview<'a> {
    pub fn over(sessions_dir: &'a SessionsDir, live: Option<&'a LiveIndex>) -> Result<Overview<'a>, StoreError> {
        let dir = sessions_dir.dir.open_dir(".").map_err(StoreError::io("sessions"))?;
        let depth = if is_nearly_full(&dir).unwrap_or(false) { Depth::Everything } else { Depth::Listed };
        let live = live.filter(|_| depth.believes_keeper() && !sessions_dir.archived);
        Ok(Overview { sessions_dir, dir, depth, live, branches: RefCell::default() })
    }

    /// Whether the lock of its agent is held: this is all that can be said of a session that cannot be looked at.
    #[must_use]
    pub fn is_locked(&self, id: SessionId) -> bool {
        let file = self.dir.file(&format!("{id}/agent.lock"), OFlags::RDONLY);
        file.and_then(lock::try_exclusive).is_ok_and(|held| held.is_none())
    }

    /// Looks at one of many: for most of them the summary is enough.
    pub fn look(&self, id: SessionId) -> Result<View, StoreError> {
        if let Some(mut view) = self.live.and_then(|live| live_views::still(live, &self.dir, id, self.depth)) {
            view.branch = self.branch(&view.cwd);
            return Ok(view);
        }
        // An archived session may have been changed since by other programs, which only a closer look shows.
        if !self.sessions_dir.archived
            && let Some((outcome, closing)) = read_summary(&self.dir, id)
        {
            let mut view = blank(&closing.session, closing.run, false);
            ended(outcome, Some(closing), Newer::default(), &mut view);
            return Ok(view);
        }
        let begun = Begun::now();
        let look = || {
            let archived = self.sessions_dir.archived;
            let dir = self.dir.open_dir_or_link(id.as_str()).map_err(StoreError::open(id.as_str(), archived))?;
            let (view, processes) = look_at_processes(self.depth, &Folder::new(dir), archived)?;
            Ok((own(view, id)?, processes))
        };
        let (mut view, processes) = look().map_err(|error: StoreError| error.of(id))?;
        if let (Some(live), Some(processes)) = (self.live, &processes) {
            live_views::note(live, &self.dir, self.depth, (&view, processes), begun);
        }
        if !view.ended {
            view.branch = self.branch(&view.cwd);
        }
        Ok(view)
    }

    fn branch(&self, folder: &str) -> Option<String> {
        let mut known = self.branches.borrow_mut();
        if let Some(branch) = known.get(folder) {
            return branch.clone();
        }
        let branch = branch::of(Path::new(folder));
        known.insert(folder.to_owned(), branch.clone());
        branch
    }
}
