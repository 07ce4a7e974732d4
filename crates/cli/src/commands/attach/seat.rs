//! Where a person sits at a session that draws no screen of its own: their terminal, the signals that may call them away,
//! and the word that the session has changed, as one stream of events.

use super::detach_key::DetachKey;
use super::tty::{Manners, Read, Tty, Wrote};
use crate::context::Context;
use crate::exit::Result;
use ostler_engine::watch::Watch;
use ostler_store::home::Place;
use ostler_sys::signals::{self, Signals};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;
use rustix::time::Timespec;
use std::time::{Duration, Instant};

/// How long a terminal may take to take nothing at all before it is left as it is.
const FOR_THE_TERMINAL: Duration = Duration::from_secs(1);

pub struct Seat {
    tty: Tty,
    signals: Signals,
    watch: Watch,
    detach_key: DetachKey,
    /// What the terminal has not taken yet.
    unwritten: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// Something about the session may have changed.
    Session,
    Keys(Vec<u8>),
    /// The window has another size.
    Window,
    /// The process was stopped and goes on: somebody else had the terminal.
    Back,
    /// Somebody wants the process to stop for a while.
    Stop,
    /// The terminal has taken everything, or it is time.
    Due,
    /// The person wants to go, or is gone.
    Leave,
}

impl Seat {
    pub fn take(context: &Context, place: &Place) -> Result<Seat> {
        let signals = Signals::take(&[
            Signal::HUP,
            Signal::TERM,
            Signal::INT,
            Signal::QUIT,
            Signal::WINCH,
            Signal::CONT,
            Signal::TSTP,
        ])?;
        Ok(Seat {
            tty: Tty::borrow(Manners::Keys)?,
            signals,
            watch: Watch::new(place)?,
            detach_key: DetachKey::at_once(context.engine.config.detach_key),
            unwritten: Vec::new(),
        })
    }

    /// Rows and columns.
    pub fn size(&self) -> (u16, u16) {
        self.tty.size().filter(|(rows, columns)| *rows > 0 && *columns > 0).unwrap_or((24, 80))
    }

    /// Shows text, however long the terminal takes; one that is gone shows nothing, and says so as an event.
    pub fn show(&self, text: &[u8]) -> Result<()> {
        self.tty.write_all(text, None)?;
        Ok(())
    }

    /// Shows text as soon as the terminal takes it.
    pub fn put(&mut self, text: &[u8]) -> Result<()> {
        self.unwritten.extend_from_slice(text);
        self.write()
    }

    /// Whether the terminal is still at what it was given: who would show more waits for [`Event::Due`].
    pub fn is_busy(&self) -> bool {
        !self.unwritten.is_empty()
    }

    fn write(&mut self) -> Result<()> {
        while !self.unwritten.is_empty() {
            match self.tty.write(&self.unwritten)? {
                Wrote::Some(count) => drop(self.unwritten.drain(..count)),
                Wrote::NotNow => break,
                // That it is gone is seen by its keyboard.
                Wrote::Gone => self.unwritten.clear(),
            }
        }
        Ok(())
    }

    /// The last words to a terminal, which may be gone or take nothing.
    pub fn close(mut self, text: &[u8]) {
        self.unwritten.extend_from_slice(text);
        let _ = self.tty.write_all(&self.unwritten, Some(FOR_THE_TERMINAL));
        self.tty.forget_keys();
    }

    /// Gives the terminal back for as long as the process is stopped. `farewell`: what leaves it as it was.
    pub fn stop(&mut self, farewell: &[u8]) -> Result<()> {
        self.unwritten.extend_from_slice(farewell);
        self.tty.write_all(&std::mem::take(&mut self.unwritten), Some(FOR_THE_TERMINAL))?;
        self.tty.give_back_manners();
        signals::stop()?;
        Ok(self.tty.assert_manners()?)
    }

    /// Waits until something happens, or until then.
    pub fn wait(&mut self, until: Option<Instant>) -> Result<Vec<Event>> {
        let Some(session) = self.watch.descriptor() else {
            self.watch.heed()?;
            return Ok(vec![Event::Session]);
        };
        let mut fds = vec![
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::from_borrowed_fd(self.tty.keyboard(), PollFlags::IN),
            PollFd::from_borrowed_fd(session, PollFlags::IN),
        ];
        if !self.unwritten.is_empty() {
            fds.push(PollFd::from_borrowed_fd(self.tty.screen(), PollFlags::OUT));
        }
        let timeout = until.map(|until| timespec(until.saturating_duration_since(Instant::now())));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(std::io::Error::from(error).into()),
        }
        let woken: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut events = Vec::new();
        if woken[0] {
            self.heed_signals(&mut events)?;
        }
        if woken[1] {
            self.read_keys(&mut events)?;
        }
        if woken[2] {
            self.watch.heed()?;
            events.push(Event::Session);
        }
        if woken.get(3).is_some_and(|room| *room) {
            self.write()?;
        }
        if events.is_empty() {
            events.push(Event::Due);
        }
        Ok(events)
    }

    fn heed_signals(&self, events: &mut Vec<Event>) -> Result<()> {
        while let Some(signal) = self.signals.next()? {
            if signal == Signal::WINCH.as_raw() {
                events.push(Event::Window);
            } else if signal == Signal::TSTP.as_raw() {
                events.push(Event::Stop);
            } else if signal == Signal::CONT.as_raw() {
                // The kernel says this also to those who have just lost the terminal.
                events.push(if self.tty.assert_manners().is_ok() { Event::Back } else { Event::Leave });
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
                let sorted = self.detach_key.sort(&buffer[..count], Instant::now());
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

pub fn timespec(duration: Duration) -> Timespec {
    // A little late rather than a little early and once more.
    let millis = i64::try_from(duration.as_micros().div_ceil(1000)).unwrap_or(i64::MAX);
    Timespec { tv_sec: millis / 1000, tv_nsec: millis % 1000 * 1_000_000 }
}
