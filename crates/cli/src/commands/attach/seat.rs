//! Where a person sits at a session that draws no screen of its own: their terminal, the signals that may call them away,
//! and the word that the session has changed, as one stream of events.

use super::detach_key::DetachKey;
use super::tty::{Manners, Read, Tty};
use crate::client::Watch;
use crate::context::Context;
use crate::exit::Result;
use ostler_store::home::Place;
use ostler_sys::signals::Signals;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;

pub struct Seat {
    tty: Tty,
    signals: Signals,
    watch: Watch,
    detach_key: DetachKey,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// Something about the session may have changed.
    Session,
    Keys(Vec<u8>),
    /// The window has another size, or somebody else had the terminal.
    Window,
    /// The person wants to go, or is gone.
    Leave,
}

impl Seat {
    pub fn take(context: &Context, place: &Place) -> Result<Seat> {
        let signals =
            Signals::take(&[Signal::HUP, Signal::TERM, Signal::INT, Signal::QUIT, Signal::WINCH, Signal::CONT])?;
        Ok(Seat {
            tty: Tty::borrow(Manners::Keys)?,
            signals,
            watch: Watch::new(place)?,
            detach_key: DetachKey::new(context.config.detach_key),
        })
    }

    pub fn columns(&self) -> u16 {
        self.tty.size().map_or(80, |(_, columns)| columns)
    }

    /// Shows text; a terminal that is gone shows nothing, and says so as an event.
    pub fn show(&self, text: &[u8]) -> Result<()> {
        self.tty.write_all(text, None)?;
        Ok(())
    }

    /// Waits until something happens.
    pub fn wait(&mut self) -> Result<Vec<Event>> {
        let Some(session) = self.watch.descriptor() else {
            self.watch.heed()?;
            return Ok(vec![Event::Session]);
        };
        let mut fds = [
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::from_borrowed_fd(self.tty.keyboard(), PollFlags::IN),
            PollFd::from_borrowed_fd(session, PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(std::io::Error::from(error).into()),
        }
        let [signals, keyboard, session] = fds.map(|fd| !fd.revents().is_empty());
        let mut events = Vec::new();
        if signals {
            self.heed_signals(&mut events)?;
        }
        if keyboard {
            self.read_keys(&mut events)?;
        }
        if session {
            self.watch.heed()?;
            events.push(Event::Session);
        }
        Ok(events)
    }

    fn heed_signals(&self, events: &mut Vec<Event>) -> Result<()> {
        while let Some(signal) = self.signals.next()? {
            if signal == Signal::WINCH.as_raw() {
                events.push(Event::Window);
            } else if signal == Signal::CONT.as_raw() {
                // The kernel says this also to those who have just lost the terminal.
                events.push(if self.tty.assert_manners().is_ok() { Event::Window } else { Event::Leave });
            } else {
                events.push(Event::Leave);
            }
        }
        Ok(())
    }

    fn read_keys(&mut self, events: &mut Vec<Event>) -> Result<()> {
        let mut buffer = [0; 4096];
        match self.tty.read(&mut buffer)? {
            Read::Some(count) => {
                let sorted = self.detach_key.sort(&buffer[..count]);
                events.push(Event::Keys(sorted.keys));
                if sorted.detach {
                    events.push(Event::Leave);
                }
            }
            Read::NotNow => {}
            Read::Gone => events.push(Event::Leave),
        }
        Ok(())
    }
}
