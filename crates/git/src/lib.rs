//! Git, through the git program: with an environment of our own, without prompts, with output for machines, never through a
//! shell.
//!
//! * `git`: how the program is run.
//! * `repository`: which repository a folder belongs to.
//! * `worktree`: a tree of its own for a session: made, listed.
//! * `making`: one that was killed while a tree was made leaves nothing for good.
//! * `include`: ignored files that a new tree needs too.
//! * `index_copy`: everything that is in a tree, without a change of its index.
//! * `loss`: what would be lost with a tree.
//! * `removal`: a tree goes, and nothing that was in it is lost.
//! * `saving`: everything that is in a tree, as a commit.
//! * `submodules`: what of them is nowhere else.
//! * `landing`: work comes to a branch.
//! * `publishing`: a branch moves where it is checked out, or not at all.
//! * `changes`: what was changed in a tree.
//! * `state`: a tree in words, and whether it is still the same.
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
    /// Somebody has deleted or moved it.
    #[error("the worktree {name} has no folder any more ({})", .path.display())]
    FolderGone { name: String, path: PathBuf, branch: String },
    /// The folder is there, and git no longer knows it.
    #[error("{} is no longer a worktree: its .git file is missing or damaged", .path.display())]
    NotATree { path: PathBuf },
    /// Something is unfinished there.
    #[error("{what} is in progress in {}", .path.display())]
    InProgress { what: &'static str, path: PathBuf },
    /// What is in them cannot be saved or landed with the tree.
    #[error("{} is a repository of its own inside the worktree", .path.display())]
    RepositoryInside { path: PathBuf },
    /// Git does not look into such a folder: what is there is saved with nothing.
    #[error("{} is in the folder of a submodule that is not checked out", .path.display())]
    InSubmodule { path: PathBuf },
    /// A commit of the tree has the name of a commit there, and nothing else.
    #[error("the submodule {} has uncommitted changes, which would not land", .path.display())]
    ChangedInSubmodule { path: PathBuf },
    /// What would land of it is a name that leads nowhere.
    #[error("{} is at commit {}, which exists nowhere but in that worktree", .path.display(), short(.commit))]
    OnlyInSubmodule { path: PathBuf, commit: String },
    /// Git does not know who the person is.
    #[error("git does not know your name and e-mail address, which a commit needs")]
    NoIdentity,
    /// The person's commits are signed.
    #[error("the commit cannot be signed ({words}); nothing has landed")]
    NotSigned { words: String },
    /// Git cannot have both names.
    #[error("there is a branch {branch}, so git cannot make the branch {wanted}")]
    BranchInTheWay { branch: String, wanted: String },
    /// The path of a repository that git cannot tell us unambiguously.
    #[error("the path {} cannot be used", .path.display())]
    OddPath { path: PathBuf },
    /// The hook that runs when a tree is made.
    #[error("the post-checkout hook of the repository failed: {words}")]
    Hook { words: String },
    /// Git has forgotten the tree, and files of it are still there.
    #[error("not all files of the worktree {name} can be deleted: {words}")]
    HalfRemoved { name: String, words: String },
    /// A command of git failed, in its words.
    #[error("git {what} failed: {words}")]
    Failed { what: String, words: String },
    /// A snapshot may take only so long.
    #[error("it took too long")]
    TookTooLong,
    /// A file is not what the snapshot of a moment before has.
    #[error("{} was changed meanwhile", .path.display())]
    ChangedMeanwhile { path: PathBuf },
    /// Something that is in no snapshot was left by one that was killed.
    #[error("{} is in no snapshot", .path.display())]
    Left { path: PathBuf },
    #[error("{}: {error}", .path.display())]
    Io { path: PathBuf, error: io::Error },
}

/// As long as a person needs it.
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
