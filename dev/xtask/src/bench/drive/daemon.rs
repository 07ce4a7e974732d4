//! A server that stays in the foreground as our child, so that its start and its exit are seen.

use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, PidfdFlags, Signal};

use crate::processes::{Tree, is_readable};

const START_LIMIT: Duration = Duration::from_secs(10);
const END_LIMIT: Duration = Duration::from_secs(10);

pub struct Daemon {
    child: Child,
    pidfd: OwnedFd,
}

impl Daemon {
    /// Starts it and returns once `answers` is true.
    pub fn start(command: &mut Command, answers: impl Fn() -> bool) -> Result<Self> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.with_context(|| format!("cannot start {:?}", command.get_program()))?;
        let pidfd = rustix::process::pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        let daemon = Self { child, pidfd };
        let deadline = Instant::now() + START_LIMIT;
        while !answers() {
            // Its exit is an event; whether it listens can only be checked again and again.
            if is_readable(&daemon.pidfd, Duration::from_millis(5)) {
                bail!("{:?} ended instead of serving", command.get_program());
            }
            if Instant::now() > deadline {
                bail!("{:?} does not answer", command.get_program());
            }
        }
        Ok(daemon)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ended_after_it = i32::try_from(self.pid()).ok().and_then(|pid| Tree::below(vec![pid]).ok());
        // Each call can fail only because the process has exited already, which is what we need.
        let _ = rustix::process::pidfd_send_signal(self.pidfd.as_fd(), Signal::TERM);
        if !is_readable(&self.pidfd, END_LIMIT) {
            let _ = rustix::process::pidfd_send_signal(self.pidfd.as_fd(), Signal::KILL);
        }
        let _ = self.child.wait();
    }
}
