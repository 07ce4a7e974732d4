//! Going back: the files of a session's tree, and a copy of its conversation, as they were at the end of a turn.
//!
//! A rewind may be killed at any file, and the person may be editing. So a snapshot of the present files is taken
//! before anything is changed, and is recorded together with the target. With it, `--undo` can always go back, and a
//! rewind that is repeated after it was killed still knows the files from before the first attempt.

use super::{Opened, TAKES};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::launch::Launched;
use crate::session_ref::SessionRef;
use ostler_core::turns::{Entry, Snapshot, What};
use ostler_core::view::Phase;
use ostler_git::GitError;
use ostler_git::turns::{Bounds, InTheWay};
use ostler_store::home::Place;
use ostler_store::turns;
use ostler_sys::clock;
use ostler_sys::pause_points::{self, Point};
use std::collections::HashSet;
use std::time::Instant;

/// Where to go back to, and with what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewind {
    /// The end of this turn; `None`: the state before the last rewind that is not undone yet, of the files only.
    pub turn: Option<u32>,
    /// The files of the tree.
    pub files: bool,
    /// A copy of the conversation.
    pub conversation: bool,
}

/// What was done.
#[derive(Debug)]
pub struct Rewound {
    /// How many files have changed; `None`: files were not asked for.
    pub files: Option<usize>,
    /// Repositories inside the tree that are at another commit than they were then: they are left alone.
    pub repositories: Vec<String>,
    /// The session with the copy of the conversation.
    pub session: Option<Launched>,
}

impl Engine {
    /// Puts files back, and makes a copy of the conversation up to a turn. The session itself stays as it is.
    pub fn rewind(&self, place: &Place, request: Rewind) -> Result<Rewound> {
        let view = self.view(place)?;
        let session = SessionRef::from(&view);
        if place.archived {
            return Err(Error::Archived { session });
        }
        if view.state == Phase::Running {
            return Err(Error::NoTurns { session, agent: view.agent, mode: view.mode });
        }
        if !view.ended && view.state != Phase::Idle {
            return Err(Error::StillWorks { session });
        }
        // Planned first, so that it is refused before a file has changed.
        let copy = match (request.conversation, request.turn) {
            (true, Some(turn)) => Some(self.plan_conversation(place, &view, turn)?),
            (true, None) | (false, _) => None,
        };
        let (files, repositories) = match request.files {
            true => self.rewind_files(place, request.turn).map(|(files, left)| (Some(files), left))?,
            false => (None, Vec::new()),
        };
        let session = copy.map(|copy| self.make_conversation(copy)).transpose()?;
        Ok(Rewound { files, repositories, session })
    }

    fn rewind_files(&self, place: &Place, turn: Option<u32>) -> Result<(usize, Vec<String>)> {
        let opened = self.open_turns(place)?;
        // The first of these that differs from the present files is used.
        let targets: Vec<Snapshot> = match turn {
            Some(turn) => vec![opened.end_of(turn)?.clone()],
            None => opened.history.undoable().into_iter().cloned().collect(),
        };
        self.refuse_others_in(&opened)?;
        let tree = self.tree_of(&opened.view)?;
        if let Some(what) = tree.in_progress() {
            return Err(GitError::InProgress { what, path: tree.top }.into());
        }
        // While the store is locked, no snapshot is taken of a half-done rewind.
        let store = self.hold_turns(&opened.view, &tree)?;
        let folder = place.open()?;
        let began = Instant::now();
        let n = opened.history.next();
        let bounds = Bounds { largest_file: self.config.snapshot_file_limit, until: began.checked_add(TAKES * 6) };
        let taken = store.take(&tree, &n.to_string(), &bounds)?;
        let unfinished = opened.history.last_rewind().filter(|(_, finished)| !finished).map(|(first, _)| first.clone());
        let mut found = None;
        for target in targets {
            if !store.find(&target.commit)? {
                return Err(opened.none_of(target.turn));
            }
            let untouched: HashSet<String> = target.skipped.iter().map(|one| one.path.clone()).collect();
            let plan = store.plan_put_back(&tree, &taken.commit, &target.commit, &untouched)?;
            let changes = plan.files() > 0;
            found = Some((target, plan));
            if changes || unfinished.is_some() {
                break;
            }
        }
        let Some((target, plan)) = found else {
            return Err(Error::NoRewind { session: SessionRef::from(&opened.view) });
        };
        // No file changes, so what can be undone stays the same.
        if plan.files() == 0 {
            plan.make_empty_folders()?;
            if unfinished.is_some() {
                turns::note(&folder, &Entry { at: clock::now(), what: What::Rewound })?;
            }
            return Ok((0, plan.repositories));
        }
        let in_the_way = plan.in_the_way()?;
        if !in_the_way.is_empty() {
            let paths = in_the_way.into_iter().map(|InTheWay(path)| path).collect();
            return Err(Error::InTheWay { paths });
        }
        let present = Snapshot {
            n,
            turn: opened.view.turns,
            run: opened.view.run,
            commit: taken.commit.clone(),
            files: taken.files,
            changed: taken.changed,
            ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            cpu_ms: 0,
            mixed: false,
            skipped: Vec::new(),
        };
        let undoes = turn.is_none().then_some(target.n);
        // After a rewind that was killed, the state before that one is what can be undone; the present state is kept as
        // well.
        let first = unfinished.filter(|_| undoes.is_none());
        for saved in [present].into_iter().chain(first) {
            let what = What::Rewind { saved, to: target.commit.clone(), undoes };
            turns::note(&folder, &Entry { at: clock::now(), what })?;
        }
        pause_points::at(Point::RewindNoted);
        plan.apply()?;
        pause_points::at(Point::RewindDone);
        turns::note(&folder, &Entry { at: clock::now(), what: What::Rewound })?;
        Ok((plan.files(), plan.repositories))
    }

    /// Another session may work in the same tree.
    fn refuse_others_in(&self, opened: &Opened) -> Result<()> {
        let tree = self.tree_of(&opened.view)?.top;
        match self.at_work_in(&tree)?.filter(|view| view.id != opened.view.id) {
            Some(view) => Err(Error::StillWorks { session: SessionRef::from(&view) }),
            None => Ok(()),
        }
    }
}
