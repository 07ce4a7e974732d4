//! Pseudo-terminals.

#![expect(unsafe_code, reason = "TIOCSIG is not in rustix")]

use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetwinsize, tcsetwinsize};
use std::io;

/// A new pseudo-terminal: our side, which never waits, and the program's side.
#[derive(Debug)]
pub struct Pty {
    pub ours: OwnedFd,
    pub theirs: OwnedFd,
}

impl Pty {
    pub fn open(rows: u16, columns: u16) -> io::Result<Pty> {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let name = ptsname(&ours, Vec::new())?;
        let theirs = rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
        resize(&ours, rows, columns)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        Ok(Pty { ours, theirs })
    }
}

/// Sets the size of the terminal; the kernel notifies the program.
pub fn resize(terminal: impl AsFd, rows: u16, columns: u16) -> io::Result<()> {
    Ok(tcsetwinsize(terminal, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?)
}

/// Rows and columns, if this is a terminal with a known size.
pub fn size(terminal: impl AsFd) -> Option<(u16, u16)> {
    tcgetwinsize(terminal).ok().filter(|size| size.ws_row > 0 && size.ws_col > 0).map(|size| (size.ws_row, size.ws_col))
}

/// Sends a signal to the foreground processes of this terminal, as its keyboard would.
pub fn signal_foreground(ours: impl AsFd, signal: rustix::process::Signal) -> io::Result<()> {
    // SAFETY: the argument of TIOCSIG is a plain signal number.
    let result = unsafe { libc::ioctl(ours.as_fd().as_raw_fd(), libc::TIOCSIG, signal.as_raw()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
