//! Waiting until another session has ended.
//!
//! The processes of that session are watched, through pidfds: at the end of a session they exit, and when one of them
//! is replaced, the session is looked at again. This costs nothing on either side, however many sessions wait.

use super::LaterError;
use super::helpers::Helpers;
use ostler_core::outcome::{Kind, Outcome};
use ostler_core::start_when::After;
use ostler_store::home::{Home, Place};
use ostler_sys::process::Pidfd;
use ostler_view::look::{Depth, look_to};
use rustix::event::PollFlags;
use rustix::fd::AsFd;
use rustix::time::Timespec;

/// Whether the other session has ended with the outcome that was asked for.
pub(super) enum Met {
    Yes,
    No { reason: String, stopped: bool },
}

/// A session that has not ended but has no process is about to get one.
const NO_PROCESS_PAUSE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

pub(super) fn wait_for(home: &Home, after: &After, helpers: &mut Helpers) -> Result<Met, LaterError> {
    loop {
        let Some(place) = home.place_of(after.id)? else {
            let reason = format!("session {}, which it waited for, was deleted", after.id);
            return Ok(Met::No { reason, stopped: false });
        };
        let view = match look_to(Depth::Awaited, &place) {
            // The session may have been moved or deleted during the look.
            Err(_) if home.place_of(after.id)?.as_ref() != Some(&place) => continue,
            other => other?,
        };
        if view.ended {
            return Ok(judge(after, view.outcome.as_ref()));
        }
        until_something_ends(&place, helpers)?;
    }
}

fn judge(after: &After, outcome: Option<&Outcome>) -> Met {
    let kind = outcome.map_or(Kind::Lost, |outcome| outcome.kind);
    if after.outcome.is_none_or(|wanted| wanted == kind) {
        return Met::Yes;
    }
    let wanted = after.outcome.map_or("ended", Kind::word);
    let cause = outcome.map(|outcome| format!(": {}", outcome.cause)).unwrap_or_default();
    let reason = format!("session {}, which it waited for, is {}, not {wanted}{cause}", after.id, kind.word());
    let stopped = match kind {
        Kind::Stopped | Kind::Interrupted => true,
        Kind::Succeeded | Kind::Failed | Kind::Lost => false,
    };
    Met::No { reason, stopped }
}

/// Returns when a process of the session has ended, or when there is none.
fn until_something_ends(place: &Place, helpers: &mut Helpers) -> Result<(), LaterError> {
    let folder = place.open()?;
    let agent = folder.run(folder.newest_or_first()?).and_then(|run| run.record()).ok().and_then(|record| record.agent);
    let mut watched = Vec::new();
    for process in folder.helper_processes().iter().chain(agent.as_ref()) {
        if let Some(pidfd) = Pidfd::open(process)?
            && !pidfd.has_exited()?
        {
            watched.push(pidfd);
        }
    }
    let fds: Vec<_> = watched.iter().map(|pidfd| (pidfd.as_fd(), PollFlags::IN)).collect();
    let limit = watched.is_empty().then_some(&NO_PROCESS_PAUSE);
    Ok(helpers.wait(&fds, limit)?)
}
