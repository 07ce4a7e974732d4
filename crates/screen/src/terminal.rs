//! The emulator: what the screen looks like after each action of the program.
//!
//! Where terminals differ, it follows xterm: an erased cell keeps the background colour, a character in the last column
//! leaves the cursor there until the next character, and the margins stop the cursor only from inside. A character is
//! as wide as its own entry in the Unicode tables says. Whether a selector or joiner after it makes it wider is not
//! considered, since terminals disagree. Not emulated, because nothing on a modern system draws with it: left and right
//! margins, protected cells, double-width lines, rectangles, G2 and G3. Not kept: hyperlinks, images, palettes.
//!
//! Control sequences with parameters (`ESC [ …`) are carried out in [`crate::sequences`].

use crate::buffer::{Buffer, ScrolledOff};
use crate::charset::{Charset, Charsets};
use crate::cursor::{Cursor, SavedCursor};
use crate::modes::Modes;
use crate::parser::{Csi, Perform};
use crate::printable::is_hidden_direction;
use crate::reflow;
use crate::row::Row;
use crate::size::Size;
use crate::style::Style;
use crate::tabs::TabStops;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use unicode_width::UnicodeWidthChar;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Terminal {
    pub(crate) size: Size,
    /// The visible screen.
    pub(crate) shown: Buffer,
    /// The primary screen while the alternate one is shown.
    pub(crate) behind: Option<Buffer>,
    pub(crate) cursor: Cursor,
    pub(crate) style: Style,
    pub(crate) charsets: Charsets,
    pub(crate) margins: Margins,
    pub(crate) tabs: TabStops,
    /// A new character moves the rest of the row to the right.
    pub(crate) insert: bool,
    /// Rows are counted from the top margin, and the cursor stays between the margins.
    pub(crate) origin: bool,
    pub(crate) autowrap: bool,
    /// A line feed is also a carriage return.
    pub(crate) newline: bool,
    pub(crate) modes: Modes,
    pub(crate) title: Option<String>,
    /// For the sequence that repeats the last character.
    pub(crate) last_character: Option<char>,
}

/// The rows that scroll, from `top` to `bottom` inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Margins {
    pub(crate) top: usize,
    pub(crate) bottom: usize,
}

impl Margins {
    pub(crate) fn full(size: Size) -> Margins {
        Margins { top: 0, bottom: usize::from(size.rows) - 1 }
    }

    pub(crate) fn region(self) -> Range<usize> {
        self.top..self.bottom + 1
    }
}

impl Terminal {
    pub(crate) fn new(size: Size) -> Terminal {
        let size = size.clamped();
        Terminal {
            size,
            shown: Buffer::new(usize::from(size.rows)),
            behind: None,
            cursor: Cursor::default(),
            style: Style::default(),
            charsets: Charsets::default(),
            margins: Margins::full(size),
            tabs: TabStops::new(usize::from(size.columns)),
            insert: false,
            origin: false,
            autowrap: true,
            newline: false,
            modes: Modes::default(),
            title: None,
            last_character: None,
        }
    }

    pub(crate) fn rows(&self) -> usize {
        usize::from(self.size.rows)
    }

    pub(crate) fn columns(&self) -> usize {
        usize::from(self.size.columns)
    }

    pub(crate) fn row_mut(&mut self) -> &mut Row {
        self.shown.row_mut(self.cursor.row)
    }

    /// The screen that keeps its contents while a program uses the alternate one.
    pub(crate) fn primary(&mut self) -> &mut Buffer {
        self.behind.as_mut().unwrap_or(&mut self.shown)
    }

    /// What has scrolled off the primary screen, if that is collected.
    pub(crate) fn scrolled_off(&self) -> Option<&ScrolledOff> {
        self.behind.as_ref().unwrap_or(&self.shown).scrolled_off()
    }

    pub(crate) fn resize(&mut self, size: Size) {
        let size = size.clamped();
        if size == self.size {
            return;
        }
        let (rows, columns, old_columns) = (usize::from(size.rows), usize::from(size.columns), self.columns());
        let mut saved = self.shown.saved_cursor.cursor;
        let cursors = &mut [&mut self.cursor, &mut saved];
        match &mut self.behind {
            None => reflow::rewrap(&mut self.shown, old_columns, rows, columns, cursors),
            Some(primary) => {
                reflow::cut(&mut self.shown, rows, columns, cursors);
                let mut saved = primary.saved_cursor.cursor;
                reflow::rewrap(primary, old_columns, rows, columns, &mut [&mut saved]);
                primary.saved_cursor.cursor = saved;
            }
        }
        self.shown.saved_cursor.cursor = saved;
        self.size = size;
        self.margins = Margins::full(size);
        self.tabs.resize(columns);
    }

    /// Writes a character at the cursor.
    fn print(&mut self, character: char, width: usize) {
        let columns = self.columns();
        if width > columns {
            return;
        }
        if self.autowrap {
            if self.cursor.wrap_pending || self.cursor.column + width > columns {
                self.wrap_line();
            }
        } else {
            self.cursor.column = self.cursor.column.min(columns - width);
        }
        let (column, style) = (self.cursor.column, self.style);
        if self.insert {
            self.row_mut().insert_blanks(column, width, style.erased(), columns);
        }
        self.row_mut().write(column, character, width == 2, style);
        self.advance(width);
        self.last_character = Some(character);
    }

    fn advance(&mut self, width: usize) {
        let column = self.cursor.column + width;
        let at_edge = column >= self.columns();
        self.cursor.column = if at_edge { self.columns() - 1 } else { column };
        self.cursor.wrap_pending = at_edge && self.autowrap;
    }

    /// Continues the text in the next row.
    fn wrap_line(&mut self) {
        if !self.cursor.wrap_pending {
            // A wide character does not fit into the last column, which stays unchanged.
            let column = self.cursor.column;
            self.row_mut().pad_to(column);
        }
        let bottom = self.margins.bottom;
        let scrolls = self.cursor.row == bottom;
        self.row_mut().wrapped = true;
        self.cursor.column = 0;
        self.line_feed();
        if scrolls && bottom > self.margins.top {
            // Scrolling cleared the mark that the text continues, but it does continue.
            self.shown.row_mut(bottom - 1).wrapped = true;
        }
    }

    /// Down by one row, scrolling at the bottom margin.
    pub(crate) fn line_feed(&mut self) {
        self.cursor.wrap_pending = false;
        if self.cursor.row == self.margins.bottom {
            self.scroll_up(self.margins.region(), 1);
        } else if self.cursor.row + 1 < self.rows() {
            self.cursor.row += 1;
        }
    }

    /// Up by one row, scrolling at the top margin.
    fn reverse_line_feed(&mut self) {
        self.cursor.wrap_pending = false;
        if self.cursor.row == self.margins.top {
            self.scroll_down(self.margins.region(), 1);
        } else {
            self.cursor.row = self.cursor.row.saturating_sub(1);
        }
    }

    /// Rows that leave at the top of the screen have scrolled off; rows that leave at the top of a lower region have
    /// not.
    pub(crate) fn scroll_up(&mut self, region: Range<usize>, count: usize) {
        self.cursor.wrap_pending = false;
        if region.start == 0 {
            self.shown.collect(count.min(region.end));
        }
        let (style, columns) = (self.style.erased(), self.columns());
        self.shown.scroll_up(region, count, style, columns);
    }

    pub(crate) fn scroll_down(&mut self, region: Range<usize>, count: usize) {
        self.cursor.wrap_pending = false;
        let (style, columns) = (self.style.erased(), self.columns());
        self.shown.scroll_down(region, count, style, columns);
    }

    /// Moves the cursor; `row` counts from the top margin in origin mode.
    pub(crate) fn move_to(&mut self, row: usize, column: usize) {
        let (first, last) = if self.origin { (self.margins.top, self.margins.bottom) } else { (0, self.rows() - 1) };
        self.cursor = Cursor {
            row: row.saturating_add(first).min(last),
            column: column.min(self.columns() - 1),
            wrap_pending: false,
        };
    }

    /// Text that wrapped into a row that is now empty no longer continues there.
    pub(crate) fn cut_wrap_into_empty(&mut self, row: usize) {
        if self.shown.row(row).cells().is_empty()
            && let Some(above) = row.checked_sub(1)
        {
            self.shown.row_mut(above).wrapped = false;
        }
    }

    pub(crate) fn save_cursor(&mut self) {
        self.shown.saved_cursor =
            SavedCursor { cursor: self.cursor, style: self.style, charsets: self.charsets, origin: self.origin };
    }

    pub(crate) fn restore_cursor(&mut self) {
        let saved = self.shown.saved_cursor.clone();
        self.cursor = saved.cursor;
        // The wrap is no longer pending if the character before it was erased.
        self.cursor.wrap_pending &= self.shown.row(self.cursor.row).is_full(self.columns());
        self.style = saved.style;
        self.charsets = saved.charsets;
        self.origin = saved.origin;
        if self.origin && !self.margins.region().contains(&self.cursor.row) {
            self.cursor.row = self.cursor.row.clamp(self.margins.top, self.margins.bottom);
            self.cursor.wrap_pending = false;
        }
    }

    pub(crate) fn show_alternate(&mut self) {
        if self.behind.is_none() {
            self.cursor.wrap_pending = false;
            let alternate = Buffer::new(self.rows());
            self.behind = Some(std::mem::replace(&mut self.shown, alternate));
        }
    }

    pub(crate) fn show_primary(&mut self) {
        if let Some(primary) = self.behind.take() {
            self.cursor.wrap_pending = false;
            self.shown = primary;
        }
    }

    /// `CSI ! p`: resets the modes, the screen stays.
    pub(crate) fn soft_reset(&mut self) {
        self.style = Style::default();
        self.charsets = Charsets::default();
        self.margins = Margins::full(self.size);
        (self.insert, self.origin, self.newline, self.autowrap) = (false, false, false, true);
        self.modes = Modes::default();
        self.shown.saved_cursor = SavedCursor::default();
        self.shown.keyboard = Default::default();
    }

    /// `ESC c`: resets everything except the title, which belongs to the window.
    fn hard_reset(&mut self) {
        let scrolled_off = self.primary().take_scrolled_off();
        *self = Terminal { title: self.title.take(), ..Terminal::new(self.size) };
        self.shown.collect_scrolled_off(scrolled_off);
    }

    /// `ESC # 8`: fills the screen, once used to adjust a picture tube.
    fn fill_with_e(&mut self) {
        self.margins = Margins::full(self.size);
        self.origin = false;
        self.move_to(0, 0);
        let line = vec![b'E'; self.columns()];
        for row in 0..self.rows() {
            let row = self.shown.row_mut(row);
            row.write_ascii(0, &line, Style::default());
            row.wrapped = false;
        }
    }

    /// Whether a terminal read from a file is valid, so that nothing here can go out of bounds.
    pub(crate) fn is_sound(&self) -> bool {
        let (rows, columns) = (self.rows(), self.columns());
        let buffers = std::iter::once(&self.shown).chain(&self.behind);
        self.size == self.size.clamped()
            && buffers.into_iter().all(|buffer| buffer.is_sound(rows, columns))
            && self.cursor.is_sound(rows, columns)
            && (!self.cursor.wrap_pending || self.shown.row(self.cursor.row).is_full(columns))
            && self.margins.top <= self.margins.bottom
            && self.margins.bottom < rows
            && (!self.origin || self.margins.region().contains(&self.cursor.row))
            && self.tabs.is_sound(columns)
            && !self.title.iter().flat_map(|title| title.chars()).any(char::is_control)
            && !self.last_character.is_some_and(char::is_control)
    }
}

impl Perform for Terminal {
    fn text(&mut self, ascii: &[u8]) {
        let charset = self.charsets.active();
        if self.insert || charset != Charset::Ascii {
            for &byte in ascii {
                self.print(charset.translate(byte), 1);
            }
            return;
        }
        let mut rest = ascii;
        while !rest.is_empty() {
            if self.cursor.wrap_pending && self.autowrap {
                self.wrap_line();
            }
            let (column, style) = (self.cursor.column, self.style);
            let (now, later) = rest.split_at(rest.len().min(self.columns() - column));
            self.row_mut().write_ascii(column, now, style);
            self.advance(now.len());
            rest = later;
        }
        self.last_character = ascii.last().map(|&byte| char::from(byte));
    }

    fn character(&mut self, character: char) {
        match character.width() {
            Some(0) => {
                let column =
                    if self.cursor.wrap_pending { Some(self.cursor.column) } else { self.cursor.column.checked_sub(1) };
                if let Some(column) = column {
                    self.row_mut().add_mark(column, character);
                }
            }
            // One character, U+17D8, has a width of three columns in the tables; terminals give it two at most.
            Some(width) => self.print(character, width.min(2)),
            None => {}
        }
    }

    fn control(&mut self, byte: u8) {
        match byte {
            0x08 => {
                self.cursor.column = self.cursor.column.saturating_sub(1);
                self.cursor.wrap_pending = false;
            }
            0x09 => self.cursor.column = self.tabs.after(self.cursor.column).unwrap_or(self.columns() - 1),
            0x0a..=0x0c => {
                if self.newline {
                    self.cursor.column = 0;
                }
                self.line_feed();
            }
            0x0d => {
                self.cursor.column = 0;
                self.cursor.wrap_pending = false;
            }
            0x0e => self.charsets.shifted = true,
            0x0f => self.charsets.shifted = false,
            _ => {}
        }
    }

    fn escape(&mut self, intermediate: Option<u8>, last: u8) {
        match (intermediate, last) {
            (None, b'7') => self.save_cursor(),
            (None, b'8') => self.restore_cursor(),
            (None, b'=') => self.modes.keypad = true,
            (None, b'>') => self.modes.keypad = false,
            (None, b'D') => self.line_feed(),
            (None, b'E') => {
                self.cursor.column = 0;
                self.line_feed();
            }
            (None, b'H') => self.tabs.set(self.cursor.column, true),
            (None, b'M') => self.reverse_line_feed(),
            (None, b'c') => self.hard_reset(),
            (Some(b'('), _) => self.charsets.g0 = Charset::designated_by(last),
            (Some(b')'), _) => self.charsets.g1 = Charset::designated_by(last),
            (Some(b'#'), b'8') => self.fill_with_e(),
            (_, _) => {}
        }
    }

    fn csi(&mut self, sequence: &Csi, last: u8) {
        self.sequence(sequence, last);
    }

    fn osc(&mut self, payload: &[u8]) {
        let title = payload.strip_prefix(b"0;").or_else(|| payload.strip_prefix(b"2;"));
        if let Some(title) = title {
            let shown = |character: &char| !character.is_control() && !is_hidden_direction(*character);
            self.title = Some(String::from_utf8_lossy(title).chars().filter(shown).collect());
        }
    }
}
