//! How busy the machine is, and waiting for a time of day.

use jiff::Timestamp;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;

/// How many bytes programs could still get, as the kernel estimates it.
pub fn free_memory() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let number = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    number.map(|kilobytes| kilobytes << 10).ok_or_else(|| io::Error::other("/proc/meminfo cannot be understood"))
}

/// How many processes ran or waited for a processor in the last minute, on average.
pub fn load() -> io::Result<f64> {
    let text = std::fs::read_to_string("/proc/loadavg")?;
    let first = text.split_whitespace().next().and_then(|first| first.parse().ok());
    first.ok_or_else(|| io::Error::other("/proc/loadavg cannot be understood"))
}

/// A descriptor that is readable from this time on, also when the clock is set in between: at once when it is set past
/// that time.
pub fn at_time(at: Timestamp) -> io::Result<OwnedFd> {
    let seconds = at.as_second().max(0);
    let nanos = if at.as_second() < 0 { 1 } else { at.subsec_nanosecond() };
    timer(TimerfdClockId::Realtime, Timespec { tv_sec: seconds, tv_nsec: i64::from(nanos.max(0)) })
}

/// The same this many milliseconds after boot, by a clock that cannot be set and that counts while the machine sleeps.
pub fn at_boot_ms(ms: u64) -> io::Result<OwnedFd> {
    let (seconds, rest) = (ms / 1000, ms % 1000);
    let tv_nsec = i64::try_from(rest).unwrap_or(0) * 1_000_000;
    timer(TimerfdClockId::Boottime, Timespec { tv_sec: i64::try_from(seconds).unwrap_or(i64::MAX), tv_nsec })
}

fn timer(clock: TimerfdClockId, at: Timespec) -> io::Result<OwnedFd> {
    let timer = timerfd_create(clock, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
    // All zero would turn it off.
    let at = if at.tv_sec == 0 && at.tv_nsec == 0 { Timespec { tv_sec: 0, tv_nsec: 1 } } else { at };
    let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: at };
    match timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &once) {
        Ok(_) => Ok(timer),
        Err(Errno::INVAL) => Err(io::Error::other("the time is out of range")),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::clock::since_boot_ms;
    use rustix::fd::AsFd;

    #[test]
    fn a_timer_is_readable_from_its_time_on_and_not_before() {
        let ready = |timer: &OwnedFd| crate::ready::is_readable(timer.as_fd()).unwrap();
        assert!(ready(&at_time(Timestamp::UNIX_EPOCH).unwrap()));
        assert!(ready(&at_time(Timestamp::now()).unwrap()));
        assert!(!ready(&at_time(Timestamp::MAX).unwrap()));
        assert!(ready(&at_boot_ms(0).unwrap()));
        assert!(ready(&at_boot_ms(since_boot_ms()).unwrap()));
        assert!(!ready(&at_boot_ms(since_boot_ms() + 3_600_000).unwrap()));
    }

    #[test]
    fn the_machine_says_how_busy_it_is() {
        assert!(free_memory().unwrap() > 1 << 20);
        assert!(load().unwrap() >= 0.0);
    }
}
