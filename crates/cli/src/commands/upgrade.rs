//! `ostler upgrade`: replace the keepers of running sessions by those of this binary. The agents notice nothing: their
//! descriptors stay with the holder, and what a keeper knows is in files.

use super::several;
use crate::args::Upgrade;
use crate::context::Context;
use crate::exit::{Code, Failure, Result};
use crate::say::say;
use crate::ui::called::{called, called_at};
use ostler_keeper::wire::{self, Reply, Request};
use ostler_keeper::{VERSION, launch};
use ostler_store::home::Place;
use ostler_store::{HelperRecord, look};
use ostler_sys::process::Life;
use ostler_sys::socket::{self, PACKET, Packet};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::time::Timespec;
use std::time::{Duration, Instant};

/// How long a new keeper may take to stand.
const LIMIT: Duration = Duration::from_secs(20);

pub fn run(context: &Context, args: &Upgrade) -> Result<Code> {
    let mut places = if args.ids.is_empty() {
        context.engine.home.live_places()?
    } else {
        several::select(&context.engine.home, &args.ids)?
    };
    places.sort_by_key(|place| place.id);
    let named = !args.ids.is_empty();
    Ok(several::each(places, |place| {
        let view = match look::look(&place) {
            Ok(view) => view,
            // Purged or archived while we looked.
            Err(_) if !named && !place.path.exists() => return Ok(Code::Succeeded),
            Err(error) => return Err(Failure::ours(format!("{}: {error}; see ostler doctor", place.id))),
        };
        if view.ended {
            if named {
                say!("{}: has ended; nothing to upgrade", called(&view))?;
            }
            return Ok(Code::Succeeded);
        }
        match replace(&place)? {
            Some((before, after)) => {
                say!("{}: {before} → {} (pid {})", called(&view), after.version, after.process.pid())?
            }
            None => say!("{}: has ended meanwhile", called(&view))?,
        }
        Ok(Code::Succeeded)
    }))
}

/// The version before, and the keeper after. `None` when the session has ended.
fn replace(place: &Place) -> Result<Option<(String, HelperRecord)>> {
    let deadline = Instant::now() + LIMIT;
    let folder = place.open()?;
    let before = folder.keeper()?;
    let words = before.as_ref().map_or_else(|| "none".to_owned(), |keeper| keeper.version.clone());
    // The very file that runs now, whatever its path leads to by then.
    let request = Request::Upgrade { binary: format!("/proc/{}/exe", std::process::id()) };
    let mut asked = false;
    loop {
        // Starts a stand-in where both helpers are gone.
        let Some(keeper) = launch::reach(place)? else {
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
            let id = place.id;
            return Err(Failure::ours(format!(
                "{id} still has its keeper of version {}, because that of {VERSION} does not stay alive; see ostler show {id}",
                after.version
            )));
        }
        let message = if asked { &Request::Watch { state_only: false } } else { &request };
        if socket::transmit(&keeper, &wire::encode(message))? == Packet::HungUp {
            continue;
        }
        match hear(&keeper, deadline)? {
            Some(Reply::Staying { why }) => {
                return Err(Failure::ours(format!(
                    "{}: its keeper cannot be replaced now: {why}; try again later",
                    called_at(place)
                )));
            }
            Some(Reply::Upgrading) => asked = true,
            Some(Reply::Changed { .. } | Reply::Wish { .. } | Reply::Keys { .. } | Reply::Unknown) | None => {}
        }
        if Instant::now() >= deadline {
            return Err(Failure::ours(format!(
                "{}: no new keeper after {} s; try again",
                called_at(place),
                LIMIT.as_secs()
            )));
        }
    }
}

/// Whether whoever is at the other end of this connection keeps the session.
fn answers(keeper: &OwnedFd, deadline: Instant) -> Result<bool> {
    let sent = socket::transmit(keeper, &wire::encode(&Request::Watch { state_only: false }))?;
    Ok(sent != Packet::HungUp && hear(keeper, deadline)?.is_some())
}

/// What the keeper says next; `None` when it hangs up or the time is up.
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
