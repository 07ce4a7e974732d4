//! Starting programs: the only place that forks.
//!
//! `std::process` cannot do three things that are needed: create the child inside a cgroup (`clone3` with
//! `CLONE_INTO_CGROUP`; moving it afterwards costs 8–15 ms and leaves a gap), hand it an exact list of descriptors and
//! no other, and run a program from an open file (so that a session restarts its keeper even after the binary on disk
//! was replaced or deleted).
//!
//! `start` returns once the new program really runs: the parent is suspended until the child has either run `exec` or
//! exited ([`Kind::VforkShared`]). After that a pipe has the error, or nothing. The child may do things of its own
//! before it runs the program.

#![expect(unsafe_code, reason = "clone3, exec and the child's life between them; each block says why it is sound")]

use crate::clone::{self, Child, Kind};
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use rustix::pipe::{PipeFlags, pipe_with};
use std::cell::Cell;
use std::ffi::{CStr, CString, NulError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The terminal and the process group of the child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leads {
    /// A session of its own, without a terminal.
    Session,
    /// A session of its own, with its descriptor 0 as its controlling terminal.
    Terminal,
}

/// Which program to run.
#[derive(Clone, Copy, Debug)]
pub enum Program<'a> {
    /// Looked up along `PATH` unless it names a folder.
    Named(&'a str),
    /// An open binary.
    Open(BorrowedFd<'a>),
}

/// Everything about a program to start.
#[derive(Clone, Debug)]
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

/// Which memory a child uses until it runs its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// The parent's memory: fast.
    Lent,
    /// A copy of the parent's memory: for a child with a memory limit, because the kernel would end the parent together
    /// with it.
    Copied,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("program not found; install it, or add its folder to PATH")]
    NotFound,
    #[error("cannot be run: {0}; check that it is an executable program")]
    NotExecutable(io::Error),
    #[error("cannot enter its folder: {0}")]
    Folder(io::Error),
    #[error("cannot make the terminal its own: {0}")]
    Terminal(io::Error),
    #[error("cannot set up its descriptors: {0}")]
    Descriptors(io::Error),
    #[error("no new process: {0}")]
    Fork(io::Error),
    /// The first step of the child failed; the text is its own.
    #[error("{0}")]
    First(String),
    #[error("it was killed before the program started")]
    Killed,
    #[error(transparent)]
    Text(#[from] NulError),
}

/// What the child was doing when it failed; sent over the pipe as one byte.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Step {
    Descriptors = 1,
    Terminal = 2,
    Folder = 3,
    Exec = 4,
    First = 5,
}

impl Step {
    const ALL: [Step; 5] = [Step::Descriptors, Step::Terminal, Step::Folder, Step::Exec, Step::First];

    fn error(self, error: io::Error) -> StartError {
        match self {
            Step::First => StartError::First(error.to_string()),
            Step::Descriptors => StartError::Descriptors(error),
            Step::Terminal => StartError::Terminal(error),
            Step::Folder => StartError::Folder(error),
            Step::Exec if error.kind() == io::ErrorKind::NotFound => StartError::NotFound,
            Step::Exec => StartError::NotExecutable(error),
        }
    }
}

/// Everything the child needs to run the program, made before the child exists.
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
        self.start_after(Memory::Lent, &|_| Ok(()), &|| ())
    }

    /// The same, but the child runs `first` before that, with its own pid and knowing whether it is contained. When the
    /// parent dies before that is done, the child undoes it and exits without having run the program.
    pub fn start_after(&self, memory: Memory, first: &First<'_>, undo: &dyn Fn()) -> Result<Started, StartError> {
        let parent = rustix::process::getpid();
        let kind = match memory {
            Memory::Lent => Kind::VforkShared,
            Memory::Copied => Kind::VforkCopy,
        };
        let (started, report) =
            self.begin(kind, &|contained, reporter| do_first(first, undo, contained, parent, reporter))?;
        until_it_runs(started, &report)
    }

    /// Returns as soon as the child exists. It has the descriptors from the beginning, even if the parent dies. Whether
    /// it could run the program shows in whether it lives.
    pub fn start_unseen(&self) -> Result<Started, StartError> {
        self.begin(Kind::Fork, &|_, _| ()).map(|(started, _report)| started)
    }

    /// The same, but the child runs `first` before the program, and the parent continues only when the child has run
    /// the program, or exited.
    pub fn start_unseen_after(&self, first: &dyn Fn()) -> Result<Started, StartError> {
        self.begin(Kind::VforkShared, &|_, _| first()).map(|(started, _report)| started)
    }

    /// Turns this process into the program: the same process, with the same children, and the same signals blocked and
    /// ignored. Returns only when that fails.
    pub fn become_it(&self) -> StartError {
        match self.prepare() {
            Err(error) => error,
            Ok(prepared) => {
                let (step, errno) = self.become_program(&prepared, None);
                step.error(io::Error::from_raw_os_error(errno))
            }
        }
    }

    fn prepare(&self) -> Result<Prepared, StartError> {
        let candidates = match self.program {
            Program::Named(name) => candidates(name, self.environment)?,
            Program::Open(_) => Vec::new(),
        };
        let arguments = pointers(self.arguments);
        let mut shell_arguments = vec![c"sh".as_ptr(), std::ptr::null()];
        shell_arguments.extend(arguments.iter().skip(1));
        let highest = self.descriptors.iter().map(|&(_, target)| target).max().unwrap_or(2).max(2);
        Ok(Prepared { candidates, arguments, shell_arguments, environment: pointers(self.environment), highest })
    }

    /// Forks. Returns the child and the pipe over which it reports what went wrong.
    fn begin(&self, kind: Kind, first: &dyn Fn(bool, &OwnedFd)) -> Result<(Started, OwnedFd), StartError> {
        let prepared = self.prepare()?;
        let flags = PipeFlags::CLOEXEC | PipeFlags::NONBLOCK;
        let (report, reporter) = pipe_with(flags).map_err(|error| StartError::Fork(error.into()))?;
        let child = |contained: bool| {
            first(contained, &reporter);
            // SAFETY: we are the child, between fork and exec.
            unsafe { default_signals() };
            let mut channel = reporter.as_raw_fd();
            let (step, errno) = self.become_program(&prepared, Some(&mut channel));
            let message = [step as u8, errno.to_ne_bytes()[0], errno.to_ne_bytes()[1]];
            // SAFETY: a plain write of three bytes that live on this stack.
            unsafe { libc::write(channel, message.as_ptr().cast(), message.len()) };
        };
        let contained = self.cgroup.map(|group| clone::make(kind, Some(group), &|| child(true)));
        let (Child { pid, pidfd }, contained) = match contained {
            Some(Ok(made)) => (made, true),
            // The program is started even if the cgroup is gone or we may not enter it.
            Some(Err(_)) | None => (clone::make(kind, None, &|| child(false)).map_err(StartError::Fork)?, false),
        };
        Ok((Started { pid, pidfd, contained }, report))
    }

    /// Runs between fork and exec. Only returns on failure, which the caller can report over the channel.
    fn become_program(&self, prepared: &Prepared, channel: Option<&mut RawFd>) -> (Step, i32) {
        // SAFETY: system calls on memory that was prepared before and that is not changed in between.
        unsafe {
            // A process that already leads a session is refused, and continues to lead it.
            libc::setsid();
            // First all descriptors are moved to high numbers, then each to its place: sources and targets may overlap.
            let free = prepared.highest + 1;
            if let Some(channel) = channel {
                let reporter = libc::fcntl(*channel, libc::F_DUPFD_CLOEXEC, free);
                if reporter < 0 {
                    return (Step::Descriptors, errno());
                }
                *channel = reporter;
            }
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
                        // The slot exists for this; it is not used after this process.
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

/// What a child writes when its first step is done: without this byte, the child was killed before.
const GOES_ON: u8 = 0;

/// What a child does before it runs the program.
pub type First<'a> = dyn Fn(bool) -> Result<(), String> + 'a;

/// The first step of the child, before it becomes the program. When that fails, or the parent is gone, the child exits.
fn do_first(first: &First<'_>, undo: &dyn Fn(), contained: bool, parent: rustix::process::Pid, reporter: &OwnedFd) {
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| first(contained)));
    let words = match done {
        Ok(Ok(())) if rustix::process::getppid() == Some(parent) => {
            let _ = rustix::io::write(reporter, &[GOES_ON]);
            return;
        }
        Ok(Ok(())) => {
            // It must not return from here into the code of the original.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(undo));
            String::new()
        }
        Ok(Err(words)) => words,
        Err(_) => "it failed before the program started".to_owned(),
    };
    let message: Vec<u8> = [Step::First as u8, 0, 0].into_iter().chain(words.into_bytes()).collect();
    let _ = rustix::io::write(reporter, &message);
    // SAFETY: ends this child, for whose work no other process waits.
    unsafe { libc::_exit(127) }
}

/// Checks whether the program runs, and collects a child that could not run it.
fn until_it_runs(started: Started, report: &OwnedFd) -> Result<Started, StartError> {
    let mut message = [0u8; 1024];
    let length = match rustix::io::read(report, &mut message) {
        Ok(0) | Err(rustix::io::Errno::AGAIN) => {
            collect(started.pid);
            return Err(StartError::Killed);
        }
        other => other.map_err(|error| StartError::Fork(error.into()))?,
    };
    let message = message[..length].strip_prefix(&[GOES_ON]).unwrap_or(&message[..length]);
    if message.is_empty() {
        // Nothing more was written, and nothing will be: the program runs.
        return Ok(started);
    }
    collect(started.pid);
    let [step, low, high, words @ ..] = message else {
        return Err(StartError::Fork(io::ErrorKind::UnexpectedEof.into()));
    };
    let step = Step::ALL.into_iter().find(|&known| known as u8 == *step).unwrap_or(Step::Exec);
    Err(match step {
        Step::First => StartError::First(String::from_utf8_lossy(words).into_owned()),
        Step::Descriptors | Step::Terminal | Step::Folder | Step::Exec => {
            step.error(io::Error::from_raw_os_error(i32::from(u16::from_ne_bytes([*low, *high]))))
        }
    })
}

/// Makes a copy of this process, which runs `life` and then ends: a session of its own, in that cgroup, with every
/// signal as a fresh program has it. It has all descriptors and the memory of this process, so this process must have
/// one thread.
pub fn branch_off(cgroup: Option<BorrowedFd<'_>>, life: impl FnOnce()) -> io::Result<()> {
    let life = Cell::new(Some(life));
    let child = || {
        become_a_session();
        if let Some(life) = life.take() {
            life();
        }
    };
    clone::make(Kind::Fork, cgroup, &child).map(drop)
}

/// For a copy of this process that has one thread: a session of its own, with every signal as a fresh program has it.
pub(crate) fn become_a_session() {
    // SAFETY: the copy has one thread, and runs no handler of ours.
    unsafe {
        default_signals();
        libc::setsid();
    }
}

fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// # Safety
/// Call only between fork and exec.
unsafe fn default_signals() {
    // SAFETY: resets dispositions and mask of this process only; SIGKILL and SIGSTOP cannot be changed, which is fine.
    unsafe {
        // Handlers are removed by clone or by exec, so this is for signals that our parents ignore; real-time signals
        // are never ignored by them.
        for signal in 1..32 {
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

/// The paths at which a program of this name may be, in the order of the child's own `PATH`.
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

/// Collects one child that is known to have ended, or soon will. `None`: it was collected already.
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

/// The next child that has ended, without collecting it: its pid is not reused before [`collect`], so that its exit can
/// be recorded first.
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

/// The exit status that the kernel stores for the owners of a pidfd (Linux 6.15), once the process was collected.
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
    fn a_child_that_cannot_do_what_comes_first_runs_nothing_and_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let (mark, noted) = (folder.path().join("mark"), folder.path().join("noted"));
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
        let refused = start.start_after(Memory::Lent, &|_| Err("not today".to_owned()), &|| ());
        assert!(matches!(refused, Err(StartError::First(words)) if words == "not today"));
        assert!(!mark.exists());
        let kill = |_| {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            Ok(())
        };
        let killed = start.start_after(Memory::Lent, &kill, &|| ());
        assert!(matches!(killed, Err(StartError::Killed)), "one that was killed first does not run");
        assert!(!mark.exists());
        let note = |_| std::fs::write(&noted, std::process::id().to_string()).map_err(|error| error.to_string());
        let child = start.start_after(Memory::Lent, &note, &|| ()).unwrap();
        collect(child.pid);
        assert_eq!(std::fs::read_to_string(&noted).unwrap(), child.pid.to_string(), "it is the child that does it");
        assert!(mark.exists());
    }

    #[test]
    fn a_child_that_is_not_waited_for_has_done_its_first_step_when_spawn_returns() {
        let done = Cell::new(None);
        let child = Start {
            program: Program::Named("true"),
            arguments: &texts(&["true"]),
            environment: &texts(&["PATH=/usr/bin:/bin"]),
            folder: None,
            descriptors: &[],
            leads: Leads::Session,
            cgroup: None,
        }
        .start_unseen_after(&|| done.set(Some(rustix::process::getpid().as_raw_nonzero().get())))
        .unwrap();
        assert_eq!(collect(child.pid).and_then(|status| status.code()), Some(0));
        // What the child wrote is visible only where it uses our memory.
        assert!(!cfg!(target_arch = "x86_64") || done.get() == Some(child.pid));
    }

    #[test]
    fn the_kernel_tells_how_a_foreign_process_collected_child_ended() {
        let child = start(&["sh", "-c", "exit 7"], None).unwrap();
        let pidfd = Pidfd::adopt(child.pidfd, &Identity::of(child.pid).unwrap().unwrap());
        poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None).unwrap();
        collect(child.pid);
        // Kernels before 6.15 do not report it; any other answer would be wrong.
        assert!(matches!(pidfd.exit_status().map(|status| status.code()), None | Some(Some(7))));
    }
}
