//! Cuts a stream of bytes into lines, however it arrives, in bounded memory.

/// The longest line that is understood. A longer one is counted, skipped, and reported.
pub const LINE_LIMIT: usize = 128 * 1024 * 1024;

/// The beginning of a line whose end has not come yet.
#[derive(Debug, Default)]
pub struct Lines {
    partial: Vec<u8>,
    too_long: bool,
    /// Bytes given to whole lines so far.
    consumed: u64,
}

/// One line, or what became of it.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    Whole(&'a [u8]),
    TooLong,
}

impl Lines {
    /// Starts at this position of the stream.
    #[must_use]
    pub fn from(position: u64) -> Lines {
        Lines { consumed: position, ..Lines::default() }
    }

    /// Takes bytes in and calls `each` with every line they complete and the position behind it.
    pub fn feed(&mut self, mut bytes: &[u8], mut each: impl FnMut(Line<'_>, u64)) {
        while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            let (line, rest) = bytes.split_at(end);
            bytes = &rest[1..];
            let length = self.partial.len() + line.len();
            if self.too_long {
                self.too_long = false;
                self.consumed += line.len() as u64 + 1;
                each(Line::TooLong, self.consumed);
            } else if self.partial.is_empty() {
                self.consumed += length as u64 + 1;
                each(Line::Whole(line), self.consumed);
            } else {
                self.partial.extend_from_slice(line);
                self.consumed += length as u64 + 1;
                each(Line::Whole(&self.partial), self.consumed);
            }
            self.partial = Vec::new();
        }
        if self.too_long || self.partial.len() + bytes.len() > LINE_LIMIT {
            self.consumed += (self.partial.len() + bytes.len()) as u64;
            self.partial = Vec::new();
            self.too_long = true;
        } else {
            self.partial.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lines_and_positions_do_not_depend_on_how_the_bytes_arrive(text in prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..200), cut in 1..50usize) {
            let mut whole = Vec::new();
            Lines::default().feed(&text, |line, end| if let Line::Whole(line) = line { whole.push((line.to_vec(), end)) });
            let mut pieces = Vec::new();
            let mut lines = Lines::default();
            for piece in text.chunks(cut) {
                lines.feed(piece, |line, end| if let Line::Whole(line) = line { pieces.push((line.to_vec(), end)) });
            }
            prop_assert_eq!(&whole, &pieces);
            for (line, end) in whole {
                let end = usize::try_from(end).unwrap_or(0);
                prop_assert_eq!(&text[end - 1 - line.len()..end - 1], &line[..]);
            }
        }
    }
}
