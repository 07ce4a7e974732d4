//! Replacing the keepers of running sessions by those of this binary. The agents are not affected: their descriptors
//! stay with the holder, and what a keeper knows is in files.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::request::reach;
use crate::session_ref::SessionRef;
use ostler_keeper::VERSION;
use ostler_keeper::launcher_process::Launcher;
use ostler_keeper::wire::{self, Call, Reply};
use ostler_store::HelperRecord;
use ostler_store::home::Place;
use ostler_sys::descriptors;
use ostler_sys::process::Life;
use ostler_sys::socket::{self, PACKET, Packet};
use ostler_view::look;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::time::Timespec;
use std::time::{Duration, Instant};

/// How long a new keeper may take to be up.
const LIMIT: Duration = Duration::from_secs(20);

/// The result of an upgrade of a session's keeper.
#[derive(Debug)]
pub enum Upgraded {
    /// The keeper of version `before` was replaced; `after` keeps the session now.
    Replaced {
        /// The version of the old keeper.
        before: String,
        /// The new keeper.
        after: HelperRecord,
    },
    /// There is no keeper to replace: the session has ended.
    HasEnded,
    /// The session ended during the upgrade.
    EndedMeanwhile,
    /// The session was purged or archived during the upgrade.
    Gone,
}

impl Engine {
    /// Replaces the keeper of a session by that of this binary.
    pub fn upgrade(&self, place: &Place) -> Result<(SessionRef, Upgraded)> {
        let view = match look::look(place) {
            Ok(view) => view,
            Err(_) if !place.path.exists() => return Ok((SessionRef { id: place.id, name: None }, Upgraded::Gone)),
            Err(error) => return Err(Error::CannotLook { id: place.id, error: error.without_session() }),
        };
        let session = SessionRef::from(&view);
        if view.ended {
            return Ok((session, Upgraded::HasEnded));
        }
        Ok(match replace(self, place)? {
            Some((before, after)) => (session, Upgraded::Replaced { before, after }),
            None => (session, Upgraded::EndedMeanwhile),
        })
    }
}

/// The version before, and the keeper after. `None` when the session has ended.
fn replace(engine: &Engine, place: &Place) -> Result<Option<(String, HelperRecord)>> {
    let deadline = Instant::now() + LIMIT;
    let folder = place.open()?;
    let before = folder.keeper()?;
    let words = before.as_ref().map_or_else(|| "none".to_owned(), |keeper| keeper.version.clone());
    // The file that this process runs from, even if its path leads to another file by then.
    let binary = match &engine.launcher {
        Launcher::ThisProgram => descriptors::own_program_for_others(),
        Launcher::Program(_) => engine.launcher.program()?.to_string_lossy().into_owned(),
    };
    let request = Call::Upgrade { binary };
    let mut asked = false;
    loop {
        // Starts a replacement where both helpers are gone.
        let Some(keeper) = reach(engine, place)? else {
            return Ok(None);
        };
        let now = folder.keeper()?;
        let replaced = now.filter(|now| before.as_ref().is_none_or(|before| before.process != now.process));
        if let Some(after) = replaced
            && after.process.look()? == Life::Alive
            && answers(&keeper, deadline)?
        {
            if after.version == VERSION {
                return Ok(Some((words, after)));
            }
            return Err(Error::OldKeeperStays { id: place.id, version: after.version, new: VERSION });
        }
        let message = if asked { &Call::Watch { state_only: false, attended: false } } else { &request };
        if socket::transmit(&keeper, &wire::encode(message))? == Packet::HungUp {
            continue;
        }
        match hear(&keeper, deadline)? {
            Some(Reply::Staying { why }) => {
                return Err(Error::KeeperStays { session: SessionRef::at(place), why });
            }
            Some(Reply::Upgrading) => asked = true,
            Some(
                Reply::Changed { .. }
                | Reply::Request { .. }
                | Reply::Keys { .. }
                | Reply::HasSlot
                | Reply::Notify { .. }
                | Reply::Unknown,
            )
            | None => {}
        }
        if Instant::now() >= deadline {
            return Err(Error::NoNewKeeper { session: SessionRef::at(place), seconds: LIMIT.as_secs() });
        }
    }
}

/// Whether the process at the other end of this connection keeps the session.
fn answers(keeper: &OwnedFd, deadline: Instant) -> Result<bool> {
    let sent = socket::transmit(keeper, &wire::encode(&Call::Watch { state_only: false, attended: false }))?;
    Ok(sent != Packet::HungUp && hear(keeper, deadline)?.is_some())
}

/// The next reply of the keeper; `None` when it closes the connection or the time is up.
fn hear(keeper: &OwnedFd, deadline: Instant) -> Result<Option<Reply>> {
    let left = deadline.saturating_duration_since(Instant::now());
    let limit =
        Timespec { tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX), tv_nsec: i64::from(left.subsec_nanos()) };
    match poll(&mut [PollFd::new(keeper, PollFlags::IN)], Some(&limit)) {
        Ok(0) => return Ok(None),
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => return Ok(None),
        Err(error) => return Err(std::io::Error::from(error).into()),
    }
    let mut buffer = vec![0; PACKET];
    Ok(match socket::receive(keeper, &mut buffer)? {
        Packet::Done(length) => Some(serde_json::from_slice(&buffer[..length]).unwrap_or(Reply::Unknown)),
        Packet::NotNow | Packet::HungUp => None,
    })
}
