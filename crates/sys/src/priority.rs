//! Low priority for background work.

#![expect(unsafe_code, reason = "two system calls that rustix leaves out; each block says why it is sound")]

use rustix::process::nice;
use std::time::Duration;

/// From here on this process and its children get the processor and the disk only when they are idle. Not every system
/// allows both, and neither is required.
pub fn be_last() {
    let _ = nice(19);
    /// `IOPRIO_WHO_PROCESS`, this process, class 3: idle.
    const PROCESS: libc::c_int = 1;
    const IDLE: libc::c_int = 3 << 13;
    // SAFETY: takes three numbers and touches no memory of ours.
    let _ = unsafe { libc::syscall(libc::SYS_ioprio_set, PROCESS, 0, IDLE) };
}

/// Processor time of this process, and of its children that have ended and were collected.
#[must_use]
pub fn processor_time() -> Duration {
    let of = |who: libc::c_int| {
        // SAFETY: all bytes zero is a value of this type, which has only numbers; the call writes to it and nowhere
        // else.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        if unsafe { libc::getrusage(who, &raw mut usage) } != 0 {
            return Duration::ZERO;
        }
        let time = |time: libc::timeval| {
            let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
            Duration::from_secs(seconds) + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
        };
        time(usage.ru_utime) + time(usage.ru_stime)
    };
    of(libc::RUSAGE_SELF) + of(libc::RUSAGE_CHILDREN)
}
