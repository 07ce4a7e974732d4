//! Starting the agent: its terminal or pipes, its files, its cgroup, and then the program itself.

use crate::contain::{Containment, Inside};
use crate::handles::{self, Handles};
use crate::writing::Occupied;
use ostler_core::record::{Mode, Session};
use ostler_store::folder::{Folder, RunFolder, session_size};
use ostler_store::{RunRecord, StoreError};
use ostler_sys::cgroup::{Base, Group};
use ostler_sys::clock::{self, since_boot_ms};
use ostler_sys::pause::{self, Point};
use ostler_sys::pipes::Pipe;
use ostler_sys::process::{Identity, Serial};
use ostler_sys::pty::Pty;
use ostler_sys::spawn::{First, Leads, Memory, Program, Start, StartError, Started};
use ostler_sys::{lock, socket};
use ostler_view::{proof, terminal};
use rustix::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use rustix::fs::OFlags;
use std::ffi::CString;
use std::io;
use std::time::Duration;

/// Why a session could not be started, in words for the person who asked.
#[derive(Debug, thiserror::Error)]
pub enum NotStarted {
    #[error("{program}: {error}")]
    Program { program: String, error: StartError },
    #[error("cannot enter its working folder {folder}: {error}")]
    Folder { folder: String, error: io::Error },
    /// Somebody else has the conversation: who.
    #[error("{0}")]
    Held(String),
    /// A limit was asked for that would not be in force.
    #[error("{0}")]
    Limits(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    System(#[from] io::Error),
}

/// Where the agent's lock and its conversation's are in the agent: out of the way of what shells use.
pub const LOCK_NUMBER: RawFd = 31;
const WRITER_NUMBER: RawFd = 30;

/// What is to be started.
pub struct Starting<'a> {
    pub session: &'a Session,
    pub folder: &'a Folder,
    pub run: &'a RunFolder,
    pub record: RunRecord,
    pub environment: &'a [CString],
    /// Where cgroups can be made, if anywhere.
    pub groups: Option<&'a Base>,
}

/// How long what an earlier run started may take to let go of the lock. A process of many threads is no longer listed while the
/// last of them still has it; seen for up to 150 ms.
const UNTIL_GONE: Duration = Duration::from_secs(5);

/// What the agent's own descriptors 0, 1 and 2 will be.
struct Standard {
    input: OwnedFd,
    output: OwnedFd,
    error: OwnedFd,
}

/// Opens everything, shows the session to the world through `reveal` once it has a process, and lets that run the program.
/// The handles then hold all that a keeper needs. What comes back is the pid of our child.
pub fn start(
    starting: Starting<'_>,
    handles: &mut Handles,
    piped: Option<OwnedFd>,
    reveal: impl Fn() -> io::Result<()>,
) -> Result<i32, NotStarted> {
    let Starting { session, folder, run, record, environment, groups } = starting;
    let standard = open_streams(&record, run, handles, piped)?;
    let lock_file = folder.dir().file("agent.lock", OFlags::RDWR | OFlags::CREATE)?;
    let agent_lock = lock::exclusive_within(lock_file, UNTIL_GONE)?
        .ok_or_else(|| io::Error::other("a process of an earlier run is still alive; see ostler doctor"))?;
    let occupied = Occupied::take(folder, session, &record, handles)?;
    // A new session's socket is opened before anybody is shown it, and a further run goes on behind the same one.
    if handles.get(handles::LISTENER).is_none() {
        handles.put(handles::LISTENER, socket::open(folder.dir())?);
    }

    // Unlike the session, the group is of this machine: a copied home has sessions of the same ids.
    let name = format!("{}-{}-{}", session.id, run.number, rustix::process::getpid().as_raw_nonzero());
    let containment = Containment::prepare(groups, &name, &session.limits)?;
    let program = record.argv.first().cloned().unwrap_or_default();
    let not_run = |error| match error {
        StartError::Folder(error) => NotStarted::Folder { folder: session.cwd.clone(), error },
        StartError::First(words) => NotStarted::System(io::Error::other(words)),
        // Not the program's fault.
        error @ (StartError::Fork(_) | StartError::Descriptors(_) | StartError::Terminal(_)) => {
            NotStarted::System(io::Error::other(error.to_string()))
        }
        error => NotStarted::Program { program: program.clone(), error },
    };
    // Asked here and not by the agent, to whom a holder that was just killed is not a parent any more.
    let holder = rustix::process::getpid().as_raw_nonzero().get();
    let first = |born: bool| {
        let inside = containment.enter(born);
        let shown = inside
            .and_then(|inside| note_agent(session, &record, run, holder, inside))
            .and_then(|()| Ok(occupied.as_ref().map_or(Ok(()), |occupied| occupied.note(handles))?))
            .and_then(|()| {
                pause::at(Point::AgentNoted);
                Ok(reveal()?)
            });
        pause::at(Point::AgentShown);
        shown.map_err(|error| error.to_string())
    };
    let locks: Vec<_> = [(Some(agent_lock.file()), LOCK_NUMBER), (handles.get(handles::WRITER), WRITER_NUMBER)]
        .into_iter()
        .filter_map(|(lock, number)| Some((lock?.as_raw_fd(), number)))
        .collect();
    let group = containment.group();
    let started = start_program(session, &record, environment, &standard, &locks, group, &first);
    match &started {
        Ok(started) if started.contained || group.is_none() => {}
        Ok(_) => containment.discard_group(),
        Err(_) => containment.discard(),
    }
    let started = started.map_err(not_run)?;
    handles.put(handles::AGENT, started.pidfd);
    Ok(started.pid)
}

/// The agent writes down who it is, before it runs: no matter which of us is killed from here on, nothing runs that no record
/// names.
fn note_agent(
    session: &Session,
    record: &RunRecord,
    run: &RunFolder,
    holder: i32,
    inside: Inside,
) -> Result<(), NotStarted> {
    let record = RunRecord {
        agent: Some(Identity::me()?),
        serial: Serial::mine()?,
        holder: Some(holder),
        session: Some(Box::new(session.clone())),
        session_size: Some(session_size(session)),
        launcher: None,
        cgroup: inside.cgroup.map(|group| group.to_string_lossy().into_owned()),
        bounds: inside.bounds,
        started: Some(clock::now()),
        started_ms: since_boot_ms(),
        written_before: proof::written_before(record),
        ..record.clone()
    };
    Ok(if record.run == 1 { run.write_first_record(&record) } else { run.write_record(&record) }?)
}

fn start_program(
    session: &Session,
    record: &RunRecord,
    environment: &[CString],
    standard: &Standard,
    locks: &[(RawFd, RawFd)],
    group: Option<&Group>,
    first: &First<'_>,
) -> Result<Started, StartError> {
    let arguments: Vec<CString> =
        record.argv.iter().map(|word| CString::new(word.as_str())).collect::<Result<_, _>>()?;
    let cwd = CString::new(session.cwd.as_str())?;
    let mut descriptors =
        vec![(standard.input.as_raw_fd(), 0), (standard.output.as_raw_fd(), 1), (standard.error.as_raw_fd(), 2)];
    descriptors.extend_from_slice(locks);
    Start {
        program: Program::Named(record.argv.first().map_or("", String::as_str)),
        arguments: &arguments,
        environment,
        folder: Some(&cwd),
        descriptors: &descriptors,
        leads: match record.plan.mode() {
            Mode::Headless => Leads::Session,
            Mode::Terminal => Leads::Terminal,
        },
        cgroup: group.map(AsFd::as_fd),
    }
    .start_after(if session.limits.memory.is_some() { Memory::Copied } else { Memory::Lent }, first)
}

fn open_streams(
    record: &RunRecord,
    run: &RunFolder,
    handles: &mut Handles,
    piped: Option<OwnedFd>,
) -> Result<Standard, NotStarted> {
    let file = |name: &str| run.dir().file(name, OFlags::RDWR | OFlags::CREATE);
    handles.put(handles::OUT, file("out")?);
    handles.put(handles::IN, file("in")?);
    match record.plan.mode() {
        Mode::Terminal => {
            let (rows, columns) = record.size.unwrap_or((24, 80));
            let pty = Pty::open(rows, columns)?;
            terminal::note_size(run.dir(), terminal::Resize { at: 0, rows, columns })?;
            put_pipe(handles, handles::KEYS_READ, handles::KEYS_WRITE)?;
            put_pipe(handles, handles::DRAWN_READ, handles::DRAWN_WRITE)?;
            let standard = Standard { input: copy(&pty.theirs)?, output: copy(&pty.theirs)?, error: pty.theirs };
            handles.put(handles::PTY, pty.ours);
            Ok(standard)
        }
        Mode::Headless => {
            handles.put(handles::ERR, file("err")?);
            put_pipe(handles, handles::PASSING_READ, handles::PASSING_WRITE)?;
            put_pipe(handles, handles::STDOUT_READ, handles::STDOUT_WRITE)?;
            put_pipe(handles, handles::STDERR_READ, handles::STDERR_WRITE)?;
            let input = match (record.plan.has_input(), piped) {
                (true, _) => {
                    put_pipe(handles, handles::STDIN_READ, handles::STDIN_WRITE)?;
                    copy(handles.need(handles::STDIN_READ)?)?
                }
                (false, Some(piped)) => piped,
                (false, None) => {
                    rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, rustix::fs::Mode::empty())
                        .map_err(io::Error::from)?
                }
            };
            Ok(Standard {
                input,
                output: copy(handles.need(handles::STDOUT_WRITE)?)?,
                error: copy(handles.need(handles::STDERR_WRITE)?)?,
            })
        }
    }
}

fn put_pipe(handles: &mut Handles, read: &str, write: &str) -> io::Result<()> {
    let pipe = Pipe::blocking()?;
    handles.put(read, pipe.read);
    handles.put(write, pipe.write);
    Ok(())
}

fn copy(handle: &OwnedFd) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(handle, 3)?)
}
