//! An agent's output as facts, each with the position of its line: keeper and readers both use this to interpret it.
//!
//! Accepts every sequence of bytes, in memory that is bounded by the longest line that is read, and gives the same
//! facts however the bytes are split.

use crate::decoder::Decoder;
use crate::lines::{Line, Lines, Place};
use ostler_core::fact::Fact;

pub struct Reading {
    lines: Lines,
    pub decoder: Box<dyn Decoder>,
    facts: Vec<Fact>,
}

impl Reading {
    /// From this position of the output on, which is the beginning of a line.
    #[must_use]
    pub fn from(position: u64, decoder: Box<dyn Decoder>) -> Reading {
        Reading { lines: Lines::from(position), decoder, facts: Vec::new() }
    }

    /// Continues in the middle of a line that is too long: it begins at `start`, and has not ended before `position`.
    pub fn skip_within(&mut self, start: u64, position: u64) {
        self.lines = Lines::within(start, position);
    }

    /// Where the present line begins and how far it has come, if it is too long already.
    #[must_use]
    pub fn long_line(&self) -> Option<(u64, u64)> {
        self.lines.too_long_so_far().map(|length| (self.lines.end(), self.lines.end() + length))
    }

    /// Position after the last complete line.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.lines.end()
    }

    /// Takes the next bytes in and calls `each` with every fact in them.
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(Place, Fact)) {
        let Reading { lines, decoder, facts } = self;
        lines.feed(bytes, |line, place| {
            match line {
                Line::Whole(line) => decoder.line(line, facts),
                Line::TooLong { bytes, shortened } => {
                    facts.push(Fact::LineTooLong { bytes });
                    if let Some(line) = shortened {
                        decoder.line(line, facts);
                    }
                }
            }
            facts.drain(..).for_each(|fact| each(place, fact));
        });
    }
}
