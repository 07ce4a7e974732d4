//! Running one command to its end: how long it took, what it printed, with a time limit.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::fs::MemfdFlags;
use rustix::process::{Pid, PidfdFlags, Signal};

use super::clock::Moment;
use super::rest::until_at_rest;
use crate::processes::is_readable;

/// No measured command takes longer; a command that does hangs.
pub const LIMIT: Duration = Duration::from_secs(120);

pub struct Finished {
    pub ms: f64,
    pub stdout: String,
}

/// A child process whose output goes to memory and not to pipes: a background process that it leaves may hold a pipe
/// open, and then the end of the output would not be known.
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
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the exit, with this exit code. Returns how long it took, in milliseconds.
    pub fn finish_with(mut self, code: i32, limit: Duration) -> Result<f64> {
        if !is_readable(&self.pidfd, limit) {
            bail!("{} did not return within {} s", self.shown, limit.as_secs());
        }
        let status = self.child.wait()?;
        let ms = Moment::now().ms_since(self.at);
        if status.code() != Some(code) {
            bail!("{}: {status} instead of {code}", self.shown);
        }
        Ok(ms)
    }

    /// Waits for the exit. An exit code other than 0 is an error, with the last line of stderr.
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

    /// Ends it as soon as it waits for at least this many descriptors. Returns how long that took.
    pub fn ms_until_it_polls(mut self, descriptors: usize) -> Result<f64> {
        /// poll and ppoll, on x86-64 and on arm64.
        const POLLS: [&str; 3] = ["7", "271", "73"];
        let deadline = Instant::now() + LIMIT;
        let polls = |pid: u32| {
            let text = std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
            let words: Vec<&str> = text.split_whitespace().collect();
            let count = words.get(2).and_then(|word| usize::from_str_radix(word.trim_start_matches("0x"), 16).ok());
            words.first().is_some_and(|call| POLLS.contains(call)) && count.is_some_and(|count| count >= descriptors)
        };
        let waits = loop {
            if polls(self.child.id()) {
                break true;
            }
            // We sleep meanwhile, so that the command can use all processors.
            if is_readable(&self.pidfd, Duration::from_micros(500)) || Instant::now() > deadline {
                break false;
            }
        };
        let took = Moment::now().ms_since(self.at);
        self.kill()?;
        if waits { Ok(took) } else { bail!("{} does not wait for {descriptors} descriptors", self.shown) }
    }

    /// How much of a processor it uses during this time, in percent, while it does nothing but wait.
    pub fn percent_over(mut self, time: Duration) -> Result<f64> {
        self.until_it_waits()?;
        let before = (Moment::now(), processor_ms(self.child.id())?);
        let waits = self.waits_for(time);
        let (took, used) = (Moment::now().ms_since(before.0), processor_ms(self.child.id())? - before.1);
        self.kill()?;
        if waits { Ok(used / took * 100.0) } else { bail!("{} returned", self.shown) }
    }

    /// Ends it. Returns what it has printed.
    pub fn end(mut self) -> Result<String> {
        self.kill()?;
        read_back(&mut self.stdout)
    }

    fn kill(&mut self) -> Result<()> {
        // If it has exited already, this only returns an error.
        let _ = rustix::process::pidfd_send_signal(self.pidfd.as_fd(), Signal::KILL);
        self.child.wait()?;
        Ok(())
    }

    /// Lets time pass while it waits; false when it exited meanwhile.
    pub fn waits_for(&self, time: Duration) -> bool {
        !is_readable(&self.pidfd, time)
    }
}

/// How much processor time all threads of a process have used.
#[expect(clippy::cast_precision_loss, reason = "spans of minutes: far below 2^52 ns")]
pub fn processor_ms(pid: u32) -> Result<f64> {
    let mut nanoseconds = 0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = std::fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        nanoseconds += text.split_whitespace().next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(nanoseconds as f64 / 1e6)
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
