//! Control sequences with parameters, `ESC [ … letter`: moving, erasing, scrolling, modes.

use crate::cursor::Cursor;
use crate::parser::{Csi, Perform};
use crate::terminal::{Margins, Terminal};
use std::ops::Range;

impl Terminal {
    pub(crate) fn sequence(&mut self, csi: &Csi, last: u8) {
        let params = &csi.params;
        if params.has_colons() && last != b'm' {
            return;
        }
        match (csi.marker, csi.intermediate) {
            (None, None) => self.standard(csi, last),
            (Some(b'?'), None) => match last {
                b'h' => params.values().iter().for_each(|&mode| self.set_private_mode(mode, true)),
                b'l' => params.values().iter().for_each(|&mode| self.set_private_mode(mode, false)),
                // Selective erasing skips protected cells; there are none here.
                b'J' => self.erase_display(params.get(0)),
                b'K' => self.erase_line(params.get(0)),
                _ => {}
            },
            (Some(b'>'), None) => match (last, params.get(0)) {
                (b'u', flags) => self.shown.keyboard.push(flags),
                (b'm', 4) => self.modes.set_other_keys(params.get(1)),
                (b'm', 0) | (b'n', 4) => self.modes.set_other_keys(0),
                (_, _) => {}
            },
            (Some(b'<'), None) if last == b'u' => self.shown.keyboard.pop(params.at_least_one(0)),
            (Some(b'='), None) if last == b'u' => self.shown.keyboard.set(params.get(0), params.get(1)),
            (None, Some(b'!')) if last == b'p' => self.soft_reset(),
            (None, Some(b' ')) if last == b'q' => self.modes.set_cursor_style(params.get(0)),
            (_, _) => {}
        }
    }

    fn standard(&mut self, csi: &Csi, last: u8) {
        let params = &csi.params;
        let count = params.at_least_one(0);
        let Cursor { row, column, .. } = self.cursor;
        let (columns, erased) = (self.columns(), self.style.erased());
        match last {
            b'@' => {
                self.cursor.wrap_pending = false;
                self.row_mut().insert_blanks(column, count, erased, columns);
                self.cut_wrap_into_empty(row);
            }
            b'A' => self.move_up(count),
            b'B' | b'e' => self.move_down(count),
            b'C' | b'a' => self.move_to_column(column.saturating_add(count)),
            b'D' => self.move_to_column(column.saturating_sub(count)),
            b'E' => {
                self.move_down(count);
                self.move_to_column(0);
            }
            b'F' => {
                self.move_up(count);
                self.move_to_column(0);
            }
            b'G' | b'`' => self.move_to_column(count - 1),
            b'H' | b'f' => self.move_to(count - 1, params.at_least_one(1) - 1),
            b'I' => (0..count.min(columns)).for_each(|_| self.tab_forward()),
            b'J' if params.get(0) == 3 => self.primary().erase_scrolled_off(),
            b'J' => self.erase_display(params.get(0)),
            b'K' => self.erase_line(params.get(0)),
            b'L' => self.in_lower_region(|terminal, region| terminal.scroll_down(region, count)),
            // Deleted lines have not scrolled off, so they are not collected.
            b'M' => self.in_lower_region(|terminal, region| terminal.shown.scroll_up(region, count, erased, columns)),
            b'P' => {
                self.cursor.wrap_pending = false;
                self.row_mut().delete(column, count, erased, columns);
                self.cut_wrap_into_empty(row);
            }
            b'S' => self.scroll_up(self.margins.region(), count),
            // With more parameters this starts mouse highlighting.
            b'T' if params.values().len() <= 1 => self.scroll_down(self.margins.region(), count),
            b'^' => self.scroll_down(self.margins.region(), count),
            b'X' => self.erase_cells(row, column..column.saturating_add(count).min(columns)),
            b'Z' => (0..count.min(columns)).for_each(|_| self.tab_backward()),
            b'b' => self.repeat(count),
            b'd' => self.move_to(count - 1, column),
            b'g' => match params.get(0) {
                0 => self.tabs.set(column, false),
                3 => self.tabs.clear(),
                _ => {}
            },
            b'h' => params.values().iter().for_each(|&mode| self.set_mode(mode, true)),
            b'l' => params.values().iter().for_each(|&mode| self.set_mode(mode, false)),
            b'm' => self.style.apply(params),
            b'r' => self.set_margins(params.get(0), params.get(1)),
            b's' if params.is_empty() => self.save_cursor(),
            b'u' if params.is_empty() => self.restore_cursor(),
            _ => {}
        }
    }

    fn set_mode(&mut self, mode: u16, on: bool) {
        match mode {
            4 => self.insert = on,
            20 => self.newline = on,
            _ => {}
        }
    }

    fn set_private_mode(&mut self, mode: u16, on: bool) {
        match (mode, on) {
            (6, _) => {
                self.origin = on;
                self.move_to(0, 0);
            }
            (7, _) => self.autowrap = on,
            (47 | 1047, true) => self.show_alternate(),
            (47 | 1047, false) => self.show_primary(),
            (1048, true) => self.save_cursor(),
            (1048, false) => self.restore_cursor(),
            (1049, true) => {
                self.save_cursor();
                self.show_alternate();
                self.erase_rows(0..self.rows());
                // Also when the alternate screen was already shown: the character before a pending wrap is erased.
                self.cursor.wrap_pending = false;
            }
            (1049, false) => {
                self.show_primary();
                self.restore_cursor();
            }
            (_, _) => self.modes.set_private(mode, on),
        }
    }

    fn set_margins(&mut self, top: u16, bottom: u16) {
        let top = usize::from(top.max(1)) - 1;
        let bottom = if bottom == 0 { self.rows() } else { usize::from(bottom).min(self.rows()) } - 1;
        // A single row cannot scroll; a screen of one row has no other margins.
        if top < bottom || self.rows() == 1 {
            self.margins = Margins { top: top.min(bottom), bottom };
            self.move_to(0, 0);
        }
    }

    fn move_to_column(&mut self, column: usize) {
        self.cursor.column = column.min(self.columns() - 1);
        self.cursor.wrap_pending = false;
    }

    /// Moves up, but not out of the margins.
    fn move_up(&mut self, count: usize) {
        let limit = if self.cursor.row < self.margins.top { 0 } else { self.margins.top };
        self.cursor.row = self.cursor.row.saturating_sub(count).max(limit);
        self.cursor.wrap_pending = false;
    }

    /// Moves down, but not out of the margins.
    fn move_down(&mut self, count: usize) {
        let limit = if self.cursor.row > self.margins.bottom { self.rows() - 1 } else { self.margins.bottom };
        self.cursor.row = self.cursor.row.saturating_add(count).min(limit);
        self.cursor.wrap_pending = false;
    }

    fn tab_forward(&mut self) {
        self.move_to_column(self.tabs.after(self.cursor.column).unwrap_or(usize::MAX));
    }

    fn tab_backward(&mut self) {
        self.move_to_column(self.tabs.before(self.cursor.column).unwrap_or(0));
    }

    /// Inserting and deleting lines changes the rows from the cursor to the bottom margin, and moves the cursor to the
    /// start of its row; outside the margins it does nothing.
    fn in_lower_region(&mut self, change: impl FnOnce(&mut Terminal, Range<usize>)) {
        if self.margins.region().contains(&self.cursor.row) {
            change(self, self.cursor.row..self.margins.bottom + 1);
            self.move_to_column(0);
        }
    }

    fn erase_display(&mut self, what: u16) {
        let row = self.cursor.row;
        match what {
            0 => {
                self.erase_line(0);
                self.erase_rows(row + 1..self.rows());
            }
            1 => {
                self.erase_line(1);
                self.erase_rows(0..row);
            }
            2 => {
                self.erase_rows(0..self.rows());
                self.cursor.wrap_pending = false;
            }
            _ => {}
        }
    }

    fn erase_line(&mut self, what: u16) {
        let Cursor { row, column, .. } = self.cursor;
        let range = match what {
            0 => column..self.columns(),
            1 => 0..column + 1,
            2 => 0..self.columns(),
            _ => return,
        };
        self.erase_cells(row, range);
    }

    fn erase_cells(&mut self, row: usize, range: Range<usize>) {
        self.cursor.wrap_pending = false;
        let (style, at_edge) = (self.style.erased(), range.end == self.columns());
        let erased = self.shown.row_mut(row);
        erased.erase(range, style);
        erased.wrapped &= !at_edge;
        self.cut_wrap_into_empty(row);
    }

    fn erase_rows(&mut self, rows: Range<usize>) {
        let (style, columns) = (self.style.erased(), self.columns());
        self.shown.clear(rows, style, columns);
    }

    /// Prints the last character again, at most as often as the screen has cells.
    fn repeat(&mut self, count: usize) {
        if let Some(character) = self.last_character {
            for _ in 0..count.min(self.rows() * self.columns()) {
                self.character(character);
            }
        }
    }
}
