//! Advice about errors of git, and about worktrees that are not removed.

use super::Code;
use ostler_engine::worktrees::{GitError, Loss};

pub fn advice(error: &GitError) -> (Code, String) {
    match error {
        GitError::NotInstalled => (Code::Usage, "install git".to_owned()),
        GitError::NotARepository { .. } => (Code::Usage, "go to one, or make one: git init".to_owned()),
        GitError::NoCommit { .. } => (Code::Usage, "commit something first".to_owned()),
        GitError::UnknownBase { .. } | GitError::NoBranch { .. } => {
            (Code::Usage, "list branches with: git branch".to_owned())
        }
        GitError::BadName { .. } => (Code::Usage, "use letters, digits, \".\", \"_\" and \"-\"".to_owned()),
        GitError::BranchExists { .. } | GitError::FolderExists { .. } => {
            (Code::Usage, "choose another name, or see ostler worktree ls".to_owned())
        }
        GitError::NoWorktree { .. } => (Code::NoSession, "list them with: ostler worktree ls".to_owned()),
        GitError::FolderGone { branch, .. } => (
            Code::NoSession,
            format!(
                "what was committed is on its branch (git log {branch}); one that was moved: git worktree repair FOLDER"
            ),
        ),
        GitError::NotATree { .. } => (Code::Failed, "move its files away by hand".to_owned()),
        GitError::InProgress { .. } => (Code::Refused, "finish or abort it first".to_owned()),
        GitError::RepositoryInside { .. } => (Code::Refused, "move it away first".to_owned()),
        GitError::InSubmodule { .. } => (Code::Refused, "move it away first".to_owned()),
        GitError::ChangedInSubmodule { path } => (
            Code::Refused,
            format!("commit and push them there, or delete them (git -C '{}' status), then land again", path.display()),
        ),
        GitError::OnlyInSubmodule { path, .. } => (
            Code::Refused,
            format!(
                "push it from there (git -C '{}' push origin HEAD:refs/heads/BRANCH), then land again",
                path.display()
            ),
        ),
        GitError::NoIdentity => (
            Code::Usage,
            "tell it: git config --global user.name \"Your Name\"; git config --global user.email you@example.com"
                .to_owned(),
        ),
        GitError::NotSigned { .. } => (
            Code::Failed,
            "make signing work (git commit -S), or switch it off here: git config commit.gpgSign false".to_owned(),
        ),
        GitError::BranchInTheWay { branch, .. } => (
            Code::Usage,
            format!("rename it (git branch -m {branch} NEW-NAME), or start the session without --worktree"),
        ),
        GitError::OddPath { .. } => (Code::Usage, "use a folder with another name".to_owned()),
        GitError::Hook { .. } => (Code::Failed, "repair the hook, or start the session without --worktree".to_owned()),
        GitError::HalfRemoved { name, .. } => (
            Code::Failed,
            format!("nothing of its work is lost; make them deletable, then again: ostler worktree rm {name}"),
        ),
        GitError::TookTooLong => (Code::Failed, "try again when the disk is less busy".to_owned()),
        GitError::ChangedMeanwhile { .. } => {
            (Code::Failed, "what was done so far can be undone: ostler rewind ID --undo".to_owned())
        }
        GitError::Left { .. } => (Code::Failed, "move it away and try again".to_owned()),
        GitError::Failed { .. } | GitError::Io { .. } => (Code::Failed, String::new()),
    }
}

/// What can be done about a worktree with something that exists nowhere else.
pub fn about_loss(name: &str, loss: &Loss) -> (Code, String) {
    let hint = match loss.has_work() {
        _ if loss.unreadable.is_some() => "first repair what prevents git from reading it".to_owned(),
        true => format!("commit and merge it, or save and remove it: ostler worktree rm --force {name}"),
        false => "end them or let them leave it first".to_owned(),
    };
    (Code::Refused, hint)
}
