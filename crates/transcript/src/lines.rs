//! Cuts a stream into lines and says where each is, in bounded memory.
//!
//! A line is lent, never kept. A line that is longer than [`LONGEST`] is skipped, and only its position is reported.

use memchr::memchr;
use std::io::{self, Read};

/// The size of one read.
const PIECE: usize = 256 << 10;

/// The longest line that is parsed: a prompt of the greatest size that agents accept, with every character escaped.
pub const LONGEST: usize = 32 << 20;

/// One line of a stream, without its newline.
#[derive(Debug, PartialEq, Eq)]
pub struct Line<'a> {
    pub start: u64,
    /// Where the next line begins.
    pub end: u64,
    /// `None`: too long to be parsed.
    pub bytes: Option<&'a [u8]>,
    /// Whether a newline ends it. Only the last line of a stream can lack one.
    pub ended: bool,
}

/// The lines of a stream.
#[derive(Debug)]
pub struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    /// The part of the buffer that is not given out yet.
    from: usize,
    filled: usize,
    /// The position of `from` in the stream.
    position: u64,
    at_end: bool,
}

impl<R: Read> Lines<R> {
    pub fn new(source: R) -> Lines<R> {
        Lines { source, buffer: vec![0; PIECE], from: 0, filled: 0, position: 0, at_end: false }
    }

    /// The next line; `None` at the end.
    ///
    /// # Errors
    /// When the stream cannot be read.
    #[expect(clippy::should_implement_trait, reason = "a line is lent, and an iterator cannot lend")]
    pub fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut searched = 0;
        loop {
            if let Some(found) = memchr(b'\n', &self.buffer[self.from + searched..self.filled]) {
                return Ok(Some(self.lend(searched + found, true)));
            }
            searched = self.filled - self.from;
            if self.at_end {
                return Ok((searched > 0).then(|| self.lend(searched, false)));
            }
            if searched > LONGEST {
                return self.pass_over().map(Some);
            }
            self.fill()?;
        }
    }

    fn lend(&mut self, length: usize, ended: bool) -> Line<'_> {
        let (first, start) = (self.from, self.position);
        let whole = length + usize::from(ended);
        self.from += whole;
        self.position += whole as u64;
        Line { start, end: self.position, bytes: Some(&self.buffer[first..first + length]), ended }
    }

    fn fill(&mut self) -> io::Result<()> {
        if self.from > 0 {
            self.buffer.copy_within(self.from..self.filled, 0);
            self.filled -= self.from;
            self.from = 0;
        }
        if self.filled == self.buffer.len() {
            self.buffer.resize((self.buffer.len() * 2).min(LONGEST + PIECE), 0);
        } else if self.filled < PIECE && self.buffer.len() > PIECE {
            // The long line has been given out; the memory that it needed is freed.
            self.buffer.truncate(PIECE);
            self.buffer.shrink_to_fit();
        }
        let count = loop {
            match self.source.read(&mut self.buffer[self.filled..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.at_end = count == 0;
        self.filled += count;
        Ok(())
    }

    fn pass_over(&mut self) -> io::Result<Line<'_>> {
        let start = self.position;
        loop {
            let found = memchr(b'\n', &self.buffer[self.from..self.filled]);
            let passed = found.map_or(self.filled - self.from, |found| found + 1);
            self.from += passed;
            self.position += passed as u64;
            if found.is_some() || self.at_end {
                return Ok(Line { start, end: self.position, bytes: None, ended: found.is_some() });
            }
            self.fill()?;
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn cut(bytes: &[u8]) -> Vec<(u64, u64, Option<usize>, bool)> {
        let mut lines = Lines::new(bytes);
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push((line.start, line.end, line.bytes.map(<[u8]>::len), line.ended));
        }
        found
    }

    #[test]
    fn every_byte_belongs_to_a_line_and_the_last_may_lack_its_newline() {
        assert_eq!(cut(b""), []);
        assert_eq!(cut(b"ab\n\nc"), [(0, 3, Some(2), true), (3, 4, Some(0), true), (4, 5, Some(1), false)]);
        let long = [vec![b'x'; PIECE * 3], b"\nshort\n".to_vec()].concat();
        let end = PIECE as u64 * 3 + 1;
        assert_eq!(cut(&long), [(0, end, Some(PIECE * 3), true), (end, end + 6, Some(5), true)]);
    }

    #[test]
    fn a_line_beyond_the_limit_is_passed_over_and_what_follows_is_read() {
        let long = [vec![b'x'; LONGEST * 2 + 3], b"\nshort\n".to_vec()].concat();
        let end = LONGEST as u64 * 2 + 4;
        assert_eq!(cut(&long), [(0, end, None, true), (end, end + 6, Some(5), true)]);
    }
}
