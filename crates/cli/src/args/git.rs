//! Arguments of git: trees, turns and landing.

use clap::{Args, Subcommand};

/// A tree of its own for a conversation that exists already.
#[derive(Args)]
pub struct WorktreeArgs {
    /// Continue in a new git worktree, .worktrees/NAME on the new branch ostler/NAME (default: the session's name or id)
    #[arg(short = 'w', long, value_name = "NAME", num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "not asked for, asked for, and asked for with a name")]
    pub worktree: Option<Option<String>>,
    /// The commit or branch that the worktree begins with (default: what is in the session's folder)
    #[arg(long, value_name = "REF", requires = "worktree")]
    pub base: Option<String>,
}

#[derive(Args)]
#[command(
    after_help = "It is shown as git shows it: with your colours and your pager. Without --turn: everything since the session began, \
                  from its base commit until now. Of a session without a worktree of its own: from its first snapshot, until the end of its \
                  last turn when it has ended."
)]
pub struct Diff {
    /// Session id or name, the unique beginning of one, or @last
    pub id: String,
    /// Only what this turn changed
    #[arg(long, value_name = "N")]
    pub turn: Option<u32>,
    /// Only the names of the files, and how many lines
    #[arg(long)]
    pub stat: bool,
}

#[derive(Args)]
#[command(
    after_help = "Uncommitted changes are committed on the session's branch first. The result is built and checked in a temporary worktree; \
                  the branch moves only when the check has passed, and only from where it was. Several at once wait for each \
                  other, and each is built on top of the one before. The commits are yours, with your signature where git is set to sign \
                  (commit.gpgSign). Your hooks do not run: what they check, --check can do.\n\n\
                  Exit codes: 0 landed, or nothing to land; 1 conflict, failed check, or local changes in the way: nothing has \
                  changed; 2 git does not know your name; 7 the session is still working, or a submodule is at a commit that is nowhere else."
)]
pub struct Land {
    /// Session id or name, the unique beginning of one, or @last
    pub id: String,
    /// The branch (default: the one that its worktree was made from)
    #[arg(long, value_name = "BRANCH")]
    pub into: Option<String>,
    /// As one commit (the default)
    #[arg(long, conflicts_with_all = ["merge", "rebase"])]
    pub squash: bool,
    /// As a merge
    #[arg(long, conflicts_with = "rebase")]
    pub merge: bool,
    /// Its commits one by one on top of the branch
    #[arg(long)]
    pub rebase: bool,
    /// A shell command that must succeed in a worktree with the result
    #[arg(long, value_name = "CMD")]
    pub check: Option<String>,
    /// The message of the commit (default: the first line of its prompt)
    #[arg(short, long, value_name = "TEXT")]
    pub message: Option<String>,
    /// Do not name the session in the commits (Ostler-Session: ID)
    #[arg(long)]
    pub no_trailers: bool,
    /// Only say what would happen; nothing is checked and nothing changes
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Args)]
#[command(
    after_help = "The present files are saved first, so that --undo brings them back. Ignored files and what is staged stay as they are, and \
                  so does the session: the copy of its conversation is a session of its own, which starts when it is resumed. \
                  Turn 0 is the start of the session.\n\n\
                  Exit codes: 0 done; 1 a file changed meanwhile, or ignored files are in the way; 2 no such turn, no snapshot of it, or an \
                  agent whose conversation cannot be copied; 7 the session is still working, or a merge is in progress."
)]
pub struct Rewind {
    /// Session id or name, the unique beginning of one, or @last
    pub id: String,
    /// The turn at whose end to go back to
    #[arg(long, value_name = "N", required_unless_present = "undo", conflicts_with = "undo")]
    pub turn: Option<u32>,
    /// Only the files
    #[arg(long, conflicts_with = "conversation")]
    pub files: bool,
    /// Only a copy of the conversation
    #[arg(long, conflicts_with = "undo")]
    pub conversation: bool,
    /// Bring the files back that were there before the last rewind
    #[arg(long)]
    pub undo: bool,
}

#[derive(Args)]
#[command(
    after_help = "The check runs in a folder with the files as they were after a turn (without ignored files), outside your tree, as a session \
                  of its own. Of 30 turns at most 6 are checked.\n\n\
                  Exit codes: 0 found; 1 the check fails at the start already, or succeeds after the last turn; 2 no snapshots; \
                  6 the check was stopped."
)]
pub struct Bisect {
    /// Session id or name, the unique beginning of one, or @last
    pub id: String,
    /// A shell command that succeeds when all is well
    #[arg(long, value_name = "CMD")]
    pub check: String,
}

#[derive(Args)]
pub struct Worktree {
    #[command(subcommand)]
    pub action: WorktreeAction,
}

#[derive(Subcommand)]
pub enum WorktreeAction {
    /// List the worktrees of this repository, with their sessions and what is only there
    Ls {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Remove a worktree and its branch; refused when work would be lost. Ignored files go with it
    Rm {
        /// Its name, as worktree ls shows it
        name: String,
        /// Also with uncommitted changes and commits that are on no other branch: they are saved under refs/ostler/saved first
        #[arg(long)]
        force: bool,
    },
    /// Remove all worktrees whose sessions have ended and in which no work would be lost. Ignored files go with them
    Gc {
        /// Only print what would be done
        #[arg(long)]
        dry_run: bool,
    },
}
