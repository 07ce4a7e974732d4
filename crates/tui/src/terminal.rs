//! The terminal that a face runs on: keys, signals and the size of the window as one stream of events, and output that
//! never blocks. The kernel calls are in `ostler_sys`.

use crate::frame;
pub use ostler_sys::pty::size;
pub use ostler_sys::ready::{self, Interest};
pub use ostler_sys::terminal::{Modes, forget_keys, is_there};
use ostler_sys::terminal::{Read, Tty, Wrote, read_keys};
pub use ostler_sys::terminal_guard::TerminalGuard;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// How long a terminal may accept nothing before writing to it is given up.
const FOR_THE_TERMINAL: Duration = Duration::from_secs(1);

/// A signal that concerns a face.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-\.
    Quit,
    /// The terminal is gone.
    HangUp,
    /// The process is asked to exit.
    Terminate,
    /// The window has a new size.
    Resized,
    /// The process was stopped and continues.
    Continued,
    /// Ctrl-Z.
    Suspend,
}

impl Signal {
    /// The signals that ask a face to exit.
    pub const LEAVING: [Signal; 4] = [Signal::Interrupt, Signal::Quit, Signal::HangUp, Signal::Terminate];
    /// All of them, for a face that draws its own screen.
    pub const ALL: [Signal; 7] = [
        Signal::Interrupt,
        Signal::Quit,
        Signal::HangUp,
        Signal::Terminate,
        Signal::Resized,
        Signal::Continued,
        Signal::Suspend,
    ];

    fn of_kernel(self) -> ostler_sys::signals::Signal {
        use ostler_sys::signals::Signal as Kernel;
        match self {
            Signal::Interrupt => Kernel::INT,
            Signal::Quit => Kernel::QUIT,
            Signal::HangUp => Kernel::HUP,
            Signal::Terminate => Kernel::TERM,
            Signal::Resized => Kernel::WINCH,
            Signal::Continued => Kernel::CONT,
            Signal::Suspend => Kernel::TSTP,
        }
    }
}

/// Signals as something to wait for; from then on they have no other effect in this process.
#[derive(Debug)]
pub struct Signals(ostler_sys::signals::Signals);

impl Signals {
    /// To be called before any thread is started.
    pub fn take(wanted: &[Signal]) -> io::Result<Signals> {
        let wanted: Vec<_> = wanted.iter().map(|signal| signal.of_kernel()).collect();
        Ok(Signals(ostler_sys::signals::Signals::take(&wanted)?))
    }

    /// The next signal that has arrived, without waiting.
    pub fn next(&self) -> io::Result<Option<Signal>> {
        let number = self.0.next()?;
        Ok(number.and_then(|number| Signal::ALL.into_iter().find(|signal| signal.of_kernel().as_raw() == number)))
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// What happens at a terminal.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// Keys were typed.
    Keys(Vec<u8>),
    /// The window has a new size.
    Resized,
    /// The process was stopped and continues: another program had the terminal.
    Continued,
    /// The process is asked to suspend itself; see [`Terminal::suspend`].
    Suspend,
    /// The process is asked to exit.
    Leave,
    /// The terminal is gone.
    Gone,
}

/// What [`Terminal::wait`] waits for.
#[derive(Clone, Copy, Debug)]
pub struct Wait<'a> {
    /// Whether keys are read. A face that has no room for more leaves them unread.
    pub keys: bool,
    /// Whether to wait for room for what was not written yet.
    pub room: bool,
    /// Descriptors of other things.
    pub others: &'a [Interest<'a>],
    /// No longer than this.
    pub until: Option<Instant>,
}

/// What [`Terminal::wait`] returns.
#[derive(Debug, Default)]
pub struct Woken {
    /// What happened at the terminal, in order.
    pub events: Vec<Event>,
    /// Which of the others are ready.
    pub others: Vec<bool>,
}

/// The terminal, in the modes that a face needs, until dropped.
#[derive(Debug)]
pub struct Terminal {
    tty: Tty,
    signals: Signals,
    /// What the terminal has not accepted yet.
    unwritten: Vec<u8>,
    written: usize,
    gone: bool,
}

impl Terminal {
    /// Takes the terminal and these signals.
    pub fn take(modes: Modes, signals: &[Signal]) -> io::Result<Terminal> {
        let signals = Signals::take(signals)?;
        let tty = Tty::take(modes, frame::LEAVE)?;
        Ok(Terminal { tty, signals, unwritten: Vec::new(), written: 0, gone: false })
    }

    /// Rows and columns, when the terminal knows them.
    #[must_use]
    pub fn size(&self) -> Option<(u16, u16)> {
        self.tty.size()
    }

    /// Writes text, however long the terminal takes. A terminal that is gone shows nothing; an event reports that it is
    /// gone.
    pub fn show(&self, text: &[u8]) -> io::Result<()> {
        self.tty.write_all(text, None).map(|_| ())
    }

    /// Writes text as soon as the terminal accepts it, after what was put before.
    pub fn put(&mut self, text: &[u8]) -> io::Result<()> {
        if self.unwritten.is_empty() {
            self.written = 0;
        }
        self.unwritten.extend_from_slice(text);
        self.write()
    }

    /// Whether the terminal has not accepted everything that was put.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        !self.unwritten.is_empty()
    }

    /// Whether writing has failed because the terminal is gone.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// Drops what was put and not written.
    pub fn forget_unwritten(&mut self) {
        self.unwritten.clear();
        self.written = 0;
    }

    fn write(&mut self) -> io::Result<()> {
        while self.written < self.unwritten.len() {
            match self.tty.write(&self.unwritten[self.written..])? {
                Wrote::Some(count) => self.written += count,
                Wrote::NotNow => return Ok(()),
                Wrote::Gone => {
                    self.gone = true;
                    break;
                }
            }
        }
        self.forget_unwritten();
        Ok(())
    }

    /// Writes what is left and then this, to a terminal that may be gone or accept nothing. `false`: the terminal did
    /// not accept it.
    pub fn put_last(&mut self, text: &[u8]) -> bool {
        self.unwritten.extend_from_slice(text);
        let taken = self.tty.write_all(&self.unwritten[self.written..], Some(FOR_THE_TERMINAL));
        self.forget_unwritten();
        matches!(taken, Ok(true))
    }

    /// Stops this process as Ctrl-Z does, with the modes that a shell expects. Returns when the process continues.
    /// `false`: another program has the terminal now.
    pub fn suspend(&mut self) -> io::Result<bool> {
        self.tty.restore_modes();
        ostler_sys::signals::stop()?;
        Ok(self.tty.set_modes().is_ok())
    }

    /// Waits for an event, or until the time is up. What was put is written meanwhile.
    pub fn wait(&mut self, wait: &Wait<'_>) -> io::Result<Woken> {
        let mut interests = vec![Interest::read(self.signals.as_fd())];
        interests.extend(wait.keys.then(|| Interest::read(self.tty.keyboard())));
        let room = (wait.room && self.is_busy()).then(|| Interest::write(self.tty.screen()));
        interests.extend(room);
        let others = interests.len();
        interests.extend_from_slice(wait.others);
        let ready = ready::wait(&interests, wait.until)?;
        let mut woken = Woken { events: Vec::new(), others: ready[others..].to_vec() };
        if ready[0] {
            self.read_signals(&mut woken.events)?;
        }
        if wait.keys && ready[1] {
            woken.events.extend(read_event()?);
        }
        if room.is_some() && ready[others - 1] {
            self.write()?;
        }
        Ok(woken)
    }

    fn read_signals(&self, events: &mut Vec<Event>) -> io::Result<()> {
        while let Some(signal) = self.signals.next()? {
            events.push(match signal {
                Signal::Resized => Event::Resized,
                Signal::Suspend => Event::Suspend,
                // The kernel sends this signal also to a process that has just lost the terminal.
                Signal::Continued if self.tty.set_modes().is_ok() => Event::Continued,
                Signal::Continued => Event::Gone,
                Signal::Interrupt | Signal::Quit | Signal::HangUp | Signal::Terminate => Event::Leave,
            });
        }
        Ok(())
    }
}

fn read_event() -> io::Result<Option<Event>> {
    let mut buffer = [0; 4096];
    Ok(match read_keys(&mut buffer)? {
        Read::Some(count) => Some(Event::Keys(buffer[..count].to_vec())),
        Read::NotNow => None,
        Read::Gone => Some(Event::Gone),
    })
}

/// Lines from a terminal that edits them itself.
#[derive(Debug, Default)]
pub struct Lines {
    bytes: Vec<u8>,
    ended: bool,
}

impl Lines {
    /// Lines that are typed from now on: what was typed before is dropped.
    #[must_use]
    pub fn from_now() -> Lines {
        forget_keys();
        Lines::default()
    }

    /// Readable when a line was typed; `None` when no more lines will come.
    #[must_use]
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        (!self.ended).then(stdin)
    }

    /// A line, if a complete one has been typed.
    pub fn read(&mut self) -> io::Result<Option<String>> {
        let mut buffer = [0; 4096];
        match read_keys(&mut buffer)? {
            Read::Some(count) => self.bytes.extend_from_slice(&buffer[..count]),
            Read::NotNow => {}
            Read::Gone => self.ended = true,
        }
        let Some(end) = self.bytes.iter().position(|&byte| byte == b'\n') else {
            return Ok(None);
        };
        let line: Vec<u8> = self.bytes.drain(..=end).collect();
        Ok(Some(String::from_utf8_lossy(&line).into_owned()))
    }
}

fn stdin<'a>() -> BorrowedFd<'a> {
    ostler_sys::terminal::stdin()
}
