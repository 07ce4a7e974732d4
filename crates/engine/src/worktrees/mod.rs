//! Git worktrees of sessions: how a session gets one when it begins, a list of them, and how they are removed.
//!
//! * `shared_tree`: sessions that work in one tree.
//! * `branch_watch`: watching a branch for moves.
//! * `check`: a command that has to succeed in a tree.
//! * `land`: putting the work of a session on a branch.
//! * `upkeep`: listing worktrees, and removing them without losing work.

mod branch_watch;
mod check;
mod land;
mod list_and_remove;
mod shared_tree;

pub use branch_watch::BranchWatch;
pub use check::FailedCheck;
pub use land::{Land, Landing};
pub use list_and_remove::{Collected, Kept, Tree};
pub use ostler_git::changes::Standing;
pub use ostler_git::landing::How;
pub use ostler_git::loss::Loss;
pub use ostler_git::{GitError, repository::Repository};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::notice::Notice;
use crate::prepare::check_installed;
use crate::session_ref::SessionRef;
use ostler_core::comparison::Lines;
use ostler_core::record::Session;
use ostler_core::view::View;
use ostler_core::worktree::Worktree;
use ostler_git::changes::Changes;
use ostler_git::git::Git;
use ostler_git::saving::By;
use ostler_git::worktree::{Planned, name_from};
use ostler_store::home::Place;
use ostler_sys::lock::{self, Held};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// A worktree that a session is to get.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Its name. `None`: made of the session's name or id.
    pub name: Option<String>,
    /// The commit to begin with. `None`: what is checked out where the session is started.
    pub base: Option<String>,
    /// The branch that its work belongs to, when the commit does not show it.
    pub from: Option<String>,
}

/// What a tree begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The commit.
    pub commit: String,
    /// The branch of which it is the newest commit.
    pub branch: Option<String>,
}

impl Engine {
    pub(crate) fn git(&self) -> Git {
        Git::new(self.environment.variables())
    }

    /// The repository that a folder is in.
    pub fn repository(&self, folder: &Path) -> Result<Repository> {
        Ok(Repository::of(self.git(), folder)?)
    }

    /// What trees that are made in a folder begin with: `base`, or what is checked out. Refuses a folder in which no
    /// tree can be made.
    pub fn start_of_trees(&self, folder: &Path, base: Option<&str>) -> Result<Start> {
        let planned = self.repository(folder)?;
        let worktree = planned.plan(&format!("probe-{}", std::process::id()), base)?.worktree;
        Ok(Start { commit: worktree.base, branch: worktree.from })
    }

    /// Makes a worktree and starts a session in it. When it cannot be started, the worktree is removed again.
    pub(crate) fn in_worktree(
        &self,
        session: &mut Session,
        asked: &Asked,
        tell: &mut dyn FnMut(Notice),
        start: impl FnOnce(&Session, &mut dyn FnMut(Notice)) -> Result<Place>,
    ) -> Result<Place> {
        let repository = self.repository_of(session)?;
        // Checked before anything is made.
        if let Some(agent) = ostler_agents::find(&session.agent) {
            check_installed(&self.environment, agent)?;
        }
        // No other process removes the worktree before its session exists.
        let _kept = hold(&repository, BEGINNING, lock::shared)?;
        let alone = hold(&repository, CHANGING, lock::exclusive)?;
        repository.clear_unmade()?;
        let mut planned = plan(&repository, session, asked)?;
        if asked.from.is_some() {
            planned.worktree.from.clone_from(&asked.from);
        } else if let Some(old) = session.worktree.as_deref().filter(|_| asked.base.is_none()) {
            // Its work belongs to the same branch as the work of the session's previous tree.
            planned.worktree.from.clone_from(&old.from);
        }
        let made = planned.make()?;
        drop(alone);
        session.worktree = Some(Box::new(planned.worktree.clone()));
        let below = Path::new(&planned.worktree.path).join(&repository.prefix);
        let cwd = if below.is_dir() { below } else { planned.worktree.path.clone().into() };
        session.cwd = cwd.to_string_lossy().trim_end_matches('/').to_owned();
        let started = start(session, tell).inspect_err(|_| {
            let _alone = hold(&repository, CHANGING, lock::exclusive);
            planned.undo();
        })?;
        if made.submodules {
            tell(Notice::EmptySubmodules { path: planned.worktree.path.into() });
        }
        Ok(started)
    }

    /// The repository in which a session works, or in which it worked while its tree existed.
    fn repository_of(&self, session: &Session) -> Result<Repository> {
        match self.repository(Path::new(&session.cwd)) {
            Err(Error::Git(GitError::NotARepository { .. })) if session.worktree.is_some() => {
                let tree = session.worktree.as_deref().map(|tree| tree.repository.as_str()).unwrap_or_default();
                self.repository(Path::new(tree))
            }
            found => found,
        }
    }

    /// Removes the tree that a killed launch with the same reserved id has made: no session was ever in it, so it
    /// contains no work.
    pub(crate) fn remove_abandoned_tree(&self, session: &Session, asked: &Asked) -> Result<()> {
        let repository = self.repository(Path::new(&session.cwd))?;
        let name = asked.name.clone().unwrap_or_else(|| session.id.to_string());
        let _alone = hold(&repository, BEGINNING, lock::exclusive)?;
        let Ok(listed) = repository.worktree(&name) else { return Ok(()) };
        let unused = self.sessions_by_tree(std::slice::from_ref(&listed))?.is_empty();
        if unused && Loss::of(&repository, &listed)?.is_none() {
            repository.remove(&listed)?;
        }
        Ok(())
    }

    /// Lets git show a person what a session has changed since it began: all of it, or a summary. Returns git's exit
    /// code.
    pub fn show_changes(&self, place: &Place, summary: bool, tell: &mut dyn FnMut(Notice)) -> Result<i32> {
        // For a session without a tree of its own, its snapshots show what there was.
        let Some(tree) = place.open()?.session()?.worktree else { return self.show_since_first(place, summary, tell) };
        Ok(Changes::of(&self.git(), &tree)?.show(summary)?)
    }

    /// Whether there are such changes.
    pub fn has_changes(&self, place: &Place) -> Result<bool> {
        match place.open()?.session()?.worktree {
            None => self.has_changed_since_first(place),
            Some(tree) => Ok(Changes::of(&self.git(), &tree)?.count()? > 0),
        }
    }

    /// Shows them page by page, until the person closes the pager.
    pub fn page_changes(&self, place: &Place) -> Result<()> {
        match place.open()?.session()?.worktree {
            None => self.show_since_first(place, false, &mut |_| {})?,
            // By default git tells its pager to exit at once when everything fits on one screen.
            Some(tree) => Changes::of(&self.git().with("LESS", "R"), &tree)?.show(false)?,
        };
        Ok(())
    }

    /// How much a session has changed in its worktree; `None` when the worktree is gone.
    pub(crate) fn changed_lines(&self, tree: &Worktree) -> Result<Option<Lines>> {
        if !Path::new(&tree.path).is_dir() {
            return Ok(None);
        }
        let (files, added, deleted) = Changes::of(&self.git(), tree)?.lines()?;
        Ok(Some(Lines { files, added, deleted }))
    }

    /// Refuses a session that has changed nothing in its worktree. A worktree that is gone may have had changes.
    pub fn check_changed(&self, view: &View) -> Result<()> {
        let lines = view.worktree.as_deref().map(|tree| self.changed_lines(tree)).transpose()?.flatten();
        match lines {
            Some(lines) if lines.files == 0 => Err(Error::NothingChanged { session: SessionRef::from(view) }),
            Some(_) | None => Ok(()),
        }
    }

    /// The state of the worktree of a session; `None` when it has none, or none any more.
    pub fn standing(&self, view: &View) -> Result<Option<Standing>> {
        match &view.worktree {
            Some(tree) => Ok(Standing::of(&self.git(), tree)?),
            None => Ok(None),
        }
    }
}

fn plan<'a>(repository: &'a Repository, session: &Session, asked: &Asked) -> Result<Planned<'a>> {
    let now = match session.worktree.as_deref().map(|tree| Path::new(&tree.path)) {
        // The next tree has all files that the conversation knows, including what is not committed.
        Some(old) if asked.base.is_none() && old.is_dir() => {
            let message = format!("Work of session {} so far", session.id);
            // The author is the person, because this commit may land with the work that comes after it.
            Some(repository.commit_of_now(old, &message, By::Person { signed: false })?)
        }
        Some(_) | None => None,
    };
    let base = asked.base.as_deref().or(now.as_deref());
    if let Some(name) = &asked.name {
        return Ok(repository.plan(name, base)?);
    }
    let id = session.id.as_str();
    let name = session.name.as_deref().map(name_from).filter(|name| !name.is_empty());
    let mut names = match name {
        Some(name) => vec![name.clone(), format!("{name}-{id}")],
        None => vec![id.to_owned()],
    };
    // A session that continues in another tree needs another name.
    names.extend((2..100).map(|number| format!("{id}-{number}")));
    let mut refused = None;
    for name in names {
        match repository.plan(&name, base) {
            // A session of the same name was here before.
            Err(error @ (GitError::BranchExists { .. } | GitError::FolderExists { .. } | GitError::BadName { .. })) => {
                refused = Some(error)
            }
            Err(error @ GitError::BranchInTheWay { .. }) if is_of_one_name(&error) => refused = Some(error),
            planned => return Ok(planned?),
        }
    }
    Err(refused.unwrap_or_else(|| GitError::BadName { name: id.to_owned() }).into())
}

/// Whether a branch is in the way of one name, and not of every name.
fn is_of_one_name(error: &GitError) -> bool {
    matches!(error, GitError::BranchInTheWay { branch, wanted } if branch.starts_with(wanted))
}

/// Held by all processes whose worktree has no session yet, or exclusively by a process that removes worktrees.
const BEGINNING: &str = "ostler.beginning.lock";
/// Held while a worktree is added or the list of them is read. Git cannot do both at the same time: a git that reads a
/// worktree while another git adds it fails with "failed to read commondir".
const CHANGING: &str = "ostler.changing.lock";

/// Takes a lock in the repository without waiting; `None` when another process holds it.
fn try_hold(repository: &Repository, name: &str) -> Result<Option<Held>> {
    let path = repository.common.join(name);
    let file: File = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    Ok(lock::try_exclusive(file.into())?)
}

/// Takes a lock in the repository.
fn hold(repository: &Repository, name: &str, lock: fn(OwnedFd) -> io::Result<Held>) -> Result<Held> {
    let path = repository.common.join(name);
    let file: File = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    Ok(lock(file.into())?)
}
