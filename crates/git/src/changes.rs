//! What was changed in a tree since it was made: committed or not, new files too.

use crate::git::{Git, fields};
use crate::include;
use crate::index_copy::{ADD_ALL, IndexCopy};
use crate::{GitError, Result};
use ostler_core::worktree::Worktree;
use serde::Serialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A tree as it is now, for a comparison. The person's index is not changed: new files are added to a copy of it.
#[derive(Debug)]
pub struct Changes {
    index: IndexCopy,
    folder: PathBuf,
    /// The commit that the tree is compared with.
    since: String,
}

impl Changes {
    /// The changes in a session's tree since the session began.
    pub fn of(git: &Git, tree: &Worktree) -> Result<Changes> {
        let folder = PathBuf::from(&tree.path);
        if !folder.is_dir() {
            return Err(gone(tree));
        }
        let since = since(git, &folder, tree)?;
        let index = IndexCopy::of(git, &folder)?;
        let all = include::all_work(git, &folder)?;
        let add = ADD_ALL.into_iter().chain(["--intent-to-add"]).map(OsString::from);
        index.git.run(&folder, add.chain(all))?;
        Ok(Changes { index, folder, since })
    }

    /// Shows the changes to a person, through the pager that the person has chosen. Returns the exit code of git.
    pub fn show(&self, summary: bool) -> Result<i32> {
        let how = if summary { "--stat" } else { "--patch" };
        self.index.git.show(&self.folder, ["diff", how, &self.since, "--"])
    }

    /// The changes as text, without colours and without the person's own settings.
    pub fn patch(&self) -> Result<String> {
        let how = ["diff", "--patch", "--no-ext-diff", "--no-textconv", "--no-color", &self.since, "--"];
        Ok(String::from_utf8_lossy(&self.index.git.run(&self.folder, how)?).into_owned())
    }

    /// A line for each file that is different, and how much.
    pub fn summary(&self) -> Result<String> {
        let how = ["diff", "--stat=120", "--no-ext-diff", "--no-color", &self.since, "--"];
        Ok(String::from_utf8_lossy(&self.index.git.run(&self.folder, how)?).into_owned())
    }

    /// How many files are different, and how many lines were added and deleted.
    pub fn lines(&self) -> Result<(u64, u64, u64)> {
        let told = self.index.git.run(&self.folder, ["diff", "--numstat", "--no-renames", "-z", &self.since, "--"])?;
        let mut sum = (0, 0, 0);
        for field in fields(&told) {
            let mut parts = field.splitn(3, |&byte| byte == b'\t');
            sum = (sum.0 + 1, sum.1 + number(parts.next()), sum.2 + number(parts.next()));
        }
        Ok(sum)
    }

    /// How many paths are different.
    pub fn count(&self) -> Result<usize> {
        let names = self.index.git.run(&self.folder, ["diff", "--name-only", "-z", &self.since, "--"])?;
        Ok(fields(&names).count())
    }
}

/// The error for a tree whose folder is gone. Only its branch is left.
#[must_use]
pub fn gone(tree: &Worktree) -> GitError {
    GitError::FolderGone { name: tree.name.clone(), path: PathBuf::from(&tree.path), branch: tree.branch.clone() }
}

/// A number of `--numstat`; 0 for a file that is not text.
fn number(field: Option<&[u8]>) -> u64 {
    field.and_then(|digits| std::str::from_utf8(digits).ok()).and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// The commit that a tree is compared with: the commit it was made from, or a later commit of the branch that it came
/// from, if that commit was merged into the tree meanwhile. Otherwise other people's work would be shown as the
/// session's.
fn since(git: &Git, folder: &Path, tree: &Worktree) -> Result<String> {
    let Some(from) = &tree.from else { return Ok(tree.base.clone()) };
    let Some(common) = git.line(folder, ["merge-base", "HEAD", &format!("refs/heads/{from}")])? else {
        return Ok(tree.base.clone());
    };
    let later = git.ask(folder, ["merge-base", "--is-ancestor", &tree.base, &common])?.is_some();
    let head = git.line(folder, ["rev-parse", "HEAD"])?;
    // Work that has landed is still work of the session.
    Ok(if later && head.as_ref() != Some(&common) { common } else { tree.base.clone() })
}

/// How a tree compares with the branch that it came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Standing {
    /// Commits that only the tree has.
    pub ahead: usize,
    /// Commits that only the branch has.
    pub behind: usize,
    /// Files that are different from when the session began.
    pub changed: usize,
}

impl Standing {
    /// `None`: the folder of the tree does not exist any more.
    pub fn of(git: &Git, tree: &Worktree) -> Result<Option<Standing>> {
        let folder = Path::new(&tree.path);
        if !folder.is_dir() {
            return Ok(None);
        }
        let from = tree.from.as_ref().map_or_else(|| tree.base.clone(), |from| format!("refs/heads/{from}"));
        let range = format!("{from}...HEAD");
        let counted = git.line(folder, ["rev-list", "--left-right", "--count", &range, "--"])?;
        let mut counts = counted.iter().flat_map(|line| line.split_whitespace()).map(|word| word.parse().unwrap_or(0));
        let (behind, ahead) = (counts.next().unwrap_or(0), counts.next().unwrap_or(0));
        Ok(Some(Standing { ahead, behind, changed: Changes::of(git, tree)?.count()? }))
    }
}
