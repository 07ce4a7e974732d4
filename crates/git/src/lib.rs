//! Git, through the git program: with an environment of our own, without prompts, with output for machines, never
//! through a shell.
//!
//! * `git`: how the program is run.
//! * `repository`: which repository a folder belongs to.
//! * `worktree`: a tree of its own for a session: made, listed.
//! * `making`: a process that is killed while it makes a tree leaves nothing that stays.
//! * `include`: ignored files that a new tree needs too.
//! * `index_copy`: everything that is in a tree, without changing its index.
//! * `loss`: what would be lost with a tree.
//! * `removal`: a tree is removed, and nothing that was in it is lost.
//! * `saving`: everything that is in a tree, as a commit.
//! * `submodules`: which of their commits exist nowhere else.
//! * `landing`: work is put on a branch.
//! * `publishing`: a branch moves together with the files where it is checked out, or not at all.
//! * `changes`: what was changed in a tree.
//! * `state`: a tree in words, and whether it has changed.
//! * `turns`: a tree as it was at the end of each turn.

pub mod changes;
pub mod git;
mod include;
mod index_copy;
pub mod landing;
pub mod loss;
mod making;
mod publishing;
pub mod removal;
pub mod repository;
pub mod saving;
pub mod state;
mod submodules;
pub mod turns;
pub mod worktree;

use std::io;
use std::path::PathBuf;

/// Why something cannot be done with git.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("git is not installed")]
    NotInstalled,
    #[error("{} is not in a git repository", .folder.display())]
    NotARepository { folder: PathBuf },
    #[error("the repository {} has no commit yet", .root.display())]
    NoCommit { root: PathBuf },
    #[error("{base} is not a commit of this repository")]
    UnknownBase { base: String },
    #[error("there is no branch {branch:?}")]
    NoBranch { branch: String },
    #[error("{name:?} cannot be the name of a worktree")]
    BadName { name: String },
    #[error("the branch {branch} exists already")]
    BranchExists { branch: String },
    #[error("{} exists already", .path.display())]
    FolderExists { path: PathBuf },
    #[error("there is no worktree {name}")]
    NoWorktree { name: String },
    /// The folder was deleted or moved.
    #[error("the worktree {name} has no folder any more ({})", .path.display())]
    FolderGone { name: String, path: PathBuf, branch: String },
    /// The folder exists, and git no longer knows it.
    #[error("{} is no longer a worktree: its .git file is missing or damaged", .path.display())]
    NotATree { path: PathBuf },
    /// An operation of git is unfinished there.
    #[error("{what} is in progress in {}", .path.display())]
    InProgress { what: &'static str, path: PathBuf },
    /// The files of that repository cannot be saved or landed with the tree.
    #[error("{} is a repository of its own inside the worktree", .path.display())]
    RepositoryInside { path: PathBuf },
    /// Git does not look into such a folder, so its files are part of no commit.
    #[error("{} is in the folder of a submodule that is not checked out", .path.display())]
    InSubmodule { path: PathBuf },
    /// A commit of the tree has only the name of the submodule's commit.
    #[error("the submodule {} has uncommitted changes, which would not land", .path.display())]
    ChangedInSubmodule { path: PathBuf },
    /// The commit that lands would name a commit that cannot be found.
    #[error("{} is at commit {}, which exists nowhere but in that worktree", .path.display(), short(.commit))]
    OnlyInSubmodule { path: PathBuf, commit: String },
    /// Git does not know who the person is.
    #[error("git does not know your name and e-mail address, which a commit needs")]
    NoIdentity,
    /// The person's commits are signed, and signing failed.
    #[error("the commit cannot be signed ({words}); nothing has landed")]
    NotSigned { words: String },
    /// Git cannot have branches of both names.
    #[error("there is a branch {branch}, so git cannot make the branch {wanted}")]
    BranchInTheWay { branch: String, wanted: String },
    /// The path of a repository that git cannot print unambiguously.
    #[error("the path {} cannot be used", .path.display())]
    OddPath { path: PathBuf },
    /// The hook that runs after a tree is made.
    #[error("the post-checkout hook of the repository failed: {words}")]
    Hook { words: String },
    /// Git no longer knows the tree, and some of its files still exist.
    #[error("not all files of the worktree {name} can be deleted: {words}")]
    HalfRemoved { name: String, words: String },
    /// A command of git failed, in its words.
    #[error("git {what} failed: {words}")]
    Failed { what: String, words: String },
    /// A snapshot may take only a limited time.
    #[error("it took too long")]
    TookTooLong,
    /// A file differs from the snapshot that was taken a moment before.
    #[error("{} was changed meanwhile", .path.display())]
    ChangedMeanwhile { path: PathBuf },
    /// A rewind that was killed has left a file that is in no snapshot.
    #[error("{} is in no snapshot", .path.display())]
    Left { path: PathBuf },
    #[error("{}: {error}", .path.display())]
    Io { path: PathBuf, error: io::Error },
}

/// The first seven characters, as git shows commits to people.
fn short(commit: &str) -> &str {
    commit.get(..7).unwrap_or(commit)
}

impl GitError {
    fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> GitError {
        let path = path.into();
        move |error| GitError::Io { path, error }
    }
}

pub type Result<T> = std::result::Result<T, GitError>;
