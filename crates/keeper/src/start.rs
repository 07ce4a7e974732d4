//! Starting the agent: its terminal or pipes, its files, its cgroup, and then the program itself.

use crate::contain::{Containment, Inside};
use crate::handles::{self, Handles};
use crate::later;
use crate::writing::Occupied;
use ostler_core::record::{Mode, Session};
use ostler_store::folder::{Folder, RunFolder, session_size};
use ostler_store::queue::{Entry, Queue};
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
    #[error("{0}")]
    Killed(StartError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    System(#[from] io::Error),
}

/// Where the agent's lock and its conversation's are in the agent: out of the way of what shells use.
pub const LOCK_NUMBER: RawFd = 31;
pub const WRITER_NUMBER: RawFd = 30;
/// Where the slot of its queue is in the agent.
pub const SLOT_NUMBER: RawFd = 29;
/// From here on a process that waits to become its program has what it needs for that: less than there is room for below.
const FIRST_NUMBER: RawFd = 3;

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

/// A process that is killed before it has become the program of a further run is started again, so many times.
const KILLED_EARLY: u32 = 5;

/// Who is to see the process, and when.
#[derive(Clone, Copy)]
pub enum Seen<'a> {
    /// A launch shows the session to the world once it has a process.
    Revealed(&'a dyn Fn() -> io::Result<()>),
    /// A further run of a session that goes on by itself: its keeper is started first, with all that it needs, and waits for the one
    /// before it to leave. So no moment is left in which a process runs and only one of us has its pipes.
    Kept(&'a dyn Fn(&Handles)),
}

/// What the agent's own descriptors 0, 1 and 2 will be.
struct Standard {
    input: OwnedFd,
    output: OwnedFd,
    error: OwnedFd,
}

/// Opens everything, shows the process to those who are to see it, and lets it run the program. The handles then hold all that a
/// keeper needs. What comes back is the pid of our child.
pub fn start(
    starting: Starting<'_>,
    handles: &mut Handles,
    piped: Option<OwnedFd>,
    seen: Seen<'_>,
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
    let later = Later::prepare(session, folder, &record, handles)?;
    let program = record.argv.first().cloned().unwrap_or_default();
    let not_run = |error| match error {
        StartError::Folder(error) => NotStarted::Folder { folder: session.cwd.clone(), error },
        StartError::First(words) => NotStarted::System(io::Error::other(words)),
        error @ StartError::Killed => NotStarted::Killed(error),
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
                match seen {
                    Seen::Revealed(reveal) => Ok(reveal()?),
                    Seen::Kept(_) => Ok(()),
                }
            });
        pause::at(Point::AgentShown);
        shown.map_err(|error| error.to_string())
    };
    let slot = handles.get(handles::SLOT).filter(|_| later.is_none());
    let locks =
        [(Some(agent_lock.file()), LOCK_NUMBER), (handles.get(handles::WRITER), WRITER_NUMBER), (slot, SLOT_NUMBER)];
    let locks: Vec<_> = locks.into_iter().filter_map(|(lock, number)| Some((lock?.as_raw_fd(), number))).collect();
    let group = containment.group();
    // A run that nobody has begun is begun by the next holder. One that a person has launched is theirs to repeat.
    let undo = || {
        if let Seen::Kept(_) = seen {
            let _ = run.write_record(&record);
        }
    };
    let child = Child { group, first: &first, undo: &undo };
    let to_start = ToStart { session, record: &record, environment, standard: &standard, locks: &locks };
    if let Seen::Kept(keep) = seen {
        keep(handles);
    }
    let mut deaths = 0;
    let started = loop {
        let started = match &later {
            Some(later) => to_start.waiting(handles, later, &child),
            None => to_start.start(&child),
        };
        match (&started, seen) {
            (Err(StartError::Killed), Seen::Kept(_)) if deaths < KILLED_EARLY => deaths += 1,
            _ => break started,
        }
    };
    if let (Err(_), Some(later)) = (&started, later) {
        later.discard();
    }
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

/// A place in a queue for a run whose program starts later. Taken before anything is started: of two sessions that are launched
/// one after the other, the first comes first.
struct Later {
    joined: Option<(Queue, Entry)>,
    /// Tells the waiting process that both helpers are gone.
    life: OwnedFd,
}

impl Later {
    /// `None`: its program starts at once.
    fn prepare(
        session: &Session,
        folder: &Folder,
        record: &RunRecord,
        handles: &mut Handles,
    ) -> Result<Option<Later>, NotStarted> {
        let Some(when) = &record.start_when else {
            return Ok(None);
        };
        // One that waits for something else first comes into the queue after that.
        let at_once = when.at.is_none() && when.after.is_empty();
        let joined = match when.queue.as_ref().filter(|_| at_once) {
            Some(queue) => {
                let opened = Queue::open(&later::home_of(folder)?, &queue.name)?;
                let entry = opened.join(session.id, queue.priority, when.arrived)?;
                Some((opened, entry))
            }
            None => None,
        };
        let life = Pipe::blocking()?;
        handles.put(handles::LIFE, life.write);
        Ok(Some(Later { joined, life: life.read }))
    }

    fn discard(self) {
        if let Some((queue, entry)) = self.joined {
            // What is left is removed by the next to look: its lock is gone with us.
            let _ = queue.leave(&entry.name);
        }
    }
}

/// How the child comes to life.
struct Child<'a> {
    group: Option<&'a Group>,
    first: &'a First<'a>,
    undo: &'a dyn Fn(),
}

/// What becomes the agent.
struct ToStart<'a> {
    session: &'a Session,
    record: &'a RunRecord,
    environment: &'a [CString],
    standard: &'a Standard,
    locks: &'a [(RawFd, RawFd)],
}

impl ToStart<'_> {
    /// Starts the program.
    fn start(&self, child: &Child<'_>) -> Result<Started, StartError> {
        let arguments: Vec<CString> =
            self.record.argv.iter().map(|word| CString::new(word.as_str())).collect::<Result<_, _>>()?;
        let program = Program::Named(self.record.argv.first().map_or("", String::as_str));
        self.start_as(program, &arguments, &[], child)
    }

    /// Starts the process that waits to become the program.
    fn waiting(&self, handles: &Handles, later: &Later, child: &Child<'_>) -> Result<Started, StartError> {
        let entry = later.joined.as_ref().map(|(_, entry)| entry);
        let mut words = later::arguments(self.record.run, self.session.id, entry.map(|entry| entry.name.as_str()));
        // All that helpers have, to start others with, but for what has to end with them.
        let theirs = handles.iter().filter(|(name, _)| ![handles::HOLDER_LINE, handles::LIFE].contains(name));
        let ours = [(handles::LIFE, &later.life)];
        let ours = ours.into_iter().chain(entry.map(|entry| (later::ENTRY, &entry.lock)));
        let mut more = Vec::new();
        for (number, (name, handle)) in (FIRST_NUMBER..).zip(theirs.chain(ours)) {
            words.push(format!("{name}={number}"));
            more.push((handle.as_raw_fd(), number));
        }
        let words: Vec<CString> = words.into_iter().map(CString::new).collect::<Result<_, _>>()?;
        let binary = handles.need(handles::BINARY).map_err(StartError::Descriptors)?;
        self.start_as(Program::Open(binary.as_fd()), &words, &more, child)
    }

    fn start_as(
        &self,
        program: Program<'_>,
        arguments: &[CString],
        more: &[(RawFd, RawFd)],
        child: &Child<'_>,
    ) -> Result<Started, StartError> {
        let ToStart { session, record, environment, standard, locks } = self;
        let cwd = CString::new(session.cwd.as_str())?;
        let mut descriptors =
            vec![(standard.input.as_raw_fd(), 0), (standard.output.as_raw_fd(), 1), (standard.error.as_raw_fd(), 2)];
        descriptors.extend_from_slice(locks);
        descriptors.extend_from_slice(more);
        Start {
            program,
            arguments,
            environment,
            folder: Some(&cwd),
            descriptors: &descriptors,
            leads: match record.plan.mode() {
                Mode::Headless => Leads::Session,
                Mode::Terminal => Leads::Terminal,
            },
            cgroup: child.group.map(AsFd::as_fd),
        }
        .start_after(
            if session.limits.memory.is_some() { Memory::Copied } else { Memory::Lent },
            child.first,
            child.undo,
        )
    }
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
