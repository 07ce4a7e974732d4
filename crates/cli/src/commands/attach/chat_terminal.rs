//! The person's terminal at a session that draws no screen of its own: keys, signals and changes of the session, as one
//! stream of events.

use super::detach_key::DetachKey;
use super::words;
use crate::context::Context;
use crate::exit::Result;
use ostler_engine::Place;
use ostler_engine::session_watch::{News, SessionWatch};
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
    /// There is more output, and nothing else has changed.
    Output,
    Keys(Vec<u8>),
    /// The window has another size.
    Window,
    /// The process was stopped and continues: another program had the terminal.
    Back,
    /// The process is asked to suspend itself.
    Stop,
    /// The terminal has accepted everything, or the time given to [`Seat::wait`] is up.
    Due,
    /// The person detaches.
    Leave,
    /// The process is asked to exit, or its terminal is gone.
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

    /// Shows text, however long the terminal takes. A terminal that is gone shows nothing; an event reports that it is
    /// gone.
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

    /// Writes the last text to a terminal that may be gone or accept nothing.
    pub fn close(mut self, text: &[u8]) {
        self.terminal.put_last(text);
        terminal::forget_keys();
    }

    /// Restores the terminal while the process is suspended. `farewell`: the bytes that restore its screen.
    pub fn stop(&mut self, farewell: &[u8]) -> Result<()> {
        self.terminal.put_last(farewell);
        // If another program has the terminal afterwards, the next read of the keyboard reports it.
        self.terminal.suspend()?;
        Ok(())
    }

    /// Waits for an event, or until this time.
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
            let news = self.watch.take_news()?;
            for told in self.watch.told() {
                self.terminal.put(&words::told(&told))?;
            }
            events.push(match news {
                News::Anything => Event::Session,
                News::Output => Event::Output,
            });
        }
        if events.is_empty() {
            events.push(Event::Due);
        }
        Ok(events)
    }
}
