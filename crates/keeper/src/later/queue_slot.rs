//! Waiting for a slot of a queue.
//!
//! One poll, without a timeout while all slots are taken. Only the first session of the queue uses a timeout, and only
//! while a slot is free and the machine is too busy for another session: the kernel does not report when memory is free
//! again.

use super::LaterError;
use super::helpers::Helpers;
use ostler_store::queue::{Queue, QueueSettings, Standing};
use ostler_sys::lock::Held;
use ostler_sys::{fifo, machine};
use rustix::event::PollFlags;
use rustix::fd::{AsFd, OwnedFd};
use rustix::time::Timespec;
use std::io;

/// How soon a machine that is too busy is looked at again: the first and the longest pause.
const FIRST_LOOK_S: i64 = 1;
const LONGEST_PAUSE_S: i64 = 15;

/// Waits until it is this session's turn and a slot is free, and takes the slot.
pub(super) fn wait_for(queue: &Queue, entry: &str, lock: &OwnedFd, helpers: &mut Helpers) -> Result<Held, LaterError> {
    let mut pause_s = FIRST_LOOK_S;
    loop {
        // Before the look: anything that happens after it causes another wake-up.
        fifo::drain(lock)?;
        match queue.stand(entry)? {
            Standing::Behind(before) => sleep(helpers, lock, &[before], None)?,
            Standing::First(slots) => sleep(helpers, lock, &slots, None)?,
            Standing::Admitted { slot, order } => {
                if has_room(&queue.settings()) {
                    return Ok(slot);
                }
                // Given back at once, so that a session with a higher priority can take it.
                drop((slot, order));
                sleep(helpers, lock, &[], Some(pause_s))?;
                pause_s = (pause_s * 2).min(LONGEST_PAUSE_S);
            }
        }
    }
}

/// Whether the machine has room for one more session. A value that cannot be read does not prevent a start.
fn has_room(settings: &QueueSettings) -> bool {
    let memory = settings.min_free_memory.is_none_or(|least| machine::free_memory().map_or(true, |free| free >= least));
    memory && settings.max_load.is_none_or(|most| machine::load().map_or(true, |load| load < most))
}

/// Waits until another session enters the queue before this one, one of these is gone, or the time is up.
fn sleep(helpers: &mut Helpers, lock: &OwnedFd, watched: &[OwnedFd], seconds: Option<i64>) -> io::Result<()> {
    let mut fds = vec![(lock.as_fd(), PollFlags::IN)];
    fds.extend(watched.iter().map(|one| (one.as_fd(), PollFlags::empty())));
    helpers.wait(&fds, seconds.map(|tv_sec| Timespec { tv_sec, tv_nsec: 0 }).as_ref())
}
