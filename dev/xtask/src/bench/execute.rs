//! Running one command to its end: how long it took, what it printed, never longer than a limit.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::fs::MemfdFlags;
use rustix::process::{Pid, PidfdFlags, Signal};

use super::clock::Moment;
use super::rest::until_at_rest;
use crate::processes::is_readable;

/// No measured command takes longer; one that does hangs.
pub const LIMIT: Duration = Duration::from_secs(120);

pub struct Finished {
    pub ms: f64,
    pub stdout: String,
}

/// A child process whose output goes to memory rather than to pipes: whatever it leaves in the background may hold a
/// pipe open, and nobody would know when to stop reading.
pub struct Started {
    child: Child,
    pidfd: OwnedFd,
    stdout: File,
    stderr: File,
    at: Moment,
    shown: String,
}

pub fn start(command: &mut Command) -> Result<Started> {
    let memory = || rustix::fs::memfd_create("output", MemfdFlags::CLOEXEC).map(File::from);
    let (stdout, stderr) = (memory()?, memory()?);
    command.stdin(Stdio::null()).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
    let shown = shown(command);
    let at = Moment::now();
    let child = command.spawn().with_context(|| format!("cannot start {shown}"))?;
    let pidfd = rustix::process::pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
    Ok(Started { child, pidfd, stdout, stderr, at, shown })
}

impl Started {
    /// Waits for the end. An exit code other than 0 is an error, with the last line of stderr.
    pub fn finish(mut self, limit: Duration) -> Result<(Finished, Moment)> {
        if !is_readable(&self.pidfd, limit) {
            rustix::process::pidfd_send_signal(self.pidfd.as_fd(), Signal::KILL)?;
            self.child.wait()?;
            bail!("{} did not return within {} s", self.shown, limit.as_secs());
        }
        let status = self.child.wait()?;
        let ended = Moment::now();
        if !status.success() {
            let stderr = read_back(&mut self.stderr)?;
            bail!("{}: {status} {}", self.shown, stderr.lines().last().unwrap_or("(and said nothing)"));
        }
        Ok((Finished { ms: ended.ms_since(self.at), stdout: read_back(&mut self.stdout)? }, ended))
    }

    /// Returns once the process does nothing but wait.
    pub fn until_it_waits(&self) -> Result<()> {
        until_at_rest(&[i32::try_from(self.child.id())?]).with_context(|| self.shown.clone())
    }

    /// Lets time pass while it waits; false when it ended meanwhile.
    pub fn waits_for(&self, time: Duration) -> bool {
        !is_readable(&self.pidfd, time)
    }
}

/// Starts a command and waits for its end.
pub fn run(command: &mut Command) -> Result<Finished> {
    Ok(start(command)?.finish(LIMIT)?.0)
}

fn read_back(file: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn shown(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program()).file_name().unwrap_or_default();
    let first = command.get_args().next().unwrap_or_default();
    format!("{} {}", program.to_string_lossy(), first.to_string_lossy()).trim_end().to_owned()
}
