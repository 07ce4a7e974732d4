//! The person's own terminal, borrowed: keys one by one instead of in lines, and given back as it was, whatever happens.
//!
//! Output goes through an open file of our own that never waits. A terminal that takes nothing (a slow line, Ctrl-S)
//! must not keep us from hearing keys, signals and the keeper; and the shell's own open file must not be left in a mode
//! that it does not expect if we are killed.

use ostler_tui::frame;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, isatty, tcflush, tcgetattr,
    tcsetattr,
};
use rustix::time::Timespec;
use std::io;
use std::time::Duration;

/// What the terminal still does by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manners {
    /// Nothing: the bytes of another terminal pass through.
    Raw,
    /// Line ends are translated on their way out; we edit, echo and interpret keys ourselves.
    Keys,
}

/// Borrowed until dropped.
pub struct Tty {
    output: OwnedFd,
    before: Termios,
    manners: Manners,
}

/// What came of reading keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    Some(usize),
    NotNow,
    /// There is nobody any more.
    Gone,
}

/// What came of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrote {
    Some(usize),
    NotNow,
    Gone,
}

/// A panic ends the process at once. What it says belongs on a terminal that can be used.
fn give_back_on_panic(before: Termios) {
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let _ = rustix::io::write(std::io::stdout(), frame::LEAVE.as_bytes());
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &before);
        say(panic);
    }));
}

impl Tty {
    /// Whether both ends of us are a terminal.
    pub fn is_there() -> bool {
        isatty(std::io::stdin()) && isatty(std::io::stdout())
    }

    pub fn borrow(manners: Manners) -> io::Result<Tty> {
        let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let output = match rustix::fs::open("/proc/self/fd/1", flags, Mode::empty()) {
            Ok(own) => own,
            // A terminal of another user (su), or one whose name is gone: what we were given works, if less nimbly.
            Err(_) => rustix::io::fcntl_dupfd_cloexec(std::io::stdout(), 3)?,
        };
        let tty = Tty { output, before: tcgetattr(std::io::stdin())?, manners };
        give_back_on_panic(tty.before.clone());
        tty.assert_manners()?;
        Ok(tty)
    }

    /// Sets the modes again, after a shell has had the terminal in between.
    pub fn assert_manners(&self) -> io::Result<()> {
        let mut modes = self.before.clone();
        match self.manners {
            Manners::Raw => modes.make_raw(),
            Manners::Keys => {
                modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
                modes.input_modes -= InputModes::ICRNL | InputModes::INLCR | InputModes::IGNCR | InputModes::IXON;
            }
        }
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        Ok(tcsetattr(std::io::stdin(), OptionalActions::Now, &modes)?)
    }

    /// Gives the modes back that a shell expects, for a while.
    pub fn give_back_manners(&self) {
        // A terminal that is gone needs nothing back.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.before);
    }

    /// Rows and columns, when the terminal knows them.
    pub fn size(&self) -> Option<(u16, u16)> {
        ostler_sys::pty::size(&self.output)
    }

    /// Readable when a key was pressed.
    pub fn keyboard(&self) -> BorrowedFd<'_> {
        rustix::stdio::stdin()
    }

    /// Writable when there is room.
    pub fn screen(&self) -> BorrowedFd<'_> {
        self.output.as_fd()
    }

    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Read> {
        match rustix::io::read(self.keyboard(), buffer) {
            Ok(0) | Err(Errno::IO | Errno::NODEV | Errno::NXIO) => Ok(Read::Gone),
            Ok(count) => Ok(Read::Some(count)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(Read::NotNow),
            Err(error) => Err(error.into()),
        }
    }

    pub fn write(&self, bytes: &[u8]) -> io::Result<Wrote> {
        match rustix::io::write(&self.output, bytes) {
            Ok(count) => Ok(Wrote::Some(count)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(Wrote::NotNow),
            Err(Errno::IO | Errno::PIPE | Errno::NODEV | Errno::NXIO) => Ok(Wrote::Gone),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes everything. `false`: the terminal is gone, or took nothing for as long as we would wait.
    pub fn write_all(&self, mut bytes: &[u8], patience: Option<Duration>) -> io::Result<bool> {
        let patience = patience.and_then(|patience| Timespec::try_from(patience).ok());
        while !bytes.is_empty() {
            match self.write(bytes)? {
                Wrote::Some(count) => bytes = &bytes[count..],
                Wrote::Gone => return Ok(false),
                Wrote::NotNow => match poll(&mut [PollFd::new(&self.output, PollFlags::OUT)], patience.as_ref()) {
                    Ok(0) => return Ok(false),
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                },
            }
        }
        Ok(true)
    }

    /// Forgets keys that were not read: half a mouse report is nothing for a shell.
    pub fn forget_keys(&self) {
        // A terminal that is gone has no keys.
        let _ = tcflush(self.keyboard(), QueueSelector::IFlush);
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        self.give_back_manners();
    }
}
