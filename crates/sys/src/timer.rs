//! A wake-up at a time that may be far away, without looking at a clock in between.
//!
//! The timeout of poll(2) counts on a clock that stops while the machine sleeps, and does not notice when a clock is
//! set. A timer of the kernel does: [`Timer::since_boot`] counts sleep and fires as soon as the machine is awake again
//! (it does not wake the machine). [`Timer::of_day`] follows the wall clock and also fires when that clock is set, so
//! that its owner looks again.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;

/// The value that turns a timer off.
const NEVER: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// A timer that can be polled.
#[derive(Debug)]
pub struct Timer {
    handle: OwnedFd,
    flags: TimerfdTimerFlags,
}

impl Timer {
    /// Counts from boot, sleep included.
    pub fn since_boot() -> io::Result<Timer> {
        Timer::on(TimerfdClockId::Boottime, TimerfdTimerFlags::ABSTIME)
    }

    /// Follows the wall clock, and fires when that clock is set.
    pub fn of_day() -> io::Result<Timer> {
        Timer::on(TimerfdClockId::Realtime, TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET)
    }

    fn on(clock: TimerfdClockId, flags: TimerfdTimerFlags) -> io::Result<Timer> {
        let handle = timerfd_create(clock, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        Ok(Timer { handle, flags })
    }

    /// Fires when its clock shows this many milliseconds.
    pub fn set(&self, ms: u64) -> io::Result<()> {
        let value = Timespec {
            tv_sec: i64::try_from(ms / 1000).unwrap_or(i64::MAX),
            // A timer of zero never fires.
            tv_nsec: i64::try_from(ms % 1000).unwrap_or(0) * 1_000_000 + i64::from(ms == 0),
        };
        self.fires_at(value)
    }

    /// Turns the timer off.
    pub fn clear(&self) -> io::Result<()> {
        self.fires_at(NEVER)
    }

    fn fires_at(&self, value: Timespec) -> io::Result<()> {
        timerfd_settime(&self.handle, self.flags, &Itimerspec { it_interval: NEVER, it_value: value })?;
        Ok(())
    }

    /// Clears the state that the timer has fired, or that the clock was set, if there is any.
    pub fn take(&self) {
        let mut count = [0; 8];
        // Nothing to read, or a clock that was set (ECANCELED): both are fine.
        let _ = rustix::io::read(&self.handle, &mut count);
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::clock::since_boot_ms;
    use rustix::event::{PollFd, PollFlags, poll};

    fn fires(timer: &Timer, within_ms: i64) -> bool {
        let limit = Timespec { tv_sec: within_ms / 1000, tv_nsec: within_ms % 1000 * 1_000_000 };
        poll(&mut [PollFd::new(timer, PollFlags::IN)], Some(&limit)).unwrap() == 1
    }

    #[test]
    fn timers_fire_at_their_time_and_once() {
        let timer = Timer::since_boot().unwrap();
        assert!(!fires(&timer, 0));
        let due = since_boot_ms() + 30;
        timer.set(due).unwrap();
        assert!(fires(&timer, 10_000) && since_boot_ms() >= due);
        timer.take();
        assert!(!fires(&timer, 0));
        timer.set(0).unwrap();
        assert!(fires(&timer, 10_000), "what is past is due");
        let of_day = Timer::of_day().unwrap();
        let now = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap();
        of_day.set(now + 3_600_000).unwrap();
        assert!(!fires(&of_day, 0));
        of_day.set(now + 20).unwrap();
        assert!(fires(&of_day, 10_000));
    }
}
