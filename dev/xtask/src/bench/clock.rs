//! One clock for all processes of a benchmark, and a way for a program under test to send us the time.
//!
//! CLOCK_MONOTONIC is the same for all processes of a machine, so a program can note the time of its own exit and we
//! can note the time at which a tool reported it.

use std::ffi::CString;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::time::ClockId;

use crate::processes::is_readable;

/// Nanoseconds on the common clock.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Moment(i64);

impl Moment {
    pub fn now() -> Self {
        let now = rustix::time::clock_gettime(ClockId::Monotonic);
        Self(now.tv_sec * 1_000_000_000 + now.tv_nsec)
    }

    #[expect(clippy::cast_precision_loss, reason = "spans of minutes: far below 2^52 ns")]
    pub fn ms_since(self, earlier: Self) -> f64 {
        (self.0 - earlier.0) as f64 / 1e6
    }

    pub fn to_word(self) -> String {
        self.0.to_string()
    }

    pub fn from_word(word: &str) -> Result<Self> {
        Ok(Self(word.parse().with_context(|| format!("not a moment: {word}"))?))
    }
}

/// A FIFO through which programs under test send us lines. We hold it open in both directions, so that they never block
/// on opening it and a line that was written before we read stays there.
pub struct Mailbox {
    path: PathBuf,
    file: File,
    /// What came after the last line that was returned.
    rest: Vec<u8>,
}

impl Mailbox {
    pub fn create(path: PathBuf) -> Result<Self> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        rustix::fs::mkfifoat(CWD, &name, Mode::RUSR | Mode::WUSR).with_context(|| format!("no FIFO at {path:?}"))?;
        let fd = rustix::fs::open(&name, OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { path, file: File::from(fd), rest: Vec::new() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets one reader of this FIFO continue.
    pub fn post(&mut self, line: &str) -> Result<()> {
        std::io::Write::write_all(&mut self.file, line.as_bytes()).context("cannot write to a FIFO")
    }

    /// The next line that a program under test sent.
    pub fn receive(&mut self, limit: Duration) -> Result<String> {
        let deadline = Instant::now() + limit;
        let fd: OwnedFd = self.file.as_fd().try_clone_to_owned()?;
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim().to_owned());
            }
            if !is_readable(&fd, deadline.saturating_duration_since(Instant::now())) {
                bail!("nothing came from the kept program within {} s", limit.as_secs());
            }
            let mut chunk = [0; 512];
            let read = self.file.read(&mut chunk)?;
            self.rest.extend_from_slice(chunk.get(..read).unwrap_or_default());
        }
    }
}
