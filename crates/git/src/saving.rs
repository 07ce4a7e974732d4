//! Everything that is in a tree, as a commit.

use crate::git::{Git, complaint};
use crate::include;
use crate::index_copy::{ADD_ALL, IndexCopy};
use crate::repository::Repository;
use crate::{GitError, Result};
use std::ffi::OsString;
use std::path::Path;

/// The author of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The person, whom git has to know. The commit may be put on a branch. `signed`: with a signature, where the
    /// person's commits have one.
    Person { signed: bool },
    /// The person where git knows one, otherwise ostler: work is saved in any case.
    Anyone,
}

/// A commit of everything in a folder, except ignored files, on top of the commit that is checked out. When nothing
/// differs, the commit that is checked out. No branch and no index is changed.
pub(crate) fn commit_of_files(git: &Git, folder: &Path, message: &str, by: By) -> Result<String> {
    let head = head_of(git, folder)?;
    let files = tree_of_files(git, folder)?;
    if git.line(folder, ["rev-parse", &format!("{head}^{{tree}}")])?.as_ref() == Some(&files) {
        return Ok(head);
    }
    commit_tree(git, folder, &files, &[&head], message, by)
}

/// Always makes a commit, and adds what is only in the index as a second parent, as `git stash` does.
pub(crate) fn commit_of_files_and_index(git: &Git, folder: &Path, message: &str) -> Result<String> {
    let head = head_of(git, folder)?;
    let files = tree_of_files(git, folder)?;
    // `None` while a merge is unfinished: then the index is not a tree.
    let staged = IndexCopy::of(git, folder)?.git.line(folder, ["write-tree"])?;
    let at_head = git.line(folder, ["rev-parse", &format!("{head}^{{tree}}")])?;
    match staged.filter(|staged| *staged != files && Some(staged) != at_head.as_ref()) {
        Some(staged) => {
            let staged = commit_tree(git, folder, &staged, &[&head], "What was in the index", By::Anyone)?;
            commit_tree(git, folder, &files, &[&head, &staged], message, By::Anyone)
        }
        None => commit_tree(git, folder, &files, &[&head], message, By::Anyone),
    }
}

fn head_of(git: &Git, folder: &Path) -> Result<String> {
    let head = git.line(folder, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])?;
    head.ok_or_else(|| GitError::NoCommit { root: folder.to_owned() })
}

pub(crate) fn tree_of_files(git: &Git, folder: &Path) -> Result<String> {
    let index = IndexCopy::of(git, folder)?;
    let all = include::all_work(git, folder)?;
    index.git.run(folder, ADD_ALL.map(OsString::from).into_iter().chain(all))?;
    Ok(String::from_utf8_lossy(&index.git.run(folder, ["write-tree"])?).trim().to_owned())
}

/// A commit with a tree that is in the repository.
pub(crate) fn commit_tree(
    git: &Git,
    folder: &Path,
    tree: &str,
    parents: &[&str],
    message: &str,
    by: By,
) -> Result<String> {
    let signed = by == By::Person { signed: true } && signs(git, folder)?;
    let git = match by {
        By::Person { .. } => {
            check_identity(git, folder)?;
            git.clone()
        }
        By::Anyone => identified(git, folder)?,
    };
    let mut arguments = vec!["commit-tree"];
    if signed {
        arguments.push("-S");
    }
    arguments.extend([tree, "-m", message]);
    for parent in parents {
        arguments.extend(["-p", parent]);
    }
    let made = git.feed(folder, arguments, b"")?;
    if made.status.success() {
        return Ok(String::from_utf8_lossy(&made.stdout).trim().to_owned());
    }
    Err(match signed {
        true => GitError::NotSigned { words: said(&made.stderr) },
        false => GitError::Failed { what: "commit-tree".to_owned(), words: complaint(&made) },
    })
}

/// The lines that a signing program printed, as one line.
fn said(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines = text.lines().map(|line| line.trim().trim_start_matches("error: "));
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("fatal: "));
    lines.collect::<Vec<_>>().join("; ")
}

/// Whether the person's commits are signed here.
fn signs(git: &Git, folder: &Path) -> Result<bool> {
    Ok(git.line(folder, ["config", "--type=bool", "--get", "commit.gpgSign"])?.is_some_and(|set| set == "true"))
}

impl Repository {
    /// Refuses where git does not know who the person is, because then nothing can land.
    pub fn check_identity(&self) -> Result<()> {
        check_identity(&self.git, &self.root)
    }
}

/// Refuses where git does not know who the person is, as git itself does.
pub(crate) fn check_identity(git: &Git, folder: &Path) -> Result<()> {
    for who in ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"] {
        if git.ask(folder, ["var", who])?.is_none() {
            return Err(GitError::NoIdentity);
        }
    }
    Ok(())
}

/// A git that can commit. A commit needs an author, also where git does not know who the person is.
fn identified(git: &Git, folder: &Path) -> Result<Git> {
    if check_identity(git, folder).is_ok() {
        return Ok(git.clone());
    }
    let names = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"].into_iter().map(|name| (name, "ostler"));
    let addresses = ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].into_iter().map(|name| (name, "ostler@localhost"));
    Ok(names.chain(addresses).fold(git.clone(), |git, (name, value)| git.with(name, value)))
}
