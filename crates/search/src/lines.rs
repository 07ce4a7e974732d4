//! Cuts a transcript into lines as it is read. Unlike in the output of a running agent, a line that is too long is
//! skipped as quickly as its end can be found: a file without valid lines must not delay a search.

use memchr::memchr;

/// A longer line is not a message.
pub(crate) const LONGEST: usize = 8 * 1024 * 1024;

/// The state of reading.
pub(crate) struct Lines {
    /// Where the current line begins.
    start: u64,
    /// How far the file has been read.
    reached: u64,
    partial: Vec<u8>,
    /// The current line is too long.
    skipping: bool,
}

impl Lines {
    /// Begins at the beginning of a line.
    pub fn from(start: u64) -> Lines {
        Lines { start, reached: start, partial: Vec::new(), skipping: false }
    }

    /// Continues inside a line that begins at `start` and is too long.
    pub fn within(start: u64, reached: u64) -> Lines {
        Lines { start, reached, partial: Vec::new(), skipping: true }
    }

    /// The position after the last complete line.
    pub fn end(&self) -> u64 {
        self.start
    }

    /// How far the file has been read.
    pub fn reached(&self) -> u64 {
        self.reached
    }

    /// Whether the position is inside a line that is too long.
    pub fn is_within(&self) -> bool {
        self.skipping
    }

    /// Takes the next bytes, and calls `each` with every line that they complete and with its start.
    pub fn feed(&mut self, mut bytes: &[u8], mut each: impl FnMut(&[u8], u64)) {
        while let Some(end) = memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at(end);
            if self.skipping || self.partial.len() + line.len() > LONGEST {
                self.skipping = false;
            } else if self.partial.is_empty() {
                each(line, self.start);
            } else {
                self.partial.extend_from_slice(line);
                each(&self.partial, self.start);
            }
            self.partial.clear();
            bytes = &rest[1..];
            self.reached += end as u64 + 1;
            self.start = self.reached;
        }
        self.reached += bytes.len() as u64;
        if self.partial.len() + bytes.len() > LONGEST {
            self.skipping = true;
            self.partial = Vec::new();
        } else if !self.skipping {
            self.partial.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(pieces: &[&[u8]]) -> (Vec<(Vec<u8>, u64)>, u64) {
        let mut found = Vec::new();
        let mut lines = Lines::from(0);
        for piece in pieces {
            lines.feed(piece, |line, start| found.push((line.to_vec(), start)));
        }
        (found, lines.end())
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_and_one_can_go_on_within_it() {
        let long = vec![b'x'; LONGEST + 1];
        let (found, end) = all(&[b"one\n", &long, b"\ntwo\nthr"]);
        let two = 4 + LONGEST as u64 + 2;
        assert_eq!(found, [(b"one".to_vec(), 0), (b"two".to_vec(), two)]);
        assert_eq!(end, two + 4);
        let mut lines = Lines::within(4, 4 + LONGEST as u64);
        let mut found = Vec::new();
        lines.feed(b"x\ntwo\n", |line, start| found.push((line.to_vec(), start)));
        assert_eq!(found, [(b"two".to_vec(), two)]);
        assert!(!lines.is_within());
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_the_bytes_arrive(text in "[ab\n]{0,60}", cut in 1..9usize) {
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(cut).collect();
            prop_assert_eq!(all(&[text.as_bytes()]), all(&pieces));
        }
    }
}
