//! Landing: the work of a session is put on a branch, or nothing changes.

use super::check::FailedCheck;
use super::{CHANGING, How, hold};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::session_ref::SessionRef;
use ostler_core::id::SessionId;
use ostler_core::view::{Phase, View};
use ostler_core::worktree::Worktree;
use ostler_git::GitError;
use ostler_git::changes::gone;
use ostler_git::landing::{Built, Candidate, Work};
use ostler_git::repository::Repository;
use ostler_git::saving::By;
use ostler_git::worktree::Listed;
use ostler_store::home::Place;
use ostler_sys::{lock, ready};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

/// Held by the process that lands something: others wait, and then build on top of its result.
const LANDING: &str = "ostler.landing.lock";
/// How often a landing is built again because others have moved the branch meanwhile.
const TRIES: usize = 10;

/// How work is to land.
#[derive(Clone, Debug, Default)]
pub struct Land {
    /// The branch. `None`: the one that the session's tree came from.
    pub into: Option<String>,
    /// As which commits.
    pub how: How,
    /// A command of the shell, which has to succeed in a tree with the result.
    pub check: Option<String>,
    /// The message of a commit that is made. `None`: the first line of the session's prompt.
    pub message: Option<String>,
    /// Commits do not name the session.
    pub no_trailers: bool,
    /// Only report what would happen.
    pub dry: bool,
}

/// The result of a landing.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the fields are named after what they are")]
pub enum Landing {
    /// The branch has the work now, or would have it.
    Landed { branch: String, commit: String, files: usize, commits: usize },
    /// Nothing has changed, because both sides have changed these files.
    Conflict { branch: String, files: Vec<String> },
    /// Nothing has changed, because the check failed; of several commits, at the one with this first line.
    CheckFailed { branch: String, commit: Option<String>, check: FailedCheck },
    /// Nothing has changed, because the branch is checked out and this is in the way there.
    InTheWay { branch: String, words: String },
    /// The branch has all of it already.
    Nothing { branch: String },
}

impl Engine {
    /// Puts the work of a session on a branch. `leave` is called when this landing has its turn. When the descriptor
    /// that it returns can be read, everything is put back and [`Error::Left`] is returned.
    pub fn land<S: AsFd>(
        &self,
        place: &Place,
        request: &Land,
        leave: impl FnOnce() -> io::Result<Option<S>>,
    ) -> Result<Landing> {
        let view = self.view(place)?;
        let tree = view.worktree.clone().ok_or_else(|| Error::NoWorktree { session: SessionRef::from(&view) })?;
        if !view.ended && view.state != Phase::Idle {
            return Err(Error::StillWorks { session: SessionRef::from(&view) });
        }
        if let Some(command) = &request.check {
            self.check_later_command(command)?;
        }
        let repository = self.repository(Path::new(&tree.repository))?;
        let branch = request.into.clone().or_else(|| tree.from.clone());
        let branch = branch.ok_or_else(|| Error::NoTarget { session: SessionRef::from(&view) })?;
        if !repository.has_branch(&branch)? {
            return Err(GitError::NoBranch { branch }.into());
        }
        let next = hold(&repository, LANDING, lock::exclusive)?;
        let repository = repository.under(next.file().try_clone()?);
        let leave = leave()?;
        let leave = leave.as_ref().map(AsFd::as_fd);
        self.clear_buildings(&repository)?;
        self.refuse_others_at_work(&tree)?;
        let work = self.work(&repository, &view, &tree, &branch, request)?;
        for _ in 0..TRIES {
            let built = {
                let _alone = hold(&repository, CHANGING, lock::exclusive)?;
                repository.build(&work, &branch, request.how)?
            };
            let candidate = match built {
                Built::Ready(candidate) => candidate,
                Built::Conflict(files) => return Ok(Landing::Conflict { branch, files }),
                Built::Nothing => return Ok(Landing::Nothing { branch }),
            };
            let came = self.try_it(&repository, &candidate, &view, &branch, request, leave);
            let _alone = hold(&repository, CHANGING, lock::exclusive)?;
            drop(candidate);
            if let Some(landing) = came? {
                if let Landing::Landed { commit, .. } = &landing
                    && !request.dry
                {
                    repository.note_landed(&work, commit)?;
                }
                return Ok(landing);
            }
        }
        Err(Error::BranchMoves { branch })
    }

    /// What a session has landed on a branch since this commit, found by the trailer of the commit: the process that
    /// landed it may have been killed before it recorded the landing elsewhere.
    pub fn landed_since(
        &self,
        repository: &Repository,
        session: SessionId,
        base: &str,
        branch: &str,
    ) -> Result<Option<Landing>> {
        let range = format!("{base}..refs/heads/{branch}");
        let format = "--format=%H %(trailers:key=Ostler-Session,valueonly,separator=%x20)";
        let listed = repository.git.ask(&repository.root, ["log", "--first-parent", format, &range, "--"])?;
        let listed = String::from_utf8_lossy(listed.as_deref().unwrap_or_default()).into_owned();
        let names = |line: &&str| line.split_whitespace().skip(1).any(|id| SessionId::parse(id) == Some(session));
        let Some(commit) = listed.lines().find(names).and_then(|line| line.split_whitespace().next()) else {
            return Ok(None);
        };
        let words = ["diff", "--name-only", &format!("{commit}^"), commit, "--"];
        let files = String::from_utf8_lossy(&repository.git.run(&repository.root, words)?).lines().count();
        Ok(Some(Landing::Landed { branch: branch.to_owned(), commit: commit.to_owned(), files, commits: 1 }))
    }

    /// The work of a session as a commit. What is not committed yet is committed on its own branch.
    fn work(
        &self,
        repository: &Repository,
        view: &View,
        tree: &Worktree,
        branch: &str,
        request: &Land,
    ) -> Result<Work> {
        let listed = {
            let _alone = hold(repository, CHANGING, lock::exclusive)?;
            // Without the tree, its branch may have less than the whole work.
            match repository.worktree(&tree.name) {
                Ok(listed) if listed.path.is_dir() => listed,
                Ok(_) | Err(GitError::NoWorktree { .. }) if repository.has_branch(&tree.branch)? => {
                    let path = Path::new(&tree.path).to_owned();
                    return Err(if path.is_dir() { GitError::NotATree { path } } else { gone(tree) }.into());
                }
                Ok(_) => return Err(GitError::NoWorktree { name: tree.name.clone() }.into()),
                Err(error) => return Err(error.into()),
            }
        };
        repository.check_submodules(&listed, branch)?;
        let told = view.prompt.as_deref().filter(|prompt| !prompt.trim().is_empty()).unwrap_or(&view.title);
        let message = request.message.clone().unwrap_or_else(|| subject(told));
        let trailers = if request.no_trailers { Vec::new() } else { vec![format!("Ostler-Session: {}", view.id)] };
        let commit = match request.dry {
            true => repository.commit_aside(&listed, &message)?,
            // A merge keeps this commit; otherwise the branch gets another commit instead of it.
            false => repository.commit_all(&listed, &message, &trailers, request.how == How::Merge)?,
        };
        Ok(Work { name: tree.name.clone(), commit, message, trailers, signed: !request.dry })
    }

    /// Another session may work in the same tree: its half-done work must not land.
    fn refuse_others_at_work(&self, tree: &Worktree) -> Result<()> {
        match self.at_work_in(Path::new(&tree.path))? {
            Some(view) => Err(Error::StillWorks { session: SessionRef::from(&view) }),
            None => Ok(()),
        }
    }

    /// A session that is at work in a tree.
    pub(crate) fn at_work_in(&self, tree: &Path) -> Result<Option<View>> {
        let listed = Listed { path: tree.to_owned(), ..Listed::default() };
        let mut found = self.sessions_by_tree(std::slice::from_ref(&listed))?;
        Ok(found.remove(&listed.path).filter(|view| !view.ended && view.state != Phase::Idle))
    }

    /// Cleans up after a landing that was killed, unless another process lands something now: that process does it.
    pub(super) fn after_killed_landing(&self, repository: &Repository, dry: bool) -> Result<()> {
        if !dry && let Some(next) = super::try_hold(repository, LANDING)? {
            self.clear_buildings(&repository.under(next.file().try_clone()?))?;
        }
        Ok(())
    }

    /// Removes what a killed landing has left: its tree, and its check.
    fn clear_buildings(&self, repository: &Repository) -> Result<()> {
        let _alone = hold(repository, CHANGING, lock::exclusive)?;
        repository.recover_move()?;
        let left = repository.buildings()?;
        self.end_checks_in(&left)?;
        repository.clear(left);
        Ok(())
    }

    /// Runs a check on what is in a session's tree, committed or not, in a tree that is made for it. `None`: it
    /// succeeded.
    pub(crate) fn check_work(
        &self,
        view: &View,
        command: &str,
        leave: Option<BorrowedFd<'_>>,
    ) -> Result<Option<FailedCheck>> {
        let tree = view.worktree.as_deref().ok_or_else(|| Error::NoWorktree { session: SessionRef::from(view) })?;
        let repository = self.repository(Path::new(&tree.repository))?;
        let next = hold(&repository, LANDING, lock::exclusive)?;
        let repository = repository.under(next.file().try_clone()?);
        self.clear_buildings(&repository)?;
        let aside = {
            let _alone = hold(&repository, CHANGING, lock::exclusive)?;
            let commit = repository.commit_of_now(Path::new(&tree.path), "For a check", By::Anyone)?;
            repository.aside(&tree.name, &commit)?
        };
        let came = self.check(command, aside.folder(), view.id, leave);
        let _alone = hold(&repository, CHANGING, lock::exclusive)?;
        drop(aside);
        came
    }

    /// `None`: the branch has moved meanwhile.
    fn try_it(
        &self,
        repository: &Repository,
        candidate: &Candidate<'_>,
        view: &View,
        branch: &str,
        request: &Land,
        leave: Option<BorrowedFd<'_>>,
    ) -> Result<Option<Landing>> {
        // Found out before the check, which may take long.
        let in_the_way = {
            let _alone = hold(repository, CHANGING, lock::exclusive)?;
            candidate.in_the_way()?
        };
        if let Some(words) = in_the_way {
            return Ok(Some(Landing::InTheWay { branch: branch.to_owned(), words }));
        }
        let (files, commits) = candidate.size()?;
        let landed = Landing::Landed { branch: branch.to_owned(), commit: candidate.after.clone(), files, commits };
        if request.dry {
            return Ok(Some(landed));
        }
        if let Some(command) = &request.check {
            // Each step becomes a state of the branch.
            let steps = candidate.steps()?;
            for step in &steps {
                if steps.len() > 1 {
                    candidate.check_out(step)?;
                }
                if let Some(check) = self.check(command, candidate.folder(), view.id, leave)? {
                    let commit = (steps.len() > 1).then(|| candidate.subject(step)).transpose()?;
                    return Ok(Some(Landing::CheckFailed { branch: branch.to_owned(), commit, check }));
                }
            }
        }
        if leave.map(ready::is_readable).transpose()? == Some(true) {
            return Err(Error::Left);
        }
        let _alone = hold(repository, CHANGING, lock::exclusive)?;
        Ok(candidate.publish()?.then_some(landed))
    }
}

/// The first line of a text, as long as the first line of a commit should be.
fn subject(text: &str) -> String {
    const LONGEST: usize = 72;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("Work of a session");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or(line)),
        None => line.to_owned(),
    }
}
