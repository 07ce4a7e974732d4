//! The state of a terminal after some prefix of a program's output.

use crate::parser::Parser;
use crate::redraw::RESET;
use crate::row::Row;
use crate::size::Size;
use crate::snapshot::{self, DamagedSnapshot};
use crate::styled_pieces::{self, Piece};
use crate::terminal::Terminal;

/// What a terminal shows after the bytes it was fed, and the state it needs for the following bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Screen {
    pub(crate) terminal: Terminal,
    parser: Parser,
}

impl Screen {
    /// An empty screen. A size of 0 becomes one cell, a size that is too large is reduced.
    pub fn new(size: Size) -> Screen {
        Screen { terminal: Terminal::new(size), parser: Parser::default() }
    }

    /// Takes the next bytes of the output; where the output is cut makes no difference.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.parser.feed(bytes, &mut self.terminal);
    }

    pub fn resize(&mut self, size: Size) {
        self.terminal.resize(size);
    }

    pub fn size(&self) -> Size {
        self.terminal.size
    }

    /// The whole state as bytes: a screen restored from them behaves as this one for all further input, even input that
    /// begins in the middle of a character or an escape sequence.
    pub fn snapshot(&self) -> Vec<u8> {
        snapshot::write(&self.terminal, &self.parser)
    }

    pub fn restore(bytes: &[u8]) -> Result<Screen, DamagedSnapshot> {
        let (terminal, parser) = snapshot::read(bytes)?;
        Ok(Screen { terminal, parser })
    }

    /// Bytes that bring any xterm-like terminal of the same size from any state to this one. It may then be given the
    /// further output as it comes, even if that begins in the middle of a character or an escape sequence.
    pub fn redraw(&self) -> Vec<u8> {
        let mut bytes = self.terminal.redraw();
        self.parser.write_unfinished(&mut bytes);
        bytes
    }

    /// Bytes that put a terminal into the state that a shell expects, whatever was drawn on it, with the cursor at the
    /// start of the last row.
    pub fn reset() -> &'static [u8] {
        RESET.as_bytes()
    }

    /// The visible rows, without blanks at their ends.
    pub fn text(&self) -> Vec<String> {
        self.terminal.shown.rows().map(Row::text).collect()
    }

    /// The visible rows as pieces of one style each, without blanks at their ends.
    pub fn pieces(&self) -> Vec<Vec<Piece>> {
        self.terminal.shown.rows().map(styled_pieces::of_row).collect()
    }

    /// Row and column of the cursor, counted from 0.
    pub fn cursor(&self) -> (u16, u16) {
        // Both are smaller than the size, which is a u16.
        (self.terminal.cursor.row as u16, self.terminal.cursor.column as u16)
    }

    /// The window title, if the program set one.
    pub fn title(&self) -> Option<&str> {
        self.terminal.title.as_deref()
    }

    /// Whether the alternate screen is shown, which editors and full-screen programs use.
    pub fn is_alternate(&self) -> bool {
        self.terminal.behind.is_some()
    }
}
