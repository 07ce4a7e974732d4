//! Snapshots of a terminal's screen, at least every MiB of output, so that attaching never replays more. One more is taken
//! when the output pauses: a list draws the screens of many sessions, of which most have nothing to say.
//!
//! Each is taken by a short-lived process of its own. The bytes are untrusted: an emulator that stumbles over them costs
//! one snapshot, not a keeper; and its memory is given back when it is done.

use crate::SNAPSHOT;
use crate::handles::Handles;
use ostler_store::folder::RunFolder;
use ostler_sys::dir::Dir;
use ostler_sys::spawn::{self, Started};
use ostler_view::terminal::{SNAPSHOT_EVERY, snapshot_position, take_snapshot};
use rustix::fd::{AsFd, OwnedFd};
use std::io;

/// Output may run so far ahead of the snapshots before it has to wait for them.
const AHEAD: u64 = 8 * SNAPSHOT_EVERY;

/// When no output has come for so long, a snapshot is taken of this much.
const PAUSE_MS: u64 = 700;
const PAUSE_BYTES: u64 = 8 * 1024;

pub struct Snapshots {
    taken: u64,
    /// How much output there was at the last look, and since when.
    seen: u64,
    seen_ms: u64,
    process: Option<Started>,
    /// One that failed is tried again only after more output.
    not_before: u64,
}

impl Snapshots {
    pub fn new(run: &RunFolder) -> Snapshots {
        let taken = snapshot_position(run.dir()).unwrap_or(0);
        Snapshots { taken, seen: 0, seen_ms: 0, process: None, not_before: 0 }
    }

    /// What to poll for the end of the process that takes one.
    pub fn process(&self) -> Option<&OwnedFd> {
        self.process.as_ref().map(|process| &process.pidfd)
    }

    pub fn process_id(&self) -> Option<i32> {
        self.process.as_ref().map(|process| process.pid)
    }

    /// Takes one when it is due. `position`: the present end of the output. Returns when one will be due if no output comes.
    pub fn take_when_due(&mut self, handles: &Handles, run: &RunFolder, position: u64, now_ms: u64) -> Option<u64> {
        if std::mem::replace(&mut self.seen, position) != position {
            self.seen_ms = now_ms;
        }
        let behind = position.saturating_sub(self.taken.max(self.not_before));
        let pause_over_ms = self.seen_ms + PAUSE_MS;
        let due = behind >= SNAPSHOT_EVERY || behind >= PAUSE_BYTES && now_ms >= pause_over_ms;
        if due && self.process.is_none() {
            let none = Handles::default();
            let handles = if handles.get(crate::handles::BINARY).is_some() { handles } else { &none };
            self.not_before = position;
            // Without a process to be had the next MiB tries again.
            self.process = handles.start_with(SNAPSHOT, "run", run.dir().as_fd()).ok();
        }
        (!due && behind >= PAUSE_BYTES).then_some(pause_over_ms)
    }

    /// The process has ended: how far is the newest snapshot now?
    pub fn taken(&mut self, run: &RunFolder) -> u64 {
        if let Some(process) = self.process.take() {
            spawn::collect(process.pid);
        }
        self.taken = snapshot_position(run.dir()).unwrap_or(self.taken);
        self.taken
    }

    /// Whether output should wait for the snapshots.
    pub fn are_behind(&self, position: u64) -> bool {
        self.process.is_some() && position > self.taken + AHEAD
    }
}

/// The process called `__snapshot`.
#[must_use]
pub fn main(arguments: &[String]) -> i32 {
    let result = Handles::from_arguments(arguments).and_then(|handles| {
        let run = rustix::io::fcntl_dupfd_cloexec(handles.need("run")?, 3)?;
        take_snapshot(&Dir::adopt(run)).map_err(io::Error::other)
    });
    i32::from(result.is_err())
}
