//! Trees that are being made. Git makes the branch of a tree first, and registers the tree only after that. A process
//! that is killed in between leaves a branch that belongs to no tree, and a name that cannot be used again. A process
//! that is killed a moment later leaves a tree whose HEAD is not a commit, which `git fsck` complains about. A note in
//! the repository says which branch was about to be made, and from which commit, so that the next process that makes or
//! removes trees can remove both.

use crate::repository::{FOLDER, Repository};
use crate::worktree::own_branch;
use crate::{GitError, Result};
use std::io;

/// The notes, by the names of the trees.
const NOTES: &str = "ostler.making";

impl Repository {
    pub(crate) fn note_making(&self, name: &str, base: &str) -> Result<()> {
        let folder = self.common.join(NOTES);
        std::fs::create_dir_all(&folder).map_err(GitError::io(&folder))?;
        let file = folder.join(name);
        std::fs::write(&file, base).map_err(GitError::io(file))
    }

    pub(crate) fn forget_making(&self, name: &str) -> Result<()> {
        let file = self.common.join(NOTES).join(name);
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(GitError::io(file)(error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Removes what is left of trees that were never completed. The caller has to be the only process that makes trees.
    pub fn clear_unmade(&self) -> Result<()> {
        let notes = self.common.join(NOTES);
        let names = match std::fs::read_dir(&notes) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(GitError::io(notes)(error)),
        };
        let mut known = None;
        for entry in names {
            let note = entry.map_err(GitError::io(&notes))?.path();
            let name = note.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let known = match &mut known {
                Some(known) => known,
                none => none.insert(self.all_worktrees()?),
            };
            let tree = known.iter().find(|tree| tree.name() == name);
            if let Some(tree) = tree.filter(|tree| tree.is_unfinished() && tree.branch.is_none()) {
                self.force(tree)?;
            }
            // Any other tree that git knows is listed, and can be removed as usual.
            if tree.is_none() {
                let base = std::fs::read_to_string(&note).map_err(GitError::io(&note))?;
                let branch = own_branch(&name);
                // Only while the branch is at the commit it was made from, and nothing is lost. An incomplete note
                // names no commit.
                if self.commit(&base)?.is_some() && self.only_in(&[&base], &branch)? == 0 {
                    self.git.ask(&self.root, ["update-ref", "-d", &format!("refs/heads/{branch}"), &base])?;
                }
                // A folder that is not empty stays.
                let _ = std::fs::remove_dir(self.root.join(FOLDER).join(&name));
            }
            self.forget_making(&name)?;
        }
        Ok(())
    }
}
