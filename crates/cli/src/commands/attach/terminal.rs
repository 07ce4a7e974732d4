//! A terminal session on the person's terminal: its screen, then every byte as it comes; every key the other way.
//!
//! One thread waits for five things at once: keys, room on the screen, the keeper, signals, and the moment to say
//! something again. A keeper that dies is replaced without the person noticing.

use super::detach_key::{self, DetachKey};
use super::line::{Caller, Heard, Line, Said};
use super::seat::timespec;
use super::shown::{Progress, Shown};
use super::tty::{Manners, Read, Tty};
use super::typed::Typed;
use super::words;
use crate::context::Context;
use crate::exit::{Code, Result};
use ostler_engine::request::look_and_record;
use ostler_screen::Screen;
use ostler_store::folder::RunFolder;
use ostler_store::home::Place;
use ostler_sys::signals::{self, Signals};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// How long a keeper that has just been reached may take to give the program our window before we draw without it.
const FOR_THE_WINDOW: Duration = Duration::from_millis(500);
/// How long keys that were typed before leaving may take to arrive.
const FOR_LAST_KEYS: Duration = Duration::from_secs(2);
/// How long a terminal may take to take nothing at all before it is left as it is.
const FOR_THE_TERMINAL: Duration = Duration::from_secs(1);

pub fn run(context: &Context, place: &Place, read_only: bool) -> Result<Code> {
    let signals = Signals::take(&[
        Signal::HUP,
        Signal::TERM,
        Signal::INT,
        Signal::QUIT,
        Signal::WINCH,
        Signal::CONT,
        Signal::TSTP,
    ])?;
    let folder = place.open()?;
    let run = folder.newest_run()?;
    let caller = Caller { name: uuid::Uuid::new_v4().to_string(), read_only };
    let tty = Tty::borrow(Manners::Raw)?;
    let mut attached = Attached {
        place,
        run: folder.run(run)?,
        signals,
        line: Line::open(place, &caller, tty.size().unwrap_or((0, 0)))?,
        shown: Shown::new(folder.run(run)?)?,
        drawing: Drawing::WaitsForWindow { until: Instant::now() + FOR_THE_WINDOW },
        tty,
        caller,
        detach_key: DetachKey::passing_on(context.engine.config.detach_key),
        typed: Typed::default(),
        leaving: None,
        greeting: words::attached(&detach_key::name(context.engine.config.detach_key)),
        blocked: false,
    };
    let why = attached.stay();
    // The terminal is given back first, also when something went wrong.
    let reader = attached.give_back();
    drop(attached);
    farewell(place, why?, reader)
}

/// Why the session is no longer shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Ended,
    /// The person wants it, or is gone.
    Detached,
}

/// What there is to see.
enum Drawing {
    /// Nothing yet: the program is being given our window, so that what we draw first is already meant for it.
    WaitsForWindow {
        until: Instant,
    },
    Drawn,
}

struct Leaving {
    why: Why,
    by: Instant,
}

struct Attached<'a> {
    place: &'a Place,
    run: RunFolder,
    signals: Signals,
    tty: Tty,
    caller: Caller,
    /// `None`: the session has ended.
    line: Option<Line>,
    shown: Shown,
    drawing: Drawing,
    detach_key: DetachKey,
    typed: Typed,
    leaving: Option<Leaving>,
    /// How to leave, for those who scroll up: the screen itself is the program's.
    greeting: String,
    /// The terminal has no room.
    blocked: bool,
}

/// What woke us.
#[derive(Default)]
struct Woken {
    signals: bool,
    line: bool,
    keyboard: bool,
}

impl Attached<'_> {
    fn stay(&mut self) -> Result<Why> {
        loop {
            let progress = self.show()?;
            if progress == Progress::UpToDate && self.line.is_none() {
                return Ok(Why::Ended);
            }
            if let Some(leaving) = &self.leaving
                && (self.typed.is_empty() || self.line.is_none() || Instant::now() >= leaving.by)
            {
                return Ok(leaving.why);
            }
            self.send_keys()?;
            let woken = self.wait(progress)?;
            if woken.signals {
                self.heed_signals()?;
            }
            if woken.line {
                self.hear()?;
            }
            if woken.keyboard {
                self.read_keys()?;
            }
            if self.detach_key.due().is_some_and(|due| Instant::now() >= due) {
                self.leave(Why::Detached);
            }
        }
    }

    fn show(&mut self) -> Result<Progress> {
        match self.drawing {
            Drawing::WaitsForWindow { until } if self.line.is_some() && Instant::now() < until => {
                return Ok(Progress::UpToDate);
            }
            Drawing::WaitsForWindow { .. } => self.draw_first()?,
            Drawing::Drawn => {}
        }
        let progress = self.shown.show(&self.tty, self.tty.size())?;
        self.blocked = progress == Progress::Blocked;
        if progress == Progress::Gone {
            self.leave(Why::Detached);
        }
        Ok(progress)
    }

    fn draw_first(&mut self) -> Result<()> {
        self.drawing = Drawing::Drawn;
        self.shown.draw_first(self.tty.size(), &self.greeting)
    }

    /// Goes as soon as the keys typed so far have arrived.
    fn leave(&mut self, why: Why) {
        if self.leaving.is_none() {
            self.leaving = Some(Leaving { why, by: Instant::now() + FOR_LAST_KEYS });
        }
    }

    fn wait(&self, progress: Progress) -> Result<Woken> {
        let drawing = match self.drawing {
            Drawing::WaitsForWindow { until } => Some(until),
            Drawing::Drawn => None,
        };
        let more = match progress {
            Progress::More => Some(Instant::now()),
            Progress::UpToDate | Progress::Blocked | Progress::Gone => None,
        };
        let leaving = self.leaving.as_ref().map(|leaving| leaving.by);
        let due = [more, drawing, leaving, self.typed.due(), self.detach_key.due()].into_iter().flatten().min();
        let timeout = due.map(|due| timespec(due.saturating_duration_since(Instant::now())));

        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        let line = self.line.as_ref().map(|line| {
            let (socket, flags) = line.watched();
            fds.push(PollFd::from_borrowed_fd(socket, flags));
            fds.len() - 1
        });
        let keyboard = (self.leaving.is_none() && !self.typed.is_full()).then(|| {
            fds.push(PollFd::from_borrowed_fd(self.tty.keyboard(), PollFlags::IN));
            fds.len() - 1
        });
        if self.blocked && self.leaving.is_none() {
            fds.push(PollFd::from_borrowed_fd(self.tty.screen(), PollFlags::OUT));
        }
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(Woken::default()),
            Err(error) => return Err(std::io::Error::from(error).into()),
        }
        let woken = |index: Option<usize>| index.is_some_and(|index| !fds[index].revents().is_empty());
        Ok(Woken { signals: woken(Some(0)), line: woken(line), keyboard: woken(keyboard) })
    }

    fn heed_signals(&mut self) -> Result<()> {
        while let Some(signal) = self.signals.next()? {
            if signal == Signal::WINCH.as_raw() {
                self.follow_window()?;
            } else if signal == Signal::TSTP.as_raw() {
                self.stop()?;
            } else if signal == Signal::CONT.as_raw() {
                self.come_back()?;
            } else {
                self.leave(Why::Detached);
            }
        }
        Ok(())
    }

    /// Stops as a shell expects it of a program. That it goes on is a signal too.
    fn stop(&mut self) -> Result<()> {
        self.give_back();
        self.tty.give_back_manners();
        signals::stop()?;
        self.come_back()
    }

    /// Somebody else had the terminal. The kernel says this also to those who have just lost it.
    fn come_back(&mut self) -> Result<()> {
        match self.tty.assert_manners() {
            Ok(()) => self.shown.draw(self.tty.size())?,
            Err(_) => self.leave(Why::Detached),
        }
        Ok(())
    }

    fn follow_window(&mut self) -> Result<()> {
        if self.caller.read_only {
            return Ok(());
        }
        if let (Some(line), Some(size)) = (&mut self.line, self.tty.size())
            && line.resize(size)? == Said::Broken
        {
            self.reconnect()?;
        }
        Ok(())
    }

    fn read_keys(&mut self) -> Result<()> {
        let mut buffer = [0; 4096];
        let read = match self.tty.read(&mut buffer)? {
            Read::Some(count) => &buffer[..count],
            Read::NotNow => return Ok(()),
            Read::Gone => {
                self.leave(Why::Detached);
                return Ok(());
            }
        };
        let sorted = self.detach_key.sort(read, Instant::now());
        if !self.caller.read_only {
            self.typed.push(&sorted.keys);
        }
        if sorted.detach {
            self.leave(Why::Detached);
        }
        Ok(())
    }

    fn send_keys(&mut self) -> Result<()> {
        if let Some(line) = &mut self.line
            && let Some(packet) = self.typed.packet(Instant::now())
            && line.say(packet)? == Said::Broken
        {
            self.reconnect()?;
        }
        Ok(())
    }

    fn hear(&mut self) -> Result<()> {
        let mut changed = false;
        while let Some(line) = &mut self.line {
            if line.say_unsent()? == Said::Broken {
                return self.reconnect();
            }
            match line.hear()? {
                Heard::Nothing => break,
                Heard::Keys { received } => {
                    self.typed.acknowledge(received);
                    // The keeper says this when it has given the program our window.
                    if matches!(self.drawing, Drawing::WaitsForWindow { .. }) {
                        self.draw_first()?;
                    }
                }
                Heard::Changed => changed = true,
                Heard::Broken => return self.reconnect(),
            }
        }
        // Output is looked for in every round; what else may have changed is that there is an end.
        if changed && self.run.outcome()?.is_some() {
            self.line = None;
        }
        Ok(())
    }

    /// Finds the replacement of a keeper that is gone, and says again what the last one may not have taken.
    fn reconnect(&mut self) -> Result<()> {
        self.line = match self.run.outcome()? {
            Some(_) => None,
            None => Line::open(self.place, &self.caller, self.tty.size().unwrap_or((0, 0)))?,
        };
        self.typed.start_again();
        Ok(())
    }

    /// Leaves the terminal as a shell expects it, with the cursor below what was shown.
    fn give_back(&self) -> Reader {
        let mut bytes = Screen::reset().to_vec();
        match self.shown.last_row() {
            Some(0) => bytes.extend_from_slice(b"\x1b[H"),
            Some(row) => bytes.extend_from_slice(format!("\x1b[{row};1H\r\n").as_bytes()),
            None => bytes.extend_from_slice(b"\r\n"),
        }
        let taken = self.tty.write_all(&bytes, Some(FOR_THE_TERMINAL));
        self.tty.forget_keys();
        if matches!(taken, Ok(true)) { Reader::There } else { Reader::Gone }
    }
}

/// Whether somebody can read a last word. On a terminal that takes nothing it would keep us here for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    There,
    Gone,
}

fn farewell(place: &Place, why: Why, reader: Reader) -> Result<Code> {
    let (words, code) = match why {
        Why::Detached => (words::detached(place.id), Code::Succeeded),
        Why::Ended => {
            let view = look_and_record(place)?;
            (words::ended(&view), view.outcome.as_ref().map_or(Code::Ours, Code::of))
        }
    };
    match reader {
        Reader::There => words::say(&words),
        Reader::Gone => {}
    }
    Ok(code)
}
