//! What a program printed on both streams: as raw bytes, or as text that is safe for a terminal.

use super::whole::end_of_whole;
use super::{All, Lines, Piece, Side};
use crate::error::Result;
use jiff::Timestamp;
use ostler_screen::printable_lines;
use ostler_store::backwards;
use ostler_store::folder::{Folder, RunFolder};
use ostler_store::printed::{self, Printed};
use ostler_store::times::Times;
use rustix::fs::OFlags;
use std::fs::File;

/// Both streams of a run.
pub struct Streams<'a> {
    folder: &'a Folder,
    run: RunFolder,
    streams: [Stream; 2],
    raw: bool,
    /// Whether the times of lines are given as well.
    timed: bool,
}

/// How bytes are passed on.
#[derive(Clone, Copy)]
struct Show {
    raw: bool,
    timed: bool,
    lines: Lines,
}

struct Stream {
    name: &'static str,
    side: Side,
    position: u64,
    /// The beginning of an incomplete line, and its position.
    begun: Vec<u8>,
    line: u64,
    times: Times,
}

impl<'a> Streams<'a> {
    pub fn new(folder: &'a Folder, raw: bool, timed: bool) -> Result<Streams<'a>> {
        let run = folder.run(folder.newest_run()?)?;
        let stream = |name, side| -> Result<Stream> {
            let times = Times::read(run.dir(), name)?;
            Ok(Stream { name, side, position: 0, begun: Vec::new(), line: 0, times })
        };
        let streams = [stream("out", Side::Out)?, stream("err", Side::Err)?];
        Ok(Streams { folder, run, streams, raw, timed })
    }

    /// Whether the times of the output were recorded. A stream without output needs none.
    pub fn has_times(&self) -> Result<bool> {
        for stream in &self.streams {
            let stat = self.run.dir().stat(stream.name)?;
            if stream.times.is_empty() && stat.is_some_and(|stat| stat.size > 0) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Starts again with what came since `since`; with a size, only with about the last `size` bytes of that. Returns
    /// whether that is all of it.
    pub fn rewind(
        &mut self,
        size: Option<u64>,
        since: Option<Timestamp>,
        give: &mut dyn FnMut(Piece<'_>),
    ) -> Result<All> {
        let mut all = [true, true];
        let mut dropped = 0;
        for (stream, all) in self.streams.iter_mut().zip(&mut all) {
            let begins = printed::begins(self.folder, &self.run, stream.name)?;
            let (position, whole) = stream.start(&self.run, begins, size, since)?;
            if position == begins {
                dropped += begins;
            }
            *all = whole;
            (stream.position, stream.line) = (position, position);
            stream.begun.clear();
        }
        let [out, err] = all;
        if out && err && dropped > 0 {
            give(Piece::Dropped(dropped));
        }
        Ok(All { out, err })
    }

    pub fn read_on(&mut self, lines: Lines, give: &mut dyn FnMut(Piece<'_>)) -> Result<()> {
        let show = Show { raw: self.raw, timed: self.timed, lines };
        for stream in &mut self.streams {
            stream.read_on(self.folder, &self.run, show, give)?;
        }
        Ok(())
    }

    pub fn finish(&mut self, give: &mut dyn FnMut(Piece<'_>)) {
        let show = Show { raw: self.raw, timed: self.timed, lines: Lines::Whole };
        for stream in &mut self.streams {
            let begun = std::mem::take(&mut stream.begun);
            stream.give(&begun, show, give);
        }
    }
}

impl Stream {
    fn start(&self, run: &RunFolder, begins: u64, size: Option<u64>, since: Option<Timestamp>) -> Result<(u64, bool)> {
        let Some(end) = run.dir().stat(self.name)?.map(|stat| stat.size) else {
            return Ok((0, true));
        };
        let file = File::from(run.dir().file(self.name, OFlags::RDONLY)?);
        let first = match since {
            // The line at this position is given from its beginning.
            Some(since) => backwards::line_start(&file, self.times.first_since(since).unwrap_or(end))?.max(begins),
            None => begins,
        };
        match size.map(|size| end.saturating_sub(size)).filter(|start| *start > first) {
            Some(start) => Ok((backwards::line_start(&file, start)?.max(first), false)),
            None => Ok((first, true)),
        }
    }

    fn read_on(&mut self, folder: &Folder, run: &RunFolder, show: Show, give: &mut dyn FnMut(Piece<'_>)) -> Result<()> {
        if show.timed {
            self.times = Times::read(run.dir(), self.name)?;
        }
        let mut position = self.position;
        printed::read_on(folder, run, self.name, &mut position, |part| self.take(&part, show, give))?;
        self.position = position;
        Ok(())
    }

    fn take(&mut self, part: &Printed<'_>, show: Show, give: &mut dyn FnMut(Piece<'_>)) {
        match part {
            Printed::Dropped(bytes) => {
                // The end of the incomplete line was dropped, too.
                let begun = std::mem::take(&mut self.begun);
                self.give(&begun, show, give);
                self.line += bytes;
                give(Piece::Dropped(*bytes));
            }
            Printed::Bytes(bytes) if show.raw && show.lines == Lines::AsTheyCome => self.give(bytes, show, give),
            Printed::Bytes(bytes) => {
                self.begun.extend_from_slice(bytes);
                let whole: Vec<u8> = self.begun.drain(..end_of_whole(&self.begun)).collect();
                self.give(&whole, show, give);
            }
        }
    }

    /// Passes on bytes that begin at the position of the current line.
    fn give(&mut self, bytes: &[u8], show: Show, give: &mut dyn FnMut(Piece<'_>)) {
        let mut place = self.line;
        self.line += bytes.len() as u64;
        let side = self.side;
        let mut shown = |bytes: &[u8], at| match show.raw {
            true => give(Piece::Text { side, at, bytes }),
            false => {
                let text = String::from_utf8_lossy(bytes);
                give(Piece::Text { side, at, bytes: printable_lines(&text).as_bytes() });
            }
        };
        if !show.timed {
            return shown(bytes, None);
        }
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            shown(line, self.times.at(place));
            place += line.len() as u64;
        }
    }
}
