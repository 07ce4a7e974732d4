//! The agent's output, from its pipes or its terminal into files, by the kernel's hand.
//!
//! A full disk stops the moving. The agent then waits at a full pipe, nothing is lost, and it goes on when there is room.

use crate::handles::{self, Handles};
use ostler_core::record::Mode;
use ostler_sys::pipes::{Moved, shift};
use rustix::fd::OwnedFd;
use rustix::pipe::fcntl_setpipe_size;
use std::io;

/// How many pieces are moved before we look at anything else.
const TURNS: u32 = 16;
/// A pipe through which this much comes at once deserves more room. All pipes of a user share a limit, so only those.
const BUSY: usize = 48 * 1024;
const WIDE: usize = 512 * 1024;

/// One way from the agent to a file.
struct Stream {
    from: &'static str,
    /// A pipe in between. A terminal is none, and the kernel moves bytes only to or from one. And while it moves bytes from a
    /// pipe into a file nobody can write to that pipe: an agent with much to say need not wait for the disk when its bytes
    /// have left its own.
    through: Option<(&'static str, &'static str)>,
    to: &'static str,
    ended: bool,
    wide: bool,
}

pub struct Streams {
    streams: Vec<Stream>,
    /// There was no room; not tried again before the next look.
    pub disk_full: bool,
}

impl Streams {
    pub fn new(mode: Mode) -> Streams {
        let stream = |from, through, to| Stream { from, through, to, ended: false, wide: false };
        let streams = match mode {
            Mode::Headless => {
                vec![
                    stream(handles::STDOUT_READ, Some((handles::PASSING_WRITE, handles::PASSING_READ)), handles::OUT),
                    stream(handles::STDERR_READ, None, handles::ERR),
                ]
            }
            Mode::Terminal => {
                vec![stream(handles::PTY, Some((handles::DRAWN_WRITE, handles::DRAWN_READ)), handles::OUT)]
            }
        };
        Streams { streams, disk_full: false }
    }

    /// What to poll for output.
    pub fn sources<'a>(&self, handles: &'a Handles) -> Vec<&'a OwnedFd> {
        if self.disk_full {
            return Vec::new();
        }
        self.streams.iter().filter(|stream| !stream.ended).filter_map(|stream| handles.get(stream.from)).collect()
    }

    /// Moves what there is. True when anything was moved.
    pub fn pump(&mut self, handles: &Handles) -> io::Result<bool> {
        let mut moved = false;
        if self.disk_full {
            return Ok(false);
        }
        for stream in &mut self.streams {
            for _ in 0..TURNS {
                match stream.step(handles) {
                    Ok(Moved::Some(_)) => moved = true,
                    Ok(Moved::NotNow) => break,
                    Ok(Moved::End) => {
                        stream.ended = true;
                        break;
                    }
                    Err(error) if ostler_store::is_full_disk(&error) => {
                        self.disk_full = true;
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(moved)
    }

    /// How much waits to be moved.
    pub fn waiting(&self, handles: &Handles) -> io::Result<u64> {
        let mut total = 0;
        for stream in &self.streams {
            let pipes = [Some(stream.from), stream.through.map(|(_, read)| read)].into_iter().flatten();
            for pipe in pipes.filter_map(|name| handles.get(name)) {
                total += ostler_sys::pipes::waiting(pipe)?;
            }
        }
        Ok(total)
    }

    /// Moves everything that is still under way. False when the disk is too full for that.
    pub fn drain(&mut self, handles: &Handles) -> io::Result<bool> {
        self.disk_full = false;
        while self.pump(handles)? {}
        Ok(!self.disk_full)
    }
}

impl Stream {
    fn step(&mut self, handles: &Handles) -> io::Result<Moved> {
        let (Some(from), Some(to)) = (handles.get(self.from), handles.get(self.to)) else {
            return Ok(Moved::End);
        };
        let through = self.through.and_then(|(write, read)| Some((handles.get(write)?, handles.get(read)?)));
        let moved = match through {
            None => shift(from, to)?,
            Some((write, read)) => {
                let fresh = shift(from, write)?;
                // What a predecessor left in between comes out first.
                let mut passed = 0;
                while let Moved::Some(count) = shift(read, to)? {
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
                // A narrow pipe is slower and otherwise the same.
                let _ = fcntl_setpipe_size(pipe, WIDE);
            }
        }
        Ok(moved)
    }
}
