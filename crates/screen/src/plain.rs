//! Everything a program wrote to its terminal, as a person would have seen it: plain text, line by line.
//!
//! The bytes go through the same emulator as for the screen, so that progress bars, cursor movements and erased lines
//! look as they did. A line is emitted when it scrolls off the top, the lines of the last screen at the end; text that
//! was wrapped at the edge is one line again. What a full-screen program drew on the alternate screen counts only if it
//! is shown at the end, as on a real terminal. No control character is ever emitted, and the memory is that of one
//! screen, however long the output or a single line of it is.

use crate::buffer::{Buffer, ScrolledOff};
use crate::parser::{Csi, Parser, Perform};
use crate::row::Row;
use crate::size::Size;
use crate::terminal::Terminal;

/// Text is processed in pieces of this size, so that not too many rows scroll off at once.
const PIECE: usize = 4096;

/// Turns terminal output into plain text.
pub struct PlainText {
    terminal: Terminal,
    parser: Parser,
    line: String,
}

impl PlainText {
    pub fn new(size: Size) -> PlainText {
        let mut terminal = Terminal::new(size);
        // The collected rows are taken after each action.
        terminal.shown.collect_scrolled_off(Some(ScrolledOff::new(usize::MAX)));
        PlainText { terminal, parser: Parser::default(), line: String::new() }
    }

    /// Takes the next bytes of the output. `emit` is called with text in pieces, in order; lines in it end with `\n`.
    pub fn feed(&mut self, bytes: &[u8], emit: &mut dyn FnMut(&str)) {
        let mut recorder = Recorder { terminal: &mut self.terminal, line: &mut self.line, emit };
        self.parser.feed(bytes, &mut recorder);
    }

    /// The window changed its size at this point of the output.
    pub fn resize(&mut self, size: Size, emit: &mut dyn FnMut(&str)) {
        self.terminal.resize(size);
        Recorder { terminal: &mut self.terminal, line: &mut self.line, emit }.hand_out();
    }

    /// Emits what is left on the screen, or on both screens when the alternate one is shown.
    pub fn finish(mut self, emit: &mut dyn FnMut(&str)) {
        let columns = self.terminal.columns();
        let Terminal { shown, behind, .. } = &self.terminal;
        for buffer in behind.iter().chain([shown]) {
            emit_screen(buffer, columns, &mut self.line, emit);
        }
    }
}

fn emit_screen(buffer: &Buffer, columns: usize, line: &mut String, emit: &mut dyn FnMut(&str)) {
    let used = buffer.rows().rposition(|row| row.used() > 0).map_or(0, |last| last + 1);
    for (index, row) in buffer.rows().take(used).enumerate() {
        emit_row(row, row.wrapped && index + 1 < used, columns, line, emit);
    }
}

/// Emits one row: with a line end, or without one if the text continues in the next row.
fn emit_row(row: &Row, goes_on: bool, columns: usize, line: &mut String, emit: &mut dyn FnMut(&str)) {
    line.clear();
    if goes_on {
        // The last column may have no cell: it was too small for the wide character that begins the next row.
        row.write_text(line, columns - 1);
    } else {
        row.write_text(line, 0);
        line.truncate(line.trim_end_matches(' ').len());
        line.push('\n');
    }
    emit(line);
}

/// Carries out actions, and after each emits what has scrolled off.
struct Recorder<'a> {
    terminal: &'a mut Terminal,
    line: &'a mut String,
    emit: &'a mut dyn FnMut(&str),
}

impl Recorder<'_> {
    fn hand_out(&mut self) {
        let columns = self.terminal.columns();
        for row in self.terminal.primary().drain_scrolled_off() {
            emit_row(&row, row.wrapped, columns, self.line, self.emit);
        }
    }
}

impl Perform for Recorder<'_> {
    fn text(&mut self, ascii: &[u8]) {
        for piece in ascii.chunks(PIECE) {
            self.terminal.text(piece);
            self.hand_out();
        }
    }

    fn character(&mut self, character: char) {
        self.terminal.character(character);
        self.hand_out();
    }

    fn control(&mut self, byte: u8) {
        self.terminal.control(byte);
        self.hand_out();
    }

    fn escape(&mut self, intermediate: Option<u8>, last: u8) {
        self.terminal.escape(intermediate, last);
        self.hand_out();
    }

    fn csi(&mut self, sequence: &Csi, last: u8) {
        self.terminal.csi(sequence, last);
        self.hand_out();
    }

    fn osc(&mut self, payload: &[u8]) {
        self.terminal.osc(payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(rows: u16, columns: u16, bytes: &[u8]) -> String {
        let mut out = String::new();
        let mut plain = PlainText::new(Size { rows, columns });
        plain.feed(bytes, &mut |text| out.push_str(text));
        plain.finish(&mut |text| out.push_str(text));
        out
    }

    #[test]
    fn scrolled_off_lines_and_the_last_screen_come_out_in_order() {
        let bytes: Vec<u8> = (1..=100).flat_map(|number| format!("{number}\r\n").into_bytes()).collect();
        let wanted: String = (1..=100).map(|number| format!("{number}\n")).collect();
        assert_eq!(plain(5, 20, &bytes), wanted);
    }

    #[test]
    fn a_line_broken_at_the_edge_is_one_line_again() {
        let long = "0123456789".repeat(30);
        assert_eq!(plain(4, 7, format!("{long}\r\nend").as_bytes()), format!("{long}\nend\n"));
        assert_eq!(plain(3, 3, "a表表表表表表表".as_bytes()), "a表表表表表表表\n");
        assert_eq!(plain(3, 4, "ab  cd  ef  gh  ij".as_bytes()), "ab  cd  ef  gh  ij\n");
    }

    #[test]
    fn what_was_written_over_or_erased_does_not_come_out() {
        assert_eq!(plain(4, 20, b"10%\r50%\r100%\r\n"), "100%\n");
        assert_eq!(plain(4, 20, b"wrong\x1b[2K\r\x1b[31mright\x1b[m"), "right\n");
        assert_eq!(plain(4, 20, b"a\r\nb\r\nc\x1b[1;1H\x1b[M"), "b\nc\n");
    }

    #[test]
    fn the_alternate_screen_counts_only_while_it_is_shown() {
        assert_eq!(plain(4, 20, b"shell\r\n\x1b[?1049hvim\x1b[?1049lafter"), "shell\nafter\n");
        assert_eq!(plain(4, 20, b"shell\r\n\x1b[?1049hvim\n\n\n\n\n\n\nx"), "shell\n\n\n\n   x\n");
    }

    #[test]
    fn a_narrow_window_loses_no_text() {
        let mut out = String::new();
        let mut plain = PlainText::new(Size { rows: 3, columns: 10 });
        plain.feed(b"0123456789\r\nabcdefghij\r\n$ ", &mut |text| out.push_str(text));
        plain.resize(Size { rows: 3, columns: 4 }, &mut |text| out.push_str(text));
        plain.finish(&mut |text| out.push_str(text));
        assert_eq!(out, "0123456789\nabcdefghij\n$\n");
    }

    #[test]
    fn a_reset_does_not_end_the_record() {
        assert_eq!(plain(2, 9, b"gone\x1bca\r\nb\r\nc"), "a\nb\nc\n");
    }

    proptest! {
        #[test]
        fn no_control_character_comes_out(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(&b"\x1b[;H2Jm\r\n\xe2\x80\xae"[..])], 0..200),
        ) {
            let text = plain(3, 9, &bytes);
            prop_assert!(!text.chars().any(|c| (c.is_control() && c != '\n') || crate::printable::is_hidden_direction(c)));
        }

        #[test]
        fn where_the_input_is_cut_makes_no_difference(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0..200usize) {
            let cut = cut.min(bytes.len());
            let mut out = String::new();
            let mut parts = PlainText::new(Size { rows: 3, columns: 9 });
            parts.feed(&bytes[..cut], &mut |text| out.push_str(text));
            parts.feed(&bytes[cut..], &mut |text| out.push_str(text));
            parts.finish(&mut |text| out.push_str(text));
            prop_assert_eq!(out, plain(3, 9, &bytes));
        }
    }
}
