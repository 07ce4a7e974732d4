//! The entry of the program.
//!
//! The cost this saves: before `main`, Rust reads from `/proc/self/maps` where its stack is and sets up a second one,
//! to print a message when the first overflows. That is 0.07 ms of each start, and a session has three starts. So the C
//! library enters here, and we do the rest of what matters: the standard three must be open, and SIGPIPE must be an
//! error code. (What is missing: the message about the stack, and the name of the first thread in a panic's message.)

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Makes a function without arguments that returns an exit code the program. Its crate needs
/// `#![cfg_attr(all(target_env = "gnu", not(test)), no_main)]`: elsewhere Rust itself must keep the arguments.
#[macro_export]
macro_rules! entry {
    ($program:path) => {
        #[cfg(all(target_env = "gnu", not(test)))]
        #[expect(unsafe_code, reason = "the one symbol that the C library looks for")]
        #[unsafe(no_mangle)]
        extern "C" fn main() -> ! {
            $crate::entry::enter($program)
        }

        #[cfg(not(all(target_env = "gnu", not(test))))]
        fn main() {
            $crate::entry::enter($program)
        }
    };
}

static OUTPUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether what is written to standard output will not be read: it was closed when we were started, or is a pipe whose
/// reader is gone.
#[must_use]
pub fn output_has_no_reader() -> bool {
    let mut looked = [PollFd::from_borrowed_fd(rustix::stdio::stdout(), PollFlags::empty())];
    let hung_up = poll(&mut looked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok()
        && looked[0].revents().intersects(PollFlags::ERR | PollFlags::HUP);
    hung_up || OUTPUT_WAS_CLOSED.load(Ordering::Relaxed)
}

/// Runs the program and exits.
pub fn enter(program: fn() -> u8) -> ! {
    if open_standard().is_err() {
        // The next files that are opened would get their numbers.
        std::process::abort();
    }
    crate::signals::ignore(Signal::PIPE);
    std::process::exit(program().into())
}

/// Opens those of the standard three descriptors that our parent has closed.
fn open_standard() -> io::Result<()> {
    let standard = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    let mut looked = standard.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::empty()));
    while let Err(error) = poll(&mut looked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        if error != rustix::io::Errno::INTR {
            return Err(error.into());
        }
    }
    OUTPUT_WAS_CLOSED.store(looked[1].revents().contains(PollFlags::NVAL), Ordering::Relaxed);
    for _ in looked.iter().filter(|fd| fd.revents().contains(PollFlags::NVAL)) {
        // Gets the lowest free number, which is the first of the missing ones.
        let null = rustix::fs::open("/dev/null", OFlags::RDWR, Mode::empty())?;
        std::mem::forget(null);
    }
    Ok(())
}
