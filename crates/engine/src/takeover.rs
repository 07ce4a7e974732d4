//! Taking a conversation over: every process that has it is ended properly first, and what it said is on disk before
//! the conversation is continued.
//!
//! A session of ostler, in any home, is stopped as `ostler stop` does it, with the proof. A process that ostler did not
//! start is asked with the signals that suit it, by identity, and never killed: an agent that does not exit keeps its
//! conversation. A server that works for several conversations is not even asked.

use crate::engine::Engine;
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::foreign::about::{self, About};
use crate::foreign::stored::Stored;
use crate::notice::Notice;
use crate::orphans;
use crate::owners::{self, Writer, writers};
use crate::request;
use crate::session_ref::SessionRef;
use crate::stop;
use ostler_core::event::StopHow;
use ostler_core::record::RequestKind;
use ostler_core::view::View;
use ostler_keeper::keeper::started_by;
use ostler_store::backwards;
use ostler_store::home::Place;
use ostler_sys::notify::Watcher;
use ostler_sys::process::Pidfd;
use ostler_view::proof::find_transcript_with;
use ostler_writers::ConversationOwner;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;
use rustix::time::Timespec;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

impl Engine {
    /// Ends every process that has the conversation of this session.
    pub(crate) fn take_over(&self, place: &Place, view: &View, tell: &mut dyn FnMut(Notice)) -> Result<()> {
        if !view.ended {
            self.stop_for_takeover(place, tell)?;
        }
        let Some(native_id) = &view.native_id else {
            return Ok(());
        };
        let writers = writers(&self.environment, view.conversation_agent(), native_id)?;
        refuse_shared(writers.iter().filter_map(|writer| match writer {
            Writer::Session(_) => None,
            Writer::Foreign(foreign) => Some(foreign),
        }))?;
        for writer in writers {
            match writer {
                Writer::Session(occupant) => {
                    let path = PathBuf::from(&occupant.folder);
                    self.stop_for_takeover(&Place { id: occupant.session, path, archived: false }, tell)?;
                }
                Writer::Foreign(foreign) => self.end_foreign(&foreign, native_id, &view.cwd, tell)?,
            }
        }
        Ok(())
    }

    fn stop_for_takeover(&self, place: &Place, tell: &mut dyn FnMut(Notice)) -> Result<()> {
        let grace_ms = u64::try_from(self.config.grace.as_millis()).unwrap_or(u64::MAX);
        let kind = RequestKind::Stop { how: StopHow::Interrupt, grace_ms, why: "resume --takeover".to_owned() };
        let ended = stop::end(place, request::make_to_run(self, place, kind)?)?;
        if !ended.was_over && !ended.is_saved() {
            let session = SessionRef::from(&*ended.view);
            tell(Notice::NotSaved { session: session.clone() });
            return Err(Error::EndedNotResumed { session });
        }
        Ok(())
    }

    /// Ends a process that ostler did not start, once what it was told is on disk, and reports what of its last turn is
    /// on disk.
    pub(crate) fn end_foreign(
        &self,
        process: &ConversationOwner,
        native_id: &str,
        cwd: &str,
        tell: &mut dyn FnMut(Notice),
    ) -> Result<()> {
        wait_until_written(&self.environment, process, native_id, cwd)?;
        end_foreign(process, self.config.grace, tell)?;
        let saved = what_is_saved(&self.environment, process, native_id, cwd)?;
        tell(Notice::EndedForeign { process: process.words(), saved });
        Ok(())
    }
}

/// Refuses when one of these processes works for other conversations as well.
pub(crate) fn refuse_shared<'a>(foreign: impl Iterator<Item = &'a ConversationOwner>) -> Result<()> {
    foreign.filter_map(owners::shared).next().map_or(Ok(()), Err)
}

/// Agents write a little late (measured: up to 102 ms after a turn), and what is not written when an agent is asked to
/// exit is lost. So its record must have been unchanged for `QUIET`. This is waited for, but not longer than `WRITING`.
const QUIET: Duration = Duration::from_millis(500);
const WRITING: Duration = Duration::from_secs(5);
/// Not every folder can be watched.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Waits until what a process was told is on disk, and also what it has answered if it reports that it is idle.
fn wait_until_written(
    environment: &Environment,
    foreign: &ConversationOwner,
    native_id: &str,
    cwd: &str,
) -> Result<()> {
    let Some(at) = kept_by(environment, foreign, native_id, cwd) else {
        return Ok(());
    };
    // Without a watcher the file is polled.
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
        // A turn may have ended since, so this is checked each time.
        let is_idle = is_idle(environment, foreign, native_id)?;
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

/// Whether the process reports that it is idle.
fn is_idle(environment: &Environment, foreign: &ConversationOwner, native_id: &str) -> Result<bool> {
    Ok(writers(environment, &foreign.agent, native_id)?.iter().any(|writer| match writer {
        Writer::Session(_) => false,
        Writer::Foreign(now) => now.identity == foreign.identity && now.status.as_deref() == Some("idle"),
    }))
}

/// Where the conversation of a foreign process is kept.
fn kept_by(environment: &Environment, foreign: &ConversationOwner, native_id: &str, cwd: &str) -> Option<Stored> {
    let variable = environment.lookup();
    let known = ostler_agents::find(&foreign.agent).filter(|known| known.stores(&variable).is_some())?;
    let agent = known.name();
    let file = find_transcript_with(known, native_id, cwd, &variable).or_else(|| known.database(&variable))?;
    let (native_id, file) = (native_id.to_owned(), PathBuf::from(file));
    Some(Stored { agent, native_id, file, updated: SystemTime::UNIX_EPOCH, cwd: None })
}

/// Each of the two signals gets half of the grace period. Processes that the foreign process has started are ended
/// after it, because nothing else would end them.
fn end_foreign(foreign: &ConversationOwner, grace: Duration, tell: &mut dyn FnMut(Notice)) -> Result<()> {
    // In a terminal an interrupt only ends the turn; elsewhere it ends the process and its tools, and is recorded.
    let ways = match foreign.terminal {
        Some(_) => [Signal::TERM, Signal::HUP],
        None => [Signal::INT, Signal::TERM],
    };
    let Some(process) = Pidfd::open(&foreign.identity)? else {
        return Ok(());
    };
    let mut started = Vec::new();
    for signal in ways {
        // A child whose parent is gone cannot be recognised any more, so the children are listed before.
        started.extend(started_by(&foreign.identity)?);
        process.signal(signal)?;
        let limit = Timespec::try_from(grace / 2).ok();
        if poll(&mut [PollFd::new(&process, PollFlags::IN)], limit.as_ref()).map_err(std::io::Error::from)? > 0 {
            for left in orphans::end_processes(&started)? {
                tell(Notice::EndedForeignChild { process: left });
            }
            return Ok(());
        }
    }
    Err(Error::OwnerStays { owner: foreign.words() })
}

/// Called after the foreign process is gone, so nothing more is written to its transcript.
fn what_is_saved(environment: &Environment, foreign: &ConversationOwner, native_id: &str, cwd: &str) -> Result<String> {
    let Some(at) = kept_by(environment, foreign, native_id, cwd) else {
        return Err(not_whole(foreign));
    };
    let in_file = at.queries().is_none();
    if in_file && !ends_whole(&at.file)? {
        return Err(not_whole(foreign));
    }
    let place = if in_file { "transcript" } else { "database" };
    match about::said(&at)? {
        About { messages: 0, .. } | About { torn: true, .. } => Err(not_whole(foreign)),
        About { answered: true, .. } => Ok(format!("its last turn is in the {place}")),
        About { answered: false, .. } => Ok(format!("its last turn was cut off; the prompt is in the {place}")),
    }
}

fn not_whole(foreign: &ConversationOwner) -> Error {
    Error::EndedDamaged { owner: foreign.words() }
}

/// Whether the last line of a file is a complete record.
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
