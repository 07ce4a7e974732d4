//! Snapshots of a terminal's screen, at least every MiB of output, so that attaching never replays more. One more is
//! taken when the output pauses: a list draws the screens of many sessions, and most of these sessions have no new
//! output.
//!
//! Each is taken by a short-lived process of its own. The bytes are untrusted: an emulator that fails on them costs one
//! snapshot, not a keeper. And its memory is freed when it is done.

use crate::SNAPSHOT;
use crate::handles::Handles;
use ostler_store::folder::RunFolder;
use ostler_sys::dir::Dir;
use ostler_sys::spawn::{self, Started};
use ostler_view::terminal::{SNAPSHOT_EVERY, snapshot_position, take_snapshot};
use rustix::fd::{AsFd, OwnedFd};
use std::io;

/// How far output may run ahead of the snapshots before it has to wait for them.
const AHEAD: u64 = 8 * SNAPSHOT_EVERY;

/// When no output has come for this long, a snapshot is taken if there is at least this much new output.
const PAUSE_MS: u64 = 700;
const PAUSE_BYTES: u64 = 8 * 1024;

#[derive(Default)]
pub struct Snapshots {
    taken: u64,
    /// How much output there was at the last look, and since when.
    seen: u64,
    seen_ms: u64,
    process: Option<Started>,
    /// After a failure the next snapshot is tried only when there is more output.
    not_before: u64,
}

/// When the next snapshot is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Now,
    /// At this time, if no output comes.
    At(u64),
    /// When there is more output.
    Later,
}

impl Snapshots {
    pub fn new(run: &RunFolder) -> Snapshots {
        let taken = snapshot_position(run.dir()).unwrap_or(0);
        Snapshots { taken, ..Snapshots::default() }
    }

    /// What to poll for the end of the process that takes a snapshot.
    pub fn process(&self) -> Option<&OwnedFd> {
        self.process.as_ref().map(|process| &process.pidfd)
    }

    pub fn process_id(&self) -> Option<i32> {
        self.process.as_ref().map(|process| process.pid)
    }

    /// Takes a snapshot when it is due. `position`: the present end of the output. Returns when one will be due if no
    /// output comes.
    pub fn take_when_due(&mut self, handles: &Handles, run: &RunFolder, position: u64, now_ms: u64) -> Option<u64> {
        let due = self.due(position, now_ms);
        if due == Due::Now && self.process.is_none() {
            let none = Handles::default();
            let handles = if handles.get(crate::handles::BINARY).is_some() { handles } else { &none };
            self.not_before = position;
            // When no process can be started, the next MiB tries again.
            self.process = handles.start_with(SNAPSHOT, "run", run.dir().as_fd()).ok();
        }
        match due {
            Due::At(ms) => Some(ms),
            Due::Now | Due::Later => None,
        }
    }

    fn due(&mut self, position: u64, now_ms: u64) -> Due {
        if std::mem::replace(&mut self.seen, position) != position {
            self.seen_ms = now_ms;
        }
        let behind = position.saturating_sub(self.taken.max(self.not_before));
        let pause_over_ms = self.seen_ms + PAUSE_MS;
        if behind >= SNAPSHOT_EVERY || behind >= PAUSE_BYTES && now_ms >= pause_over_ms {
            Due::Now
        } else if behind >= PAUSE_BYTES {
            Due::At(pause_over_ms)
        } else {
            Due::Later
        }
    }

    /// The process has ended. Returns the position of the newest snapshot.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_taken_after_much_output_or_when_some_has_paused() {
        let mut snapshots = Snapshots::default();
        assert_eq!(snapshots.due(100, 1000), Due::Later);
        assert_eq!(snapshots.due(PAUSE_BYTES, 2000), Due::At(2000 + PAUSE_MS));
        assert_eq!(snapshots.due(PAUSE_BYTES + 1, 2100), Due::At(2100 + PAUSE_MS));
        assert_eq!(snapshots.due(PAUSE_BYTES + 1, 2100 + PAUSE_MS), Due::Now);
        assert_eq!(snapshots.due(SNAPSHOT_EVERY, 5000), Due::Now);
        // After a failure it is not tried again before there is more.
        snapshots.not_before = SNAPSHOT_EVERY;
        assert_eq!(snapshots.due(SNAPSHOT_EVERY, 9000), Due::Later);
        assert_eq!(snapshots.due(2 * SNAPSHOT_EVERY, 9000), Due::Now);
    }
}
