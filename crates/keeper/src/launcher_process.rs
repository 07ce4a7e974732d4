//! Launching from any process.
//!
//! The race this solves: to begin a run, a process makes a copy of itself (`begin`). A copy of a process with several
//! threads has one of them and the locks of all others, and a copy of a program that is not ostler cannot become a
//! holder. Also, the umask is a property of the whole process and can only be read by setting it. So any other process
//! starts a short-lived helper from the binary of ostler, which has one thread, gets everything over descriptors,
//! launches, and reports.
//!
//! | descriptor | what the helper gets |
//! | --- | --- |
//! | 0 | the order, as JSON in a file in memory: a prompt may be larger than a pipe |
//! | 1 | a pipe for the report, one line of JSON |
//! | 2 | what the program reads, when something was piped in |
//!
//! Its environment is that of the agent. Every process of a launch has the pipe until it runs its own program. So the
//! end of the pipe without a report means that the helper was killed and that no process of the launch is at work any
//! more. Then the caller looks whether the session exists; if it does not, the caller removes what is left of it.

use crate::handles::environment;
use crate::launch::{Launch, LaunchError, Resume, exists_after_kill, launch_here, resume_here};
use ostler_core::record::{Request, Session};
use ostler_store::folder::Folder;
use ostler_store::home::{Home, Place, hidden_name};
use ostler_store::{RunRecord, StoreError};
use ostler_sys::spawn::StartError;
use ostler_sys::{descriptors, memory_file, signals, threads};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use serde::{Deserialize, Serialize};
use std::ffi::{CString, OsStr};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Which program helpers are started from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Launcher {
    /// This process is ostler: it launches by itself while it has one thread.
    #[default]
    ThisProgram,
    /// This process is another program, and this is the binary of ostler.
    Program(PathBuf),
}

impl Launcher {
    /// The binary of ostler.
    pub fn program(&self) -> io::Result<PathBuf> {
        match self {
            Launcher::ThisProgram => std::env::current_exe(),
            Launcher::Program(path) => std::path::absolute(path),
        }
    }

    /// The same, open. For this process it is its own binary, even if another file has its path now.
    pub(crate) fn open_program(&self) -> io::Result<OwnedFd> {
        match self {
            Launcher::ThisProgram => descriptors::own_binary(),
            Launcher::Program(path) => Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?),
        }
    }

    /// What to start a helper from; `None` when this process can launch by itself.
    pub(crate) fn helper(&self) -> io::Result<Option<&Path>> {
        Ok(match self {
            Launcher::ThisProgram if threads::is_single()? => None,
            Launcher::ThisProgram => Some(Path::new(descriptors::OWN_PROGRAM)),
            Launcher::Program(path) => Some(path),
        })
    }
}

/// What the helper is to do.
#[derive(Serialize, Deserialize)]
struct Order {
    task: Task,
    session: Session,
    run: RunRecord,
    /// What goes into the folder of the run, by name.
    files: Vec<(String, Vec<u8>)>,
    /// Descriptor 2 is what the program reads.
    piped: bool,
}

#[derive(Serialize, Deserialize)]
enum Task {
    Launch { home: PathBuf, prompts: Vec<Request> },
    Resume { folder: PathBuf },
}

/// The result of a launch.
#[derive(Debug, Serialize, Deserialize)]
enum Report {
    Launched,
    /// Another process has begun the run.
    BegunByAnother,
    Program(String),
    Held(String),
    NotStarted(String),
    Killed,
    /// A file of the store, and the number of the error.
    File {
        file: String,
        error: i32,
    },
    System(i32),
}

impl Report {
    fn of(result: Result<bool, LaunchError>) -> Report {
        let error = match result {
            Ok(true) => return Report::Launched,
            Ok(false) => return Report::BegunByAnother,
            Err(error) => error,
        };
        let words = error.to_string();
        match error {
            LaunchError::Program(words) => Report::Program(words),
            LaunchError::Held(words) => Report::Held(words),
            LaunchError::Killed => Report::Killed,
            LaunchError::Store(StoreError::Io { file, error }) => match number_of(&error) {
                Some(error) => Report::File { file, error },
                None => Report::NotStarted(words),
            },
            LaunchError::System(error) => number_of(&error).map_or(Report::NotStarted(words), Report::System),
            LaunchError::NotStarted(_) | LaunchError::Store(_) | LaunchError::Holder(_) => Report::NotStarted(words),
        }
    }

    fn into_result(self) -> Result<bool, LaunchError> {
        Err(match self {
            Report::Launched => return Ok(true),
            Report::BegunByAnother => return Ok(false),
            Report::Program(words) => LaunchError::Program(words),
            Report::Held(words) => LaunchError::Held(words),
            Report::NotStarted(words) => LaunchError::NotStarted(words),
            Report::Killed => LaunchError::Killed,
            Report::File { file, error } => StoreError::Io { file, error: io::Error::from_raw_os_error(error) }.into(),
            Report::System(error) => io::Error::from_raw_os_error(error).into(),
        })
    }
}

/// The kernel's number of an error; a full disk that was noticed before the kernel reported it has one as well.
fn number_of(error: &io::Error) -> Option<i32> {
    let full = (error.kind() == io::ErrorKind::StorageFull).then(|| rustix::io::Errno::NOSPC.raw_os_error());
    error.raw_os_error().or(full)
}

/// Starts a helper that launches a session.
pub(crate) fn launch_elsewhere(program: &Path, home: &Home, launch: Launch<'_>) -> Result<Place, LaunchError> {
    let id = launch.session.id;
    let order = Order {
        task: Task::Launch { home: std::path::absolute(home.root())?, prompts: launch.prompts.to_vec() },
        session: launch.session.clone(),
        run: launch.run.clone(),
        files: owned(launch.files),
        piped: launch.piped.is_some(),
    };
    let place = Place { id, path: home.sessions().join(id.as_str()), archived: false };
    match have_done(program, &order, launch.piped, launch.environment)? {
        Some(report) => report.into_result().map(drop)?,
        None => exists_without_helper(home, &place)?,
    }
    Ok(place)
}

/// The helper was killed: the session exists, or what is left of it is removed.
fn exists_without_helper(home: &Home, place: &Place) -> Result<(), LaunchError> {
    let stands = match place.open() {
        Ok(folder) => exists_after_kill(&folder, 1),
        Err(_) => Err(LaunchError::Killed),
    };
    if stands.is_err() {
        for path in [home.sessions().join(hidden_name(place.id.as_str())), place.path.clone()] {
            match std::fs::remove_dir_all(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                Ok(()) | Err(_) => {}
            }
        }
    }
    stands
}

/// Starts a helper that starts the next run of a session.
pub(crate) fn resume_elsewhere(program: &Path, place: &Place, resume: Resume<'_>) -> Result<bool, LaunchError> {
    let order = Order {
        task: Task::Resume { folder: std::path::absolute(&place.path)? },
        session: resume.session.clone(),
        run: resume.run.clone(),
        files: owned(resume.files),
        piped: false,
    };
    if let Some(report) = have_done(program, &order, None, resume.environment)? {
        return report.into_result();
    }
    let (folder, number) = (place.open()?, resume.run.run);
    if folder.newest_run()? < number {
        return Err(LaunchError::Killed);
    }
    let stands = exists_after_kill(&folder, number);
    if stands.is_err() {
        // The run is removed: the run before it is the newest again.
        folder.discard_run(number)?;
    }
    stands.map(|()| true)
}

fn owned(files: &[(&str, Vec<u8>)]) -> Vec<(String, Vec<u8>)> {
    files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.clone())).collect()
}

/// Starts a helper and waits for its report. `None`: the helper was killed, and no process of the launch is at work.
fn have_done(
    program: &Path,
    order: &Order,
    piped: Option<OwnedFd>,
    environment: &[CString],
) -> Result<Option<Report>, LaunchError> {
    let text = serde_json::to_vec(order).map_err(io::Error::other)?;
    let (report, reporter) = pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from)?;
    let variables = environment.iter().filter_map(|entry| {
        let entry = entry.as_bytes();
        let equals = entry.iter().position(|&byte| byte == b'=')?;
        Some((OsStr::from_bytes(&entry[..equals]), OsStr::from_bytes(&entry[equals + 1..])))
    });
    let mut command = Command::new(program);
    command.arg0("ostler").arg(crate::LAUNCH).env_clear().envs(variables);
    command.stdin(memory_file::with(&text)?).stdout(reporter).stderr(piped.map_or_else(Stdio::null, Stdio::from));
    let started = command.spawn().map_err(|error| LaunchError::Holder(StartError::Fork(error)));
    // Closes our copies of what the helper got, above all of the pipe.
    drop(command);
    let mut helper = started?;
    let words = first_line(report)?;
    // An error means that another thread has collected it already.
    let _ = helper.wait();
    Ok(serde_json::from_slice(&words).ok())
}

/// The first line. Empty when the pipe ends before the end of a line.
fn first_line(report: OwnedFd) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut piece = [0; 4096];
    let mut report = std::fs::File::from(report);
    loop {
        match report.read(&mut piece) {
            Ok(0) => return Ok(Vec::new()),
            Ok(count) => line.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if line.ends_with(b"\n") {
            return Ok(line);
        }
    }
}

/// The helper.
pub fn main(_: &[String]) -> i32 {
    signals::ignore(rustix::process::Signal::XFSZ);
    match serve() {
        Ok(()) => 0,
        // The process that started it sees that there is no report.
        Err(_) => 1,
    }
}

fn serve() -> io::Result<()> {
    let mut text = Vec::new();
    io::stdin().lock().read_to_end(&mut text)?;
    let order: Order = serde_json::from_slice(&text).map_err(io::Error::other)?;
    drop(text);
    let reporter = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    let piped = order.piped.then(|| rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3)).transpose()?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    let report = Report::of(carry_out(&order, piped));
    let mut line = serde_json::to_vec(&report).map_err(io::Error::other)?;
    line.push(b'\n');
    let mut rest = line.as_slice();
    while !rest.is_empty() {
        let count = rustix::io::retry_on_intr(|| rustix::io::write(reporter.as_fd(), rest))?;
        rest = &rest[count..];
    }
    Ok(())
}

fn carry_out(order: &Order, piped: Option<OwnedFd>) -> Result<bool, LaunchError> {
    let environment = environment();
    let files: Vec<(&str, Vec<u8>)> = order.files.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect();
    match &order.task {
        Task::Launch { home, prompts } => {
            let home = Home::at(home.clone());
            let (session, run) = (&order.session, &order.run);
            let launch = Launch { session, run, prompts, files: &files, piped, environment: &environment };
            launch_here(&home, launch).map(|_| true)
        }
        Task::Resume { folder } => {
            let place = Place { id: order.session.id, path: folder.clone(), archived: false };
            let folder: Folder = place.open()?;
            let (session, run) = (&order.session, &order.run);
            resume_here(&folder, Resume { session, run, files: &files, environment: &environment })
        }
    }
}
