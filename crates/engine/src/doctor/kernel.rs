//! What this kernel can do, found out by trying it.

use super::Finding;
use ostler_sys::descriptors::OWN_PROGRAM;
use ostler_sys::pipes::{Moved, Pipe, shift};
use ostler_sys::process::{Identity, Pidfd};
use ostler_sys::pty::Pty;
use std::process::{Command, Stdio};

pub fn check() -> Vec<Finding> {
    vec![processes(), terminals()]
}

/// Whether there are process descriptors, and whether they report how a process ended that is not our child.
fn processes() -> Finding {
    match exit_of_a_child() {
        Ok(true) => Finding::fine("the kernel reports how a process ended, even after its holder was killed"),
        Ok(false) => Finding::note(
            "this kernel does not report how a process ended after its holder was killed (Linux 6.15 does); its exit is then \"unknown\"",
            "",
        ),
        Err(error) => Finding::problem(
            format!("this kernel has no process descriptors (pidfd): {error}"),
            "use Linux 5.3 or newer",
        ),
    }
}

/// Starts our own program for a moment, and asks for its exit status after it was waited for.
fn exit_of_a_child() -> std::io::Result<bool> {
    let mut child = Command::new(OWN_PROGRAM).arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    let opened = Identity::of(i32::try_from(child.id()).unwrap_or(0)).and_then(|who| match who {
        Some(who) => Pidfd::open(&who),
        None => Ok(None),
    });
    child.wait()?;
    let pidfd = opened?.ok_or_else(|| std::io::Error::other("our own child process is not found"))?;
    Ok(pidfd.exit_status().is_some())
}

/// Whether the kernel can splice bytes from a terminal to a pipe.
fn terminals() -> Finding {
    let moved = || -> std::io::Result<Moved> {
        let (pty, pipe) = (Pty::open(24, 80)?, Pipe::blocking()?);
        rustix::io::write(&pty.theirs, b"x")?;
        shift(&pty.ours, &pipe.write)
    };
    match moved() {
        Ok(Moved::Some(_)) => Finding::fine("the kernel can splice terminal output"),
        Ok(Moved::NotNow | Moved::End) => Finding::note("terminal output did not arrive at once", ""),
        Err(error) => Finding::problem(
            format!("this kernel cannot splice terminal output ({error}); run -t does not work"),
            "use Linux 6.5 or newer, or sessions without -t",
        ),
    }
}
