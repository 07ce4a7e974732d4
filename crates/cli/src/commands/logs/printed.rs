//! What a program printed, both streams: its bytes, or made safe for a terminal.

use super::sink::{All, Side, Sink};
use crate::exit::Result;
use crate::follow::{Show, end_of_whole, say_dropped};
use jiff::Timestamp;
use ostler_screen::printable_lines;
use ostler_store::backwards;
use ostler_store::folder::{Folder, RunFolder};
use ostler_store::printed::{self, Printed};
use ostler_store::times::Times;
use rustix::fs::OFlags;
use std::fs::File;

pub struct Streams<'a> {
    folder: &'a Folder,
    run: RunFolder,
    streams: [Stream; 2],
    show: Show,
}

struct Stream {
    name: &'static str,
    side: Side,
    position: u64,
    /// The beginning of a line whose end has not come yet, and where that is.
    begun: Vec<u8>,
    line: u64,
    times: Times,
}

impl<'a> Streams<'a> {
    pub fn new(folder: &'a Folder, show: Show) -> Result<Streams<'a>> {
        let run = folder.run(folder.newest_run()?)?;
        let stream = |name, side| -> Result<Stream> {
            let times = Times::read(run.dir(), name)?;
            Ok(Stream { name, side, position: 0, begun: Vec::new(), line: 0, times })
        };
        let streams = [stream("out", Side::Out)?, stream("err", Side::Err)?];
        Ok(Streams { folder, run, streams, show })
    }

    /// Whether it is known when anything of it came. Nothing is missing where nothing was printed.
    pub fn has_times(&self) -> Result<bool> {
        for stream in &self.streams {
            let stat = self.run.dir().stat(stream.name)?;
            if stream.times.is_empty() && stat.is_some_and(|stat| stat.size > 0) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Begins again: with what came since then, and of that, when a size is given, about so much before the end. Says
    /// whether that is all of it.
    pub fn rewind(&mut self, size: Option<u64>, since: Option<Timestamp>) -> Result<All> {
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
        if out && err {
            say_dropped(dropped);
        }
        Ok(All { out, err })
    }

    pub fn read_on(&mut self, sink: &mut Sink) -> Result<()> {
        for stream in &mut self.streams {
            stream.read_on(self.folder, &self.run, self.show, sink)?;
        }
        Ok(())
    }

    pub fn finish(&mut self, sink: &mut Sink) -> Result<()> {
        for stream in &mut self.streams {
            let begun = std::mem::take(&mut stream.begun);
            stream.give(&begun, self.show, sink)?;
        }
        Ok(())
    }
}

impl Stream {
    fn start(&self, run: &RunFolder, begins: u64, size: Option<u64>, since: Option<Timestamp>) -> Result<(u64, bool)> {
        let Some(end) = run.dir().stat(self.name)?.map(|stat| stat.size) else {
            return Ok((0, true));
        };
        let file = File::from(run.dir().file(self.name, OFlags::RDONLY)?);
        let first = match since {
            // A line counts with its beginning.
            Some(since) => backwards::line_start(&file, self.times.first_since(since).unwrap_or(end))?.max(begins),
            None => begins,
        };
        match size.map(|size| end.saturating_sub(size)).filter(|start| *start > first) {
            Some(start) => Ok((backwards::line_start(&file, start)?.max(first), false)),
            None => Ok((first, true)),
        }
    }

    fn read_on(&mut self, folder: &Folder, run: &RunFolder, show: Show, sink: &mut Sink) -> Result<()> {
        if sink.wanted.timestamps {
            self.times = Times::read(run.dir(), self.name)?;
        }
        let mut result = Ok(());
        let mut position = self.position;
        printed::read_on(folder, run, self.name, &mut position, |part| {
            if result.is_ok() {
                result = self.take(&part, show, sink);
            }
        })?;
        self.position = position;
        result
    }

    fn take(&mut self, part: &Printed<'_>, show: Show, sink: &mut Sink) -> Result<()> {
        match part {
            Printed::Dropped(bytes) => {
                // The end of the line that was begun is gone with the rest.
                let begun = std::mem::take(&mut self.begun);
                self.give(&begun, show, sink)?;
                self.line += bytes;
                say_dropped(*bytes);
                Ok(())
            }
            Printed::Bytes(bytes) if show == Show::Raw && sink.is_plain() => self.give(bytes, show, sink),
            Printed::Bytes(bytes) => {
                self.begun.extend_from_slice(bytes);
                let whole: Vec<u8> = self.begun.drain(..end_of_whole(&self.begun)).collect();
                self.give(&whole, show, sink)
            }
        }
    }

    /// Hands on what begins where the present line does.
    fn give(&mut self, bytes: &[u8], show: Show, sink: &mut Sink) -> Result<()> {
        let start = self.line;
        self.line += bytes.len() as u64;
        if !sink.wanted.timestamps {
            return shown(bytes, show, |text| sink.text(self.side, None, text));
        }
        let mut place = start;
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            shown(line, show, |text| sink.text(self.side, self.times.at(place), text))?;
            place += line.len() as u64;
        }
        Ok(())
    }
}

fn shown(bytes: &[u8], show: Show, to: impl FnOnce(&[u8]) -> Result<()>) -> Result<()> {
    match show {
        Show::Raw => to(bytes),
        Show::Plain => to(printable_lines(&String::from_utf8_lossy(bytes)).as_bytes()),
    }
}
