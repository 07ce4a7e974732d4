//! A tree is removed, and nothing that was in it is lost.
//!
//! Before the first file of a tree is deleted, a note in the repository names the commit that has everything which was
//! in it. A removal that was killed, or that met a file which cannot be deleted, is found by that note and can be
//! repeated. As long as nothing was written into the tree since, what is left of it does not count as work.

use crate::git::complaint;
use crate::include;
use crate::index_copy::{files_in_submodules, repositories_inside};
use crate::loss::Loss;
use crate::repository::Repository;
use crate::saving::{commit_of_files_and_index, tree_of_files};
use crate::worktree::{Listed, reason};
use crate::{GitError, Result};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::SystemTime;

/// The commits that were saved from trees, by the names of the trees.
const SAVED: &str = "refs/ostler/saved/";
/// "It must not exist", where a reference is changed. A row of zeros would mean the same, but its length depends on the
/// hash of the repository.
const NONE: &str = "";
/// The notes, by the names of the trees.
const NOTES: &str = "ostler.removing";

impl Repository {
    /// Removes a tree of which [`Loss`] says that nothing is lost with it, and its branch. Git checks again: if
    /// something was written meanwhile, the tree is not removed.
    pub fn remove(&self, tree: &Listed) -> Result<()> {
        if tree.removing.is_some() {
            return self.remove_rest(tree);
        }
        let path = tree.path.as_os_str();
        let head = tree.head.clone().ok_or_else(|| GitError::NotATree { path: tree.path.clone() })?;
        self.note(tree, &head)?;
        if tree.is_unfinished() {
            return self.force(tree);
        }
        self.unlock(path)?;
        // For git these are new files. They are unchanged copies.
        for copy in include::unchanged(&self.git, &tree.path)? {
            let tracked = [OsStr::new("ls-files"), OsStr::new("--error-unmatch"), OsStr::new("--"), copy.as_os_str()];
            if self.git.with("GIT_LITERAL_PATHSPECS", "1").ask(&tree.path, tracked)?.is_none() {
                let copy = tree.path.join(copy);
                std::fs::remove_file(&copy).map_err(GitError::io(copy))?;
            }
        }
        let output =
            self.git.apart().feed(&self.root, ["worktree", "remove"].map(OsStr::new).into_iter().chain([path]), b"")?;
        self.end(tree, &output)
    }

    /// Saves everything in a tree, then removes the tree. Returns the reference to what was saved; `None` when nothing
    /// had to be saved.
    pub fn remove_by_force(&self, tree: &Listed, loss: &Loss) -> Result<Option<String>> {
        // What is in such a repository would be lost with it.
        if let Some(path) = self.kept_apart(tree, loss)? {
            return Err(GitError::RepositoryInside { path });
        }
        if loss.in_submodules > 0
            && let Some(path) = files_in_submodules(&self.git, &tree.path)?.into_iter().next()
        {
            return Err(GitError::InSubmodule { path });
        }
        if loss.unknown_folder {
            return Err(GitError::NotATree { path: tree.path.clone() });
        }
        if tree.removing.is_some() && !loss.has_work() {
            return self.remove_rest(tree).map(|()| None);
        }
        let saved = if loss.has_work() { Some(self.save(tree)?) } else { None };
        let has_all = match &saved {
            Some(name) => self.commit(name)?,
            None => tree.head.clone(),
        };
        self.note(tree, &has_all.ok_or_else(|| GitError::NotATree { path: tree.path.clone() })?)?;
        self.force(tree)?;
        Ok(saved)
    }

    /// Removes what an earlier removal has left.
    fn remove_rest(&self, tree: &Listed) -> Result<()> {
        // Git does not delete a tree that it no longer knows.
        if tree.head.is_none() { self.delete_rest(tree) } else { self.force(tree) }
    }

    pub(crate) fn force(&self, tree: &Listed) -> Result<()> {
        let words = ["worktree", "remove", "--force", "--force"].map(OsStr::new);
        let output = self.git.apart().feed(&self.root, words.into_iter().chain([tree.path.as_os_str()]), b"")?;
        self.end(tree, &output)
    }

    /// What follows after git has removed a tree, or has failed to.
    fn end(&self, tree: &Listed, output: &Output) -> Result<()> {
        if self.all_worktrees()?.iter().any(|one| one.path == tree.path) {
            // Git checks before it deletes. Once it deletes, it goes on to the end, unless it is killed.
            if output.status.code().is_some() {
                self.lock(tree);
                self.forget_note(tree)?;
            }
            return Err(GitError::Failed { what: "worktree remove".to_owned(), words: complaint(output) });
        }
        self.delete_rest(tree)
    }

    /// Deletes what is left of a tree that git no longer knows.
    fn delete_rest(&self, tree: &Listed) -> Result<()> {
        if tree.path.symlink_metadata().is_ok() {
            let half = |error: io::Error| GitError::HalfRemoved { name: tree.name(), words: error.to_string() };
            std::fs::remove_dir_all(&tree.path).map_err(half)?;
        }
        self.delete_branch(tree)?;
        self.forget_note(tree)
    }

    fn note(&self, tree: &Listed, commit: &str) -> Result<()> {
        let path = self.common.join(NOTES);
        std::fs::create_dir_all(&path).map_err(GitError::io(&path))?;
        // The note is small enough to be written as a whole or not at all, and an incomplete note is ignored.
        let file = path.join(tree.name());
        std::fs::write(&file, commit).map_err(GitError::io(file))
    }

    fn forget_note(&self, tree: &Listed) -> Result<()> {
        let file = self.common.join(NOTES).join(tree.name());
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(GitError::io(file)(error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Adds what is known of removals that were begun: to trees that git still knows, and as trees that it no longer
    /// knows.
    pub(crate) fn add_removals(&self, folder: &Path, all: &mut Vec<Listed>) -> Result<()> {
        let notes = self.common.join(NOTES);
        let names = match std::fs::read_dir(&notes) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(GitError::io(notes)(error)),
        };
        for entry in names {
            let note = entry.map_err(GitError::io(&notes))?.path();
            let commit = std::fs::read_to_string(&note).map_err(GitError::io(&note))?;
            let path = folder.join(note.file_name().unwrap_or_default());
            let Some(commit) = Some(commit).filter(|commit| commit.len() >= 40) else { continue };
            match all.iter_mut().find(|one| one.path == path) {
                Some(known) => known.removing = Some(commit),
                None => all.push(Listed { path, removing: Some(commit), ..Listed::default() }),
            }
        }
        Ok(())
    }

    /// Whether what exists of a tree is what a removal has left, and nothing was written into it since.
    pub(crate) fn is_only_half_removed(&self, tree: &Listed) -> Result<bool> {
        let Some(commit) = &tree.removing else { return Ok(false) };
        if !tree.path.is_dir() {
            return Ok(true);
        }
        if tree.head.is_none() {
            let note = self.common.join(NOTES).join(tree.name());
            let begun = std::fs::metadata(&note).and_then(|stat| stat.modified()).map_err(GitError::io(note))?;
            return nothing_since(&tree.path, begun).map_err(GitError::io(&tree.path));
        }
        // It has no .git file any more, or one that points nowhere: git was deleting it.
        if self.git.ask(&tree.path, ["rev-parse", "--is-inside-work-tree"])?.is_none()
            || !tree.path.join(".git").is_file()
        {
            let note = self.common.join(NOTES).join(tree.name());
            let begun = std::fs::metadata(&note).and_then(|stat| stat.modified()).map_err(GitError::io(note))?;
            return nothing_since(&tree.path, begun).map_err(GitError::io(&tree.path));
        }
        let now = tree_of_files(&self.git, &tree.path)?;
        let more = ["diff-tree", "-r", "--name-only", "--no-renames", "--diff-filter=d", commit, &now];
        Ok(self.git.run(&self.root, more)?.is_empty())
    }

    /// A repository inside of a tree.
    fn kept_apart(&self, tree: &Listed, loss: &Loss) -> Result<Option<PathBuf>> {
        if loss.repositories > 0 {
            return Ok(repositories_inside(&self.git, &tree.path, true)?.into_iter().next());
        }
        Ok(loss.submodules.then(|| tree.path.join(".gitmodules")))
    }

    /// A tree that is not locked is not an error.
    fn unlock(&self, path: &OsStr) -> Result<()> {
        let arguments = [OsStr::new("worktree"), OsStr::new("unlock"), path];
        self.git.ask(&self.root, arguments).map(drop)
    }

    fn lock(&self, tree: &Listed) {
        let reason = reason(&tree.name());
        let words = ["worktree", "lock", "--reason", &reason].map(OsStr::new);
        // When this fails, the tree is still there, and only less protected than before.
        let _ = self.git.ask(&self.root, words.into_iter().chain([tree.path.as_os_str()]));
    }

    /// Deletes the branch that was made for the tree, if everything on it is elsewhere too. Other branches stay.
    fn delete_branch(&self, tree: &Listed) -> Result<()> {
        let branch = tree.own_branch();
        let name = format!("refs/heads/{branch}");
        let Some(head) = self.git.line(&self.root, ["rev-parse", "--verify", "--quiet", &name])? else {
            return Ok(());
        };
        if self.only_in(&[&head], &branch)? == 0 {
            // Only while the branch is still at the commit that was checked.
            self.git.run(&self.root, ["update-ref", "-d", &name, &head])?;
        }
        Ok(())
    }

    /// Everything that is in a tree, except ignored files, as a commit under a reference of ours.
    fn save(&self, tree: &Listed) -> Result<String> {
        let commit = match tree.path.is_dir() {
            true => commit_of_files_and_index(
                &self.git,
                &tree.path,
                &format!("Worktree {}, as it was before ostler removed it", tree.name()),
            )?,
            false => tree.head.clone().ok_or_else(|| GitError::NoWorktree { name: tree.name() })?,
        };
        self.keep_saved(&tree.name(), &commit)
    }

    /// Keeps a commit under a reference of ours that is not used yet: what was saved before stays.
    pub(crate) fn keep_saved(&self, name: &str, commit: &str) -> Result<String> {
        let name = format!("{SAVED}{name}");
        for number in 1..1000 {
            let name = if number == 1 { name.clone() } else { format!("{name}-{number}") };
            if self.git.ask(&self.root, ["update-ref", &name, commit, NONE])?.is_some() {
                return Ok(name);
            }
        }
        Err(GitError::Failed { what: "update-ref".to_owned(), words: format!("{name} cannot be written") })
    }
}

/// Whether no file below a folder was written after this time.
fn nothing_since(folder: &Path, begun: SystemTime) -> io::Result<bool> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let stat = path.symlink_metadata()?;
        let fine = if stat.is_dir() { nothing_since(&path, begun)? } else { stat.modified()? <= begun };
        if !fine {
            return Ok(false);
        }
    }
    Ok(true)
}
