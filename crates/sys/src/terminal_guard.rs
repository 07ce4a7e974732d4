//! Restores the terminal also when the process that draws on it is killed.
//!
//! After SIGKILL that process cannot do anything, so a copy of it waits for its end: the kernel closes the pipe between
//! the two. The copy has a session of its own; job control and signals to the shell's job do not reach it. While the
//! process lives, the copy sleeps.

use crate::clone::{self, Kind};
use crate::pipes::Pipe;
use crate::ready::{Interest, wait};
use crate::spawn::{become_a_session, collect};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use std::cell::Cell;
use std::io;
use std::time::{Duration, Instant};

const TAKEN: u8 = b'1';
const GIVEN_BACK: u8 = b'0';
/// How long the terminal may accept nothing before it is left as it is.
const FOR_THE_TERMINAL: Duration = Duration::from_secs(1);

/// The waiting copy, until dropped.
#[derive(Debug)]
pub struct TerminalGuard {
    line: Option<OwnedFd>,
    pid: i32,
}

impl TerminalGuard {
    /// Makes the copy, which knows the present modes of the terminal. `leave`: what it writes when it restores the
    /// terminal. The process must have one thread.
    pub fn post(leave: &[u8]) -> io::Result<TerminalGuard> {
        let before = tcgetattr(std::io::stdin())?;
        TerminalGuard::waiting(&|| put_back(&before, leave))
    }

    /// Returns when the copy has its own session. Before that, a signal to the shell's job would kill the copy as well:
    /// the kernel sends one when a process that is killed leads the terminal's session.
    fn waiting(restore: &dyn Fn()) -> io::Result<TerminalGuard> {
        let Pipe { read, write } = Pipe::blocking()?;
        let Pipe { read: until_ready, write: ready } = Pipe::blocking()?;
        // The copy's own writing ends would keep the pipes open.
        let (line, ready) = (Cell::new(Some(write)), Cell::new(Some(ready)));
        let life = || {
            become_a_session();
            drop(ready.take());
            drop(line.take());
            if was_taken_at_its_end(&read) {
                restore();
            }
        };
        let child = clone::make(Kind::Fork, None, &life)?;
        drop(ready.take());
        let guard = TerminalGuard { line: line.take(), pid: child.pid };
        rustix::io::retry_on_intr(|| rustix::io::read(&until_ready, &mut [0]))?;
        Ok(guard)
    }

    /// From here on the terminal has to be restored.
    pub fn taken(&self) {
        self.tell(TAKEN);
    }

    /// The terminal is restored.
    pub fn given_back(&self) {
        self.tell(GIVEN_BACK);
    }

    fn tell(&self, word: u8) {
        // A copy that was killed restores nothing; nothing else depends on it.
        let _ = self.line.as_ref().map(|line| rustix::io::write(line, &[word]));
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        drop(self.line.take());
        collect(self.pid);
    }
}

/// Waits for the end of the process and returns whether it had the terminal then.
fn was_taken_at_its_end(line: &OwnedFd) -> bool {
    let mut taken = false;
    let mut words = [0; 64];
    loop {
        match rustix::io::read(line, &mut words) {
            Ok(0) => return taken,
            Ok(count) => taken = words[count - 1] == TAKEN,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Restores the terminal. One that is gone does not have to be restored.
fn put_back(before: &Termios, mut leave: &[u8]) {
    let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
    let until = Instant::now() + FOR_THE_TERMINAL;
    while !leave.is_empty() {
        let room = wait(&[Interest::write(rustix::stdio::stdout())], Some(until));
        if !room.is_ok_and(|room| room[0]) {
            return;
        }
        match rustix::io::write(std::io::stdout(), leave) {
            Ok(count) => leave = &leave[count..],
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use rustix::process::{Pid, getsid};

    #[test]
    fn the_copy_has_its_own_session_as_soon_as_it_is_posted() {
        for _ in 0..20 {
            let guard = TerminalGuard::waiting(&|| {}).unwrap();
            let copy = Pid::from_raw(guard.pid);
            assert_eq!(getsid(copy).unwrap(), copy.unwrap());
        }
    }
}
