//! Writing to stdout without missing signals. When the reader stops reading, we wait, but a signal must still end the
//! process: a plain blocking write would hang until SIGKILL.

use std::io;
use std::rc::Rc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::PIPE_BUF;

use crate::leave::{Leave, Trouble};
use crate::signals::Signals;

pub struct Output {
    stdout: io::Stdout,
    signals: Rc<Signals>,
}

impl Output {
    pub fn new(signals: Rc<Signals>) -> Output {
        Output { stdout: io::stdout(), signals }
    }

    /// Writes everything, in pieces of at most PIPE_BUF bytes: a pipe with room takes that much without blocking, in
    /// one piece.
    pub fn write(&self, mut bytes: &[u8]) -> Result<(), Leave> {
        while !bytes.is_empty() {
            self.wait_for_room()?;
            let piece = &bytes[..bytes.len().min(PIPE_BUF)];
            match rustix::io::write(&self.stdout, piece) {
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(Leave::Trouble(Trouble::Output(error.into()))),
            }
        }
        Ok(())
    }

    /// Writes `bytes` if that is possible without waiting: for the last output to a terminal that may be gone or stuck.
    pub fn write_if_room(&self, bytes: &[u8]) {
        let mut fds = [PollFd::new(&self.stdout, PollFlags::OUT)];
        let at_once = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        if poll(&mut fds, Some(&at_once)).is_ok() && fds[0].revents().contains(PollFlags::OUT) {
            let _ = rustix::io::write(&self.stdout, bytes);
        }
    }

    /// A signal counts only while there is no room: a line that can be completed is completed.
    fn wait_for_room(&self) -> Result<(), Leave> {
        loop {
            let mut fds = [
                PollFd::new(&self.stdout, PollFlags::OUT),
                PollFd::from_borrowed_fd(self.signals.wake(), PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(Leave::Trouble(Trouble::Output(error.into()))),
            }
            if !fds[0].revents().is_empty() {
                return Ok(());
            }
            self.signals.calm();
            if let Some(signal) = self.signals.end() {
                return Err(Leave::Signal(signal));
            }
        }
    }
}
