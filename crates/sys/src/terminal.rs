//! The terminal that this process was started from: raw mode, size, keys, output. It is always restored.
//!
//! Output goes through an open file of our own that never waits. A terminal that accepts nothing (a slow line, Ctrl-S)
//! must not keep us from reading keys, signals and sockets. And if we are killed, the shell's own open file must not
//! stay in a mode that the shell does not expect.

use crate::ready::{Interest, wait};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, isatty, tcflush, tcgetattr,
    tcsetattr,
};
use std::io;
use std::time::{Duration, Instant};

/// What the terminal still processes by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modes {
    /// Nothing: the bytes of another terminal pass through.
    Raw,
    /// Line ends are translated on their way out; we edit, echo and interpret keys ourselves.
    Keys,
}

/// The terminal in one of those modes, until dropped.
#[derive(Debug)]
pub struct Tty {
    output: OwnedFd,
    before: Termios,
    modes: Modes,
}

/// The result of reading keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    Some(usize),
    NotNow,
    /// The terminal is gone.
    Gone,
}

/// The result of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrote {
    Some(usize),
    NotNow,
    /// The terminal is gone.
    Gone,
}

/// Whether standard input and standard output are both a terminal.
#[must_use]
pub fn is_there() -> bool {
    isatty(std::io::stdin()) && isatty(std::io::stdout())
}

/// Discards keys that were typed and not read yet.
pub fn forget_keys() {
    // A terminal that is gone has no keys.
    let _ = tcflush(rustix::stdio::stdin(), QueueSelector::IFlush);
}

/// Reads typed keys, as the terminal gives them.
pub fn read_keys(buffer: &mut [u8]) -> io::Result<Read> {
    match rustix::io::read(rustix::stdio::stdin(), buffer) {
        Ok(0) | Err(Errno::IO | Errno::NODEV | Errno::NXIO) => Ok(Read::Gone),
        Ok(count) => Ok(Read::Some(count)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(Read::NotNow),
        Err(error) => Err(error.into()),
    }
}

/// A panic ends the process at once. Its message needs a terminal that can be used.
fn restore_on_panic(before: Termios, leave: &'static str) {
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let _ = rustix::io::write(std::io::stdout(), leave.as_bytes());
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &before);
        say(panic);
    }));
}

impl Tty {
    /// Sets the modes. `leave`: what is written after a panic, to leave a screen of our own.
    pub fn take(modes: Modes, leave: &'static str) -> io::Result<Tty> {
        let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let output = match rustix::fs::open("/proc/self/fd/1", flags, Mode::empty()) {
            Ok(own) => own,
            // A terminal of another user (su), or one whose name is gone: the inherited descriptor works, but may wait.
            Err(_) => rustix::io::fcntl_dupfd_cloexec(std::io::stdout(), 3)?,
        };
        let tty = Tty { output, before: tcgetattr(std::io::stdin())?, modes };
        restore_on_panic(tty.before.clone(), leave);
        tty.set_modes()?;
        Ok(tty)
    }

    /// Sets the modes again, after a shell has used the terminal in between.
    pub fn set_modes(&self) -> io::Result<()> {
        let mut modes = self.before.clone();
        match self.modes {
            Modes::Raw => modes.make_raw(),
            Modes::Keys => {
                modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
                modes.input_modes -= InputModes::ICRNL | InputModes::INLCR | InputModes::IGNCR | InputModes::IXON;
            }
        }
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        Ok(tcsetattr(std::io::stdin(), OptionalActions::Now, &modes)?)
    }

    /// Sets the modes that a shell expects, for a while.
    pub fn restore_modes(&self) {
        // A terminal that is gone does not have to be restored.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.before);
    }

    /// Rows and columns, if the terminal has a known size.
    #[must_use]
    pub fn size(&self) -> Option<(u16, u16)> {
        crate::pty::size(&self.output)
    }

    /// Readable when a key was pressed.
    #[must_use]
    pub fn keyboard(&self) -> BorrowedFd<'_> {
        rustix::stdio::stdin()
    }

    /// Writable when there is room.
    #[must_use]
    pub fn screen(&self) -> BorrowedFd<'_> {
        self.output.as_fd()
    }

    /// Writes as much as there is room for.
    pub fn write(&self, bytes: &[u8]) -> io::Result<Wrote> {
        match rustix::io::write(&self.output, bytes) {
            Ok(count) => Ok(Wrote::Some(count)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(Wrote::NotNow),
            Err(Errno::IO | Errno::PIPE | Errno::NODEV | Errno::NXIO) => Ok(Wrote::Gone),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes everything. `false`: the terminal is gone, or accepted nothing for as long as `patience`.
    pub fn write_all(&self, mut bytes: &[u8], patience: Option<Duration>) -> io::Result<bool> {
        while !bytes.is_empty() {
            match self.write(bytes)? {
                Wrote::Some(count) => bytes = &bytes[count..],
                Wrote::Gone => return Ok(false),
                Wrote::NotNow => {
                    let until = patience.map(|patience| Instant::now() + patience);
                    let room = wait(&[Interest::write(self.screen())], until)?;
                    if !room[0] && until.is_some_and(|until| Instant::now() >= until) {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        self.restore_modes();
    }
}

/// Standard input, which stays open for as long as the process lives.
#[must_use]
pub fn stdin<'a>() -> BorrowedFd<'a> {
    rustix::stdio::stdin()
}
