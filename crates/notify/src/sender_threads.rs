//! The threads of a sender end together. A thread that has nothing to do while another one waits for a server must
//! stay: more may come for its way, and no other process sends on it.

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

/// The state that the threads of the ways share.
pub(crate) struct Shift {
    state: Mutex<ShiftState>,
    /// Readable when the shift is over. Where there is no eventfd, the threads look again after a while.
    over: Option<OwnedFd>,
}

#[derive(Default)]
struct ShiftState {
    /// How many threads look for what waits, or send it.
    busy: usize,
    is_over: bool,
}

impl Shift {
    pub fn new() -> Shift {
        let over = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok();
        Shift { state: Mutex::default(), over }
    }

    pub fn begin_work(&self) {
        self.with(|state| state.busy += 1);
    }

    pub fn end_work(&self) {
        self.with(|state| state.busy -= 1);
    }

    /// Whether a thread that found nothing waiting may end: only when no thread is at work, and then all of them end.
    pub fn ends(&self) -> bool {
        let ends = self.with(|state| {
            state.is_over |= state.busy == 0;
            state.is_over
        });
        if let Some(over) = self.over.as_ref().filter(|_| ends) {
            // A write that fails does no harm: the eventfd is full then, and so readable.
            let _ = rustix::io::write(over, &1u64.to_ne_bytes());
        }
        ends
    }

    pub fn is_over(&self) -> bool {
        self.with(|state| state.is_over)
    }

    /// A descriptor that is readable when the shift is over.
    pub fn over(&self) -> Option<BorrowedFd<'_>> {
        self.over.as_ref().map(AsFd::as_fd)
    }

    fn with<T>(&self, work: impl FnOnce(&mut ShiftState) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
