//! Requests to a session: written to its inbox, so that they are durable, then granted or refused by its keeper.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::prepare;
use ostler_core::record::{Request, RequestKind, Session};
use ostler_core::view::View;
use ostler_keeper::launch;
use ostler_keeper::wire::{self, Call, Reply};
use ostler_store::folder::Folder;
use ostler_store::home::Place;
use ostler_store::{inbox, journal};
use ostler_sys::pause_points::{self, Point};
use ostler_sys::process::{Life, Pidfd};
use ostler_sys::socket::{self, PACKET, Packet};
use ostler_view::look::{Depth, look_to};
use ostler_view::write_outcome;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::time::Timespec;
use std::time::Duration;

/// The answer to a request.
#[derive(Debug)]
pub enum Answered {
    /// The keeper carries it out.
    Accepted,
    /// Why, in the keeper's words.
    Refused(String),
    /// The session has ended, so there is no keeper to accept anything.
    Ended(Box<View>),
}

/// Looks, and records the end of a session that ended while no keeper was there to do it.
pub fn look_and_record(place: &Place) -> Result<View> {
    look_and_record_to(Depth::Everything, place)
}

/// The same, as far as it is asked for.
pub fn look_and_record_to(depth: Depth, place: &Place) -> Result<View> {
    record_if_ended(place, look_to(depth, place)?)
}

/// Records the end of a session that was looked at, if it is not recorded yet.
pub fn record_if_ended(place: &Place, view: View) -> Result<View> {
    if view.ended && !place.archived {
        let folder = place.open()?;
        // The owner of the session could not read what we would write.
        if folder.dir().is_ours()? {
            write_outcome::record_if_lost(&folder, &view)?;
        }
    }
    Ok(view)
}

/// Makes a request and waits until it is accepted or refused. It is durable before this returns, whichever process is
/// killed in between.
pub fn make(engine: &Engine, place: &Place, kind: RequestKind) -> Result<Answered> {
    Ok(make_to_run(engine, place, kind)?.0)
}

/// The same, and returns the run that the request is for.
pub fn make_to_run(engine: &Engine, place: &Place, kind: RequestKind) -> Result<(Answered, u32)> {
    let view = look_and_record_to(Depth::Awaited, place)?;
    engine.notify_if_lost(place, &view);
    let run = view.run;
    if view.ended {
        return Ok((Answered::Ended(Box::new(view)), run));
    }
    let request = engine.request(run, kind);
    Ok((write_down(engine, place, view, &request)?, run))
}

/// The same for a request that the session's next run has to read as well: it is written also when the session has
/// ended.
pub fn make_lasting(engine: &Engine, place: &Place, kind: RequestKind) -> Result<Answered> {
    Ok(make_named(engine, place, kind)?.0)
}

/// The same, and returns the id under which the journal has the answer.
pub fn make_named(engine: &Engine, place: &Place, kind: RequestKind) -> Result<(Answered, String)> {
    let view = look_and_record_to(Depth::Awaited, place)?;
    let request = engine.request(view.run, kind);
    Ok((write_down(engine, place, view, &request)?, request.id))
}

/// The same with a request whose id was reserved: a request that is in the inbox already is not written again.
pub(crate) fn make_once(engine: &Engine, place: &Place, id: &str, kind: RequestKind) -> Result<Answered> {
    let view = look_and_record_to(Depth::Awaited, place)?;
    let folder = place.open()?;
    let (known, _) = inbox::read(folder.dir(), 0)?;
    let request = match known.into_iter().find(|placed| placed.request.id == id) {
        Some(placed) => placed.request,
        None => {
            return write_down(
                engine,
                place,
                view.clone(),
                &Request { id: id.to_owned(), ..engine.request(view.run, kind) },
            );
        }
    };
    if let Some(answered) = already_answered(place, id)? {
        return Ok(answered);
    }
    if view.ended { Ok(Answered::Ended(Box::new(view))) } else { until_granted(engine, place, &folder, &request) }
}

fn write_down(engine: &Engine, place: &Place, view: View, request: &Request) -> Result<Answered> {
    let folder = place.open()?;
    if !folder.dir().is_ours()? {
        // Its keeper accepts requests of its owner only, and the owner could not read what we would write.
        return Err(Error::OtherUser { id: place.id });
    }
    pause_points::at(Point::RequestWritten);
    inbox::append(&folder, request)?;
    if view.ended { Ok(Answered::Ended(Box::new(view))) } else { until_granted(engine, place, &folder, request) }
}

/// A connection to the keeper of a session that has not ended. Where both helpers are gone, a replacement is started
/// first, with the environment that the next run of the session would get from us. `None`: no helper can be reached any
/// more.
pub fn reach(engine: &Engine, place: &Place) -> Result<Option<OwnedFd>> {
    let environment = |session: &Session| prepare::environment(&engine.environment, session, &[]);
    Ok(launch::reach(place, &engine.launcher, &environment)?)
}

fn until_granted(engine: &Engine, place: &Place, folder: &Folder, request: &Request) -> Result<Answered> {
    // A holder, its keeper, and a replacement of either.
    let mut deaths = 3;
    loop {
        let Some(socket) = reach(engine, place)? else {
            let view = look_and_record_to(Depth::Awaited, place)?;
            if view.ended {
                return Ok(already_answered(place, &request.id)?.unwrap_or_else(|| Answered::Ended(Box::new(view))));
            }
            // A helper closes its socket a moment before it exits.
            if deaths > 0 {
                deaths -= 1;
                wait_for_a_death(folder)?;
                continue;
            }
            return Err(Error::NoKeeper { id: place.id });
        };
        if let Some(reply) = ask(folder, &socket, &request.id)? {
            return Ok(reply);
        }
        // The keeper went away; its replacement reads the same inbox.
    }
}

/// Gives the helpers of a session that does not respond a moment to exit.
fn wait_for_a_death(folder: &Folder) -> Result<()> {
    let pidfds =
        folder.helpers().into_iter().map(|helper| Pidfd::open(&helper.process)).collect::<std::io::Result<Vec<_>>>()?;
    let mut fds: Vec<PollFd<'_>> = pidfds.iter().flatten().map(|pidfd| PollFd::new(pidfd, PollFlags::IN)).collect();
    match if fds.is_empty() { Ok(0) } else { poll(&mut fds, Timespec::try_from(SILENCE).ok().as_ref()) } {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(std::io::Error::from(error).into()),
    }
}

/// The answer to a request, according to the journal. A keeper may have accepted it, seen the session end because of
/// it, and exited before we could ask.
fn already_answered(place: &Place, id: &str) -> Result<Option<Answered>> {
    let answer = journal::answer(place.open()?.dir(), id)?;
    Ok(answer.map(|refused| refused.map_or(Answered::Accepted, Answered::Refused)))
}

/// How long a helper may be silent before we check whether it is stopped.
pub const SILENCE: Duration = Duration::from_secs(1);

/// Continues helpers that were stopped (SIGSTOP, a debugger, a suspended job). They are our processes, and the session
/// makes no progress while they are stopped.
pub fn nudge(folder: &Folder) -> Result<()> {
    for helper in folder.helpers() {
        if let Some(pidfd) = Pidfd::open(&helper.process)?
            && helper.process.look()? == Life::Stopped
        {
            pidfd.signal(rustix::process::Signal::CONT)?;
        }
    }
    Ok(())
}

fn ask(folder: &Folder, socket: &OwnedFd, id: &str) -> Result<Option<Answered>> {
    if socket::transmit(socket, &wire::encode(&Call::Request { id: id.to_owned() }))? == Packet::HungUp {
        return Ok(None);
    }
    let mut buffer = vec![0; PACKET];
    loop {
        let mut fds = [PollFd::new(socket, PollFlags::IN)];
        match poll(&mut fds, Timespec::try_from(SILENCE).ok().as_ref()) {
            Ok(0) => {
                nudge(folder)?;
                continue;
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(std::io::Error::from(error).into()),
        }
        match socket::receive(socket, &mut buffer)? {
            Packet::Done(length) => match serde_json::from_slice(&buffer[..length]) {
                Ok(Reply::Request { id: of, refused }) if of == id => {
                    return Ok(Some(refused.map_or(Answered::Accepted, Answered::Refused)));
                }
                Ok(_) | Err(_) => {}
            },
            Packet::NotNow => {}
            Packet::HungUp => return Ok(None),
        }
    }
}
