//! Which worktrees of sessions there are, and removing them without losing work.

use super::{BEGINNING, CHANGING, hold};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::list::{Listed, list};
use crate::session_ref::SessionRef;
use crate::turns::wait_for_snapshots_of;
use ostler_core::view::View;
use ostler_git::GitError;
use ostler_git::loss::Loss;
use ostler_git::repository::Repository;
use ostler_git::worktree;
use ostler_sys::lock;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A worktree.
#[derive(Debug)]
pub struct Tree {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// What is checked out in it.
    pub branch: Option<String>,
    /// The newest session that it was made for, if that still exists.
    pub session: Option<View>,
    /// What would be lost with it.
    pub loss: Loss,
    /// Its removal was begun and not finished, and what is left of it contains no work.
    pub removing: bool,
    /// Its folder was deleted, and git still lists it.
    pub folder_is_gone: bool,
    listed: worktree::Listed,
}

/// Why a worktree stays.
#[derive(Debug)]
pub enum Kept {
    /// Its session has not ended.
    Session(SessionRef),
    /// Work would be lost.
    Loss(Loss),
    /// Git does not remove it.
    Git(GitError),
}

/// The result for one worktree of a cleanup.
#[derive(Debug)]
pub struct Collected {
    /// Its name.
    pub name: String,
    /// Why it stays; `None`: it is removed.
    pub kept: Option<Kept>,
}

impl Engine {
    /// The worktrees of a repository, each with its session.
    pub fn worktrees(&self, repository: &Repository) -> Result<Vec<Tree>> {
        let listed = {
            let _alone = hold(repository, CHANGING, lock::exclusive)?;
            repository.worktrees()?
        };
        let mut sessions = self.sessions_by_tree(&listed)?;
        listed
            .into_iter()
            .map(|listed| {
                let loss = Loss::of(repository, &listed)?;
                Ok(Tree {
                    removing: listed.removing.is_some() && !loss.has_work(),
                    folder_is_gone: !listed.path.is_dir(),
                    name: listed.name(),
                    path: listed.path.clone(),
                    branch: listed.branch.clone(),
                    session: sessions.remove(&listed.path),
                    loss,
                    listed,
                })
            })
            .collect()
    }

    /// The sessions of these trees, including those that have ended. Of several sessions in one tree, the one that
    /// runs; of those that have ended, the newest that worked in it as in its own tree, which a review does not.
    pub(super) fn sessions_by_tree(&self, trees: &[worktree::Listed]) -> Result<HashMap<PathBuf, View>> {
        let mut found: HashMap<PathBuf, View> = HashMap::new();
        if trees.is_empty() {
            return Ok(found);
        }
        let of_trees = |one: Listed| match one {
            Listed::Good(view) => {
                let path = trees.iter().map(|tree| &tree.path).find(|path| Path::new(&view.cwd).starts_with(path));
                path.map(|path| (path.clone(), *view))
            }
            Listed::Bad(_) => None,
        };
        for (path, view) in list(self, true, of_trees)?.into_iter().flatten() {
            let rank = |view: &View| (!view.ended, view.worktree.is_some() && view.turns > 0, view.created);
            let better = found.get(&path).is_none_or(|known| rank(&view) > rank(known));
            if better {
                found.insert(path, view);
            }
        }
        Ok(found)
    }

    /// Removes a worktree and its branch. With `force` also a worktree that contains work, after that was saved:
    /// returns under which reference.
    pub fn remove_worktree(&self, repository: &Repository, name: &str, force: bool) -> Result<Option<String>> {
        wait_for_snapshots(repository, Some(name))?;
        let _alone = hold(repository, BEGINNING, lock::exclusive)?;
        clear_unmade(repository)?;
        let listed = repository.worktree(name)?;
        let mut sessions = self.sessions_by_tree(std::slice::from_ref(&listed))?;
        if let Some(view) = sessions.remove(&listed.path).filter(|view| !view.ended) {
            return Err(Error::WorktreeInUse { name: name.to_owned(), session: SessionRef::from(&view) });
        }
        let loss = Loss::of(repository, &listed)?;
        if force {
            return Ok(repository.remove_by_force(&listed, &loss)?);
        }
        if !loss.is_none() {
            return Err(Error::WouldLose { name: name.to_owned(), loss });
        }
        repository.remove(&listed)?;
        Ok(None)
    }

    /// Removes all worktrees whose sessions have ended and with which nothing is lost. `dry`: only returns which.
    pub fn collect_worktrees(&self, repository: &Repository, dry: bool) -> Result<Vec<Collected>> {
        self.after_killed_landing(repository, dry)?;
        wait_for_snapshots(repository, None)?;
        let _alone = hold(repository, BEGINNING, lock::exclusive)?;
        if !dry {
            clear_unmade(repository)?;
        }
        let collect = |tree: Tree| {
            let runs = tree.session.as_ref().filter(|view| !view.ended);
            let kept = match (runs, tree.loss.is_none()) {
                (Some(view), _) => Some(Kept::Session(SessionRef::from(view))),
                (None, false) => Some(Kept::Loss(tree.loss)),
                (None, true) if dry => None,
                (None, true) => repository.remove(&tree.listed).err().map(Kept::Git),
            };
            Collected { name: tree.name, kept }
        };
        Ok(self.worktrees(repository)?.into_iter().map(collect).collect())
    }
}

/// Waits until no snapshot is being taken of the tree with this name, or of any. New sessions may begin meanwhile.
fn wait_for_snapshots(repository: &Repository, name: Option<&str>) -> Result<()> {
    let listed = {
        let _alone = hold(repository, CHANGING, lock::exclusive)?;
        repository.worktrees()?
    };
    let is_meant = |one: &&worktree::Listed| name.is_none_or(|name| one.name() == name);
    let trees: Vec<&Path> = listed.iter().filter(is_meant).map(|one| one.path.as_path()).collect();
    if trees.is_empty() { Ok(()) } else { wait_for_snapshots_of(&trees) }
}

/// Removes what is left of trees that were never completed.
fn clear_unmade(repository: &Repository) -> Result<()> {
    let _alone = hold(repository, CHANGING, lock::exclusive)?;
    Ok(repository.clear_unmade()?)
}
