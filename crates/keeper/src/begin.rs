//! The first moments of a run.
//!
//! The race this solves: the process that asked for a session wants to know for certain that it runs, and soon, while loading a
//! program takes longer than all that a holder has to do. So the launcher leaves a copy of itself behind, which is
//! loaded already: it starts the agent, then the keeper, which tells the launcher before it is loaded itself, and only then
//! becomes the holder. It is one process all the time; the agent is its child from the first moment, and who it is
//! stands in holder.json before the agent runs.

use crate::files::helper_record;
use crate::handles::{self, Handles, Helper};
use crate::holder::{self, BEGUN, KEEPER_PROCESS, LINE};
use crate::launch::{LaunchError, hidden_name};
use crate::start::{self, NotStarted, Seen, Starting};
use crate::{HOLDER, KEEPER};
use ostler_core::record::Session;
use ostler_store::RunRecord;
use ostler_store::folder::{Folder, RunFolder};
use ostler_sys::cgroup::{self, Base};
use ostler_sys::dir::Dir;
use ostler_sys::pause::{self, Point, Role};
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

/// What the copy reports: that the program runs, or (first byte) that the program is the problem or another writer, or what else is.
const REPORT_OK: &[u8] = b"ok";
const REPORT_PROGRAM: u8 = b'!';
const REPORT_HELD: u8 = b'&';

/// A run that is to begin.
pub struct Beginning<'a> {
    pub session: &'a Session,
    pub folder: &'a Folder,
    pub run: &'a RunFolder,
    pub record: &'a RunRecord,
    /// Where the session lies hidden until it has a process. `None`: a further run of one that everybody sees.
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
    // Inside another session's cgroup we would end with it.
    let outside = groups.as_ref().and_then(|base| base.to_leave_for(beginning.session.id.as_str()));
    let piped = beginning.piped.as_ref().map(|piped| rustix::io::fcntl_dupfd_cloexec(piped, 3));
    let piped = piped.transpose().map_err(io::Error::from)?;
    // Nobody can have opened one yet where nobody knows of the session.
    let listener = beginning.sessions.map(|_| socket::without_name()).transpose()?;
    let report = Cell::new(Some(report));
    let copy = || {
        // Ours alone to read: who waits for us to let go of it would wait for its own copy as well.
        drop(report.take());
        pause::act_as(Role::Beginner);
        let groups = groups.as_ref();
        let beginner = Beginner { beginning: &beginning, groups, listener: listener.as_ref(), reporter: &reporter };
        beginner.become_holder(binary, piped);
    };
    spawn::branch_off(outside.as_ref().map(AsFd::as_fd), copy).map_err(StartError::Fork)?;
    drop(reporter);
    pause::at(Point::CopyMade);
    if let Some(listener) = listener {
        open_meanwhile(&listener, beginning.folder);
    }
    // The copy has emptied its own; ours is where it was.
    report.take().as_ref().map_or(Err(LaunchError::Killed), hear)
}

/// Opens the socket while the copy is at work: to make a file may take longer than all the rest of a launch. The copy does
/// it too before anybody can knock, and tells when it cannot be done, so this may fail, or never happen.
fn open_meanwhile(listener: &OwnedFd, folder: &Folder) {
    // On the processor that it shares with us, the copy goes first: it will pause when it waits for the agent.
    rustix::thread::sched_yield();
    let _ = socket::open_as(listener, folder.dir());
}

/// The first words are all there is, though good news may come twice: waiting for the end would mean waiting until the copy
/// has become the holder.
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
    /// Of a new session, perhaps not open yet.
    listener: Option<&'a OwnedFd>,
    reporter: &'a OwnedFd,
}

impl Beginner<'_> {
    /// Returns only when there is nothing to hold, or when the keeper will have to find a replacement.
    fn become_holder(&self, binary: OwnedFd, piped: Option<OwnedFd>) {
        match self.start(binary, piped) {
            Ok(begun) => {
                // Again: the keeper may have been killed before it could, and the process that knows already has left.
                self.tell(REPORT_OK);
                pause::at(Point::LauncherTold);
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

    /// The process that waits for the word should not have to wait for a processor that is busy loading a helper. When it has
    /// heard, it lets go of the pipe.
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
        pause::at(Point::HolderNoted);
        let starting = Starting {
            session: beginning.session,
            folder: beginning.folder,
            run: beginning.run,
            record: beginning.record.clone(),
            environment: beginning.environment,
            groups: self.groups,
        };
        let agent = start::start(starting, &mut handles, piped, Seen::Revealed(&|| self.reveal()))?;
        pause::at(Point::AgentStarted);
        // Once there are two of us, either may be killed: only then is the launcher told. By the keeper, because we are
        // suspended until it is loaded; a launcher that was killed meanwhile does not change what was started.
        let tell = || {
            self.tell(REPORT_OK);
            self.let_the_launcher_go_first();
        };
        let number = beginning.run.number.to_string();
        let helper = Helper { word: KEEPER, flags: &["--run", &number], more: &[] };
        // No process, no memory: as bad as a keeper that died at once, and the holder tries again.
        let keeper = handles.start_helper_after(&helper, beginning.environment, &tell);
        let keeper = keeper.ok().map(|started| started.pidfd);
        pause::at(Point::KeeperStarted);
        Ok(Begun { agent, handles, line, keeper })
    }

    /// Shows the session to the world, with its socket open.
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

    /// Removes a session that never was, hidden or revealed.
    fn discard(&self) {
        if let Some(sessions) = self.beginning.sessions {
            let base = descriptors::path_of(sessions);
            let (id, folder) = (self.beginning.session.id, self.beginning.folder.dir());
            for name in [hidden_name(id.as_str()), id.as_str().to_owned()] {
                // It goes by one of the two; the other may be somebody else's.
                if folder.is_called(&name, sessions).unwrap_or(false) {
                    let _ = std::fs::remove_dir_all(base.join(name));
                }
            }
        }
    }
}

/// The launcher's terminal and folder are its own; and from here on nothing but our own end ends us.
fn leave_the_launchers_place(folder: &Folder) -> io::Result<()> {
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    rustix::process::fchdir(folder.dir())?;
    signals::ignore(Signal::PIPE);
    signals::ignore(Signal::XFSZ);
    // What arrives before the holder reads it waits for it.
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
    /// Goes on as the holder. When that fails we end, and the keeper finds a replacement.
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
