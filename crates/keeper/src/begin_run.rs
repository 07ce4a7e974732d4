//! The first moments of a run.
//!
//! The race this solves: the launcher needs certainty that the session runs, and soon, but loading a program takes
//! longer than everything that a holder has to do. So the launcher makes a copy of itself, which is loaded already. The
//! copy starts the agent, then the keeper, which reports to the launcher before it is loaded itself; only then the copy
//! becomes the holder. It is one process all the time: the agent is its child from the first moment, and its identity
//! is in holder.json before the agent runs.

use crate::files::helper_record;
use crate::handles::{self, Handles, Helper};
use crate::holder::{self, BEGUN, KEEPER_PROCESS, LINE};
use crate::launch::LaunchError;
use crate::start_agent::{self, NotStarted, Seen, Starting};
use crate::{HOLDER, KEEPER};
use ostler_core::record::Session;
use ostler_store::RunRecord;
use ostler_store::folder::{Folder, RunFolder};
use ostler_store::home::hidden_name;
use ostler_sys::cgroup::{self, Base};
use ostler_sys::dir::Dir;
use ostler_sys::pause_points::{self, Point, Role};
use ostler_sys::spawn::StartError;
use ostler_sys::{descriptors, signals, socket, spawn};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;
use std::cell::Cell;
use std::ffi::CString;
use std::io;

/// What the copy reports: that the program runs, or an error. A first byte marks an error that the program or another
/// writer has caused.
const REPORT_OK: &[u8] = b"ok";
const REPORT_PROGRAM: u8 = b'!';
const REPORT_HELD: u8 = b'&';

/// A run that is to begin.
pub struct Beginning<'a> {
    pub session: &'a Session,
    pub folder: &'a Folder,
    pub run: &'a RunFolder,
    pub record: &'a RunRecord,
    /// The folder in which the session is hidden until it has a process. `None`: a further run of a session that is
    /// already visible.
    pub sessions: Option<&'a Dir>,
    /// What the program reads, when something was piped in.
    pub piped: Option<OwnedFd>,
    /// The environment of the agent and of its helpers, complete.
    pub environment: &'a [CString],
}

/// Begins the run. When this returns, the program runs and both helpers exist. This process must have one thread.
pub fn begin(beginning: Beginning<'_>) -> Result<(), LaunchError> {
    let (report, reporter) = pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from)?;
    let binary = descriptors::own_binary()?;
    let groups = cgroup::base();
    // Inside another session's cgroup the holder would end with that session.
    let outside = groups.as_ref().and_then(|base| base.to_leave_for(beginning.session.id.as_str()));
    let piped = beginning.piped.as_ref().map(|piped| rustix::io::fcntl_dupfd_cloexec(piped, 3));
    let piped = piped.transpose().map_err(io::Error::from)?;
    // A new session has no socket yet, because no other process knows of the session.
    let listener = beginning.sessions.map(|_| socket::without_name()).transpose()?;
    let report = Cell::new(Some(report));
    let copy = || {
        // Only the launcher may have the reading end: a process that waits for the launcher to close it would otherwise
        // wait for its own copy too.
        drop(report.take());
        pause_points::act_as(Role::Beginner);
        let groups = groups.as_ref();
        let beginner = Beginner { beginning: &beginning, groups, listener: listener.as_ref(), reporter: &reporter };
        beginner.become_holder(binary, piped);
    };
    spawn::branch_off(outside.as_ref().map(AsFd::as_fd), copy).map_err(StartError::Fork)?;
    drop(reporter);
    pause_points::at(Point::CopyMade);
    if let Some(listener) = listener {
        open_meanwhile(&listener, beginning.folder);
    }
    // The copy has taken the descriptor out of its own `Cell`; ours still has it.
    report.take().as_ref().map_or(Err(LaunchError::Killed), hear)
}

/// Opens the socket while the copy is at work: creating a file may take longer than all the rest of a launch. The copy
/// opens it too before any client can connect, and reports it when that fails. So this call may fail, or may never
/// happen.
fn open_meanwhile(listener: &OwnedFd, folder: &Folder) {
    // On the processor that both share, the copy runs first: it will pause when it waits for the agent.
    rustix::thread::sched_yield();
    let _ = socket::open_as(listener, folder.dir());
}

/// One read is enough, although success may be reported twice: waiting for the end of the pipe would mean waiting until
/// the copy has become the holder.
fn hear(report: &OwnedFd) -> Result<(), LaunchError> {
    let mut words = vec![0; 4096];
    let length = loop {
        match rustix::io::read(report, &mut words) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other.map_err(io::Error::from)?,
        }
    };
    words.truncate(length);
    let text = |words| String::from_utf8_lossy(words).into_owned();
    match words.as_slice() {
        words if words.starts_with(REPORT_OK) => Ok(()),
        [] => Err(LaunchError::Killed),
        [REPORT_PROGRAM, words @ ..] => Err(LaunchError::Program(text(words))),
        [REPORT_HELD, words @ ..] => Err(LaunchError::Held(text(words))),
        words => Err(LaunchError::NotStarted(text(words))),
    }
}

/// The copy of the launcher that becomes the holder.
struct Beginner<'a> {
    beginning: &'a Beginning<'a>,
    groups: Option<&'a Base>,
    /// The socket of a new session, perhaps without a name yet.
    listener: Option<&'a OwnedFd>,
    reporter: &'a OwnedFd,
}

impl Beginner<'_> {
    /// Returns only when there is nothing to hold, or when the keeper will have to start a replacement.
    fn become_holder(&self, binary: OwnedFd, piped: Option<OwnedFd>) {
        match self.start(binary, piped) {
            Ok(begun) => {
                // Reported again: the keeper may have been killed before it could report. A launcher that knows already
                // has exited.
                self.tell(REPORT_OK);
                pause_points::at(Point::LauncherTold);
                begun.go_on(self.beginning);
            }
            Err(error) => {
                self.discard();
                let mark = match error {
                    NotStarted::Program { .. } | NotStarted::Folder { .. } | NotStarted::Limits(_) => {
                        Some(REPORT_PROGRAM)
                    }
                    NotStarted::Held(_) => Some(REPORT_HELD),
                    NotStarted::Killed(_) | NotStarted::Store(_) | NotStarted::System(_) => None,
                };
                let words: Vec<u8> = mark.into_iter().chain(error.to_string().into_bytes()).collect();
                self.tell(&words);
            }
        }
    }

    fn tell(&self, words: &[u8]) {
        let _ = rustix::io::write(self.reporter, words);
    }

    /// The launcher, which waits for the report, should not have to wait for a processor that is busy loading a helper.
    /// It closes the pipe after it has read the report.
    fn let_the_launcher_go_first(&self) {
        let moment = rustix::time::Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        let _ = poll(&mut [PollFd::new(self.reporter, PollFlags::empty())], Some(&moment));
    }

    fn start(&self, binary: OwnedFd, piped: Option<OwnedFd>) -> Result<Begun, NotStarted> {
        let beginning = self.beginning;
        leave_the_launchers_place(beginning.folder)?;
        let mut handles = Handles::default();
        handles.put(handles::FOLDER, beginning.folder.dir().duplicate()?.try_into()?);
        handles.put(handles::BINARY, binary);
        if let Some(listener) = self.listener {
            handles.put(handles::LISTENER, rustix::io::fcntl_dupfd_cloexec(listener, 3).map_err(io::Error::from)?);
        }
        let (line, keeper_line) = socket::pair()?;
        handles.put(handles::HOLDER_LINE, keeper_line);
        match beginning.sessions {
            Some(_) => beginning.folder.write_first_holder(&helper_record()?)?,
            None => beginning.folder.write_holder(&helper_record()?)?,
        }
        pause_points::at(Point::HolderNoted);
        let starting = Starting {
            session: beginning.session,
            folder: beginning.folder,
            run: beginning.run,
            record: beginning.record.clone(),
            environment: beginning.environment,
            groups: self.groups,
        };
        let agent = start_agent::start(starting, &mut handles, piped, Seen::Revealed(&|| self.reveal()))?;
        pause_points::at(Point::AgentStarted);
        // The launcher is told only when there are two helpers, because from then on one of them may be killed. The
        // keeper tells it, because this process is suspended until the keeper is loaded. A launcher that was killed in
        // the meantime does not change what was started.
        let tell = || {
            self.tell(REPORT_OK);
            self.let_the_launcher_go_first();
        };
        let number = beginning.run.number.to_string();
        let helper = Helper { word: KEEPER, flags: &["--run", &number], more: &[] };
        // No process or no memory: handled like a keeper that died at once, and the holder tries again.
        let keeper = handles.start_helper_after(&helper, beginning.environment, &tell);
        let keeper = keeper.ok().map(|started| started.pidfd);
        pause_points::at(Point::KeeperStarted);
        Ok(Begun { agent, handles, line, keeper })
    }

    /// Makes the session visible, with its socket open.
    fn reveal(&self) -> io::Result<()> {
        if let Some(listener) = self.listener {
            socket::open_as(listener, self.beginning.folder.dir())?;
        }
        let id = self.beginning.session.id;
        match self.beginning.sessions {
            Some(sessions) => sessions.rename_new(&hidden_name(id.as_str()), sessions, id.as_str()),
            None => Ok(()),
        }
    }

    /// Removes a session whose launch has failed, hidden or revealed.
    fn discard(&self) {
        if let Some(sessions) = self.beginning.sessions {
            let base = descriptors::path_of(sessions);
            let (id, folder) = (self.beginning.session.id, self.beginning.folder.dir());
            for name in [hidden_name(id.as_str()), id.as_str().to_owned()] {
                // The folder has one of the two names; the other one may belong to another session.
                if folder.is_called(&name, sessions).unwrap_or(false) {
                    let _ = std::fs::remove_dir_all(base.join(name));
                }
            }
        }
    }
}

/// Detaches from the launcher's terminal and working directory. From here on SIGTERM, SIGHUP and SIGINT do not end this
/// process.
fn leave_the_launchers_place(folder: &Folder) -> io::Result<()> {
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    rustix::process::fchdir(folder.dir())?;
    signals::ignore(Signal::PIPE);
    signals::ignore(Signal::XFSZ);
    // Signals that arrive before the holder reads them stay pending.
    signals::Signals::take(&holder::SIGNALS)?;
    Ok(rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1))?)
}

/// A run that has begun.
struct Begun {
    agent: i32,
    handles: Handles,
    line: OwnedFd,
    keeper: Option<OwnedFd>,
}

impl Begun {
    /// Continues as the holder. When that fails this process ends, and the keeper starts a replacement.
    fn go_on(&self, beginning: &Beginning<'_>) {
        let number = beginning.run.number.to_string();
        let agent = self.agent.to_string();
        let flags = [beginning.session.id.as_str(), BEGUN, &agent, "--run", &number];
        let mut more = vec![(LINE, self.line.as_fd())];
        more.extend(self.keeper.iter().map(|keeper| (KEEPER_PROCESS, keeper.as_fd())));
        let holder = Helper { word: HOLDER, flags: &flags, more: &more };
        let _ = self.handles.become_helper(&holder, beginning.environment);
    }
}
