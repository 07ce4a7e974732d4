//! Cuts a stream of bytes into lines, whatever the pieces, in bounded memory.

use crate::shortened::Shortened;
use memchr::memchr;

/// The longest line that is read: several times the longest that an agent has reason to write (a picture as text). A
/// longer one is counted, skipped, and reported.
pub const LINE_LIMIT: usize = 8 * 1024 * 1024;

/// The beginning of a line whose end has not come yet.
#[derive(Debug)]
pub struct Lines {
    limit: usize,
    partial: Vec<u8>,
    /// Bytes of the present line that were skipped, once it is known to be too long.
    passed: u64,
    /// What can be kept of the line that is too long.
    shortened: Option<Shortened>,
    /// Position after the last complete line.
    end: u64,
}

/// One line, or what is left of it.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    Whole(&'a [u8]),
    TooLong {
        bytes: u64,
        /// The line with its long texts cut off, where that makes it short enough.
        shortened: Option<&'a [u8]>,
    },
}

/// The position of a line in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub start: u64,
    /// The position after its newline.
    pub end: u64,
}

impl Default for Lines {
    fn default() -> Lines {
        Lines::from(0)
    }
}

impl Lines {
    /// Starts at this position of the stream.
    #[must_use]
    pub fn from(position: u64) -> Lines {
        Lines { limit: LINE_LIMIT, partial: Vec::new(), passed: 0, shortened: None, end: position }
    }

    /// Starts in the middle of a line that is known to be too long: it begins at `start`, and has not ended before
    /// `position`.
    #[must_use]
    pub fn within(start: u64, position: u64) -> Lines {
        Lines { passed: position.saturating_sub(start), ..Lines::from(start) }
    }

    /// How much of the present line has come, if it is too long already.
    #[must_use]
    pub fn too_long_so_far(&self) -> Option<u64> {
        (self.passed > self.limit as u64).then_some(self.passed)
    }

    /// With another limit.
    #[must_use]
    pub fn with_limit(limit: usize) -> Lines {
        Lines { limit, ..Lines::default() }
    }

    /// Position after the last complete line.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Takes bytes in and calls `each` with every line they complete.
    pub fn feed(&mut self, mut bytes: &[u8], mut each: impl FnMut(Line<'_>, Place)) {
        while let Some(end) = memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at(end);
            bytes = &rest[1..];
            let length = self.passed + (self.partial.len() + line.len()) as u64;
            let place = Place { start: self.end, end: self.end + length + 1 };
            self.end = place.end;
            if length > self.limit as u64 {
                self.shorten(line);
                let shortened = self.shortened.as_ref().map(Shortened::line);
                each(Line::TooLong { bytes: length, shortened }, place);
            } else if self.partial.is_empty() {
                each(Line::Whole(line), place);
            } else {
                self.partial.extend_from_slice(line);
                each(Line::Whole(&self.partial), place);
            }
            self.partial = Vec::new();
            self.passed = 0;
            self.shortened = None;
        }
        let length = self.partial.len() + bytes.len();
        if self.passed > 0 || length > self.limit {
            self.shorten(bytes);
            self.passed += length as u64;
            self.partial = Vec::new();
        } else {
            self.partial.extend_from_slice(bytes);
        }
    }

    /// Keeps what it can of the next bytes of a line that is too long. A line whose beginning was not seen is not kept.
    fn shorten(&mut self, bytes: &[u8]) {
        let begun = match self.shortened.take() {
            Some(begun) => Some(begun),
            None if self.passed == 0 => Some(Shortened::default()),
            None => None,
        };
        self.shortened = begun.and_then(|mut shortened| {
            let fits = shortened.feed(&self.partial, self.limit) && shortened.feed(bytes, self.limit);
            fits.then_some(shortened)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHORT: usize = 40;

    /// Every line with its position; `None` for a line that is too long.
    fn all(pieces: &[&[u8]]) -> Vec<(Option<Vec<u8>>, u64, Place)> {
        let mut found = Vec::new();
        let mut lines = Lines::with_limit(SHORT);
        for piece in pieces {
            lines.feed(piece, |line, place| match line {
                Line::Whole(line) => found.push((Some(line.to_vec()), line.len() as u64, place)),
                Line::TooLong { bytes, .. } => found.push((None, bytes, place)),
            });
            assert!(lines.partial.len() <= SHORT, "a long line is not kept");
        }
        found
    }

    #[test]
    fn a_reader_that_starts_inside_a_long_line_finds_the_same() {
        let text = [vec![b'x'; LINE_LIMIT + 5], b"\nshort\n".to_vec()].concat();
        let mut places = Vec::new();
        let (mut whole, mut late) = (Lines::from(7), Lines::within(7, 7 + LINE_LIMIT as u64 + 2));
        whole.feed(&text[..LINE_LIMIT + 2], |_, _| {});
        assert_eq!(whole.too_long_so_far(), Some(LINE_LIMIT as u64 + 2));
        for lines in [&mut whole, &mut late] {
            let mut found = Vec::new();
            lines.feed(&text[LINE_LIMIT + 2..], |line, place| {
                found.push((matches!(line, Line::TooLong { bytes, .. } if bytes == LINE_LIMIT as u64 + 5), place));
            });
            places.push(found);
        }
        assert!(places[0].len() == 2 && places[0][0].0 && !places[0][1].0, "{places:?}");
        assert_eq!(places[0], places[1]);
    }

    proptest! {
        #[test]
        fn lines_and_places_do_not_depend_on_how_the_bytes_arrive(text in prop::collection::vec(prop_oneof![1 => Just(b'\n'), 30 => any::<u8>()], 0..300), cut in 1..70usize) {
            let whole = all(&[&text]);
            let pieces: Vec<&[u8]> = text.chunks(cut).collect();
            prop_assert_eq!(&whole, &all(&pieces));
            let mut behind = 0;
            for (line, length, place) in whole {
                prop_assert_eq!(place.start, behind);
                behind = place.end;
                let range = usize::try_from(place.start).unwrap_or(0)..usize::try_from(place.end).unwrap_or(0) - 1;
                prop_assert_eq!(range.len() as u64, length);
                match line {
                    Some(line) => prop_assert_eq!(&text[range], &line[..]),
                    None => prop_assert!(length > SHORT as u64),
                }
            }
        }
    }
}
