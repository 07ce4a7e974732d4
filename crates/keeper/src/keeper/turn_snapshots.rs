//! Snapshots of the working tree: a process of its own takes one at the start of a run and at the end of each turn.
//!
//! Like a sender ([`super::notifications`]), that process is not a part of the session: the keeper does not wait for it, and
//! it delays no turn, no stop and no outcome. There is one at a time. When turns end faster than snapshots are taken,
//! the newest turn gets one.

use super::Keeper;
use crate::TURN;
use crate::handles::{FOLDER, Handles};
use ostler_core::record::{Plan, Session};
use ostler_store::folder::Folder;
use ostler_sys::pause_points::{self, Point};
use ostler_sys::spawn::{self, Started};
use rustix::fd::{AsFd, OwnedFd};
use std::path::Path;

/// For which moment a snapshot is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    /// Before the first turn of this run, after this many turns of earlier runs.
    Begin(u32),
    /// After this turn.
    End(u32),
}

impl Due {
    /// The arguments of the process.
    fn words(self) -> [String; 2] {
        match self {
            Due::Begin(turn) => ["begin".to_owned(), turn.to_string()],
            Due::End(turn) => ["end".to_owned(), turn.to_string()],
        }
    }
}

pub(super) struct TurnSnapshots {
    /// The session works in a git repository, and the ends of its turns are reported.
    possible: bool,
    due: Option<Due>,
    process: Option<Started>,
}

impl TurnSnapshots {
    pub fn of(session: &Session, plan: &Plan) -> TurnSnapshots {
        let in_tree = || Path::new(&session.cwd).ancestors().any(|folder| folder.join(".git").exists());
        TurnSnapshots { possible: plan.speaks().converses() && in_tree(), due: None, process: None }
    }

    /// What to poll for the end of the process that takes a snapshot.
    pub fn process(&self) -> Option<&OwnedFd> {
        self.process.as_ref().map(|process| &process.pidfd)
    }

    pub fn turn_ended(&mut self, turn: u32) {
        self.due = Some(Due::End(turn));
    }

    pub fn ended(&mut self) {
        if let Some(process) = self.process.take() {
            spawn::collect(process.pid);
        }
    }

    /// `last`: the keeper exits and cannot start it later. The new process then waits for the one that is running.
    fn start_when_due(&mut self, handles: &Handles, folder: &Folder, wanted: fn() -> bool, last: bool) {
        if self.process.is_some() && !last {
            return;
        }
        let Some(due) = self.due.take().filter(|_| self.possible && wanted()) else { return };
        let words = due.words();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        // When no process can be started, the snapshot of the next turn has the changes of this one.
        self.process = handles.start_with_words(TURN, &words, &[(FOLDER, folder.dir().as_fd())]).ok();
        pause_points::at(Point::SnapshotStarted);
    }
}

impl Keeper {
    /// A run has begun, or a predecessor may have been killed between the end of a turn and the start of the process. A
    /// snapshot that exists is not taken again.
    pub(super) fn snapshot_at_takeover(&mut self) {
        let turns = self.state.turns;
        self.turn_snapshots.due = match self.state.run < self.record.run {
            true => Some(Due::Begin(turns)),
            false if turns > 0 && !self.state.turn_running() => Some(Due::End(turns)),
            false => None,
        };
        self.take_turn_snapshot_when_due();
    }

    pub(super) fn take_turn_snapshot_when_due(&mut self) {
        self.turn_snapshots.start_when_due(&self.handles, &self.folder, self.settings.snapshots, self.done);
    }
}
