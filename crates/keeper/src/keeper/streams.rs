//! The agent's output, moved from its pipes or its terminal into files by the kernel.
//!
//! A full disk stops this, and so do a limit and a disk that is nearly full ([`super::output_limits`]). The agent then waits at
//! a full pipe, nothing is lost, and it continues when there is room.

use crate::handles::{self, Handles};
use jiff::{SignedDuration, Timestamp};
use ostler_core::record::Mode;
use ostler_store::times;
use ostler_sys::clock;
use ostler_sys::dir::{self, Dir};
use ostler_sys::pipes::{Moved, Ready, ready, shift_at_most, waiting};
use rustix::fd::OwnedFd;
use rustix::pipe::fcntl_setpipe_size;
use std::io;

/// How many pieces are moved before the keeper looks at anything else.
const TURNS: u32 = 16;
/// A pipe through which this much comes at once is made larger. All pipes of a user share a limit, so only such pipes
/// are.
const BUSY: usize = 48 * 1024;
const WIDE: usize = 512 * 1024;
/// A terminal gives no more than this at once, and the kernel makes room for as much as it is asked for.
const DRAWN_AT_ONCE: u64 = 4096;
/// A terminal that gives no more than this has most likely no more to give, as when it echoes a key. If it has, the
/// next poll returns at once.
const FEW: usize = 256;
/// The resolution of the times that are noted for output.
const NOTE_EVERY: SignedDuration = SignedDuration::from_secs(1);

/// One way from the agent to a file.
struct Stream {
    from: &'static str,
    /// A pipe in between. The kernel moves bytes only to or from a pipe, and a terminal is not a pipe. Also, while the
    /// kernel moves bytes from a pipe into a file, that pipe cannot be written to: an agent that writes much does not
    /// have to wait for the disk once its bytes have left its own pipe.
    through: Option<(&'static str, &'static str)>,
    to: &'static str,
    /// Where the file ends, and how much is in the pipe in between. Only the keeper moves these bytes, so the kernel is
    /// asked only once, for what a predecessor has left.
    end: u64,
    between: u64,
    ended: bool,
    wide: bool,
    /// The last time that was written to the file of times.
    noted: Option<Timestamp>,
}

/// How often writing to a full disk is tried again. There is no event for "room again".
pub(super) const FULL_DISK_MS: u64 = 250;
/// How often output that is held at its limit is tried again: only a person can change the limit.
const LIMIT_MS: u64 = 1000;

/// Why output does not move; not tried again before the next look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The disk had no room for it.
    DiskFull,
    /// Less than this is free, and it is reserved for others.
    LittleSpace { min_free: u64 },
    /// The run has written as much as it may.
    Limit { limit: u64 },
    /// The file may not grow: the session was started under a limit on the size of files (`ulimit -f`).
    FileTooLarge,
}

impl Hold {
    /// When to try again.
    pub fn again_ms(self) -> u64 {
        match self {
            Hold::DiskFull | Hold::LittleSpace { .. } => FULL_DISK_MS,
            Hold::Limit { .. } | Hold::FileTooLarge => LIMIT_MS,
        }
    }
}

pub struct Streams {
    streams: Vec<Stream>,
    /// The folder of the run, where the times of output are noted. A terminal has none: its bytes draw a screen.
    times: Option<Dir>,
    held: Option<Hold>,
    /// The last pump stopped because it had moved what it was allowed to: there may be more in the pipe in between,
    /// which is not polled.
    cut_short: bool,
}

impl Streams {
    pub fn new(mode: Mode, run: &Dir, handles: &Handles) -> io::Result<Streams> {
        let stream = |from, through: Option<(&'static str, &'static str)>, to| -> io::Result<Stream> {
            let end = handles.get(to).map(dir::position).transpose()?.unwrap_or(0);
            let between = through.and_then(|(_, read)| handles.get(read)).map(waiting).transpose()?.unwrap_or(0);
            Ok(Stream { from, through, to, end, between, ended: false, wide: false, noted: None })
        };
        let streams = match mode {
            Mode::Headless => {
                vec![
                    stream(handles::STDOUT_READ, Some((handles::PASSING_WRITE, handles::PASSING_READ)), handles::OUT)?,
                    stream(handles::STDERR_READ, None, handles::ERR)?,
                ]
            }
            Mode::Terminal => {
                vec![stream(handles::PTY, Some((handles::DRAWN_WRITE, handles::DRAWN_READ)), handles::OUT)?]
            }
        };
        let times = match mode {
            Mode::Headless => run.duplicate().ok(),
            Mode::Terminal => None,
        };
        Ok(Streams { streams, times, held: None, cut_short: false })
    }

    /// Why nothing moves; `None` when it does.
    pub fn held(&self) -> Option<Hold> {
        self.held
    }

    /// Nothing moves from now on.
    pub fn hold(&mut self, hold: Hold) {
        self.held = Some(hold);
    }

    /// What held the output is over.
    pub fn release(&mut self) {
        self.held = None;
    }

    /// Whether the last pump has left something that is not polled for.
    pub fn is_cut_short(&self) -> bool {
        self.cut_short
    }

    /// There was no pump in this round.
    pub fn skip(&mut self) {
        self.cut_short = false;
    }

    /// How much output has gone to this file.
    pub fn end_of(&self, file: &str) -> u64 {
        self.streams.iter().find(|stream| stream.to == file).map_or(0, |stream| stream.end)
    }

    /// What to poll for output.
    pub fn sources<'a>(&self, handles: &'a Handles) -> Vec<&'a OwnedFd> {
        if self.held.is_some() {
            return Vec::new();
        }
        self.streams.iter().filter(|stream| !stream.ended).filter_map(|stream| handles.get(stream.from)).collect()
    }

    /// Whether anything waits to be moved. This also finds streams that have ended.
    pub fn any_waits(&mut self, handles: &Handles) -> io::Result<bool> {
        for stream in self.streams.iter_mut().filter(|stream| !stream.ended) {
            if stream.between > 0 {
                return Ok(true);
            }
            match handles.get(stream.from).map_or(Ok(Ready::End), ready)? {
                Ready::Bytes => return Ok(true),
                Ready::Nothing => {}
                Ready::End => stream.ended = true,
            }
        }
        Ok(false)
    }

    /// Moves what there is, at most this many bytes. Returns how many it moved to files.
    pub fn pump(&mut self, handles: &Handles, at_most: u64) -> io::Result<u64> {
        let mut left = at_most;
        self.cut_short = false;
        if self.held.is_some() {
            return Ok(0);
        }
        for stream in &mut self.streams {
            for _ in 0..TURNS {
                if left == 0 {
                    break;
                }
                match stream.step(handles, &mut left) {
                    Ok(Moved::Some(count)) => {
                        if let Some(run) = &self.times {
                            stream.note_time(run, count as u64);
                        }
                        if stream.from == handles::PTY && stream.between == 0 && count <= FEW {
                            break;
                        }
                    }
                    Ok(Moved::NotNow) => break,
                    Ok(Moved::End) => {
                        stream.ended = true;
                        break;
                    }
                    Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                        self.held = Some(Hold::FileTooLarge);
                        break;
                    }
                    Err(error) if ostler_store::is_full_disk(&error) => {
                        self.held = Some(Hold::DiskFull);
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        self.cut_short = left == 0;
        Ok(at_most - left)
    }

    /// The size of the largest file.
    pub fn largest_end(&self) -> u64 {
        self.streams.iter().map(|stream| stream.end).max().unwrap_or(0)
    }

    /// How much waits to be moved.
    pub fn waiting(&self, handles: &Handles) -> io::Result<u64> {
        let mut total = 0;
        for stream in &self.streams {
            let pipes = [Some(stream.from), stream.through.map(|(_, read)| read)].into_iter().flatten();
            for pipe in pipes.filter_map(|name| handles.get(name)) {
                total += waiting(pipe)?;
            }
        }
        Ok(total)
    }

    /// Moves everything that is still in the pipes. False when the disk is too full for that.
    pub fn drain(&mut self, handles: &Handles) -> io::Result<bool> {
        self.held = None;
        while self.pump(handles, u64::MAX)? > 0 {}
        Ok(self.held.is_none())
    }
}

impl Stream {
    /// Notes when this output came, once a second at most. Nothing depends on it, so errors are ignored.
    fn note_time(&mut self, run: &Dir, moved: u64) {
        let now = clock::now();
        // In both directions: a clock may be set back.
        if self.noted.is_some_and(|noted| now.duration_since(noted).abs() < NOTE_EVERY) {
            return;
        }
        self.noted = Some(now);
        let _ = times::note(run, self.to, self.end.saturating_sub(moved), now);
    }

    /// Moves once, at most `left` bytes to the file, and subtracts from `left` what it moved.
    fn step(&mut self, handles: &Handles, left: &mut u64) -> io::Result<Moved> {
        let (Some(from), Some(to)) = (handles.get(self.from), handles.get(self.to)) else {
            return Ok(Moved::End);
        };
        let through = self.through.and_then(|(write, read)| Some((handles.get(write)?, handles.get(read)?)));
        let moved = match through {
            None => {
                let moved = shift_at_most(from, to, *left)?;
                if let Moved::Some(count) = moved {
                    *left = left.saturating_sub(count as u64);
                    self.end += count as u64;
                }
                moved
            }
            Some((write, read)) => {
                let at_once = if self.from == handles::PTY { DRAWN_AT_ONCE } else { u64::MAX };
                let fresh = shift_at_most(from, write, at_once)?;
                if let Moved::Some(count) = fresh {
                    self.between += count as u64;
                }
                // What a predecessor left in between comes out first.
                let mut passed = 0;
                while *left > 0
                    && self.between > 0
                    && let Moved::Some(count) = shift_at_most(read, to, *left)?
                {
                    *left = left.saturating_sub(count as u64);
                    self.between = self.between.saturating_sub(count as u64);
                    self.end += count as u64;
                    passed += count;
                }
                if passed > 0 { Moved::Some(passed) } else { fresh }
            }
        };
        if let Moved::Some(count) = moved
            && count > BUSY
            && !self.wide
        {
            self.wide = true;
            for pipe in [Some(from), through.map(|(write, _)| write)].into_iter().flatten() {
                // With a narrow pipe everything works, only more slowly.
                let _ = fcntl_setpipe_size(pipe, WIDE);
            }
        }
        Ok(moved)
    }
}
