//! `resume --takeover`: whoever has the conversation is ended properly first, and what it said is on disk before we go on.
//!
//! A session of ostler, of whatever home, is stopped as `ostler stop` does it, with the proof. A stranger is asked as its
//! agent likes to be asked, by identity, and never killed: an agent that does not leave keeps its conversation. A server
//! that works for several conversations is not even asked.

use crate::commands::stop::say_whether_saved;
use crate::context::{Context, variable};
use crate::exit::{Code, Failure, Result};
use crate::say::tell;
use crate::ui::called::called;
use ostler_core::event::StopHow;
use ostler_core::record::Want;
use ostler_core::view::View;
use ostler_engine::Environment;
use ostler_engine::foreign::about::{self, About};
use ostler_engine::foreign::stored::Stored;
use ostler_engine::orphans;
use ostler_engine::owners::{self, Writer, writers};
use ostler_engine::request::{self};
use ostler_engine::stop;
use ostler_keeper::keeper::started_by;
use ostler_store::backwards;
use ostler_store::home::Place;
use ostler_sys::notify::Watcher;
use ostler_sys::process::Pidfd;
use ostler_writers::Holder;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;
use rustix::time::Timespec;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Ends everybody who has the conversation of this session.
pub fn take(context: &Context, place: &Place, view: &View) -> Result<()> {
    if !view.ended {
        stop_session(context, place)?;
    }
    let Some(native_id) = &view.native_id else {
        return Ok(());
    };
    let writers = writers(&context.engine.environment, view.conversation_agent(), native_id)?;
    refuse_shared(writers.iter().filter_map(|writer| match writer {
        Writer::Session(_) => None,
        Writer::Stranger(stranger) => Some(stranger),
    }))?;
    for writer in writers {
        match writer {
            Writer::Session(occupant) => {
                let path = PathBuf::from(&occupant.folder);
                stop_session(context, &Place { id: occupant.session, path, archived: false })?;
            }
            Writer::Stranger(stranger) => {
                wait_until_written(&context.engine.environment, &stranger, native_id, &view.cwd)?;
                end_stranger(&stranger, context.engine.config.grace)?;
                say_what_is_saved(&stranger, native_id, &view.cwd)?;
            }
        }
    }
    Ok(())
}

fn stop_session(context: &Context, place: &Place) -> Result<()> {
    let grace_ms = u64::try_from(context.engine.config.grace.as_millis()).unwrap_or(u64::MAX);
    let want = Want::Stop { how: StopHow::Interrupt, grace_ms, why: "resume --takeover".to_owned() };
    let ended = stop::end(place, request::make(&context.engine, place, want)?)?;
    if !ended.was_over && !say_whether_saved(&ended.view) {
        return Err(Failure::new(
            Code::NotSaved,
            format!("{} was ended but not resumed; run the command again to resume it", called(&ended.view)),
        ));
    }
    Ok(())
}

/// Refuses when one of these works for other conversations as well.
pub fn refuse_shared<'a>(strangers: impl Iterator<Item = &'a Holder>) -> Result<()> {
    strangers.filter_map(owners::shared).next().map_or(Ok(()), |error| Err(error.into()))
}

/// Agents write a little late (measured: up to 102 ms after a turn), and what is not written when one is asked to leave is
/// lost. So its record must have been left alone for this long, and is waited for no longer than that.
const QUIET: Duration = Duration::from_millis(500);
const WRITING: Duration = Duration::from_secs(5);
/// Not every folder can be watched.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Waits until what a process was told is on disk, and what it has answered if it says that it is idle.
pub fn wait_until_written(environment: &Environment, stranger: &Holder, native_id: &str, cwd: &str) -> Result<()> {
    let Some(at) = kept_by(stranger, native_id, cwd) else {
        return Ok(());
    };
    // Without a watcher it is looked at again all the same.
    let watcher = Watcher::new().ok();
    if let (Some(watcher), Some(folder)) = (&watcher, at.file.parent()) {
        let _ = watcher.watch(folder);
    }
    let deadline = Instant::now() + WRITING;
    let mut last = (None, Instant::now());
    while Instant::now() < deadline {
        let stamp = std::fs::metadata(&at.file).ok().map(|file| (file.len(), file.modified().ok()));
        if stamp != last.0 {
            last = (stamp, Instant::now());
        }
        // A turn may have ended since: it is asked again each time.
        let is_idle = is_idle(environment, stranger, native_id)?;
        let is_written = |about: About| about.messages > 0 && !about.torn && (about.answered || !is_idle);
        // Its file may not be there yet.
        if last.1.elapsed() >= QUIET && about::said(&at).is_ok_and(is_written) {
            break;
        }
        let mut fds: Vec<PollFd<'_>> = watcher.iter().map(|watcher| PollFd::new(watcher, PollFlags::IN)).collect();
        let _ = poll(&mut fds, Timespec::try_from(LOOK_AGAIN).ok().as_ref());
        if let Some(watcher) = &watcher {
            let _ = watcher.changed();
        }
    }
    Ok(())
}

/// Whether the process says that it works on nothing.
fn is_idle(environment: &Environment, stranger: &Holder, native_id: &str) -> Result<bool> {
    Ok(writers(environment, &stranger.agent, native_id)?.iter().any(|writer| match writer {
        Writer::Session(_) => false,
        Writer::Stranger(now) => now.identity == stranger.identity && now.status.as_deref() == Some("idle"),
    }))
}

/// Where the conversation of a stranger is kept.
fn kept_by(stranger: &Holder, native_id: &str, cwd: &str) -> Option<Stored> {
    let known = ostler_agents::find(&stranger.agent).filter(|known| known.stores(&variable).is_some())?;
    let agent = known.name();
    let file = ostler_store::proof::find_transcript(known, native_id, cwd).or_else(|| known.database(&variable))?;
    let (native_id, file) = (native_id.to_owned(), PathBuf::from(file));
    Some(Stored { agent, native_id, file, updated: SystemTime::UNIX_EPOCH, cwd: None })
}

/// Half of the grace for each way of asking. What it has started is ended after it: nobody else would.
pub fn end_stranger(stranger: &Holder, grace: Duration) -> Result<()> {
    // In a terminal an interrupt only ends the turn; elsewhere it ends the process, its tools with it, and is noted.
    let ways = match stranger.terminal {
        Some(_) => [Signal::TERM, Signal::HUP],
        None => [Signal::INT, Signal::TERM],
    };
    let Some(process) = Pidfd::open(&stranger.identity)? else {
        return Ok(());
    };
    let mut started = Vec::new();
    for signal in ways {
        // Whose parent is gone can no longer be told from others, so it is asked before.
        started.extend(started_by(&stranger.identity)?);
        process.signal(signal)?;
        let limit = Timespec::try_from(grace / 2).ok();
        if poll(&mut [PollFd::new(&process, PollFlags::IN)], limit.as_ref()).map_err(std::io::Error::from)? > 0 {
            for left in orphans::end_processes(&started)? {
                tell!("ostler: ended what it left running: {left}");
            }
            return Ok(());
        }
    }
    let words = format!("{} is using the conversation and does not exit; end it yourself", stranger.words());
    Err(Failure::new(Code::Refused, words))
}

/// The stranger is gone: whatever will be in its transcript is in it.
pub fn say_what_is_saved(stranger: &Holder, native_id: &str, cwd: &str) -> Result<()> {
    let Some(at) = kept_by(stranger, native_id, cwd) else {
        return Err(not_whole(stranger));
    };
    let in_file = at.queries().is_none();
    if in_file && !ends_whole(&at.file)? {
        return Err(not_whole(stranger));
    }
    let place = if in_file { "transcript" } else { "database" };
    let saved = match about::said(&at)? {
        About { messages: 0, .. } | About { torn: true, .. } => return Err(not_whole(stranger)),
        About { answered: true, .. } => format!("its last turn is in the {place}"),
        About { answered: false, .. } => format!("its last turn was cut off; the prompt is in the {place}"),
    };
    tell!("ostler: ended {}; {saved}", stranger.words());
    Ok(())
}

fn not_whole(stranger: &Holder) -> Failure {
    Failure::new(
        Code::NotSaved,
        format!(
            "{} was ended, and the end of its transcript is damaged; repair it first: ostler repair",
            stranger.words()
        ),
    )
}

/// Whether the last line of a file is a record and has an end.
fn ends_whole(file: &Path) -> Result<bool> {
    let file = File::open(file)?;
    let size = file.metadata()?.len();
    let mut end = [0];
    if size == 0 || file.read_at(&mut end, size - 1)? == 0 || end != [b'\n'] {
        return Ok(false);
    }
    let mut whole = false;
    backwards::lines(&file, 0, |line| {
        whole = serde_json::from_slice::<serde_json::Value>(line).is_ok();
        ControlFlow::Break(())
    })?;
    Ok(whole)
}
