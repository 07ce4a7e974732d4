//! Deadlines that may be hours away. Nothing wakes a keeper before they are due. Then the kernel does, even if the
//! machine slept or its clock was set in the meantime.

use super::poll::Woken;
use super::{Keeper, KeeperError};
use ostler_core::event::Event;
use ostler_sys::clock;
use ostler_sys::timer::Timer;
use rustix::fd::{AsFd, BorrowedFd};
use std::cell::{Cell, OnceCell};
use std::io;

/// What is due sooner than this is waited for with the timeout of poll(2): a machine that falls asleep in the meantime
/// delays it by no more than this.
const SOON_MS: u64 = 1000;

/// Each timer is made when it is first needed.
#[derive(Default)]
pub(super) struct Timers {
    since_boot: OnceCell<Timer>,
    set_to_ms: Cell<u64>,
    of_day: OnceCell<Timer>,
}

impl Timers {
    /// The timeout until this time; `None`: a timer is set for it, or nothing is due.
    pub fn timeout_ms(&self, due_ms: Option<u64>) -> Option<u64> {
        let wait_ms = due_ms.map(|due_ms| due_ms.saturating_sub(clock::since_boot_ms()));
        match (due_ms, wait_ms) {
            // Without a timer, a timeout that may come late is better than none.
            (Some(due_ms), Some(wait_ms)) if wait_ms > SOON_MS => self.set(due_ms).err().map(|_| wait_ms),
            (_, soon_ms) => {
                self.clear();
                soon_ms
            }
        }
    }

    /// The time that the timer was set for no longer matters. A timer that cannot be cleared causes one unneeded
    /// wake-up.
    fn clear(&self) {
        if let Some(timer) = self.since_boot.get().filter(|_| self.set_to_ms.replace(0) != 0) {
            let _ = timer.clear();
        }
    }

    fn set(&self, due_ms: u64) -> io::Result<()> {
        if self.set_to_ms.get() != due_ms {
            timer(&self.since_boot, Timer::since_boot)?.set(due_ms)?;
            self.set_to_ms.set(due_ms);
        }
        Ok(())
    }

    pub fn watched(&self) -> impl Iterator<Item = (Woken, BorrowedFd<'_>)> {
        let timers = [self.since_boot.get(), self.of_day.get()];
        timers.into_iter().flatten().map(|timer| (Woken::Timer, timer.as_fd()))
    }

    /// One of the timers has fired.
    pub fn take(&self) {
        self.set_to_ms.set(0);
        [self.since_boot.get(), self.of_day.get()].into_iter().flatten().for_each(Timer::take);
    }
}

fn timer(cell: &OnceCell<Timer>, make: fn() -> io::Result<Timer>) -> io::Result<&Timer> {
    match cell.get() {
        Some(timer) => Ok(timer),
        None => {
            let made = make()?;
            Ok(cell.get_or_init(|| made))
        }
    }
}

impl Keeper {
    /// Ends the wait when the wall clock shows this second. True when the wait is over.
    pub(super) fn wait_until(&mut self, second: i64) -> Result<bool, KeeperError> {
        let ahead_ms = second.saturating_mul(1000).saturating_sub(clock::now().as_millisecond());
        let Ok(ahead_ms @ 1..) = u64::try_from(ahead_ms) else {
            return self.end_wait();
        };
        // The kernel's own clock: a test may use another one.
        let kernel_ms = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0);
        timer(&self.timers.of_day, Timer::of_day)?.set(kernel_ms.saturating_add(ahead_ms))?;
        Ok(false)
    }

    /// A pause is a time on the clock that starts at boot. The end of a pause from another boot has no meaning on this
    /// clock, so such a pause is over.
    pub(super) fn end_pause_of_another_boot(&mut self) -> Result<(), KeeperError> {
        let before = self.record.agent.as_ref().is_some_and(|agent| agent.lived_ms().is_none());
        if before && self.state.pauses() {
            self.end_wait()?;
        }
        Ok(())
    }

    pub(super) fn end_wait(&mut self) -> Result<bool, KeeperError> {
        self.note(Event::WaitOver { by: "ostler".to_owned() })?;
        Ok(true)
    }
}
