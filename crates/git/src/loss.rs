//! What would be lost with a tree.

use crate::git::fields;
use crate::include;
use crate::index_copy::{IndexCopy, files_in_submodules, own_folder, repositories_inside};
use crate::repository::Repository;
use crate::worktree::Listed;
use crate::{GitError, Result};
use ostler_core::limits::counted;
use ostler_sys::process_table;
use std::ffi::OsString;
use std::path::Path;

/// What a tree has that exists nowhere else, and which processes work in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Files that are changed or new, and not committed.
    pub uncommitted: usize,
    /// Commits that are on no other branch, tag or remote branch.
    pub commits: usize,
    /// The operation of git that is unfinished in it.
    pub in_progress: Option<&'static str>,
    /// It has submodules, which have commits of their own.
    pub submodules: bool,
    /// Repositories in it that are not part of it.
    pub repositories: usize,
    /// Files in the folders of submodules that are not checked out, which git does not see.
    pub in_submodules: u32,
    /// Its folder exists, and git no longer knows it.
    pub unknown_folder: bool,
    /// Processes whose working folder is in it.
    pub processes: Vec<i32>,
    /// Why git cannot say what is in it.
    pub unreadable: Option<String>,
}

impl Loss {
    /// What is only in `tree`; for a tree that git cannot read, the reason.
    pub fn of(repository: &Repository, tree: &Listed) -> Result<Loss> {
        match Loss::read(repository, tree) {
            Err(GitError::NotInstalled) => Err(GitError::NotInstalled),
            Err(error) => Ok(Loss { unreadable: Some(error.to_string()), ..Loss::default() }),
            Ok(loss) => Ok(loss),
        }
    }

    fn read(repository: &Repository, tree: &Listed) -> Result<Loss> {
        let commits = unique_commits(repository, tree)?;
        if tree.is_unfinished() {
            return Ok(Loss { commits, ..Loss::default() });
        }
        if repository.is_only_half_removed(tree)? {
            let processes = process_table::others_in(&tree.path).unwrap_or_default();
            return Ok(Loss { processes, ..Loss::default() });
        }
        if !tree.path.is_dir() {
            return Ok(Loss { commits, ..Loss::default() });
        }
        let git = &repository.git;
        let processes = process_table::others_in(&tree.path).map_err(GitError::io(&tree.path))?;
        let own = match own_folder(git, &tree.path) {
            Ok(own) => own,
            Err(GitError::NotATree { .. }) => {
                return Ok(Loss { commits, unknown_folder: true, processes, ..Loss::default() });
            }
            Err(error) => return Err(error),
        };
        let index = IndexCopy::of(git, &tree.path)?;
        let status =
            ["status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignore-submodules=none", "--no-renames"];
        let all = include::all_work(git, &tree.path)?;
        let status = status.map(OsString::from).into_iter().chain(all);
        Ok(Loss {
            uncommitted: fields(&index.git.run(&tree.path, status)?).count(),
            commits,
            in_progress: in_progress(&own),
            submodules: own.join("modules").is_dir(),
            repositories: repositories_inside(git, &tree.path, true)?.len(),
            in_submodules: u32::try_from(files_in_submodules(git, &tree.path)?.len()).unwrap_or(u32::MAX),
            unknown_folder: false,
            processes,
            unreadable: None,
        })
    }

    /// Whether nothing would be lost.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Loss::default()
    }

    /// The loss in words, to follow the name of the tree.
    #[must_use]
    pub fn words(&self) -> String {
        let some = |count: usize, one: &str, several: &str| (count > 0).then(|| counted(count as u64, one, several));
        let parts = [
            some(self.uncommitted, "uncommitted change", "uncommitted changes"),
            some(self.commits, "commit that is on no other branch", "commits that are on no other branch"),
            self.in_progress.map(|what| format!("{what} in progress")),
            self.submodules.then(|| "submodules with commits of their own".to_owned()),
            some(self.repositories, "repository of its own inside", "repositories of their own inside"),
            some(
                self.in_submodules as usize,
                "file in a submodule that is not checked out",
                "files in submodules that are not checked out",
            ),
            self.unknown_folder.then(|| "a folder without a valid .git file".to_owned()),
            some(self.processes.len(), "process working in it", "processes working in it"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if let Some(why) = &self.unreadable {
            return format!("cannot be read: {why}");
        }
        match &parts[..] {
            [] => "has nothing that is not elsewhere".to_owned(),
            [one] => format!("has {one}"),
            [first @ .., last] => format!("has {} and {last}", first.join(", ")),
        }
    }

    /// Whether work would be lost, not only the working folder of a process.
    #[must_use]
    pub fn has_work(&self) -> bool {
        Loss { processes: Vec::new(), ..self.clone() } != Loss::default()
    }
}

/// Commits of a tree, and of the branch that was made for it, that exist nowhere else. Removing a tree does not delete
/// other branches.
fn unique_commits(repository: &Repository, tree: &Listed) -> Result<usize> {
    let own = tree.own_branch();
    let branch = repository.has_branch(&own)?.then(|| format!("refs/heads/{own}"));
    let heads: Vec<&str> = tree.head.as_deref().into_iter().chain(branch.as_deref()).collect();
    repository.only_in(&heads, &own)
}

/// What git has begun in a tree and not finished.
pub(crate) fn in_progress(own: &Path) -> Option<&'static str> {
    let marks = [
        ("rebase-merge", "a rebase"),
        ("rebase-apply", "a rebase"),
        ("MERGE_HEAD", "a merge"),
        ("CHERRY_PICK_HEAD", "a cherry-pick"),
        ("REVERT_HEAD", "a revert"),
        ("BISECT_LOG", "a bisect"),
    ];
    marks.into_iter().find(|(name, _)| own.join(name).exists()).map(|(_, what)| what)
}
