//! A client on a terminal of its own: what a person sees after typing `attach`.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, PidfdFlags, Signal};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

use super::Bench;
use super::agent;
use super::clock::{Mailbox, Moment};
use super::execute::processor_ms;
use super::rest::until_at_rest;
use crate::processes::is_readable;

pub const ROWS: u16 = 24;
pub const COLUMNS: u16 = 80;

/// How long a client may take to exit after its terminal was closed.
const LEAVE_LIMIT: Duration = Duration::from_secs(5);

/// How long a screen may take to arrive.
const SCREEN_LIMIT: Duration = Duration::from_secs(30);

/// What a client does at first is not part of what it does while sessions stream.
const FIRST_DRAWN: Duration = Duration::from_secs(2);

/// How often the threads of a process have gone to sleep voluntarily.
fn sleeps(pid: u32) -> Result<f64> {
    let mut count = 0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let status = std::fs::read_to_string(thread?.path().join("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count += line.and_then(|number| number.trim().parse::<u32>().ok()).context("the kernel counts no switches")?;
    }
    Ok(f64::from(count))
}

pub struct Client {
    screen: OwnedFd,
    child: Child,
    pidfd: OwnedFd,
    started: Moment,
}

impl Client {
    /// Starts the command on a new terminal. `command` must run our own `on-terminal` program, see [`on_terminal`].
    pub fn start(mut command: Command, reports: &mut Mailbox) -> Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let screen = rustix::pty::openpt(flags).context("no pseudo-terminal")?;
        rustix::pty::grantpt(&screen)?;
        rustix::pty::unlockpt(&screen)?;
        let size = Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&screen, size)?;
        let inside = rustix::pty::ioctl_tiocgptpeer(&screen, flags)?;
        command.stdin(inside.try_clone()?).stdout(inside.try_clone()?).stderr(inside);
        let child = command.spawn().context("cannot start a client")?;
        // The command holds the other side of the terminal as long as it exists.
        drop(command);
        let pidfd = rustix::process::pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        let started = Moment::from_word(&reports.receive(SCREEN_LIMIT)?)?;
        Ok(Self { screen, child, pidfd, started })
    }

    /// Starts this command of ours on a new terminal.
    pub fn of(bench: &Bench, command: &Command) -> Result<Self> {
        let mut reports = Mailbox::create(bench.scratch.file("reports"))?;
        let mut agent = bench.scratch.command(&bench.agent);
        on_terminal(&mut agent, &reports, command);
        Self::start(agent, &mut reports)
    }

    /// Milliseconds from the start of the client until all of these texts were on the screen.
    pub fn ms_until_shown(&self, texts: &[&str]) -> Result<f64> {
        let longest = texts.iter().map(|text| text.len()).max().unwrap_or(0);
        let mut missing = texts.to_vec();
        let mut seen: Vec<u8> = Vec::new();
        let deadline = Instant::now() + SCREEN_LIMIT;
        let mut screen = File::from(self.screen.try_clone()?);
        while !missing.is_empty() {
            if !is_readable(&self.screen, deadline.saturating_duration_since(Instant::now())) {
                bail!("the screen never showed {}", missing.join(", "));
            }
            let mut chunk = [0; 16 * 1024];
            // A client that has exited closes the terminal, which is a read error.
            let read = screen
                .read(&mut chunk)
                .with_context(|| format!("the client left after {:?}", String::from_utf8_lossy(&seen)))?;
            let at = Moment::now();
            seen.extend_from_slice(chunk.get(..read).unwrap_or_default());
            missing.retain(|text| !seen.windows(text.len()).any(|window| window == text.as_bytes()));
            if missing.is_empty() {
                return Ok(at.ms_since(self.started));
            }
            // A text may come in two pieces; much older bytes need not be searched again.
            seen.drain(..seen.len().saturating_sub(longest.max(200)));
        }
        Ok(0.0)
    }

    /// Milliseconds from typing this key until it was on the screen.
    pub fn ms_until_echoed(&self, key: u8) -> Result<f64> {
        let typed = Moment::now();
        rustix::io::write(&self.screen, &[key])?;
        let deadline = Instant::now() + SCREEN_LIMIT;
        let mut chunk = [0; 4096];
        loop {
            if !is_readable(&self.screen, deadline.saturating_duration_since(Instant::now())) {
                bail!("the screen never showed {:?}", char::from(key));
            }
            let read = rustix::io::read(&self.screen, &mut chunk)?;
            let at = Moment::now();
            if chunk.get(..read).is_some_and(|shown| shown.contains(&key)) {
                return Ok(at.ms_since(typed));
            }
        }
    }

    /// Milliseconds from typing this key until a frame was drawn for it: the end of a synchronised update. Further
    /// output is read until the screen has not changed for a moment.
    pub fn ms_until_drawn(&self, key: u8, still: Duration) -> Result<f64> {
        const END: &[u8] = b"\x1b[?2026l";
        let typed = Moment::now();
        rustix::io::write(&self.screen, &[key])?;
        let (mut seen, mut drawn, mut chunk) = (Vec::new(), None, [0; 16 * 1024]);
        loop {
            let patience = if drawn.is_some() { still } else { SCREEN_LIMIT };
            if !is_readable(&self.screen, patience) {
                return drawn.with_context(|| format!("no frame came for {:?}", char::from(key)));
            }
            let read = rustix::io::read(&self.screen, &mut chunk)?;
            let at = Moment::now();
            seen.extend_from_slice(chunk.get(..read).unwrap_or_default());
            if drawn.is_none() && seen.windows(END.len()).any(|part| part == END) {
                drawn = Some(at.ms_since(typed));
            }
        }
    }

    /// How often the process went to sleep during this time, once it does nothing but wait. Its output is read
    /// meanwhile.
    pub fn wakeups_over(&self, time: Duration) -> Result<f64> {
        until_at_rest(&[self.process().cast_signed()])?;
        self.reads_for(Duration::ZERO)?;
        let before = sleeps(self.process())?;
        self.reads_for(time)?;
        Ok(sleeps(self.process())? - before)
    }

    /// How much of a processor it uses during this time, in percent. Its output is read.
    pub fn percent_over(&self, time: Duration) -> Result<f64> {
        self.reads_for(FIRST_DRAWN)?;
        let before = (Moment::now(), processor_ms(self.process())?);
        self.reads_for(time)?;
        Ok((processor_ms(self.process())? - before.1) / Moment::now().ms_since(before.0) * 100.0)
    }

    /// Reads its output for this long.
    fn reads_for(&self, time: Duration) -> Result<()> {
        let (deadline, mut chunk) = (Instant::now() + time, [0; 16 * 1024]);
        while is_readable(&self.screen, deadline.saturating_duration_since(Instant::now())) {
            rustix::io::read(&self.screen, &mut chunk)?;
            if Instant::now() > deadline {
                break;
            }
        }
        Ok(())
    }

    /// The process of the client.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Closes the terminal, as a broken SSH connection does, and waits until the client has exited.
    pub fn hang_up(self) -> Result<()> {
        let Self { screen, mut child, pidfd, started: _ } = self;
        drop(screen);
        let left = is_readable(&pidfd, LEAVE_LIMIT);
        if !left {
            rustix::process::pidfd_send_signal(pidfd.as_fd(), Signal::KILL)?;
        }
        child.wait()?;
        if left { Ok(()) } else { bail!("the client stayed although its terminal was gone") }
    }
}

/// Turns `command` into one that first makes its stdin its controlling terminal and reports the time.
pub fn on_terminal(agent: &mut Command, reports: &Mailbox, command: &Command) {
    agent.args([agent::COMMAND, "on-terminal"]).arg(reports.path());
    agent.arg(command.get_program()).args(command.get_args());
    agent.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
}
