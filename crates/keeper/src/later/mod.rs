//! The process of a run whose program starts later.
//!
//! The race this solves: a program that is to start once must not start twice, and must not fail to start, whichever of
//! its helpers is killed while it waits. So the process that waits is the one that becomes the program. It is the run's
//! agent from its first moment: it has the environment, the working folder, the terminal or pipes and the locks that
//! the program will have, it is the holder's child, and the records have its pid. When the wait is over, it runs the
//! program in its own place. No helper takes part in that, and none is needed for it.
//!
//! | it waits for | by watching |
//! | --- | --- |
//! | other sessions | the processes of those sessions ([`after_sessions`]) |
//! | a time | a timer of the kernel, which follows the clock when that is set |
//! | a slot of a queue | the session before it, or the slots when it is the first ([`queue_slot`]) |
//!
//! While it waits, it starts helpers when both are killed ([`helpers`]).
//!
//! Before it runs the program it publishes `claim.json` with link(2). A request to stop the session publishes the
//! opposite under the same name: the first one counts, so the program of a session that was withdrawn has not run at
//! all.

mod after_sessions;
mod helpers;
mod queue_slot;

use crate::files::folder_of;
use crate::handles::{Handles, environment};
use crate::start_agent::{LOCK_NUMBER, SLOT_NUMBER, WRITER_NUMBER};
use crate::wire::{self, Call};
use after_sessions::Met;
use helpers::Helpers;
use ostler_core::id::SessionId;
use ostler_core::start_when::{Claim, StartWhen};
use ostler_store::StoreError;
use ostler_store::folder::{Folder, RunFolder};
use ostler_store::home::Home;
use ostler_store::queue::Queue;
use ostler_sys::clock::{self, since_boot_ms};
use ostler_sys::descriptors;
use ostler_sys::lock::Held;
use ostler_sys::machine;
use ostler_sys::pause_points::{self, Point, Role};
use ostler_sys::socket::{self, Packet};
use ostler_sys::spawn::{Leads, Program, Start};
use rustix::event::PollFlags;
use rustix::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use rustix::time::Timespec;
use std::ffi::CString;
use std::io;

/// The word for this process on the command line.
pub const LATER: &str = "__later";
/// The descriptor that it is given in addition to the folder: its place in the queue.
pub(crate) const ENTRY: &str = "entry";
const ENTRY_NAME: &str = "--entry";
const SESSION: &str = "--session";

/// How long a keeper may take to keep the slot before the program runs anyway.
const UNTIL_TOLD_MS: u64 = 5000;

/// The exit codes of a shell for a program that cannot be run.
const CANNOT_RUN: i32 = 126;
const NOT_FOUND: i32 = 127;

/// Why the program cannot be run.
#[derive(Debug, thiserror::Error)]
enum LaterError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    System(#[from] io::Error),
}

/// The place of the session in a queue, when it has one already.
struct Place {
    name: String,
    lock: OwnedFd,
}

/// The result of the waiting.
enum Waited {
    /// The program may run; with this slot, when it was in a queue.
    Over(Option<Held>),
    Never {
        reason: String,
        stopped: bool,
    },
}

/// The process called `__later`. Returns only when the program is not run.
#[must_use]
pub fn main(arguments: &[String]) -> i32 {
    let _ = rustix::thread::set_name(c"ostler-later");
    pause_points::act_as(Role::Waiter);
    let option = |flag: &str| {
        let place = arguments.iter().position(|argument| argument == flag)?;
        arguments.get(place + 1).cloned()
    };
    let number = option("--run").and_then(|number| number.parse().ok()).unwrap_or(1);
    let opened = Handles::from_arguments(arguments).and_then(|mut handles| {
        let folder = folder_of(&handles)?;
        let entry = option(ENTRY_NAME).zip(handles.take(ENTRY)).map(|(name, lock)| Place { name, lock });
        let session = option(SESSION).unwrap_or_default();
        Ok((folder, entry, Helpers::new(handles, number, session)))
    });
    let Ok((folder, entry, mut helpers)) = opened else {
        return CANNOT_RUN;
    };
    match folder.run(number) {
        Ok(run) => wait_and_run(&folder, &run, entry, &mut helpers),
        Err(_) => CANNOT_RUN,
    }
}

fn wait_and_run(folder: &Folder, run: &RunFolder, entry: Option<Place>, helpers: &mut Helpers) -> i32 {
    let waited = wait(folder, run, entry, helpers)
        .unwrap_or_else(|error| Waited::Never { reason: format!("it cannot wait: {error}"), stopped: false });
    match waited {
        Waited::Never { reason, stopped } => {
            // If not even that can be written, the exit code shows that it failed.
            let _ = folder.even_when_full(|| run.publish_claim(&Claim::Never { reason: reason.clone(), stopped }));
            1
        }
        Waited::Over(slot) => {
            // The program's output needs helpers that keep it. If none can be started, the program runs anyway, like
            // one that has lost its helpers later.
            let _ = helpers.look();
            let claim = Claim::Begun { at: clock::now(), ms: since_boot_ms() };
            match folder.even_when_full(|| run.publish_claim(&claim)) {
                Ok(true) => {
                    pause_points::at(Point::ProgramClaimed);
                    tell(folder, slot.as_ref(), helpers);
                    run_program(run, slot)
                }
                // It was withdrawn at the same moment.
                Ok(false) | Err(_) => 1,
            }
        }
    }
}

fn wait(folder: &Folder, run: &RunFolder, entry: Option<Place>, helpers: &mut Helpers) -> Result<Waited, LaterError> {
    let record = run.record()?;
    let StartWhen { at, at_ms, after, queue, arrived } = record.start_when.map(|when| *when).unwrap_or_default();
    let home = home_of(folder)?;
    for one in &after {
        match after_sessions::wait_for(&home, one, helpers)? {
            Met::Yes => {}
            Met::No { reason, stopped } => return Ok(Waited::Never { reason, stopped }),
        }
    }
    let timer = match (at_ms, at) {
        (Some(ms), _) => Some(machine::at_boot_ms(ms)?),
        (None, Some(at)) => Some(machine::at_time(at)?),
        (None, None) => None,
    };
    if let Some(timer) = timer {
        helpers.wait(&[(timer.as_fd(), PollFlags::IN)], None)?;
    }
    let Some(queue) = queue else {
        return Ok(Waited::Over(None));
    };
    let id = record.session.map(|session| session.id).map_or_else(|| folder.session().map(|session| session.id), Ok)?;
    let opened = Queue::open(&home, &queue.name)?;
    let entry = match entry {
        Some(entry) => entry,
        None => {
            let joined = opened.join(id, queue.priority, arrived)?;
            Place { name: joined.name, lock: joined.lock }
        }
    };
    let slot = queue_slot::wait_for(&opened, &entry.name, &entry.lock, helpers)?;
    pause_points::at(Point::SlotTaken);
    opened.leave(&entry.name)?;
    Ok(Waited::Over(Some(slot)))
}

/// The home that a session is in.
pub(crate) fn home_of(folder: &Folder) -> io::Result<Home> {
    let path = std::fs::read_link(descriptors::path_of(folder.dir()))?;
    let root = path.parent().and_then(|sessions| sessions.parent());
    root.map(|root| Home::at(root.to_owned())).ok_or_else(|| io::Error::other("the session is in no home"))
}

/// Wakes the keeper, and hands it a copy of the slot, which is held until the session has ended. When a keeper is
/// killed before it has passed a copy on to the holder, its own copy is closed with it, so its replacement is told
/// again. If no helper lives, the next one reads the claim.
fn tell(folder: &Folder, slot: Option<&Held>, helpers: &mut Helpers) {
    let until_ms = since_boot_ms() + UNTIL_TOLD_MS;
    loop {
        match tell_once(folder, slot, helpers, until_ms) {
            Ok(Told::KeeperGone) if since_boot_ms() < until_ms => {}
            // The program does not wait for a keeper that cannot be told.
            Ok(Told::KeeperGone | Told::Yes) | Err(_) => return,
        }
    }
}

/// The result of informing a keeper.
enum Told {
    /// It has kept the slot, or may still do so.
    Yes,
    /// It is gone, and its copy of the slot may be gone with it.
    KeeperGone,
}

fn tell_once(folder: &Folder, slot: Option<&Held>, helpers: &mut Helpers, until_ms: u64) -> io::Result<Told> {
    let Some(keeper) = socket::reach(folder.dir())? else {
        return Ok(Told::Yes);
    };
    let call = wire::encode(&Call::Begun);
    let Some(slot) = slot else {
        return socket::transmit(&keeper, &call).map(|_| Told::Yes);
    };
    match socket::transmit_with_file(&keeper, &call, slot.file()) {
        Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
            return Ok(Told::KeeperGone);
        }
        sent => sent?,
    }
    let left_ms = i64::try_from(until_ms.saturating_sub(since_boot_ms())).unwrap_or(0);
    let limit = Timespec { tv_sec: left_ms / 1000, tv_nsec: left_ms % 1000 * 1_000_000 };
    let mut reply = [0; 64];
    // The only possible reply: the holder has the slot as well.
    let answered = helpers.wait_for_answer(keeper.as_fd(), &limit)?;
    match if answered { socket::receive(&keeper, &mut reply)? } else { Packet::NotNow } {
        Packet::HungUp => Ok(Told::KeeperGone),
        // A keeper that did not answer in time finds the packet when it looks.
        Packet::Done(_) | Packet::NotNow => Ok(Told::Yes),
    }
}

/// Becomes the program.
fn run_program(run: &RunFolder, slot: Option<Held>) -> i32 {
    let (program, error) = match run.record() {
        Ok(record) => {
            let arguments: Result<Vec<CString>, _> =
                record.argv.iter().map(|word| CString::new(word.as_str())).collect();
            let environment = environment();
            let slot = slot.map(Held::into_file);
            let kept = [0, 1, 2, WRITER_NUMBER, LOCK_NUMBER].into_iter().filter(|&number| descriptors::is_open(number));
            let mut given: Vec<(RawFd, RawFd)> = kept.map(|number| (number, number)).collect();
            given.extend(slot.iter().map(|slot| (slot.as_raw_fd(), SLOT_NUMBER)));
            let program = record.argv.first().cloned().unwrap_or_default();
            let error = match arguments {
                Err(error) => error.into(),
                Ok(arguments) => Start {
                    program: Program::Named(&program),
                    arguments: &arguments,
                    environment: &environment,
                    folder: None,
                    descriptors: &given,
                    leads: Leads::Session,
                    cgroup: None,
                }
                .become_it(),
            };
            (program, error)
        }
        Err(error) => (String::new(), ostler_sys::spawn::StartError::First(error.to_string())),
    };
    let code = match error {
        ostler_sys::spawn::StartError::NotFound => NOT_FOUND,
        _ => CANNOT_RUN,
    };
    // The reason goes to the program's standard error.
    let words = format!("ostler: {program}: {error}\n");
    let _ = rustix::io::write(rustix::stdio::stderr(), words.as_bytes());
    code
}

/// The arguments of this process.
pub(crate) fn arguments(run: u32, session: SessionId, entry: Option<&str>) -> Vec<String> {
    let mut words = vec!["ostler", LATER, "--run"].into_iter().map(str::to_owned).collect::<Vec<_>>();
    words.extend([run.to_string(), SESSION.to_owned(), session.to_string()]);
    words.extend(entry.into_iter().flat_map(|entry| [ENTRY_NAME.to_owned(), entry.to_owned()]));
    words
}
