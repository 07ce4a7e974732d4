//! From the state of the emulator to bytes that put any xterm-like terminal into that state.
//!
//! Everything is set explicitly and in an order that does not depend on what the terminal did before: first it is
//! reset, then both screens are drawn with every mode off, then the modes are turned on. When the alternate screen is
//! shown, the primary one is drawn before it, so that leaving the alternate screen later shows the right contents with
//! the cursor in the right place. Text that was wrapped is written without a break and wraps again in the terminal, so
//! that the terminal treats it as one line when it is copied or the window changes.
//!
//! Nothing here requests a reply from the terminal, and of untrusted data only printable characters are written.

use crate::ascii::push;
use crate::buffer::Buffer;
use crate::charset::Charsets;
use crate::cursor::{Cursor, SavedCursor};
use crate::row::{Row, Shape};
use crate::style::Style;
use crate::terminal::{Margins, Terminal};
use std::ops::Range;

/// Puts a terminal into the state that a shell expects, from any state: in the middle of a sequence, on the alternate
/// screen, with the mouse and the keyboard in any mode. The cursor goes to the last row, where no text is overwritten.
pub(crate) const RESET: &str = concat!(
    // An open sequence or string is dropped, not carried out; a synchronised update and a hyperlink end.
    "\x18\x1b\\\x1b[?2026l\x1b]8;;\x1b\\",
    // The keyboard, for the alternate screen and then for the primary one.
    "\x1b[<99u\x1b[?1049l\x1b[<99u\x1b[>4m\x1b>\x1b[?1l",
    // Mouse, focus, paste, colour scheme and size reports.
    "\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l",
    "\x1b[?1004l\x1b[?2004l\x1b[?2031l\x1b[?2048l",
    // Insert and newline mode, reverse video, all margins, origin, wrapping, charsets, style.
    "\x1b[4l\x1b[20l\x1b[?5l\x1b[?69l\x1b[?6l\x1b[r\x1b[?7h\x1b(B\x1b)B\x0f\x1b[0m",
    // The cursor.
    "\x1b[?25h\x1b[0 q\x1b[9999;1H",
);

/// Turns off everything that would disturb drawing.
const NEUTRAL: &[u8] = b"\x1b[?6l\x1b[r\x1b(B\x1b)B\x0f\x1b[0m";

impl Terminal {
    pub(crate) fn redraw(&self) -> Vec<u8> {
        let mut painter = Painter { out: RESET.into(), columns: self.columns() };
        // Shown at once instead of row by row, if the terminal supports it.
        painter.out.extend_from_slice(b"\x1b[?2026h");
        painter.tab_stops(self);
        if let Some(primary) = &self.behind {
            painter.buffer(primary);
            // Saves the cursor once more, in the position where it was saved.
            painter.out.extend_from_slice(b"\x1b[?1049h");
        }
        painter.buffer(&self.shown);
        let live = SavedCursor { cursor: self.cursor, style: self.style, charsets: self.charsets, origin: self.origin };
        painter.out.extend_from_slice(NEUTRAL);
        if self.margins != Margins::full(self.size) {
            push(&mut painter.out, format_args!("\x1b[{};{}r", self.margins.top + 1, self.margins.bottom + 1));
        }
        painter.pose(&self.shown, &live, self.margins.top);
        painter.modes(self);
        painter.out.extend_from_slice(b"\x1b[?2026l");
        painter.out
    }
}

struct Painter {
    out: Vec<u8>,
    columns: usize,
}

impl Painter {
    fn tab_stops(&mut self, terminal: &Terminal) {
        self.out.extend_from_slice(b"\x1b[3g");
        for stop in terminal.tabs.stops() {
            push(&mut self.out, format_args!("\x1b[1;{}H\x1bH", stop + 1));
        }
    }

    /// Draws one screen, sets its keyboard flags and saves its cursor.
    fn buffer(&mut self, buffer: &Buffer) {
        self.out.extend_from_slice(NEUTRAL);
        self.out.extend_from_slice(b"\x1b[H\x1b[2J");
        self.rows(buffer);
        for flags in buffer.keyboard.flags() {
            push(&mut self.out, format_args!("\x1b[>{flags}u"));
        }
        self.pose(buffer, &buffer.saved_cursor, 0);
        self.out.extend_from_slice(b"\x1b7");
    }

    fn rows(&mut self, buffer: &Buffer) {
        let mut style = Style::default();
        let mut broken_before = false;
        let mut rows = buffer.rows().enumerate().peekable();
        while let Some((number, row)) = rows.next() {
            let length = row.cells().len();
            if length > 0 && !broken_before {
                push(&mut self.out, format_args!("\x1b[{}H", number + 1));
            }
            self.cells(row, 0..length, &mut style);
            broken_before = rows.peek().is_some_and(|(_, next)| breaks_between(row, next, self.columns));
        }
        if style != Style::default() {
            Style::default().write_sgr(&mut self.out);
        }
    }

    fn cells(&mut self, row: &Row, columns: Range<usize>, style: &mut Style) {
        for column in columns {
            let cell = row.cell(column);
            if cell.style != *style {
                *style = cell.style;
                style.write_sgr(&mut self.out);
            }
            match cell.shape {
                Shape::Narrow | Shape::Wide => self.character(cell.character),
                Shape::Tail => {}
            }
            if row.has_marks() {
                for mark in row.marks_in(column..column + 1) {
                    self.character(mark.character);
                }
            }
        }
    }

    fn character(&mut self, character: char) {
        self.out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }

    /// Sets the cursor's position, style and charsets, and the origin mode, in which rows are counted from the top
    /// margin. Expects the neutral state, except for the margins.
    fn pose(&mut self, buffer: &Buffer, pose: &SavedCursor, top_margin: usize) {
        let Cursor { row, column, wrap_pending } = pose.cursor;
        let top = if pose.origin {
            self.out.extend_from_slice(b"\x1b[?6h");
            top_margin
        } else {
            0
        };
        let text = buffer.row(row);
        // The only way to a pending wrap at the edge is to write the last character again.
        let waits = wrap_pending && text.is_full(self.columns);
        let start = match text.cell(column).shape {
            Shape::Tail if waits => column - 1,
            Shape::Narrow | Shape::Wide | Shape::Tail => column,
        };
        push(&mut self.out, format_args!("\x1b[{};{}H", row.saturating_sub(top) + 1, start + 1));
        let mut style = Style::default();
        if waits {
            self.cells(text, start..column + 1, &mut style);
        }
        if pose.style != style {
            pose.style.write_sgr(&mut self.out);
        }
        self.charsets(pose.charsets);
    }

    fn charsets(&mut self, charsets: Charsets) {
        self.out.extend_from_slice(&[0x1b, b'(', charsets.g0.designator(), 0x1b, b')', charsets.g1.designator()]);
        self.out.push(if charsets.shifted { 0x0e } else { 0x0f });
    }

    /// The modes that must not be on while the screens are drawn.
    fn modes(&mut self, terminal: &Terminal) {
        if terminal.insert {
            self.out.extend_from_slice(b"\x1b[4h");
        }
        if terminal.newline {
            self.out.extend_from_slice(b"\x1b[20h");
        }
        if !terminal.autowrap {
            self.out.extend_from_slice(b"\x1b[?7l");
        }
        terminal.modes.write(&mut self.out);
        if let Some(title) = &terminal.title {
            push(&mut self.out, format_args!("\x1b]2;{title}\x1b\\"));
        }
    }
}

/// Appends the text of a row with its colours. The style is neutral before and after.
pub(crate) fn write_row(out: &mut Vec<u8>, row: &Row) {
    let mut painter = Painter { out: std::mem::take(out), columns: 0 };
    let mut style = Style::default();
    painter.cells(row, 0..row.used(), &mut style);
    if style != Style::default() {
        Style::default().write_sgr(&mut painter.out);
    }
    *out = painter.out;
}

/// Whether the text of `row` continues in `next` in such a way that a terminal wraps it there itself: the row is full,
/// or full except for a last column into which a wide character did not fit.
fn breaks_between(row: &Row, next: &Row, columns: usize) -> bool {
    let left_one_free = row.cells().len() + 1 == columns && next.cell(0).shape == Shape::Wide;
    row.wrapped && !next.cells().is_empty() && (row.is_full(columns) || left_one_free)
}
