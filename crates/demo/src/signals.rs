//! Signals that can be polled. Each signal sets its flag and then makes one shared descriptor readable. A waiting loop
//! wakes up, and a loop that was not waiting finds the flag, so neither can miss a signal.

use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH};
use signal_hook::{flag, low_level};

use crate::leave::EndSignal;

pub struct Signals {
    wake: UnixStream,
    terminate: Arc<AtomicBool>,
    hang_up: Arc<AtomicBool>,
    interrupt: Arc<AtomicBool>,
    resized: Arc<AtomicBool>,
}

impl Signals {
    pub fn listen() -> io::Result<Signals> {
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let flag_for = |signal| -> io::Result<Arc<AtomicBool>> {
            let raised = Arc::new(AtomicBool::new(false));
            // Handlers run in the order in which they were registered: the flag must be set before the loop wakes up.
            flag::register(signal, Arc::clone(&raised))?;
            low_level::pipe::register(signal, waker.try_clone()?)?;
            Ok(raised)
        };
        Ok(Signals {
            terminate: flag_for(SIGTERM)?,
            hang_up: flag_for(SIGHUP)?,
            interrupt: flag_for(SIGINT)?,
            resized: flag_for(SIGWINCH)?,
            wake,
        })
    }

    /// Readable after a signal, until [`Signals::calm`].
    pub fn wake(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Makes [`Signals::wake`] unreadable again; the flags stay.
    pub fn calm(&self) {
        let mut bytes = [0; 64];
        while (&self.wake).read(&mut bytes).is_ok_and(|read| read == bytes.len()) {}
    }

    /// The signal that asks us to end. The flag stays set, because such a request is never withdrawn.
    pub fn end(&self) -> Option<EndSignal> {
        let raised = |flag: &AtomicBool| flag.load(Ordering::SeqCst);
        if raised(&self.terminate) {
            Some(EndSignal::Terminate)
        } else if raised(&self.hang_up) {
            Some(EndSignal::HangUp)
        } else if raised(&self.interrupt) {
            Some(EndSignal::Interrupt)
        } else {
            None
        }
    }

    /// Whether SIGINT came since the last call, for a mode in which it ends the turn and not the process.
    pub fn take_interrupt(&self) -> bool {
        self.interrupt.swap(false, Ordering::SeqCst)
    }

    /// Whether the size of the terminal changed since the last call.
    pub fn take_resized(&self) -> bool {
        self.resized.swap(false, Ordering::SeqCst)
    }

    /// Whether a flag is set that was not handled yet, so that waiting would be wrong.
    pub fn any(&self) -> bool {
        self.end().is_some() || self.resized.load(Ordering::SeqCst)
    }
}
