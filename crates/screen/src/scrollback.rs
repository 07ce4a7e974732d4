//! What has scrolled off the top of a terminal, with its colours: as much of it as a terminal would have kept.
//!
//! Unlike [`crate::PlainText`] this forgets what the program itself has erased from there, as a terminal does.

use crate::parser::{Csi, Parser, Perform};
use crate::redraw::row_as_text;
use crate::size::Size;
use crate::terminal::Terminal;
use std::collections::VecDeque;

/// A run of text is carried out in pieces, so that not too many rows scroll off at once.
const PIECE: usize = 4096;
/// A line that was broken over more bytes than this is cut there.
const LONGEST: usize = 64 * 1024;

pub struct Scrollback {
    parser: Parser,
    collector: Collector,
}

struct Collector {
    terminal: Terminal,
    lines: VecDeque<Vec<u8>>,
    most: usize,
    /// The last line goes on in the next row.
    goes_on: bool,
}

impl Scrollback {
    /// Keeps the last so many lines.
    pub fn new(size: Size, most: usize) -> Scrollback {
        let mut terminal = Terminal::new(size);
        terminal.shown.collect_scrolled_off();
        let collector = Collector { terminal, lines: VecDeque::new(), most, goes_on: false };
        Scrollback { parser: Parser::default(), collector }
    }

    /// Begins in the middle of a long output: there a program mostly stands at the bottom.
    pub fn begin_at_the_bottom(&mut self) {
        self.feed(b"\x1b[9999;1H");
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        self.parser.feed(bytes, &mut self.collector);
    }

    pub fn resize(&mut self, size: Size) {
        self.collector.terminal.resize(size);
        self.collector.collect();
    }

    /// The lines, the oldest first, each with its colours and without its end.
    pub fn lines(self) -> impl Iterator<Item = Vec<u8>> {
        self.collector.lines.into_iter()
    }
}

impl Collector {
    fn collect(&mut self) {
        for row in self.terminal.primary().take_scrolled_off() {
            let goes_on = std::mem::replace(&mut self.goes_on, row.wrapped);
            let text = row_as_text(&row);
            match self.lines.back_mut() {
                Some(line) if goes_on && line.len() < LONGEST => line.extend_from_slice(&text),
                Some(_) | None => self.lines.push_back(text),
            }
            if self.lines.len() > self.most {
                self.lines.pop_front();
            }
        }
    }
}

impl Perform for Collector {
    fn text(&mut self, ascii: &[u8]) {
        for piece in ascii.chunks(PIECE) {
            self.terminal.text(piece);
            self.collect();
        }
    }

    fn character(&mut self, character: char) {
        self.terminal.character(character);
        self.collect();
    }

    fn control(&mut self, byte: u8) {
        self.terminal.control(byte);
        self.collect();
    }

    fn escape(&mut self, intermediate: Option<u8>, last: u8) {
        self.terminal.escape(intermediate, last);
        self.collect();
    }

    fn csi(&mut self, sequence: &Csi, last: u8) {
        self.terminal.csi(sequence, last);
        self.collect();
        const SCROLLED_OFF: u16 = 3;
        if (last, sequence.marker, sequence.params.get(0)) == (b'J', None, SCROLLED_OFF) {
            self.lines.clear();
            self.goes_on = false;
        }
    }

    fn osc(&mut self, payload: &[u8]) {
        self.terminal.osc(payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(rows: u16, columns: u16, most: usize, bytes: &[u8]) -> Vec<String> {
        let mut scrollback = Scrollback::new(Size { rows, columns }, most);
        scrollback.feed(bytes);
        scrollback.lines().map(|line| String::from_utf8_lossy(&line).into_owned()).collect()
    }

    #[test]
    fn the_last_lines_that_scrolled_off_are_kept_with_their_colours() {
        assert_eq!(lines(2, 9, 10, b"one\r\n\x1b[31mtwo\x1b[m\r\nthree\r\nfour"), ["one", "\x1b[0;31mtwo\x1b[0m"]);
        assert_eq!(lines(2, 9, 2, b"1\r\n2\r\n3\r\n4\r\n5"), ["2", "3"]);
        assert_eq!(lines(2, 4, 9, b"abcdefgh\r\nx\r\ny"), ["abcdefgh"], "a broken line is one line");
    }

    #[test]
    fn what_the_program_erased_is_gone_and_the_alternate_screen_has_none() {
        assert_eq!(lines(2, 9, 10, b"1\r\n2\r\n3\r\n\x1b[3Jx\r\ny\r\nz"), ["3", "x"]);
        assert_eq!(lines(2, 9, 10, b"1\r\n2\r\n3\x1b[?1049ha\r\nb\r\nc\r\nd"), ["1"]);
    }
}
