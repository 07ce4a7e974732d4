//! A person at a session that draws no screen of its own: their terminal, the signals that may call them away, and the
//! news that the session has changed, as one stream of events.

use super::detach_key::DetachKey;
use super::words;
use crate::context::Context;
use crate::exit::Result;
use ostler_engine::Place;
use ostler_engine::session_watch::SessionWatch;
use ostler_tui::terminal::{self, Interest, Modes, Signal, Terminal, Wait};
use std::time::Instant;

pub struct Seat {
    terminal: Terminal,
    watch: SessionWatch,
    detach_key: DetachKey,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// Something about the session may have changed.
    Session,
    Keys(Vec<u8>),
    /// The window has another size.
    Window,
    /// The process was stopped and continues: another program had the terminal.
    Back,
    /// The process is asked to stop for a while.
    Stop,
    /// The terminal has accepted everything, or it is time.
    Due,
    /// The person wants to go.
    Leave,
    /// The process is asked to exit, or the person is gone.
    Exit,
}

impl Seat {
    pub fn take(context: &Context, place: &Place) -> Result<Seat> {
        Ok(Seat {
            terminal: Terminal::take(Modes::Keys, &Signal::ALL)?,
            watch: SessionWatch::attended(place)?,
            detach_key: DetachKey::at_once(context.engine.config.detach_key),
        })
    }

    /// Rows and columns.
    pub fn size(&self) -> (u16, u16) {
        self.terminal.size().filter(|(rows, columns)| *rows > 0 && *columns > 0).unwrap_or((24, 80))
    }

    /// Shows text, however long the terminal takes; one that is gone shows nothing, and says so as an event.
    pub fn show(&self, text: &[u8]) -> Result<()> {
        Ok(self.terminal.show(text)?)
    }

    /// Shows text as soon as the terminal accepts it.
    pub fn put(&mut self, text: &[u8]) -> Result<()> {
        Ok(self.terminal.put(text)?)
    }

    /// Whether the terminal has not accepted everything yet. To show more, wait for [`Event::Due`].
    pub fn is_busy(&self) -> bool {
        self.terminal.is_busy()
    }

    /// The last words to a terminal, which may be gone or accept nothing.
    pub fn close(mut self, text: &[u8]) {
        self.terminal.put_last(text);
        terminal::forget_keys();
    }

    /// Gives the terminal back for as long as the process is stopped. `farewell`: what leaves it as it was.
    pub fn stop(&mut self, farewell: &[u8]) -> Result<()> {
        self.terminal.put_last(farewell);
        // That the terminal is another program's now is said by its keyboard.
        self.terminal.suspend()?;
        Ok(())
    }

    /// Waits until something happens, or until then.
    pub fn wait(&mut self, until: Option<Instant>) -> Result<Vec<Event>> {
        let Some(session) = self.watch.fd() else {
            self.watch.take_news()?;
            return Ok(vec![Event::Session]);
        };
        let others = &[Interest::read(session)];
        let woken = self.terminal.wait(&Wait { keys: true, room: true, others, until })?;
        let mut events = Vec::new();
        for event in woken.events {
            match event {
                terminal::Event::Keys(keys) => {
                    let sorted = self.detach_key.sort(&keys, Instant::now());
                    events.push(Event::Keys(sorted.keys));
                    events.extend(sorted.detach.then_some(Event::Leave));
                }
                terminal::Event::Resized => events.push(Event::Window),
                terminal::Event::Continued => events.push(Event::Back),
                terminal::Event::Suspend => events.push(Event::Stop),
                terminal::Event::Leave | terminal::Event::Gone => events.push(Event::Exit),
            }
        }
        if woken.others[0] {
            self.watch.take_news()?;
            for told in self.watch.told() {
                self.terminal.put(&words::told(&told))?;
            }
            events.push(Event::Session);
        }
        if events.is_empty() {
            events.push(Event::Due);
        }
        Ok(events)
    }
}
