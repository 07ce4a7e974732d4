//! Watching one session for changes.

use crate::error::Result;
use crate::notify::Told;
use ostler_keeper::wire::{self, Call, Reply};
use ostler_store::folder::Folder;
use ostler_store::home::Place;
use ostler_sys::process::{Identity, Pidfd};
use ostler_sys::ready::{self, Interest};
use ostler_sys::socket::{self, PACKET, Packet};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

/// Reports when something about one session may have changed. It needs no keeper, and finds the replacement of a keeper
/// that is gone.
#[derive(Debug)]
pub struct SessionWatch {
    place: Place,
    /// `None` as long as nothing is read from it: of a thousand sessions that are waited for, most need no more than
    /// the wait.
    folder: Option<Folder>,
    on: On,
    state_only: bool,
    attended: bool,
    told: Vec<Told>,
}

/// What may have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// There is more output, and nothing else.
    Output,
    /// Its state, too.
    Anything,
}

/// What there is to wait for.
#[derive(Debug)]
enum On {
    Keeper(OwnedFd),
    /// The agent itself, because the session has no keeper.
    Agent(Pidfd),
    /// The keeper's process. The journal is watched by the caller.
    Journal(Pidfd),
    Nothing,
}

impl SessionWatch {
    /// Subscribes. Look at the session after this, and again whenever `fd` is readable.
    pub fn new(place: &Place) -> Result<SessionWatch> {
        SessionWatch::open(place, false, false)
    }

    /// The same for a face that shows the session to a person: it receives the notifications for a person
    /// ([`SessionWatch::told`]), and notifications that are sent only while no person is attached are not sent.
    pub fn attended(place: &Place) -> Result<SessionWatch> {
        SessionWatch::open(place, false, true)
    }

    /// The same, but output that changes nothing about the session is not reported.
    pub fn state_only(place: &Place) -> Result<SessionWatch> {
        SessionWatch::open(place, true, false)
    }

    fn open(place: &Place, state_only: bool, attended: bool) -> Result<SessionWatch> {
        let folder = Some(place.open()?);
        let mut watch = SessionWatch { folder, attended, ..SessionWatch::on(place, On::Nothing, state_only) };
        watch.subscribe()?;
        Ok(watch)
    }

    /// For one of very many sessions: the keeper is not asked to report anything, because a thousand keepers would wake
    /// up for that. The caller watches the journal, which has everything that changes a session, and calls
    /// [`SessionWatch::take_news`] when it has changed. The descriptor is readable when the keeper has exited. `None`:
    /// no living keeper is known.
    pub fn beside_journal(place: &Place) -> Result<Option<SessionWatch>> {
        let folder = place.open()?;
        // A record that cannot be read names no process; then the caller watches in another way.
        let Some(keeper) = folder.keeper().ok().flatten() else {
            return Ok(None);
        };
        let on = Pidfd::open(&keeper.process)?.map(On::Journal);
        Ok(on.map(|on| SessionWatch { folder: Some(folder), ..SessionWatch::on(place, on, true) }))
    }

    /// The same, for a keeper whose pidfd is open already.
    #[must_use]
    pub fn beside_keeper(place: &Place, keeper: Pidfd) -> SessionWatch {
        SessionWatch::on(place, On::Journal(keeper), true)
    }

    fn on(place: &Place, on: On, state_only: bool) -> SessionWatch {
        SessionWatch { place: place.clone(), folder: None, on, state_only, attended: false, told: Vec::new() }
    }

    /// The notifications for a person since the last call.
    pub fn told(&mut self) -> Vec<Told> {
        std::mem::take(&mut self.told)
    }

    fn subscribe(&mut self) -> Result<()> {
        let folder = match self.folder.take() {
            Some(folder) => folder,
            None => self.place.open()?,
        };
        let subscribed = self.subscribe_in(&folder);
        self.folder = Some(folder);
        subscribed
    }

    fn subscribe_in(&mut self, folder: &Folder) -> Result<()> {
        if let Some(socket) = socket::reach(folder.dir())?
            && socket::transmit(&socket, &wire::encode(&self.call()))? != Packet::HungUp
        {
            rustix::io::ioctl_fionbio(&socket, true).map_err(std::io::Error::from)?;
            self.on = On::Keeper(socket);
            return Ok(());
        }
        self.on = match agent_of(folder)? {
            Some(agent) => match Pidfd::open(&agent)? {
                Some(pidfd) if !pidfd.has_exited()? => On::Agent(pidfd),
                Some(_) | None => On::Nothing,
            },
            None => On::Nothing,
        };
        Ok(())
    }

    fn call(&self) -> Call {
        Call::Watch { state_only: self.state_only, attended: self.attended }
    }

    /// Readable when something may have changed; `None` when nothing of the session lives any more.
    #[must_use]
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.on {
            On::Keeper(socket) => Some(socket.as_fd()),
            On::Agent(pidfd) | On::Journal(pidfd) => Some(pidfd.as_fd()),
            On::Nothing => None,
        }
    }

    /// Reads what was reported, and finds the replacement of a keeper that is gone.
    pub fn take_news(&mut self) -> Result<News> {
        let news = match &self.on {
            On::Keeper(socket) => drain(socket, &mut self.told)?,
            On::Agent(_) | On::Journal(_) | On::Nothing => None,
        };
        match news {
            Some(news) => Ok(news),
            None => self.subscribe().map(|()| News::Anything),
        }
    }

    /// Waits until something may have changed, or one of `others` can be read. Also returns for each of these whether
    /// it can be read.
    pub fn wait(&mut self, others: &[BorrowedFd<'_>]) -> Result<(News, Vec<bool>)> {
        let Some(fd) = self.fd() else {
            return Ok((self.take_news()?, vec![false; others.len()]));
        };
        let interests: Vec<Interest<'_>> = [fd].iter().chain(others).map(|&fd| Interest::read(fd)).collect();
        let mut ready = ready::wait(&interests, None)?;
        let changed = ready.remove(0);
        let news = if changed { self.take_news()? } else { News::Output };
        Ok((news, ready))
    }

    /// Whether a keeper reports the changes.
    #[must_use]
    pub fn has_keeper(&self) -> bool {
        matches!(self.on, On::Keeper(_))
    }
}

fn agent_of(folder: &Folder) -> Result<Option<Identity>> {
    let run = folder.newest_run()?;
    // A record that cannot be read names no process to wait for; everything else is in the other records.
    Ok(if run == 0 { None } else { folder.run(run)?.record().ok().and_then(|record| record.agent) })
}

/// Reads everything; `None` when the other side is gone.
fn drain(socket: &OwnedFd, told: &mut Vec<Told>) -> Result<Option<News>> {
    let mut buffer = vec![0; PACKET];
    let mut news = None;
    loop {
        match socket::receive(socket, &mut buffer)? {
            Packet::Done(length) => {
                let reply = serde_json::from_slice(&buffer[..length]);
                let output_only = matches!(reply, Ok(Reply::Changed { output_only: true }));
                if let Ok(Reply::Notify { title, text }) = reply {
                    told.push(Told { title, text });
                }
                let first = news.unwrap_or(News::Output);
                news = Some(if output_only { first } else { News::Anything });
            }
            Packet::NotNow => return Ok(Some(news.unwrap_or(News::Anything))),
            Packet::HungUp => return Ok(None),
        }
    }
}
