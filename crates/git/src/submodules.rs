//! Submodules of a tree. Each is a repository of its own. A commit of the tree has only the name of a commit in it.
//!
//! A submodule of a worktree is a clone that is deleted with the worktree. If the name of its commit landed and the
//! commit existed nowhere else, it could not be checked out.

use crate::git::{Git, fields};
use crate::repository::Repository;
use crate::{GitError, Result};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Refuses a tree in which a submodule has changes that no commit of the tree can hold. Also refuses it when the
/// submodule is at another commit than `target` has for it, and that commit exists only there.
pub(crate) fn check(repository: &Repository, tree: &Path, target: &str) -> Result<()> {
    let git = &repository.git;
    let listed = git.run(tree, ["ls-files", "--stage", "-z"])?;
    for entry in fields(&listed).filter(|entry| entry.starts_with(b"160000 ")) {
        let Some(name) = entry.splitn(2, |&byte| byte == b'\t').nth(1).map(OsStr::from_bytes) else { continue };
        let folder = tree.join(name);
        if folder.join(".git").symlink_metadata().is_err() {
            continue;
        }
        let changes = ["status", "--porcelain", "-z", "--untracked-files=all", "--ignore-submodules=none"];
        if !git.run(&folder, changes)?.is_empty() {
            return Err(GitError::ChangedInSubmodule { path: folder });
        }
        // The commit that is checked out in the submodule is the one that lands.
        let Some(commit) = git.line(&folder, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])? else { continue };
        let literal = git.with("GIT_LITERAL_PATHSPECS", "1");
        let known = literal.run(tree, [OsStr::new("ls-tree"), OsStr::new("-z"), OsStr::new(target), name])?;
        if known.starts_with(format!("160000 commit {commit}\t").as_bytes()) {
            continue;
        }
        let elsewhere =
            all_in(git, &folder, &commit, "--remotes")? || all_in(git, &repository.root.join(name), &commit, "--all")?;
        if !elsewhere {
            return Err(GitError::OnlyInSubmodule { path: folder, commit });
        }
    }
    Ok(())
}

/// Whether the repository in a folder has a commit on one of these references.
fn all_in(git: &Git, folder: &Path, commit: &str, references: &str) -> Result<bool> {
    if folder.join(".git").symlink_metadata().is_err() {
        return Ok(false);
    }
    let missing = git.ask(folder, ["rev-list", "--max-count=1", commit, "--not", references])?;
    Ok(missing.is_some_and(|missing| missing.is_empty()))
}
