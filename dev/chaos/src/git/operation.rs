//! The operations with git during which faults are injected.

/// An operation of ostler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// A session begins in a tree of its own.
    Worktree,
    /// A copy of a conversation begins in a tree of its own.
    Fork,
    Land,
    LandChecked,
    LandMerged,
    LandRebased,
    /// A tree is removed in which nothing was done.
    Remove,
    /// A tree is removed whose work is saved first.
    RemoveByForce,
    Collect,
    /// A turn ends, and a snapshot of its tree is taken.
    Snapshot,
    /// Files are rewound to the end of a turn.
    Rewind,
    /// The rewind is undone.
    Undo,
}

impl Operation {
    pub const ALL: [Operation; 12] = [
        Operation::Worktree,
        Operation::Fork,
        Operation::Land,
        Operation::LandChecked,
        Operation::LandMerged,
        Operation::LandRebased,
        Operation::Remove,
        Operation::RemoveByForce,
        Operation::Collect,
        Operation::Snapshot,
        Operation::Rewind,
        Operation::Undo,
    ];

    /// The operations on snapshots of turns.
    pub const OF_TURNS: [Operation; 3] = [Operation::Snapshot, Operation::Rewind, Operation::Undo];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Operation::Worktree => "run -w",
            Operation::Fork => "fork -w",
            Operation::Land => "land",
            Operation::LandChecked => "land --check",
            Operation::LandMerged => "land --merge",
            Operation::LandRebased => "land --rebase",
            Operation::Remove => "worktree rm",
            Operation::RemoveByForce => "worktree rm --force",
            Operation::Collect => "worktree gc",
            Operation::Snapshot => "turn snapshot",
            Operation::Rewind => "rewind --files",
            Operation::Undo => "rewind --undo",
        }
    }

    /// Whether the branch of the person may move.
    #[must_use]
    pub fn lands(self) -> bool {
        match self {
            Operation::Land | Operation::LandChecked | Operation::LandMerged | Operation::LandRebased => true,
            Operation::Worktree
            | Operation::Fork
            | Operation::Remove
            | Operation::RemoveByForce
            | Operation::Collect
            | Operation::Snapshot
            | Operation::Rewind
            | Operation::Undo => false,
        }
    }

    /// Whether it starts a session, which has a keeper and a holder.
    #[must_use]
    pub fn starts_a_session(self) -> bool {
        matches!(self, Operation::Worktree | Operation::Fork | Operation::LandChecked | Operation::Snapshot)
    }

    /// Whether it is an operation on snapshots of turns.
    #[must_use]
    pub fn is_of_turns(self) -> bool {
        Operation::OF_TURNS.contains(&self)
    }

    /// Words of the commands that change something.
    #[must_use]
    pub fn delicate(self) -> &'static [&'static str] {
        match self {
            Operation::Worktree | Operation::Fork => &["add"],
            Operation::Land | Operation::LandChecked | Operation::LandMerged | Operation::LandRebased => {
                &["--ff-only", "--ff-only", "--ff-only", "update-ref", "read-tree", "remove", "commit-tree"]
            }
            Operation::Remove | Operation::Collect => &["remove", "unlock", "update-ref"],
            Operation::RemoveByForce => &["remove", "update-ref", "commit-tree"],
            Operation::Snapshot | Operation::Rewind | Operation::Undo => {
                &["fast-import", "fast-import", "check-ignore", "update-ref"]
            }
        }
    }

    /// It has at least this many git processes, one of which may be killed.
    #[must_use]
    pub fn gits(self) -> usize {
        match self {
            Operation::Worktree | Operation::Fork => 14,
            Operation::Land | Operation::LandChecked | Operation::LandMerged | Operation::LandRebased => 48,
            Operation::Remove | Operation::RemoveByForce => 24,
            Operation::Collect => 30,
            Operation::Snapshot => 16,
            Operation::Rewind | Operation::Undo => 12,
        }
    }

    /// The command line, for a tree with the name `name`. No tree has the name `new`.
    #[must_use]
    pub fn words(self, name: &str, new: &str) -> Vec<String> {
        let fork = format!("--worktree={new}");
        let third = super::turns::turn(name, 3);
        let words: Vec<&str> = match self {
            Operation::Worktree => vec!["run", "-w", new, "--", "sh", "-c", "echo $$ > scratch.tmp; sleep 0.2"],
            Operation::Fork => vec!["fork", &fork, "conversation", "say more"],
            Operation::Land => vec!["land", name],
            Operation::LandChecked => vec!["land", name, "--check", "sleep 0.3; test -e a.txt"],
            Operation::LandMerged => vec!["land", name, "--merge"],
            Operation::LandRebased => vec!["land", name, "--rebase"],
            Operation::Remove => vec!["worktree", "rm", name],
            Operation::RemoveByForce => vec!["worktree", "rm", "--force", name],
            Operation::Collect => vec!["worktree", "gc"],
            Operation::Snapshot => vec!["resume", name, &third],
            Operation::Rewind => vec!["rewind", name, "--turn", "1", "--files"],
            Operation::Undo => vec!["rewind", name, "--undo"],
        };
        words.into_iter().map(str::to_owned).collect()
    }
}
