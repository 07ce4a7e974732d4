//! The client's side of starting a session: makes its folder and lets its run begin. And for an agent that has lost both
//! helpers: starts a replacement.

use crate::begin::{Beginning, begin};
use crate::handles::{self, Handles, Helper};
use crate::launcher::{self, Launcher};
use crate::{HOLDER, abandoned, apart};
use ostler_core::record::{Request, Session};
use ostler_store::folder::{After, Folder, RunFolder};
use ostler_store::home::{Home, Place};
use ostler_store::{RunRecord, StoreError, inbox, spare};
use ostler_sys::dir::{Dir, Sync};
use ostler_sys::notify::Watcher;
use ostler_sys::pause::{self, Point};
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
    /// The program cannot be run, in the holder's words.
    #[error("{0}")]
    Program(String),
    /// Somebody else has the conversation: who, in the holder's words.
    #[error("{0}")]
    Held(String),
    /// The session cannot be kept, in the holder's words.
    #[error("{0}")]
    NotStarted(String),
    /// Its holder died without a word.
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

/// How many signs of life in its folder a keeper may give before it has made its socket anew.
const REPAIRS: u32 = 20;

/// What a session is called in the sessions folder until its holder stands.
#[must_use]
pub fn hidden_name(id: &str) -> String {
    format!(".new-{id}")
}

/// So many files must helpers be allowed to open: what they hold, with room for some clients.
const OPEN_FILES: u64 = 64;

/// Refuses to start helpers where they could not do their work. Whatever this process may not do, they may not.
fn check_surroundings() -> Result<(), LaunchError> {
    if let Some(limit) = getrlimit(Resource::Nofile).current.filter(|&limit| limit < OPEN_FILES) {
        let words = format!(
            "only {limit} files may be open at once, and a session needs {OPEN_FILES}; raise the limit with ulimit -n"
        );
        return Err(LaunchError::NotStarted(words));
    }
    // It can only be asked by setting it.
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
        Some(program) => launcher::launch_elsewhere(program, home, launch),
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
    let made =
        spare::take(&sessions, &hidden).and_then(|taken| if taken { Ok(()) } else { sessions.make_dir(&hidden) });
    made.map_err(|error| StoreError::Io { file: place.to_string_lossy().into_owned(), error })?;
    pause::at(Point::FolderMade);
    let folder = Folder::new(sessions.open_dir(&hidden)?);
    abandoned::hold(&folder)?;
    let mut result = start_hidden(&sessions, &folder, launch);
    if let Err(LaunchError::Killed) = result
        && folder.dir().is_called(id.as_str(), &sessions)?
    {
        result = stands_after_all(&folder, 1);
    }
    if result.is_err() {
        // The holder removes what it was given; this is for what never reached one, or outlived it.
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
    pause::at(Point::SessionWritten);
    let run = folder.make_run(launch.run.run)?;
    put_files(&run, launch.files)?;
    for prompt in launch.prompts {
        inbox::append_unnamed(folder, prompt)?;
        pause::at(Point::PromptKept);
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

/// The copy that was to become the holder was killed on its way. If a keeper exists it has found another holder, and all is
/// well; an agent that is alone has lost its input, and is ended.
pub(crate) fn stands_after_all(folder: &Folder, run: u32) -> Result<(), LaunchError> {
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

/// Starts the next run of a session that has ended. Of many who try at once, one makes the run's folder; to the others
/// this is `Ok(false)`. May be called from any process, and from any thread.
pub fn resume(place: &Place, resume: Resume<'_>, launcher: &Launcher) -> Result<bool, LaunchError> {
    match launcher.helper()? {
        Some(program) => launcher::resume_elsewhere(program, place, resume),
        None => resume_here(&place.open()?, resume),
    }
}

/// The same in this process, which must have one thread and be ostler itself.
pub(crate) fn resume_here(folder: &Folder, resume: Resume<'_>) -> Result<bool, LaunchError> {
    let Resume { session, run: record, files, environment } = resume;
    check_surroundings()?;
    // Everybody sees it from here on, and until it has a process of its own it lives as long as we do.
    let record = &RunRecord { launcher: Some(Identity::me()?), ..record.clone() };
    let begun = match folder.begin_run(record, After::Rest) {
        Ok(begun) => begun,
        Err(StoreError::Io { error, .. }) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    pause::at(Point::RunBegun);
    let mut started = if folder.has_room()? {
        put_files(&begun, files)?;
        begin(Beginning { session, folder, run: &begun, record, sessions: None, piped: None, environment })
    } else {
        Err(io::Error::from(io::ErrorKind::StorageFull).into())
    };
    if let Err(LaunchError::Killed) = started {
        started = stands_after_all(folder, record.run);
    }
    if started.is_err() {
        // As if it had never been: the run before it is the newest again.
        folder.discard_run(record.run)?;
    }
    started.map(|()| true)
}

fn put_files(run: &RunFolder, files: &[(&str, Vec<u8>)]) -> Result<(), StoreError> {
    files.iter().try_for_each(|(name, bytes)| run.dir().replace(name, bytes, Sync::No).map_err(StoreError::io(*name)))
}

/// Its process has ended, and it goes on by itself later: a helper has to be there for that.
fn waits(folder: &Folder, run: &RunFolder) -> Result<bool, StoreError> {
    let state = ostler_view::look::fold(folder, run, &run.record()?, &folder.session()?)?.state;
    Ok(state.phase() == ostler_core::view::Phase::Waiting)
}

/// A connection to the keeper of a session that has not ended. Where both helpers are gone and the agent is not, a
/// replacement is started first. `None`: nobody is there any more.
///
/// A replacement starts further runs of the session, so it has the environment of its program.
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
    // One holder at a time: where it lives, its next keeper makes the socket anew when it is told; one that is just dying
    // has closed its socket before anybody can see that it is gone.
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

/// Somebody has removed the socket of a session that is kept: its keeper is told, and makes it anew.
fn reopen(place: &Place, folder: &Folder, keeper: &Pidfd) -> Result<Option<OwnedFd>, LaunchError> {
    keeper.signal(rustix::process::Signal::HUP)?;
    until_reachable(place, folder, keeper)
}

/// Waits until somebody opens the socket, or until the helper whose doing that would be is gone.
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
            // It was about to leave, or its replacement is on its way.
            return Ok(socket::reach(folder.dir())?);
        }
    }
    Err(LaunchError::NotStarted(format!("{}: its socket is gone and its helpers do not answer", place.id)))
}

/// Starts a replacement holder, once: of many who find the agent alone, one does it and the others wait for it.
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
    let flags = ["--replacement", "--run", &number, apart::FLAG, session.id.as_str()];
    let started = handles.start_helper(&Helper { word: HOLDER, flags: &flags, more: &[] }, &environment(&session))?;
    // It goes on in a copy of itself.
    spawn::collect(started.pid);
    Ok(())
}
