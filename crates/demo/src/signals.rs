//! Signals as something to poll. Each signal sets its flag and then makes one shared descriptor readable, so that a
//! waiting loop wakes up, and a loop that was not waiting finds the flag; neither can miss it.

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
            // Handlers run in the order they were registered: the flag must be up before anybody wakes.
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

    /// The signal that asks us to end. It stays raised: nothing revokes it.
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

    /// Whether SIGINT came since this was last asked, for a mode that takes it as "end the turn" and not as "leave".
    pub fn take_interrupt(&self) -> bool {
        self.interrupt.swap(false, Ordering::SeqCst)
    }

    /// Whether the terminal changed its size since this was last asked.
    pub fn take_resized(&self) -> bool {
        self.resized.swap(false, Ordering::SeqCst)
    }

    /// Whether a flag is up that nobody looked at yet, so that waiting would be wrong.
    pub fn any(&self) -> bool {
        self.end().is_some() || self.resized.load(Ordering::SeqCst)
    }
}
