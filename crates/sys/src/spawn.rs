//! Starting programs: the one place that forks.
//!
//! `std::process` cannot do three things that promises rest on: put the child into a cgroup in the same moment in which
//! it comes to life (`clone3` with `CLONE_INTO_CGROUP`; moving it afterwards costs 8–15 ms and leaves a gap), hand it an
//! exact list of descriptors and no other, and run a program from an open file (so that a session restarts its keeper
//! even after the binary on disk was replaced or deleted).
//!
//! `start` returns once the new program really runs: the child holds one end of a close-on-exec pipe, which falls silent
//! when `exec` succeeds and carries the error when anything before it fails.

#![expect(unsafe_code, reason = "clone3, exec and the child's life between them; each block says why it is sound")]

use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::{CStr, CString, NulError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What the child's terminal and process group shall be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leads {
    /// A session of its own, without a terminal.
    Session,
    /// A session of its own, with its descriptor 0 as the terminal that controls it.
    Terminal,
}

/// Which program to run.
#[derive(Debug)]
pub enum Program<'a> {
    /// Looked up along `PATH` unless it names a folder.
    Named(&'a str),
    /// An open binary.
    Open(BorrowedFd<'a>),
}

/// Everything about a program to start.
#[derive(Debug)]
pub struct Start<'a> {
    pub program: Program<'a>,
    /// With the program's own name first.
    pub arguments: &'a [CString],
    pub environment: &'a [CString],
    pub folder: Option<&'a CStr>,
    /// (our descriptor, its number in the child); everything else is closed there.
    pub descriptors: &'a [(RawFd, RawFd)],
    pub leads: Leads,
    pub cgroup: Option<BorrowedFd<'a>>,
}

/// A started program. It is our child until collected.
#[derive(Debug)]
pub struct Started {
    pub pid: i32,
    pub pidfd: OwnedFd,
    /// It is in the cgroup that was asked for.
    pub contained: bool,
}

/// A child that stands between fork and exec until it is let go, so that whoever must know it is told before it does
/// anything. When we die first it leaves without having run the program.
#[derive(Debug)]
pub struct Waiting {
    started: Started,
    report: OwnedFd,
    gate: OwnedFd,
}

impl Waiting {
    /// Who it is, and will be when it runs the program.
    #[must_use]
    pub fn started(&self) -> &Started {
        &self.started
    }

    /// Lets it go, and returns when the program runs.
    pub fn go(self) -> Result<Started, StartError> {
        rustix::io::write(&self.gate, b"g").map_err(|error| StartError::Fork(error.into()))?;
        until_it_runs(self.started, &self.report)
    }

    /// Sends it away, and collects it.
    pub fn give_up(self) {
        let Waiting { started, report: _, gate } = self;
        drop(gate);
        collect(started.pid);
    }
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("program not found; is it installed and on PATH?")]
    NotFound,
    #[error("cannot be run: {0}; is it a program, and executable?")]
    NotExecutable(io::Error),
    #[error("cannot enter its folder: {0}")]
    Folder(io::Error),
    #[error("cannot make the terminal its own: {0}")]
    Terminal(io::Error),
    #[error("cannot arrange its descriptors: {0}")]
    Descriptors(io::Error),
    #[error("no new process: {0}")]
    Fork(io::Error),
    #[error(transparent)]
    Text(#[from] NulError),
}

/// Not libc's constant of that name, which does not fit its type.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// What the child was doing when it failed; travels over the pipe as one byte.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Step {
    Descriptors = 1,
    Terminal = 2,
    Folder = 3,
    Exec = 4,
}

/// Both ends of the pipe at which a child waits, as it inherits them.
#[derive(Clone, Copy)]
struct Gate {
    read: RawFd,
    write: RawFd,
}

impl Gate {
    /// The child waits. Nobody left to let it go is the end of it.
    fn wait(self) {
        // SAFETY: system calls on this child's own copies of two descriptors and one byte of its stack. Its own writing
        // end is closed first, or it would wait for itself.
        unsafe {
            libc::close(self.write);
            let mut letter = 0u8;
            loop {
                match libc::read(self.read, (&raw mut letter).cast(), 1) {
                    1 => return,
                    -1 if errno() == libc::EINTR => {}
                    _ => libc::_exit(127),
                }
            }
        }
    }
}

/// Everything the child needs, made before the fork: between fork and exec nothing may allocate.
struct Prepared {
    candidates: Vec<CString>,
    arguments: Vec<*const libc::c_char>,
    /// `sh FILE ARGS…`, for a script without a first line that names its interpreter; slot 1 is filled in by the child.
    shell_arguments: Vec<*const libc::c_char>,
    environment: Vec<*const libc::c_char>,
    highest: RawFd,
}

impl Start<'_> {
    /// Starts the program and returns when it runs.
    pub fn start(&self) -> Result<Started, StartError> {
        let (started, report) = self.begin(None)?;
        until_it_runs(started, &report)
    }

    /// Makes the child, which then waits to be let go.
    pub fn start_waiting(&self) -> Result<Waiting, StartError> {
        let (read, gate) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| StartError::Fork(error.into()))?;
        let (started, report) = self.begin(Some(Gate { read: read.as_raw_fd(), write: gate.as_raw_fd() }))?;
        Ok(Waiting { started, report, gate })
    }

    /// Returns as soon as the child exists. It has the descriptors from its first moment, whatever becomes of us; whether
    /// it gets to run the program shows in whether it lives.
    pub fn start_unseen(&self) -> Result<Started, StartError> {
        self.begin(None).map(|(started, _report)| started)
    }

    /// Forks. What comes back is the child and the pipe over which it tells what went wrong.
    fn begin(&self, gate: Option<Gate>) -> Result<(Started, OwnedFd), StartError> {
        let candidates = match self.program {
            Program::Named(name) => candidates(name, self.environment)?,
            Program::Open(_) => Vec::new(),
        };
        let arguments = pointers(self.arguments);
        let mut shell_arguments = vec![c"sh".as_ptr(), std::ptr::null()];
        shell_arguments.extend(arguments.iter().skip(1));
        let highest = self.descriptors.iter().map(|&(_, target)| target).max().unwrap_or(2).max(2);
        let prepared =
            Prepared { candidates, arguments, shell_arguments, environment: pointers(self.environment), highest };
        let (report, reporter) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| StartError::Fork(error.into()))?;

        let mut contained = self.cgroup.is_some();
        let (pid, pidfd) = match self.fork(self.cgroup) {
            // A cgroup that vanished or that we may not enter is no reason not to start.
            Err(_) if contained => {
                contained = false;
                self.fork(None)
            }
            first => first,
        }
        .map_err(StartError::Fork)?;
        if pid == 0 {
            if let Some(gate) = gate {
                gate.wait();
            }
            let mut channel = reporter.as_raw_fd();
            let (step, errno) = self.become_program(&prepared, &mut channel);
            let message = [step as u8, errno.to_ne_bytes()[0], errno.to_ne_bytes()[1]];
            // SAFETY: a plain write of three bytes that live on this stack, then the end of the child.
            unsafe {
                libc::write(channel, message.as_ptr().cast(), message.len());
                libc::_exit(127);
            }
        }
        drop(reporter);
        // SAFETY: the kernel just gave us this descriptor (CLONE_PIDFD), nobody else owns it.
        let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
        Ok((Started { pid, pidfd, contained }, report))
    }

    /// One child, in its cgroup from its first instruction. Returns (0, _) in the child.
    fn fork(&self, cgroup: Option<BorrowedFd<'_>>) -> io::Result<(i32, RawFd)> {
        let mut pidfd: RawFd = -1;
        // SAFETY: all-zero is a valid clone_args: plain integers.
        let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
        arguments.flags = libc::CLONE_PIDFD as u64;
        arguments.pidfd = std::ptr::from_mut(&mut pidfd) as u64;
        arguments.exit_signal = libc::SIGCHLD as u64;
        if let Some(group) = cgroup {
            arguments.flags |= CLONE_INTO_CGROUP;
            arguments.cgroup = group.as_raw_fd() as u64;
        }
        // SAFETY: without CLONE_VM this is fork: the child has its own copy of everything and only calls functions that
        // are safe after fork. `pidfd` outlives the call.
        let pid = unsafe {
            libc::syscall(libc::SYS_clone3, std::ptr::from_mut(&mut arguments), size_of::<libc::clone_args>())
        };
        match i32::try_from(pid) {
            Ok(pid) if pid >= 0 => Ok((pid, pidfd)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The child between fork and exec. Only returns on failure.
    fn become_program(&self, prepared: &Prepared, channel: &mut RawFd) -> (Step, i32) {
        // SAFETY: only async-signal-safe system calls on memory prepared before the fork; this process has one thread.
        unsafe {
            default_signals();
            libc::setsid();
            // First everything up and out of the way, then each to its place: sources and targets may overlap.
            let free = prepared.highest + 1;
            let reporter = libc::fcntl(*channel, libc::F_DUPFD_CLOEXEC, free);
            if reporter < 0 {
                return (Step::Descriptors, errno());
            }
            *channel = reporter;
            let mut moved = [-1; 32];
            for (slot, &(source, _)) in moved.iter_mut().zip(self.descriptors) {
                *slot = libc::fcntl(source, libc::F_DUPFD_CLOEXEC, free);
                if *slot < 0 {
                    return (Step::Descriptors, errno());
                }
            }
            let binary = match &self.program {
                Program::Open(fd) => libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, free),
                Program::Named(_) => -1,
            };
            libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
            for (&source, &(_, target)) in moved.iter().zip(self.descriptors) {
                if libc::dup2(source, target) < 0 {
                    return (Step::Descriptors, errno());
                }
            }
            if self.leads == Leads::Terminal && libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
                return (Step::Terminal, errno());
            }
            if let Some(folder) = self.folder
                && libc::chdir(folder.as_ptr()) < 0
            {
                return (Step::Folder, errno());
            }
            if binary >= 0 {
                libc::syscall(
                    libc::SYS_execveat,
                    binary,
                    c"".as_ptr(),
                    prepared.arguments.as_ptr(),
                    prepared.environment.as_ptr(),
                    libc::AT_EMPTY_PATH,
                );
                return (Step::Exec, errno());
            }
            let mut denied = None;
            for candidate in &prepared.candidates {
                libc::execve(candidate.as_ptr(), prepared.arguments.as_ptr(), prepared.environment.as_ptr());
                match errno() {
                    libc::ENOENT | libc::ENOTDIR => {}
                    libc::ENOEXEC => {
                        // The copy is a stack-local change to memory this child owns alone.
                        let script = prepared.shell_arguments.as_ptr().cast_mut();
                        *script.add(1) = candidate.as_ptr();
                        libc::execve(c"/bin/sh".as_ptr(), script, prepared.environment.as_ptr());
                        return (Step::Exec, libc::ENOEXEC);
                    }
                    other => denied = Some(other),
                }
            }
            (Step::Exec, denied.unwrap_or(libc::ENOENT))
        }
    }
}

/// Waits until the program runs, or collects a child that could not run it.
fn until_it_runs(started: Started, report: &OwnedFd) -> Result<Started, StartError> {
    let mut message = [0u8; 3];
    let length = loop {
        match rustix::io::read(report, &mut message) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other.map_err(|error| StartError::Fork(error.into()))?,
        }
    };
    if length == 0 {
        return Ok(started);
    }
    collect(started.pid);
    let error = io::Error::from_raw_os_error(i32::from(u16::from_ne_bytes([message[1], message[2]])));
    Err(match message[0] {
        step if step == Step::Descriptors as u8 => StartError::Descriptors(error),
        step if step == Step::Terminal as u8 => StartError::Terminal(error),
        step if step == Step::Folder as u8 => StartError::Folder(error),
        _ if error.kind() == io::ErrorKind::NotFound => StartError::NotFound,
        _ => StartError::NotExecutable(error),
    })
}

fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// # Safety
/// Call only between fork and exec.
unsafe fn default_signals() {
    // SAFETY: resets dispositions and mask of this process only; SIGKILL and SIGSTOP refuse, which is fine.
    unsafe {
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

fn pointers(texts: &[CString]) -> Vec<*const libc::c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
}

/// The places where a program of this name may be, in the order of the child's own `PATH`.
fn candidates(name: &str, environment: &[CString]) -> Result<Vec<CString>, StartError> {
    if name.is_empty() {
        return Err(StartError::NotFound);
    }
    if name.contains('/') {
        return Ok(vec![CString::new(name)?]);
    }
    let path = environment.iter().find_map(|entry| entry.as_bytes().strip_prefix(b"PATH="));
    path.unwrap_or(b"/usr/local/bin:/usr/bin:/bin")
        .split(|&byte| byte == b':')
        .map(|folder| {
            let folder = if folder.is_empty() { b"." } else { folder };
            let joined = Path::new(std::ffi::OsStr::from_bytes(folder)).join(name);
            Ok(CString::new(joined.as_os_str().as_bytes())?)
        })
        .collect()
}

/// Collects one child that is known to have ended, or soon will. `None`: somebody else has collected it.
pub fn collect(pid: i32) -> Option<crate::process::WaitStatus> {
    let pid = rustix::process::Pid::from_raw(pid)?;
    let collected = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
    collected.ok().flatten().map(|(_, status)| crate::process::WaitStatus(status.as_raw()))
}

/// A child that has ended and waits to be collected.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    pub pid: i32,
    pub status: crate::process::WaitStatus,
}

/// The next child that has ended, left uncollected: its pid stays its own until [`collect`], so that what it did can be
/// written down first.
pub fn next_ended() -> io::Result<Option<Ended>> {
    // SAFETY: all-zero is a valid siginfo_t, which waitid fills in; the fields read are those it documents for WEXITED.
    let (result, info) = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let result = libc::waitid(libc::P_ALL, 0, &raw mut info, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT);
        (result, info)
    };
    if result < 0 {
        let error = io::Error::last_os_error();
        return if error.raw_os_error() == Some(libc::ECHILD) { Ok(None) } else { Err(error) };
    }
    // SAFETY: filled in by waitid, see above.
    let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
    if pid == 0 {
        return Ok(None);
    }
    let raw = if info.si_code == libc::CLD_EXITED { (status & 0xff) << 8 } else { status & 0x7f };
    Ok(Some(Ended { pid, status: crate::process::WaitStatus(raw) }))
}

/// Signals the whole process group that `pidfd` leads (Linux 6.9), as a terminal does with Ctrl-C. `false`: this kernel
/// cannot, or there is no such group any more.
pub(crate) fn signal_group(pidfd: BorrowedFd<'_>, signal: i32) -> bool {
    const PIDFD_SIGNAL_PROCESS_GROUP: libc::c_uint = 1 << 2;
    // SAFETY: a system call on a descriptor and plain numbers; no siginfo is passed.
    let result = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal,
            std::ptr::null::<libc::siginfo_t>(),
            PIDFD_SIGNAL_PROCESS_GROUP,
        )
    };
    result == 0
}

/// `struct pidfd_info` of Linux 6.13 and later, in its first published size, which every later kernel accepts.
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroup: u64,
    pid: u32,
    tgid: u32,
    ppid: u32,
    ids: [u32; 8],
    exit_code: i32,
}

const PIDFD_INFO_EXIT: u64 = 1 << 3;
/// `_IOWR(0xFF, 11, struct pidfd_info)`.
const PIDFD_GET_INFO: libc::c_ulong = (3 << 30) | ((size_of::<PidfdInfo>() as libc::c_ulong) << 16) | (0xff << 8) | 11;

/// The exit status that the kernel keeps for holders of a pidfd (Linux 6.15), once the process was collected.
pub(crate) fn pidfd_exit_status(pidfd: BorrowedFd<'_>) -> Option<i32> {
    let mut info = PidfdInfo { mask: PIDFD_INFO_EXIT, ..PidfdInfo::default() };
    // SAFETY: the kernel writes at most the size encoded in the request into `info`, which has that size.
    let result = unsafe { libc::ioctl(pidfd.as_raw_fd(), PIDFD_GET_INFO, std::ptr::from_mut(&mut info)) };
    (result == 0 && info.mask & PIDFD_INFO_EXIT != 0).then_some(info.exit_code)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::process::{Identity, Pidfd};
    use rustix::event::{PollFd, PollFlags, poll};

    fn texts(words: &[&str]) -> Vec<CString> {
        words.iter().map(|word| CString::new(*word).unwrap()).collect()
    }

    fn start(words: &[&str], folder: Option<&CStr>) -> Result<Started, StartError> {
        Start {
            program: Program::Named(words[0]),
            arguments: &texts(words),
            environment: &texts(&["PATH=/usr/bin:/bin"]),
            folder,
            descriptors: &[],
            leads: Leads::Session,
            cgroup: None,
        }
        .start()
    }

    #[test]
    fn start_returns_only_when_the_program_runs_and_names_what_failed() {
        assert!(matches!(start(&["no-such-program-here"], None), Err(StartError::NotFound)));
        assert!(matches!(start(&["/etc/passwd"], None), Err(StartError::NotExecutable(_))));
        assert!(matches!(start(&["true"], Some(c"/no/such/folder")), Err(StartError::Folder(_))));
    }

    #[test]
    fn a_child_that_is_not_let_go_runs_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("mark");
        let arguments = texts(&["touch", mark.to_str().unwrap()]);
        let start = Start {
            program: Program::Named("touch"),
            arguments: &arguments,
            environment: &texts(&["PATH=/usr/bin:/bin"]),
            folder: None,
            descriptors: &[],
            leads: Leads::Session,
            cgroup: None,
        };
        let waiting = start.start_waiting().unwrap();
        waiting.give_up();
        assert!(!mark.exists());
        let child = start.start_waiting().unwrap().go().unwrap();
        collect(child.pid);
        assert!(mark.exists());
    }

    #[test]
    fn the_kernel_tells_how_a_stranger_collected_child_ended() {
        let child = start(&["sh", "-c", "exit 7"], None).unwrap();
        let pidfd = Pidfd::adopt(child.pidfd, &Identity::of(child.pid).unwrap().unwrap());
        poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None).unwrap();
        collect(child.pid);
        // Kernels before 6.15 do not say; saying something else would be wrong.
        assert!(matches!(pidfd.exit_status().map(|status| status.code()), None | Some(Some(7))));
    }
}
