//! Starting the agent: its terminal or pipes, its files, its cgroup, and then the program itself.

use crate::contain::{Containment, Inside};
use crate::handles::{self, Handles};
use crate::later;
use crate::writer_lock::Occupied;
use ostler_core::record::{Mode, Session};
use ostler_store::folder::{Folder, RunFolder, session_size};
use ostler_store::queue::{Entry, Queue};
use ostler_store::{RunRecord, StoreError};
use ostler_sys::cgroup::{Base, Group};
use ostler_sys::clock::{self, since_boot_ms};
use ostler_sys::pause_points::{self, Point};
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

/// Why a session could not be started, in words for the user.
#[derive(Debug, thiserror::Error)]
pub enum NotStarted {
    #[error("{program}: {error}")]
    Program { program: String, error: StartError },
    #[error("cannot enter its working folder {folder}: {error}")]
    Folder { folder: String, error: io::Error },
    /// Another process has the conversation; the text names it.
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

/// The numbers of the agent's lock and its conversation's lock in the agent: apart from the numbers that shells use.
pub const LOCK_NUMBER: RawFd = 31;
pub const WRITER_NUMBER: RawFd = 30;
/// The number of the slot of its queue in the agent.
pub const SLOT_NUMBER: RawFd = 29;
/// The first number of the descriptors that a process has while it waits to become its program. They are few enough to
/// stay below the numbers above.
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

/// How long processes of an earlier run may take to release the lock. A process of many threads is no longer listed
/// while the last of them still has the lock; seen for up to 150 ms.
const UNTIL_GONE: Duration = Duration::from_secs(5);

/// How often a process is started again that was killed before it had become the program of a further run.
const KILLED_EARLY: u32 = 5;

/// How the new process becomes known, and when.
#[derive(Clone, Copy)]
pub enum Seen<'a> {
    /// A launch makes the session visible once it has a process.
    Revealed(&'a dyn Fn() -> io::Result<()>),
    /// A further run of a session that continues by itself: its keeper is started first, with all that it needs, and
    /// waits for the keeper before it to exit. So there is no moment at which a process runs and only one helper has
    /// its pipes.
    Kept(&'a dyn Fn(&Handles)),
}

/// The agent's own descriptors 0, 1 and 2.
struct Standard {
    input: OwnedFd,
    output: OwnedFd,
    error: OwnedFd,
}

/// Opens everything, makes the process known (`seen`), and lets it run the program. The handles then have all that a
/// keeper needs. Returns the pid of our child.
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
    // A new session's socket is opened before the session is visible, and a further run uses the same one.
    if handles.get(handles::LISTENER).is_none() {
        handles.put(handles::LISTENER, socket::open(folder.dir())?);
    }

    // Unlike the session, the group belongs to this machine: a copied home has sessions with the same ids.
    let name = format!("{}-{}-{}", session.id, run.number, rustix::process::getpid().as_raw_nonzero());
    let containment = Containment::prepare(groups, &name, &session.limits)?;
    let later = Later::prepare(session, folder, &record, handles)?;
    let program = record.argv.first().cloned().unwrap_or_default();
    let not_run = |error| match error {
        StartError::Folder(error) => NotStarted::Folder { folder: session.cwd.clone(), error },
        StartError::First(words) => NotStarted::System(io::Error::other(words)),
        error @ StartError::Killed => NotStarted::Killed(error),
        // Not an error of the program.
        error @ (StartError::Fork(_) | StartError::Descriptors(_) | StartError::Terminal(_)) => {
            NotStarted::System(io::Error::other(error.to_string()))
        }
        error => NotStarted::Program { program: program.clone(), error },
    };
    // Asked here and not in the agent: if the holder has just been killed, it is no longer the agent's parent.
    let holder = rustix::process::getpid().as_raw_nonzero().get();
    let first = |born: bool| {
        let inside = containment.enter(born);
        let shown = inside
            .and_then(|inside| note_agent(session, &record, run, holder, inside))
            .and_then(|()| Ok(occupied.as_ref().map_or(Ok(()), |occupied| occupied.note(handles))?))
            .and_then(|()| {
                pause_points::at(Point::AgentNoted);
                match seen {
                    Seen::Revealed(reveal) => Ok(reveal()?),
                    Seen::Kept(_) => Ok(()),
                }
            });
        pause_points::at(Point::AgentShown);
        shown.map_err(|error| error.to_string())
    };
    let slot = handles.get(handles::SLOT).filter(|_| later.is_none());
    let locks =
        [(Some(agent_lock.file()), LOCK_NUMBER), (handles.get(handles::WRITER), WRITER_NUMBER), (slot, SLOT_NUMBER)];
    let locks: Vec<_> = locks.into_iter().filter_map(|(lock, number)| Some((lock?.as_raw_fd(), number))).collect();
    let group = containment.group();
    // Restores the record of a further run, so that the next holder begins the run. A failed launch is not restored:
    // the person who launched it can repeat it.
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
    if let (Err(_), Seen::Revealed(_)) = (&started, seen)
        && record.run > 1
    {
        // The launcher is about to remove this run. Until then a reader must not find an agent in it that is gone.
        let _ = run.write_record(&record);
    }
    let started = started.map_err(not_run)?;
    handles.put(handles::AGENT, started.pidfd);
    Ok(started.pid)
}

/// The agent records its own identity before it runs: whichever process is killed from here on, no program runs that is
/// in no record.
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

/// A place in a queue for a run whose program starts later. It is taken before anything is started: of two sessions
/// that are launched one after the other, the first comes first.
struct Later {
    joined: Option<(Queue, Entry)>,
    /// The end of the pipe at which the waiting process sees that both helpers are gone.
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
        // A session that waits for something else first joins the queue after that.
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
            // If that fails, the next process that looks removes the entry: its lock ends with this process.
            let _ = queue.leave(&entry.name);
        }
    }
}

/// How the child is started.
struct Child<'a> {
    group: Option<&'a Group>,
    first: &'a First<'a>,
    undo: &'a dyn Fn(),
}

/// The program that becomes the agent.
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
        // All descriptors of the helpers, to start others with, except those that must be closed when the helpers are
        // gone.
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
