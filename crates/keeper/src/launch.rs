//! The client's side of starting a session: makes its folder and lets its run begin. Also starts a replacement for an
//! agent that has lost both helpers.

use crate::begin_run::{Beginning, begin};
use crate::handles::{self, Handles, Helper};
use crate::launcher_process::{self, Launcher};
use crate::{HOLDER, abandoned, replacement_holder};
use ostler_core::record::{Request, Session};
use ostler_store::folder::{After, Folder, RunFolder};
use ostler_store::home::{Home, Place, hidden_name};
use ostler_store::{RunRecord, StoreError, inbox, spare_folder};
use ostler_sys::dir::{Dir, Sync};
use ostler_sys::notify::Watcher;
use ostler_sys::pause_points::{self, Point};
use ostler_sys::process::{Identity, Pidfd};
use ostler_sys::spawn::StartError;
use ostler_sys::{lock, socket, spawn};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Resource, getrlimit, umask};
use std::ffi::CString;
use std::io;

#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The program cannot be run; the text is the holder's.
    #[error("{0}")]
    Program(String),
    /// Another process has the conversation; the text from the holder names it.
    #[error("{0}")]
    Held(String),
    /// The session cannot be kept; the text is the holder's.
    #[error("{0}")]
    NotStarted(String),
    /// The holder died without a report.
    #[error("the holder was killed before the session was running")]
    Killed,
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot start a holder: {0}")]
    Holder(#[from] StartError),
    #[error("{0}")]
    System(#[from] io::Error),
}

/// Everything about a session that is to begin.
pub struct Launch<'a> {
    pub session: &'a Session,
    pub run: &'a RunRecord,
    /// Its first messages, in order.
    pub prompts: &'a [Request],
    /// What goes into the folder of the run, by name.
    pub files: &'a [(&'a str, Vec<u8>)],
    /// What the program reads, when something was piped in.
    pub piped: Option<OwnedFd>,
    /// The environment of the agent, complete.
    pub environment: &'a [CString],
}

/// How many changes in its folder to wait for until a keeper has opened its socket again.
const REPAIRS: u32 = 20;

/// How many files a helper must be allowed to open: its descriptors, and some for clients.
const OPEN_FILES: u64 = 64;

/// How large a file must be allowed to become: the output and the records of a session are files.
const FILE_SIZE: u64 = 16 << 20;

/// Refuses to start helpers where they could not work. They inherit the limits of this process.
fn check_surroundings() -> Result<(), LaunchError> {
    if let Some(limit) = getrlimit(Resource::Nofile).current.filter(|&limit| limit < OPEN_FILES) {
        let words = format!(
            "only {limit} files may be open at once, and a session needs {OPEN_FILES}; raise the limit with ulimit -n"
        );
        return Err(LaunchError::NotStarted(words));
    }
    if let Some(limit) = getrlimit(Resource::Fsize).current.filter(|&limit| limit < FILE_SIZE) {
        let words = format!(
            "files may have at most {limit} bytes, and a session needs {FILE_SIZE}; raise the limit with ulimit -f"
        );
        return Err(LaunchError::NotStarted(words));
    }
    // The umask can only be read by setting it.
    let mask = umask(Mode::RWXU);
    umask(mask);
    if mask.intersects(Mode::RWXU) {
        let words = format!(
            "the umask {:04o} makes your own files unreadable for you; set another one, such as 077",
            mask.bits()
        );
        return Err(LaunchError::NotStarted(words));
    }
    Ok(())
}

/// Starts the session. When this returns, the program runs. May be called from any process, and from any thread.
pub fn launch(home: &Home, launch: Launch<'_>, launcher: &Launcher) -> Result<Place, LaunchError> {
    match launcher.helper()? {
        Some(program) => launcher_process::launch_elsewhere(program, home, launch),
        None => launch_here(home, launch),
    }
}

/// The same in this process, which must have one thread and be ostler itself.
pub(crate) fn launch_here(home: &Home, launch: Launch<'_>) -> Result<Place, LaunchError> {
    check_surroundings()?;
    let id = launch.session.id;
    let sessions = home.open_or_make(&home.sessions())?;
    let hidden = hidden_name(id.as_str());
    let place = home.sessions();
    let made = spare_folder::take(&sessions, &hidden)
        .and_then(|taken| if taken { Ok(()) } else { sessions.make_dir(&hidden) });
    made.map_err(|error| StoreError::Io { file: place.to_string_lossy().into_owned(), error })?;
    pause_points::at(Point::FolderMade);
    let folder = Folder::new(sessions.open_dir(&hidden)?);
    abandoned::hold(&folder)?;
    let mut result = start_hidden(&sessions, &folder, launch);
    if let Err(LaunchError::Killed) = result
        && folder.dir().is_called(id.as_str(), &sessions)?
    {
        result = exists_after_kill(&folder, 1);
    }
    if result.is_err() {
        // The holder removes what it was given; this is for what never reached a holder, or outlived it.
        for name in [hidden.as_str(), id.as_str()] {
            if folder.dir().is_called(name, &sessions)? {
                let _ = std::fs::remove_dir_all(home.sessions().join(name));
            }
        }
    }
    result?;
    Ok(Place { id, path: home.sessions().join(id.as_str()), archived: false })
}

fn start_hidden(sessions: &Dir, folder: &Folder, launch: Launch<'_>) -> Result<(), LaunchError> {
    if !folder.has_room()? {
        return Err(io::Error::from(io::ErrorKind::StorageFull).into());
    }
    folder.write_session(launch.session)?;
    pause_points::at(Point::SessionWritten);
    let run = folder.make_run(launch.run.run)?;
    put_files(&run, launch.files)?;
    for prompt in launch.prompts {
        inbox::append_unnamed(folder, prompt)?;
        pause_points::at(Point::PromptKept);
    }
    begin(Beginning {
        session: launch.session,
        folder,
        run: &run,
        record: launch.run,
        sessions: Some(sessions),
        piped: launch.piped,
        environment: launch.environment,
    })
}

/// The copy that was to become the holder was killed before that. If a keeper exists it has started another holder, and
/// the session is up. An agent without helpers has lost its input, and is killed.
pub(crate) fn exists_after_kill(folder: &Folder, run: u32) -> Result<(), LaunchError> {
    if socket::reach(folder.dir())?.is_some() {
        return Ok(());
    }
    if let Some(agent) = folder.run(run)?.record()?.agent
        && let Some(agent) = ostler_sys::process::Pidfd::open(&agent)?
    {
        agent.signal(rustix::process::Signal::KILL)?;
        poll(&mut [PollFd::new(&agent, PollFlags::IN)], None).map_err(io::Error::from)?;
    }
    Err(LaunchError::Killed)
}

/// The next run of a session that has ended.
#[derive(Clone, Copy)]
pub struct Resume<'a> {
    pub session: &'a Session,
    pub run: &'a RunRecord,
    /// What goes into the folder of the run, by name.
    pub files: &'a [(&'a str, Vec<u8>)],
    /// The environment of the agent, complete.
    pub environment: &'a [CString],
}

/// Starts the next run of a session that has ended. When several processes try at once, one makes the run's folder; the
/// others get `Ok(false)`. May be called from any process, and from any thread.
pub fn resume(place: &Place, resume: Resume<'_>, launcher: &Launcher) -> Result<bool, LaunchError> {
    match launcher.helper()? {
        Some(program) => launcher_process::resume_elsewhere(program, place, resume),
        None => resume_here(&place.open()?, resume),
    }
}

/// The same in this process, which must have one thread and be ostler itself.
pub(crate) fn resume_here(folder: &Folder, resume: Resume<'_>) -> Result<bool, LaunchError> {
    let Resume { session, run: record, files, environment } = resume;
    check_surroundings()?;
    // The run is visible from here on. Until it has a process of its own, it counts as alive as long as this process
    // lives.
    let record = &RunRecord { launcher: Some(Identity::me()?), ..record.clone() };
    let begun = match folder.begin_run(record, After::Rest) {
        Ok(begun) => begun,
        Err(StoreError::Io { error, .. }) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    pause_points::at(Point::RunBegun);
    let mut started = if folder.has_room()? {
        put_files(&begun, files)?;
        begin(Beginning { session, folder, run: &begun, record, sessions: None, piped: None, environment })
    } else {
        Err(io::Error::from(io::ErrorKind::StorageFull).into())
    };
    if let Err(LaunchError::Killed) = started {
        started = exists_after_kill(folder, record.run);
    }
    if started.is_err() {
        // The run is removed: the run before it is the newest again.
        folder.discard_run(record.run)?;
    }
    started.map(|()| true)
}

fn put_files(run: &RunFolder, files: &[(&str, Vec<u8>)]) -> Result<(), StoreError> {
    files.iter().try_for_each(|(name, bytes)| run.dir().replace(name, bytes, Sync::No).map_err(StoreError::io(*name)))
}

/// Whether the process of the session has ended and the session continues by itself later: this needs a helper.
fn waits(folder: &Folder, run: &RunFolder) -> Result<bool, StoreError> {
    let state = ostler_view::fold::state_of(folder, run)?;
    Ok(state.phase() == ostler_core::view::Phase::Waiting)
}

/// A connection to the keeper of a session that has not ended. If both helpers are gone but the agent is not, a
/// replacement is started first. `None`: no process of the session is left.
///
/// A replacement starts further runs of the session, so it gets the environment of the session's program.
pub fn reach(
    place: &Place,
    launcher: &Launcher,
    environment: &dyn Fn(&Session) -> Vec<CString>,
) -> Result<Option<OwnedFd>, LaunchError> {
    let folder = place.open()?;
    if let Some(socket) = socket::reach(folder.dir())? {
        return Ok(Some(socket));
    }
    let number = folder.newest_run()?;
    if number == 0 {
        return Ok(None);
    }
    let run = folder.run(number)?;
    let alive = match run.record()?.agent {
        Some(agent) => agent.look()? != ostler_sys::process::Life::Gone,
        None => false,
    };
    if run.outcome()?.is_some() {
        return Ok(None);
    }
    if let Some(keeper) = folder.keeper()?
        && let Some(keeper) = Pidfd::open(&keeper.process)?
        && !keeper.has_exited()?
    {
        return reopen(place, &folder, &keeper);
    }
    if !alive && !waits(&folder, &run)? {
        return Ok(None);
    }
    // One holder at a time. If the holder lives, its next keeper opens the socket again when it is told. A holder that
    // is just dying has closed its socket before it is seen to be gone.
    if let Some(holder) = folder.holder()?
        && let Some(holder) = Pidfd::open(&holder.process)?
        && !holder.has_exited()?
    {
        let reached = until_reachable(place, &folder, &holder)?;
        if reached.is_some() || !holder.has_exited()? {
            return Ok(reached);
        }
        return reach(place, launcher, environment);
    }
    rescue(&folder, number, launcher, environment)?;
    Ok(socket::reach(folder.dir())?)
}

/// The socket of a session with a living keeper was removed: the keeper is told, and opens it again.
fn reopen(place: &Place, folder: &Folder, keeper: &Pidfd) -> Result<Option<OwnedFd>, LaunchError> {
    keeper.signal(rustix::process::Signal::HUP)?;
    until_reachable(place, folder, keeper)
}

/// Waits until the socket is open, or until the helper that would open it is gone.
fn until_reachable(place: &Place, folder: &Folder, helper: &Pidfd) -> Result<Option<OwnedFd>, LaunchError> {
    let watcher = Watcher::new()?;
    watcher.watch(&place.path)?;
    for _ in 0..REPAIRS {
        if let Some(socket) = socket::reach(folder.dir())? {
            return Ok(Some(socket));
        }
        let second = rustix::time::Timespec { tv_sec: 1, tv_nsec: 0 };
        let mut fds = [PollFd::new(&watcher, PollFlags::IN), PollFd::new(helper, PollFlags::IN)];
        poll(&mut fds, Some(&second)).map_err(io::Error::from)?;
        watcher.changed()?;
        if helper.has_exited()? {
            // The helper was about to exit, or its replacement is being started.
            return Ok(socket::reach(folder.dir())?);
        }
    }
    Err(LaunchError::NotStarted(format!("{}: its socket is gone and its helpers do not answer", place.id)))
}

/// Starts a replacement holder, once: when several processes find the agent alone, one does it and the others wait.
fn rescue(
    folder: &Folder,
    run: u32,
    launcher: &Launcher,
    environment: &dyn Fn(&Session) -> Vec<CString>,
) -> Result<(), LaunchError> {
    let file = folder.dir().file("rescue.lock", OFlags::RDWR | OFlags::CREATE)?;
    let _held = lock::exclusive(file)?;
    if socket::reach(folder.dir())?.is_some() {
        return Ok(());
    }
    let mut handles = Handles::default();
    handles.put(handles::FOLDER, folder.dir().duplicate()?.try_into()?);
    handles.put(handles::BINARY, launcher.open_program()?);
    // The socket is opened here, so that the next process finds it.
    handles.put(handles::LISTENER, socket::open(folder.dir())?);
    if let Some(agent) = folder.run(run)?.record()?.agent
        && let Some(pidfd) = Pidfd::open(&agent)?
    {
        handles.put(handles::AGENT, pidfd.into());
    }
    let number = run.to_string();
    let session = folder.session()?;
    let flags = ["--replacement", "--run", &number, replacement_holder::FLAG, session.id.as_str()];
    let started = handles.start_helper(&Helper { word: HOLDER, flags: &flags, more: &[] }, &environment(&session))?;
    // The holder continues in a copy of itself.
    spawn::collect(started.pid);
    Ok(())
}
