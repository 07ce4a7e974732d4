//! The identity of a process, whether it lives, and the only way to signal it.
//!
//! The race this solves: between noting a pid and using it the process may end and the number may be reused for a
//! foreign process (`pid_max` is often 32768). So a record has the start time and the boot, and a signal is sent
//! through a pidfd that was opened *before* the start time was compared: from then on the descriptor can only mean that
//! process.

use crate::clock::since_boot_ms;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::OnceLock;

/// On every machine the kernel reports start times to programs in hundredths of a second.
pub const TICK_MS: u64 = 10;

/// One process, unique for all time: pid, start time in clock ticks since boot, boot id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Identity {
    pid: i32,
    start: u64,
    boot: String,
}

/// The contents of a record, before they are checked.
#[derive(Deserialize)]
struct Unchecked {
    pid: i64,
    start: u64,
    boot: String,
}

impl TryFrom<Unchecked> for Identity {
    type Error = String;

    /// A record that names pid 0, 1 or a negative number is damaged: `kill` would read such a number as "every
    /// process".
    fn try_from(raw: Unchecked) -> Result<Self, String> {
        match i32::try_from(raw.pid) {
            Ok(pid) if pid > 1 => Ok(Identity { pid, start: raw.start, boot: raw.boot }),
            _ => Err(format!("{} is not a process we could have started", raw.pid)),
        }
    }
}

/// The state of a process at the moment of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    Alive,
    /// Alive, but stopped: it does nothing until it is continued.
    Stopped,
    Gone,
}

/// A process that was looked at, and its parent at that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub life: Life,
    /// 0 when the process is gone.
    pub parent: i32,
}

impl Seen {
    pub const GONE: Seen = Seen { life: Life::Gone, parent: 0 };
}

impl Identity {
    /// The process that has this pid now; `None` when there is none.
    pub fn of(pid: i32) -> io::Result<Option<Identity>> {
        if pid <= 1 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{pid} is not a process of ours")));
        }
        Ok(Stat::read(pid)?.map(|stat| Identity { pid, start: stat.start, boot: boot_id().to_owned() }))
    }

    /// The process that had this pid and start time since the machine was booted; `None` for a pid that cannot be a
    /// process of ours.
    #[must_use]
    pub fn of_this_boot(pid: i32, start: u64) -> Option<Identity> {
        (pid > 1).then(|| Identity { pid, start, boot: boot_id().to_owned() })
    }

    /// This very process.
    pub fn me() -> io::Result<Identity> {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        Identity::of(pid)?.ok_or_else(|| io::Error::other("/proc does not show this process"))
    }

    /// A process that is gone, whatever runs now.
    #[must_use]
    pub fn of_no_boot(self) -> Identity {
        Identity { boot: String::new(), ..self }
    }

    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    #[must_use]
    pub fn start(&self) -> u64 {
        self.start
    }

    /// How long ago the process started; `None` if it started in another boot.
    #[must_use]
    pub fn lived_ms(&self) -> Option<u64> {
        (self.boot == boot_id()).then(|| since_boot_ms().saturating_sub(self.start.saturating_mul(TICK_MS)))
    }

    /// Whether a process whose serial number is known lives now: the same answer in a third of the time.
    pub fn lives_as(&self, serial: Serial) -> io::Result<bool> {
        if self.boot != boot_id() {
            return Ok(false);
        }
        let Some(fd) = open_pidfd(self.pid)? else {
            return Ok(false);
        };
        match Serial::of(&fd)? {
            Some(found) => Ok(found == serial && !Pidfd { fd, pid: self.pid }.has_exited()?),
            // The process that noted the number could read it, but this process cannot.
            None => Ok(self.look()? != Life::Gone),
        }
    }

    /// Whether the process lives now. A process that has exited but was not yet collected is gone; a process of which
    /// only the first thread has ended is not.
    pub fn look(&self) -> io::Result<Life> {
        Ok(self.see()?.life)
    }

    /// The same, and its parent: one look at the kernel gives both.
    pub fn see(&self) -> io::Result<Seen> {
        if self.boot != boot_id() {
            return Ok(Seen::GONE);
        }
        let Some(stat) = Stat::read(self.pid)?.filter(|stat| stat.start == self.start) else {
            return Ok(Seen::GONE);
        };
        let life = match stat.state {
            b'T' | b't' => Life::Stopped,
            _ if !stat.is_zombie() => Life::Alive,
            _ => match Pidfd::open(self)? {
                Some(pidfd) if !pidfd.has_exited()? => Life::Alive,
                Some(_) | None => return Ok(Seen::GONE),
            },
        };
        Ok(Seen { life, parent: stat.parent })
    }

    /// How much the process has run, if it sleeps now and is a child of `parent`.
    #[must_use]
    pub fn at_rest(&self, parent: i32) -> Option<Ran> {
        let ran = Ran::of(self.pid)?;
        let stat = Stat::read(self.pid).ok()??;
        let rests = stat.state == b'S' && stat.threads == 1 && stat.parent == parent;
        let same = stat.start == self.start && self.boot == boot_id();
        (rests && same && Ran::of(self.pid) == Some(ran)).then_some(ran)
    }

    /// The process that has this pid, held by a pidfd, if it has run this much and no more. `None` also if the kernel
    /// does not count.
    pub fn hold_at_rest(pid: i32, ran: Ran) -> io::Result<Option<Pidfd>> {
        let held = open_pidfd(pid)?.map(|fd| Pidfd { fd, pid });
        // Compared after it was opened: so the opened process is the one that was compared.
        Ok(held.filter(|_| Ran::of(pid) == Some(ran)))
    }

    /// [`Identity::look`] for callers for which "could not look" must count as alive.
    #[must_use]
    pub fn may_live(&self) -> bool {
        !matches!(self.look(), Ok(Life::Gone))
    }

    /// Whether the kernel is ending the process already: it was killed and takes a moment to be gone, longer the more
    /// memory it has.
    pub fn is_ending(&self) -> io::Result<bool> {
        /// "The process is exiting", one of the flags in its stat.
        const EXITING: u64 = 0x4;
        let Some(stat) = Stat::read(self.pid)?.filter(|stat| stat.start == self.start && self.boot == boot_id()) else {
            return Ok(false);
        };
        let killed = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).is_ok_and(|text| kill_waits(&text));
        Ok(killed || stat.flags & EXITING != 0 || matches!(stat.state, b'Z' | b'X'))
    }
}

/// Whether SIGKILL was sent to a process and is still pending, by its `/proc/<pid>/status`.
fn kill_waits(status: &str) -> bool {
    const KILL: u64 = 1 << 8;
    let pending = |line: &str| line.strip_prefix("SigPnd:").or_else(|| line.strip_prefix("ShdPnd:")).map(str::to_owned);
    let mut signals = status.lines().filter_map(pending).filter_map(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    signals.any(|signals| signals & KILL != 0)
}

/// The number that the kernel gives to one process and to no other until the machine is booted again: the inode of its
/// pidfds, from Linux 6.9 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Serial(u64);

impl Serial {
    /// The number of this process; `None` if the kernel gives none.
    pub fn mine() -> io::Result<Option<Serial>> {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        open_pidfd(pid)?.map_or(Ok(None), |fd| Serial::of(&fd))
    }

    fn of(pidfd: &OwnedFd) -> io::Result<Option<Serial>> {
        /// "PIDF". Before this file system existed, all pidfds had one inode.
        const PIDFS: i64 = 0x5049_4446;
        static NUMBERED: OnceLock<bool> = OnceLock::new();
        let numbered = NUMBERED.get_or_init(|| rustix::fs::fstatfs(pidfd).is_ok_and(|disk| disk.f_type == PIDFS));
        Ok(if *numbered { Some(Serial(rustix::fs::fstat(pidfd)?.st_ino)) } else { None })
    }
}

/// How much a process has run, by the kernel's count, for processes with one thread. As long as this value is
/// unchanged, it is the same process and has done nothing: even to be stopped or to end, a process has to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    nanos: u64,
    times: u64,
}

impl Ran {
    /// `None` when there is no such process, or where the kernel does not count.
    #[must_use]
    pub fn of(pid: i32) -> Option<Ran> {
        let mut text = [0u8; 128];
        let length = read_proc(pid, "schedstat", &mut text).ok()??;
        let mut fields = text[..length].split(|&byte| byte == b' ').filter_map(number);
        let (nanos, _waited, times) = (fields.next()?, fields.next()?, fields.next()?);
        // A kernel that does not count reports zeros.
        (nanos > 0 && times > 0).then_some(Ran { nanos, times })
    }
}

fn open_pidfd(pid: i32) -> io::Result<Option<OwnedFd>> {
    let Some(pid) = Pid::from_raw(pid) else {
        return Ok(None);
    };
    match pidfd_open(pid, PidfdFlags::NONBLOCK) {
        Ok(fd) => Ok(Some(fd)),
        // Not found, or (the other two errors, depending on the kernel) found as a thread of another process: a thread
        // is not a process of ours.
        Err(rustix::io::Errno::SRCH | rustix::io::Errno::NOENT | rustix::io::Errno::INVAL) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A process held by descriptor: it can be watched and signalled, and never be confused with another.
#[derive(Debug)]
pub struct Pidfd {
    fd: OwnedFd,
    pid: i32,
}

impl Pidfd {
    /// Opens the process, then compares its start time. `None` when it is gone (or the pid was reused).
    pub fn open(who: &Identity) -> io::Result<Option<Pidfd>> {
        if who.boot != boot_id() {
            return Ok(None);
        }
        let Some(fd) = open_pidfd(who.pid)? else {
            return Ok(None);
        };
        match Stat::read(who.pid)? {
            Some(stat) if stat.start == who.start => Ok(Some(Pidfd { fd, pid: who.pid })),
            Some(_) | None => Ok(None),
        }
    }

    /// Takes over a pidfd that was handed to us for the process `who`.
    #[must_use]
    pub fn adopt(fd: OwnedFd, who: &Identity) -> Pidfd {
        Pidfd { fd, pid: who.pid }
    }

    /// True once the whole process has exited, collected or not.
    pub fn has_exited(&self) -> io::Result<bool> {
        let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
        poll(&mut fds, Some(&rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 }))?;
        Ok(!fds[0].revents().is_empty())
    }

    /// Sends a signal. `Ok(false)` when the process was gone already. Refuses this process and its parents: even with a
    /// damaged record we do not end the process that called us or our holder.
    pub fn signal(&self, signal: Signal) -> io::Result<bool> {
        self.check_not_ours()?;
        match pidfd_send_signal(&self.fd, signal) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::SRCH) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Signals the process group that it leads, as a terminal does with Ctrl-C; only the process itself on kernels that
    /// cannot.
    pub fn signal_group(&self, signal: Signal) -> io::Result<bool> {
        self.check_not_ours()?;
        if crate::spawn::signal_group(self.fd.as_fd(), signal.as_raw()) { Ok(true) } else { self.signal(signal) }
    }

    fn check_not_ours(&self) -> io::Result<()> {
        if self.pid <= 1 || is_self_or_ancestor(self.pid)? {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("process {} is ourselves or a parent of ours; not signalled", self.pid),
            ));
        }
        Ok(())
    }

    /// How the process ended, from the kernel, for a caller that is not its parent. `None` if the kernel does not
    /// report it: it is older than 6.15, or the process was not collected yet.
    #[must_use]
    pub fn exit_status(&self) -> Option<WaitStatus> {
        crate::spawn::pidfd_exit_status(self.fd.as_fd()).map(WaitStatus)
    }
}

impl AsFd for Pidfd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<Pidfd> for OwnedFd {
    fn from(pidfd: Pidfd) -> OwnedFd {
        pidfd.fd
    }
}

/// The status of an ended process, as `wait` gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitStatus(pub(crate) i32);

impl WaitStatus {
    /// The exit code, unless a signal ended it.
    #[must_use]
    pub fn code(self) -> Option<i32> {
        (self.0 & 0x7f == 0).then_some((self.0 >> 8) & 0xff)
    }

    /// The signal that ended it.
    #[must_use]
    pub fn signal(self) -> Option<i32> {
        let signal = self.0 & 0x7f;
        (signal != 0 && signal != 0x7f).then_some(signal)
    }
}

/// The few fields of `/proc/<pid>/stat` that we use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    pub pid: i32,
    pub parent: i32,
    pub state: u8,
    pub flags: u64,
    pub threads: u64,
    pub start: u64,
}

impl Stat {
    /// `None` when there is no such process. Any other problem is an error: it means that we could not look.
    pub fn read(pid: i32) -> io::Result<Option<Stat>> {
        let mut text = [0u8; 1024];
        let Some(length) = read_proc(pid, "stat", &mut text)? else {
            return Ok(None);
        };
        Stat::parse(pid, &text[..length])
            .map(Some)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("/proc/{pid}/stat is not understood")))
    }

    /// The name of a program may have spaces and parentheses, so fields are counted from the last `)`, which is near
    /// the beginning: the kernel gives a name 64 bytes at most.
    fn parse(pid: i32, text: &[u8]) -> Option<Stat> {
        let end = text.iter().take(96).rposition(|&byte| byte == b')')?;
        let mut fields = text[end + 1..].split(|&byte| byte == b' ').filter(|field| !field.is_empty());
        let state = *fields.next()?.first()?;
        let parent = number(fields.next()?)?;
        // Fields 9, 20 and 22 of the line; state was field 3.
        let flags = number(fields.nth(4)?)?;
        let threads = number(fields.nth(10)?)?;
        let start = number(fields.nth(1)?)?;
        Some(Stat { pid, parent: i32::try_from(parent).ok()?, state, flags, threads, start })
    }

    /// Whether the process has ended. A process of which only the first thread has ended looks dead, but still has its
    /// files and locks: a large program that was killed looks like this until its memory is freed.
    #[must_use]
    pub fn is_zombie(&self) -> bool {
        matches!(self.state, b'Z' | b'X') && self.threads <= 1
    }

    #[must_use]
    pub fn identity(&self) -> Identity {
        Identity { pid: self.pid, start: self.start, boot: boot_id().to_owned() }
    }
}

fn number(field: &[u8]) -> Option<u64> {
    std::str::from_utf8(field).ok()?.trim_end().parse().ok()
}

/// Reads a file of a process, without an allocation: `ls` does this a thousand times. `None`: there is no such process.
fn read_proc(pid: i32, name: &str, text: &mut [u8]) -> io::Result<Option<usize>> {
    use rustix::io::Errno;
    use std::io::Write;
    let mut path = [0u8; 32];
    let mut cursor = io::Cursor::new(&mut path[..]);
    write!(cursor, "/proc/{pid}/{name}")?;
    let end = usize::try_from(cursor.position()).unwrap_or(0);
    // The second error comes when the process ends while its folder is being opened.
    let read = rustix::fs::open(&path[..end], OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .and_then(|file| rustix::io::read(&file, text));
    match read {
        Ok(length) => Ok(Some(length)),
        Err(Errno::NOENT | Errno::SRCH) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The id of this boot; the processes in a record from another boot cannot live.
#[must_use]
pub fn boot_id() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        // Without it no record matches any process. This is wrong towards "gone" for old records only, because new
        // records have the same empty text.
        std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
    })
}

pub(crate) fn is_self_or_ancestor(pid: i32) -> io::Result<bool> {
    let mut current = rustix::process::getpid().as_raw_nonzero().get();
    // Bounded: a chain of parents that changes meanwhile must not cause an endless loop.
    for _ in 0..1000 {
        if current == pid {
            return Ok(true);
        }
        match Stat::read(current)? {
            Some(stat) if stat.parent > 1 => current = stat.parent,
            Some(_) | None => return Ok(false),
        }
    }
    Ok(false)
}

/// The command line of a process, for people to read. Empty when the process is gone.
#[must_use]
pub fn command_line(pid: i32) -> Vec<String> {
    words(&std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default())
}

/// The beginning of the command line, which takes one call for most processes: for a look at all of them.
#[must_use]
pub fn first_words(pid: i32) -> Vec<String> {
    // There is room for a path and some words; if there are more, the last word may be cut off.
    let mut text = [0u8; 8192];
    let open = || rustix::fs::open(format!("/proc/{pid}/cmdline"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let length = open().and_then(|file| rustix::io::read(&file, &mut text)).unwrap_or(0);
    words(&text[..length])
}

fn words(command_line: &[u8]) -> Vec<String> {
    let words = command_line.split(|&byte| byte == 0).filter(|word| !word.is_empty());
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let text = b"42 (a) R 9 (b)) S 7 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2\n";
        let stat = Stat::parse(42, text).unwrap();
        assert_eq!((stat.state, stat.parent, stat.threads, stat.start), (b'S', 7, 1, 987_654));
        assert_eq!(stat.flags, 4_194_304);
    }

    #[test]
    fn a_kill_that_waits_is_seen_and_other_signals_are_not() {
        assert!(kill_waits("Name:\tx\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000100\n"));
        assert!(!kill_waits("SigPnd:\t0000000000004000\nSigBlk:\t0000000000000100\n"));
        assert!(!Identity::me().unwrap().is_ending().unwrap());
    }

    #[test]
    fn a_process_whose_other_threads_live_is_not_gone() {
        let of = |threads: u32| {
            let text = format!("42 (a) Z 7 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 {threads} 0 987654 1 2\n");
            Stat::parse(42, text.as_bytes()).unwrap()
        };
        assert!(of(1).is_zombie() && !of(2).is_zombie());
    }

    #[test]
    fn records_that_name_everyone_are_refused() {
        for pid in [0, 1, -1, -7, i64::from(i32::MAX) + 1] {
            let record = format!(r#"{{"pid":{pid},"start":1,"boot":"x"}}"#);
            assert!(serde_json::from_str::<Identity>(&record).is_err(), "{pid}");
        }
    }

    #[test]
    fn another_boot_means_gone_even_when_pid_and_start_match() {
        let mut me = Identity::me().unwrap();
        assert_eq!(me.look().unwrap(), Life::Alive);
        me.boot = "another".to_owned();
        assert_eq!(me.look().unwrap(), Life::Gone);
        assert!(Pidfd::open(&me).unwrap().is_none());
    }

    #[test]
    fn a_reused_pid_is_neither_alive_nor_openable() {
        let mut me = Identity::me().unwrap();
        me.start += 1;
        assert_eq!(me.look().unwrap(), Life::Gone);
        assert!(Pidfd::open(&me).unwrap().is_none());
    }

    #[test]
    fn ourselves_and_our_parents_are_never_signalled() {
        let me = Identity::me().unwrap();
        let refused = Pidfd::open(&me).unwrap().unwrap().signal(Signal::TERM).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        let parent = Identity::of(Stat::read(me.pid()).unwrap().unwrap().parent).unwrap().unwrap();
        assert!(Pidfd::open(&parent).unwrap().unwrap().signal(Signal::TERM).is_err());
    }

    #[test]
    fn a_serial_number_means_one_process_for_as_long_as_it_lives() {
        let Some(mine) = Serial::mine().unwrap() else {
            eprintln!("left out: this kernel gives processes no numbers");
            return;
        };
        let me = Identity::me().unwrap();
        assert!(me.lives_as(mine).unwrap());
        assert!(!me.lives_as(Serial(mine.0 + 1)).unwrap(), "another process has had the pid since");
        assert!(!Identity { boot: "another".to_owned(), ..me }.lives_as(mine).unwrap());

        let mut child = std::process::Command::new("true").spawn().unwrap();
        let who = Identity::of(i32::try_from(child.id()).unwrap()).unwrap().unwrap();
        let pidfd = open_pidfd(who.pid()).unwrap().unwrap();
        let serial = Serial::of(&pidfd).unwrap().unwrap();
        assert_ne!(serial, mine);
        poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None).unwrap();
        assert!(!who.lives_as(serial).unwrap(), "it has ended, though it is not collected yet");
        child.wait().unwrap();
        assert!(!who.lives_as(serial).unwrap());
    }

    #[test]
    fn who_is_seen_is_seen_with_its_parent() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let who = Identity::of(i32::try_from(child.id()).unwrap()).unwrap().unwrap();
        let me = Identity::me().unwrap();
        let seen = who.see().unwrap();
        assert_eq!((seen.life, seen.parent), (Life::Alive, me.pid()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(who.see().unwrap(), Seen::GONE);
    }

    #[test]
    fn an_exited_child_is_gone_before_anyone_collects_it() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let who = Identity::of(i32::try_from(child.id()).unwrap()).unwrap().unwrap();
        let pidfd = Pidfd::open(&who).unwrap().unwrap();
        poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None).unwrap();
        assert_eq!(who.look().unwrap(), Life::Gone);
        child.wait().unwrap();
        assert_eq!(who.look().unwrap(), Life::Gone);
    }
}
