//! A terminal session on the person's terminal: first its screen, then every byte as it arrives. Every key goes the
//! other way.
//!
//! One thread waits for everything: keys, room on the screen, the keeper, signals, and the time to send something
//! again.

use super::detach_key::{self, DetachKey};
use super::words;
use super::{Leaves, Left};
use crate::context::Context;
use crate::exit::{Code, Result};
use ostler_engine::Place;
use ostler_engine::attach::{Attach, Attached};
use ostler_tui::terminal::{self, Event, Modes, Signal, Terminal, Wait};
use std::time::{Duration, Instant};

/// How long keys that were typed before detaching may take to arrive.
const FOR_LAST_KEYS: Duration = Duration::from_secs(2);

pub fn run(context: &Context, place: &Place, read_only: bool, leaves: Leaves) -> Result<Left> {
    let key = context.engine.config.detach_key;
    let terminal = Terminal::take(Modes::Raw, &Signal::ALL)?;
    let greeting = words::attached(&detach_key::name(key));
    let attach = Attach { window: terminal.size(), read_only, greeting };
    let attached = context.engine.attach(place, attach)?;
    let mut shown = Shown { terminal, attached, detach_key: DetachKey::passing_on(key), leaving: None };
    let why = shown.stay();
    // The terminal is restored first, also when something went wrong.
    let reader = shown.give_back();
    drop(shown);
    farewell(context, place, why?, reader, leaves)
}

/// Why the session is no longer shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Ended,
    /// The person detached.
    Detached,
    /// The process is asked to exit, or its terminal is gone.
    Exits,
}

/// The result of showing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// Everything that has arrived is shown.
    UpToDate,
    /// There may be more to show at once.
    More,
    /// The terminal accepts nothing now.
    Blocked,
}

struct Leaving {
    why: Why,
    by: Instant,
}

struct Shown<'a> {
    terminal: Terminal,
    attached: Attached<'a>,
    detach_key: DetachKey,
    leaving: Option<Leaving>,
}

impl Shown<'_> {
    fn stay(&mut self) -> Result<Why> {
        loop {
            let progress = self.show()?;
            if progress == Progress::UpToDate && self.attached.has_ended() {
                return Ok(Why::Ended);
            }
            if let Some(leaving) = &self.leaving
                && (self.attached.has_all_keys() || self.attached.has_ended() || Instant::now() >= leaving.by)
            {
                return Ok(leaving.why);
            }
            self.wait(progress)?;
            if self.detach_key.due().is_some_and(|due| Instant::now() >= due) {
                self.leave(Why::Detached);
            }
        }
    }

    fn show(&mut self) -> Result<Progress> {
        if self.terminal.is_busy() {
            return Ok(Progress::Blocked);
        }
        let bytes = self.attached.next_bytes()?;
        if bytes.is_empty() {
            // The program is not writing now, so this does not come into the middle of one of its sequences.
            while let Some(told) = self.attached.next_told() {
                self.terminal.put(&words::told(&told))?;
            }
            return Ok(Progress::UpToDate);
        }
        self.terminal.put(bytes)?;
        if self.terminal.is_gone() {
            self.leave(Why::Exits);
        }
        Ok(match self.terminal.is_busy() {
            true => Progress::Blocked,
            false if self.attached.has_more_bytes() => Progress::More,
            false => Progress::UpToDate,
        })
    }

    /// Detaches as soon as the keys typed so far have arrived.
    fn leave(&mut self, why: Why) {
        if self.leaving.is_none() {
            self.leaving = Some(Leaving { why, by: Instant::now() + FOR_LAST_KEYS });
        }
    }

    fn wait(&mut self, progress: Progress) -> Result<()> {
        let more = match progress {
            Progress::More => Some(Instant::now()),
            Progress::UpToDate | Progress::Blocked => None,
        };
        let stays = self.leaving.is_none();
        let leaving = self.leaving.as_ref().map(|leaving| leaving.by);
        let until = [more, leaving, self.attached.due(), self.detach_key.due()].into_iter().flatten().min();
        let others: Vec<_> = self.attached.interest().into_iter().collect();
        let wait = Wait { keys: stays && !self.attached.is_full(), room: stays, others: &others, until };
        let woken = self.terminal.wait(&wait)?;
        for event in woken.events {
            self.take(event)?;
        }
        if woken.others.contains(&true) || self.attached.due().is_some_and(|due| Instant::now() >= due) {
            self.attached.advance()?;
        }
        Ok(())
    }

    fn take(&mut self, event: Event) -> Result<()> {
        match event {
            Event::Keys(keys) => {
                let sorted = self.detach_key.sort(&keys, Instant::now());
                self.attached.type_keys(&sorted.keys)?;
                if sorted.detach {
                    self.leave(Why::Detached);
                }
            }
            Event::Resized => self.attached.resize(self.terminal.size())?,
            Event::Continued => self.redraw()?,
            Event::Suspend => {
                self.give_back();
                if self.terminal.suspend()? { self.redraw()? } else { self.leave(Why::Detached) }
            }
            Event::Leave | Event::Gone => self.leave(Why::Exits),
        }
        Ok(())
    }

    /// Draws everything again, after another program had the terminal.
    fn redraw(&mut self) -> Result<()> {
        self.terminal.forget_unwritten();
        self.attached.resize(self.terminal.size())?;
        Ok(self.attached.redraw()?)
    }

    /// Restores the terminal as a shell expects it, with the cursor below what was shown.
    fn give_back(&mut self) -> Reader {
        self.terminal.forget_unwritten();
        let taken = self.terminal.put_last(&self.attached.reset());
        terminal::forget_keys();
        if taken { Reader::There } else { Reader::Gone }
    }
}

/// Whether a person can read a last line. On a terminal that accepts nothing, writing it would block forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    There,
    Gone,
}

fn farewell(context: &Context, place: &Place, why: Why, reader: Reader, leaves: Leaves) -> Result<Left> {
    let (words, left) = match why {
        Why::Detached => (words::detached(place.id), Left::with(Code::Succeeded)),
        Why::Exits => (words::detached(place.id), Left::exiting()),
        Why::Ended => {
            let view = context.engine.view(place)?;
            if reader == Reader::There {
                words::tell_of_end(&context.engine, &view);
            }
            (words::ended(&view), Left::with(view.outcome.as_ref().map_or(Code::Ours, Code::of)))
        }
    };
    match reader {
        Reader::There => leaves.say(&words),
        Reader::Gone => {}
    }
    Ok(left)
}
