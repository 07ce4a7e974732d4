//! The end of what a command has printed, as the preview keeps it. Of a line that is longer than any window only the
//! beginning and the end are kept, so that it does not take the room of the lines before it.

use ostler_core::limits::size;

/// At most this much is kept, for a moment twice as much.
const KEPT: usize = 64 << 10;
/// Of a line that is longer than twice this, this much of its beginning and of its end is kept.
const PART: usize = 2 << 10;

#[derive(Default)]
pub struct PrintedText {
    /// Complete lines.
    lines: String,
    /// The line that is not complete yet.
    line: Vec<u8>,
    /// How much of that line was left out after its first [`PART`].
    left_out: u64,
}

impl PrintedText {
    pub fn print(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let (piece, ended) = piece.strip_suffix(b"\n").map_or((piece, false), |piece| (piece, true));
            self.line.extend_from_slice(piece);
            // A growing line is shortened in larger steps, not with every byte.
            if self.line.len() > if ended { 2 * PART } else { 4 * PART } {
                let end = self.line.len() - PART;
                self.left_out += (end - PART) as u64;
                self.line.drain(PART..end);
            }
            if ended {
                self.end_line();
            }
        }
    }

    /// Notes that this many bytes are missing here.
    pub fn dropped(&mut self, bytes: u64) {
        self.end_line();
        self.lines.push_str(&format!("[{} were dropped]\n", size(bytes)));
    }

    pub fn text(&self) -> String {
        [self.lines.as_str(), &self.shown_line()].concat()
    }

    fn end_line(&mut self) {
        let line = self.shown_line();
        self.lines.push_str(&line);
        self.lines.push('\n');
        (self.line, self.left_out) = (Vec::new(), 0);
        if self.lines.len() > 2 * KEPT {
            let cut = self.lines.len() - KEPT;
            let cut =
                self.lines.as_bytes()[cut..].iter().position(|&byte| byte == b'\n').map_or(cut, |end| cut + end + 1);
            self.lines.drain(..cut);
        }
    }

    fn shown_line(&self) -> String {
        if self.left_out == 0 {
            return String::from_utf8_lossy(&self.line).into_owned();
        }
        let (begin, end) = self.line.split_at(PART.min(self.line.len()));
        let left_out = size(self.left_out);
        format!("{} [… {left_out} of this line …] {}", String::from_utf8_lossy(begin), String::from_utf8_lossy(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_does_not_hide_the_lines_before_it() {
        for piece in [7, 4096, 1 << 20] {
            let mut text = PrintedText::default();
            let long = format!("<{}>", "x".repeat(200_000));
            for bytes in format!("first\n{long}\nlast\nunfinished {long}").as_bytes().chunks(piece) {
                text.print(bytes);
            }
            let shown = text.text();
            let lines: Vec<&str> = shown.lines().collect();
            assert_eq!((lines.len(), lines[0], lines[2]), (4, "first", "last"), "{lines:?}");
            for (line, begin) in [(lines[1], "<xxx"), (lines[3], "unfinished <xxx")] {
                assert!(line.starts_with(begin) && line.ends_with("xxx>"), "{line}");
                assert!(line.contains(" of this line …]") && line.len() < 6 * PART, "{line}");
            }
        }
    }

    #[test]
    fn what_is_kept_is_bounded_and_begins_with_a_whole_line() {
        let mut text = PrintedText::default();
        for number in 0..100_000 {
            text.print(format!("line {number}\n").as_bytes());
            assert!(text.lines.len() <= 2 * KEPT + 4 * PART);
        }
        assert!(text.text().starts_with("line ") && text.text().ends_with("line 99999\n"));
        text.dropped(5000);
        assert!(text.text().ends_with(" were dropped]\n"));
    }
}
