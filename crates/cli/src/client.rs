//! Talking to a session: making wishes, and being told when something changes.

use crate::context::wish;
use crate::exit::{Failure, Result};
use ostler_core::record::{Want, Wish};
use ostler_core::view::View;
use ostler_keeper::launch;
use ostler_keeper::wire::{self, Reply, Request};
use ostler_store::folder::Folder;
use ostler_store::home::Place;
use ostler_store::{closing, inbox, journal, look};
use ostler_sys::pause::{self, Point};
use ostler_sys::process::{Identity, Life, Pidfd};
use ostler_sys::socket::{self, PACKET, Packet};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::time::Timespec;
use std::time::Duration;

/// What became of a wish.
#[derive(Debug)]
pub enum Granted {
    Yes,
    Refused(String),
    /// The session has ended; nobody is there to grant anything.
    Ended(Box<View>),
}

/// Looks, and writes down the end of a session that ended with nobody there.
pub fn look_and_record(place: &Place) -> Result<View> {
    let view = look::look(place)?;
    if view.ended && !place.archived {
        closing::record_if_lost(&place.open()?)?;
    }
    Ok(view)
}

/// Makes a wish and waits until it is granted or refused. Durable before this returns, whatever dies in between.
pub fn make_wish(place: &Place, want: Want) -> Result<Granted> {
    let view = look_and_record(place)?;
    if view.ended {
        return Ok(Granted::Ended(Box::new(view)));
    }
    let wish = wish(view.run, want);
    write_down(place, view, &wish)
}

/// The same for what a session's next run is to know as well: it is written down also when the session has ended.
pub fn make_lasting_wish(place: &Place, want: Want) -> Result<Granted> {
    Ok(make_named_wish(place, want)?.0)
}

/// The same, and under which name the journal has what became of it.
pub fn make_named_wish(place: &Place, want: Want) -> Result<(Granted, String)> {
    let view = look_and_record(place)?;
    let wish = wish(view.run, want);
    Ok((write_down(place, view, &wish)?, wish.id))
}

fn write_down(place: &Place, view: View, wish: &Wish) -> Result<Granted> {
    let folder = place.open()?;
    if !folder.dir().is_ours()? {
        // Its keeper hears nobody but its owner, who could not read what we would write.
        return Err(Failure::ours(format!(
            "session {} belongs to another user; run this command as that user",
            place.id
        )));
    }
    pause::at(Point::WishMeant);
    inbox::append(&folder, wish)?;
    if view.ended { Ok(Granted::Ended(Box::new(view))) } else { until_granted(place, &folder, wish) }
}

fn until_granted(place: &Place, folder: &Folder, wish: &Wish) -> Result<Granted> {
    // A holder, its keeper, and one that replaced either.
    let mut deaths = 3;
    loop {
        let Some(socket) = launch::reach(place)? else {
            let view = look_and_record(place)?;
            if view.ended {
                return Ok(already_answered(place, &wish.id)?.unwrap_or_else(|| Granted::Ended(Box::new(view))));
            }
            // Whoever was seen may be on its way out: its door closes a moment before it is gone.
            if deaths > 0 {
                deaths -= 1;
                wait_for_a_death(folder)?;
                continue;
            }
            return Err(Failure::ours(format!(
                "session {} has no keeper, and none can be started; see ostler doctor",
                place.id
            )));
        };
        if let Some(reply) = ask(folder, &socket, &wish.id)? {
            return Ok(reply);
        }
        // The keeper went away; its replacement reads the same inbox.
    }
}

/// Gives the helpers of a session that nobody answers for a moment to be gone.
fn wait_for_a_death(folder: &Folder) -> Result<()> {
    let pidfds =
        folder.helpers().into_iter().map(|helper| Pidfd::open(&helper.process)).collect::<std::io::Result<Vec<_>>>()?;
    let mut fds: Vec<PollFd<'_>> = pidfds.iter().flatten().map(|pidfd| PollFd::new(pidfd, PollFlags::IN)).collect();
    match if fds.is_empty() { Ok(0) } else { poll(&mut fds, Timespec::try_from(SILENCE).ok().as_ref()) } {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(std::io::Error::from(error).into()),
    }
}

/// What the journal says became of a wish. A keeper may have granted it, seen the session end of it and left before we
/// could ask.
fn already_answered(place: &Place, id: &str) -> Result<Option<Granted>> {
    let answer = journal::answer(place.open()?.dir(), id)?;
    Ok(answer.map(|refused| refused.map_or(Granted::Yes, Granted::Refused)))
}

/// How long a helper may be silent before we look whether somebody has stopped it.
pub const SILENCE: Duration = Duration::from_secs(1);

/// Lets helpers go on that somebody has stopped (SIGSTOP, a debugger, a suspended job). They are ours, and nothing moves
/// while they stand.
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

fn ask(folder: &Folder, socket: &OwnedFd, id: &str) -> Result<Option<Granted>> {
    if socket::transmit(socket, &wire::encode(&Request::Wish { id: id.to_owned() }))? == Packet::HungUp {
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
                Ok(Reply::Wish { id: of, refused }) if of == id => {
                    return Ok(Some(refused.map_or(Granted::Yes, Granted::Refused)));
                }
                Ok(_) | Err(_) => {}
            },
            Packet::NotNow => {}
            Packet::HungUp => return Ok(None),
        }
    }
}

/// Is told when something about a session may have changed.
pub struct Watch {
    folder: Folder,
    on: On,
    state_only: bool,
}

/// What may have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// There is more output, and nothing else.
    Output,
    Anything,
}

/// What there is to wait for.
enum On {
    Keeper(OwnedFd),
    /// Nobody keeps it; the agent itself.
    Agent(Pidfd),
    Nothing,
}

impl Watch {
    /// Subscribes. Look at the session after this, and again whenever `descriptor` is readable.
    pub fn new(place: &Place) -> Result<Watch> {
        Watch::open(place, false)
    }

    /// The same, without being told of output that changes nothing about the session.
    pub fn state_only(place: &Place) -> Result<Watch> {
        Watch::open(place, true)
    }

    fn open(place: &Place, state_only: bool) -> Result<Watch> {
        let mut watch = Watch { folder: place.open()?, on: On::Nothing, state_only };
        watch.subscribe()?;
        Ok(watch)
    }

    fn subscribe(&mut self) -> Result<()> {
        if let Some(socket) = socket::reach(self.folder.dir())?
            && socket::transmit(&socket, &wire::encode(&Request::Watch { state_only: self.state_only }))?
                != Packet::HungUp
        {
            rustix::io::ioctl_fionbio(&socket, true).map_err(std::io::Error::from)?;
            self.on = On::Keeper(socket);
            return Ok(());
        }
        self.on = match self.agent()? {
            Some(agent) => match Pidfd::open(&agent)? {
                Some(pidfd) if !pidfd.has_exited()? => On::Agent(pidfd),
                Some(_) | None => On::Nothing,
            },
            None => On::Nothing,
        };
        Ok(())
    }

    fn agent(&self) -> Result<Option<Identity>> {
        let run = self.folder.newest_run()?;
        // A record that cannot be read names nobody to wait for; what else there is to know is in the others.
        Ok(if run == 0 { None } else { self.folder.run(run)?.record().ok().and_then(|record| record.agent) })
    }

    /// Readable when something may have changed; `None` when nothing of the session lives any more.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.on {
            On::Keeper(socket) => Some(socket.as_fd()),
            On::Agent(pidfd) => Some(pidfd.as_fd()),
            On::Nothing => None,
        }
    }

    /// Takes the news away, and finds the replacement of a keeper that is gone.
    pub fn heed(&mut self) -> Result<News> {
        let news = match &self.on {
            On::Keeper(socket) => drain(socket)?,
            On::Agent(_) | On::Nothing => None,
        };
        match news {
            Some(news) => Ok(news),
            None => self.subscribe().map(|()| News::Anything),
        }
    }

    pub fn folder(&self) -> &Folder {
        &self.folder
    }
}

/// Reads everything; `None` when the other side is gone.
fn drain(socket: &OwnedFd) -> Result<Option<News>> {
    let mut buffer = vec![0; PACKET];
    let mut news = None;
    loop {
        match socket::receive(socket, &mut buffer)? {
            Packet::Done(length) => {
                let output_only =
                    matches!(serde_json::from_slice(&buffer[..length]), Ok(Reply::Changed { output_only: true }));
                let first = news.unwrap_or(News::Output);
                news = Some(if output_only { first } else { News::Anything });
            }
            Packet::NotNow => return Ok(Some(news.unwrap_or(News::Anything))),
            Packet::HungUp => return Ok(None),
        }
    }
}
