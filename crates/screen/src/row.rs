//! One row of the screen.
//!
//! A row has cells only up to the last one that was written: the rest is blank and costs neither memory nor time, which
//! makes scrolling cheap. Two invariants hold after every operation here: the left half of a wide character is always
//! followed by its right half, and accents belong to a cell that exists.

use crate::printable::is_hidden_direction;
use crate::style::{Style, is_default};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Accents and joiners on one character; no writing system has more.
const MARKS_PER_CELL: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) character: char,
    pub(crate) shape: Shape,
    pub(crate) style: Style,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Narrow,
    /// The left half of a character two columns wide.
    Wide,
    /// The right half; its character is in the cell to the left.
    Tail,
}

/// A character without width of its own, on the cell at `column`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub(crate) column: usize,
    pub(crate) character: char,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "RowRecord", from = "RowRecord")]
pub(crate) struct Row {
    cells: Vec<Cell>,
    /// In the order of their columns.
    marks: Vec<Mark>,
    /// The text continues in the next row, because it did not fit into this one.
    pub(crate) wrapped: bool,
}

impl Cell {
    pub(crate) fn blank(style: Style) -> Cell {
        Cell { character: ' ', shape: Shape::Narrow, style }
    }

    fn narrow(character: char, style: Style) -> Cell {
        Cell { character, shape: Shape::Narrow, style }
    }

    pub(crate) fn is_blank(&self) -> bool {
        self.character == ' ' && self.shape == Shape::Narrow && is_default(&self.style)
    }
}

impl Row {
    pub(crate) fn from_parts(cells: Vec<Cell>, marks: Vec<Mark>, wrapped: bool) -> Row {
        Row { cells, marks, wrapped }
    }

    pub(crate) fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Whether the last column was written.
    pub(crate) fn is_full(&self, columns: usize) -> bool {
        self.cells.len() >= columns
    }

    /// The cell at `column`, blank where nothing was written.
    pub(crate) fn cell(&self, column: usize) -> Cell {
        self.cells.get(column).copied().unwrap_or_else(|| Cell::blank(Style::default()))
    }

    pub(crate) fn has_marks(&self) -> bool {
        !self.marks.is_empty()
    }

    /// The marks on the cells of `columns`.
    pub(crate) fn marks_in(&self, columns: Range<usize>) -> &[Mark] {
        marks_in(&self.marks, columns)
    }

    /// The number of cells up to the last one that is not blank.
    pub(crate) fn used(&self) -> usize {
        let last_cell = self.cells.iter().rposition(|cell| !cell.is_blank()).map_or(0, |last| last + 1);
        self.marks.last().map_or(last_cell, |mark| last_cell.max(mark.column + 1))
    }

    pub(crate) fn write_ascii(&mut self, column: usize, text: &[u8], style: Style) {
        let end = column + text.len();
        self.make_way(column..end);
        let (over, beyond) = text.split_at(self.cells.len().min(end) - column);
        for (cell, &byte) in self.cells[column..].iter_mut().zip(over) {
            *cell = Cell::narrow(char::from(byte), style);
        }
        self.cells.extend(beyond.iter().map(|&byte| Cell::narrow(char::from(byte), style)));
    }

    pub(crate) fn write(&mut self, column: usize, character: char, wide: bool, style: Style) {
        if wide {
            self.make_way(column..column + 2);
            self.put(column, Cell { character, shape: Shape::Wide, style });
            self.put(column + 1, Cell { character: ' ', shape: Shape::Tail, style });
        } else {
            self.make_way(column..column + 1);
            self.put(column, Cell::narrow(character, style));
        }
    }

    /// Puts an accent on the character at `column`, or on the wide character whose right half is there.
    pub(crate) fn add_mark(&mut self, column: usize, character: char) {
        let column = match self.cell(column).shape {
            Shape::Tail => column - 1,
            Shape::Narrow | Shape::Wide => column,
        };
        if self.marks_in(column..column + 1).len() < MARKS_PER_CELL {
            self.pad_to(column + 1);
            let after = self.marks.partition_point(|mark| mark.column <= column);
            self.marks.insert(after, Mark { column, character });
        }
    }

    pub(crate) fn erase(&mut self, range: Range<usize>, style: Style) {
        if is_default(&style) && range.end >= self.cells.len() {
            self.crop(range.start);
            return;
        }
        self.make_way(range.clone());
        self.pad_to(range.end);
        self.cells[range].fill(Cell::blank(style));
    }

    /// Makes the whole row blank, in this style.
    pub(crate) fn clear(&mut self, style: Style, columns: usize) {
        self.cells.clear();
        self.marks.clear();
        self.wrapped = false;
        if !is_default(&style) {
            self.cells.resize(columns, Cell::blank(style));
        }
    }

    /// Moves the cells from `column` on to the right; cells beyond the edge are lost.
    pub(crate) fn insert_blanks(&mut self, column: usize, count: usize, style: Style, columns: usize) {
        let count = count.min(columns.saturating_sub(column));
        self.wrapped = false;
        self.crop(columns - count);
        self.split_wide(column);
        if self.cells.len() <= column && is_default(&style) {
            return;
        }
        self.pad_to(column);
        self.cells.splice(column..column, std::iter::repeat_n(Cell::blank(style), count));
        for mark in self.marks.iter_mut().filter(|mark| mark.column >= column) {
            mark.column += count;
        }
    }

    /// Removes cells and moves the cells after them to the left; blanks are added at the edge.
    pub(crate) fn delete(&mut self, column: usize, count: usize, style: Style, columns: usize) {
        let count = count.min(columns.saturating_sub(column));
        let end = column + count;
        if !is_default(&style) {
            self.pad_to(columns);
        }
        self.split_wide(column);
        self.split_wide(end);
        if self.cells.len() > column {
            self.cells.drain(column..end.min(self.cells.len()));
        }
        if !is_default(&style) {
            self.cells.resize(columns, Cell::blank(style));
        }
        self.marks.retain(|mark| !(column..end).contains(&mark.column));
        for mark in self.marks.iter_mut().filter(|mark| mark.column >= end) {
            mark.column -= count;
        }
        self.wrapped = false;
    }

    /// Removes everything from `columns` on.
    pub(crate) fn crop(&mut self, columns: usize) {
        self.split_wide(columns);
        self.cells.truncate(columns);
        let kept = self.marks.partition_point(|mark| mark.column < columns);
        self.marks.truncate(kept);
    }

    /// Appends the row's text to `out`, with blanks at its end up to `columns`, and without characters that would
    /// reverse the direction of the following text.
    pub(crate) fn write_text(&self, out: &mut String, columns: usize) {
        let mut marks = self.marks.iter().peekable();
        for (column, cell) in self.cells.iter().enumerate() {
            match cell.shape {
                Shape::Narrow | Shape::Wide => out.push(cell.character),
                Shape::Tail => {}
            }
            while let Some(mark) = marks.next_if(|mark| mark.column == column) {
                if !is_hidden_direction(mark.character) {
                    out.push(mark.character);
                }
            }
        }
        out.extend(std::iter::repeat_n(' ', columns.saturating_sub(self.cells.len())));
    }

    /// The row's text without blanks at its end.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        self.write_text(&mut text, 0);
        text.truncate(text.trim_end_matches(' ').len());
        text
    }

    /// Whether the invariants of this module hold, for a row read from a file.
    pub(crate) fn is_sound(&self, columns: usize) -> bool {
        let mut right_half_due = false;
        let paired = self.cells.iter().all(|cell| {
            let expected = (cell.shape == Shape::Tail) == right_half_due;
            right_half_due = cell.shape == Shape::Wide;
            expected && !cell.character.is_control()
        });
        let marked = self.marks.iter().all(|mark| mark.column < self.cells.len() && !mark.character.is_control());
        paired
            && !right_half_due
            && marked
            && self.marks.is_sorted_by_key(|mark| mark.column)
            && self.cells.len() <= columns
    }

    fn put(&mut self, column: usize, cell: Cell) {
        match self.cells.get_mut(column) {
            Some(slot) => *slot = cell,
            None => self.cells.push(cell),
        }
    }

    /// Extends the row to `columns`, with blanks.
    pub(crate) fn pad_to(&mut self, columns: usize) {
        if self.cells.len() < columns {
            self.cells.resize(columns, Cell::blank(Style::default()));
        }
    }

    /// Prepares `range` for being overwritten: the row reaches to its start, no wide character crosses either end, and
    /// the accents in it are removed.
    fn make_way(&mut self, range: Range<usize>) {
        self.pad_to(range.start);
        self.split_wide(range.start);
        self.split_wide(range.end);
        if !self.marks.is_empty() {
            self.marks.retain(|mark| !range.contains(&mark.column));
        }
    }

    /// Where a wide character crosses the left edge of `column`, both its halves become blank.
    fn split_wide(&mut self, column: usize) {
        if self.cells.get(column).is_none_or(|cell| cell.shape != Shape::Tail) {
            return;
        }
        let halves = column.saturating_sub(1)..column + 1;
        self.marks.retain(|mark| !halves.contains(&mark.column));
        for cell in &mut self.cells[halves] {
            *cell = Cell::blank(cell.style);
        }
    }
}

/// The marks in `columns`, from marks in the order of their columns.
pub(crate) fn marks_in(marks: &[Mark], columns: Range<usize>) -> &[Mark] {
    let first_from = |column| marks.partition_point(|mark| mark.column < column);
    &marks[first_from(columns.start)..first_from(columns.end)]
}

/// A row in a snapshot: runs of cells of the same style. Each character is stored as one cell or one wide pair, so that
/// reading a row back does not depend on a table of character widths.
#[derive(Clone, Serialize, Deserialize)]
struct RowRecord {
    #[serde(rename = "r")]
    runs: Vec<Run>,
    #[serde(rename = "m", default, skip_serializing_if = "Vec::is_empty")]
    marks: Vec<Mark>,
    #[serde(rename = "w", default, skip_serializing_if = "is_default")]
    wrapped: bool,
}

#[derive(Clone, Serialize, Deserialize)]
struct Run {
    #[serde(rename = "s", default, skip_serializing_if = "is_default")]
    style: Style,
    #[serde(rename = "w", default, skip_serializing_if = "is_default")]
    wide: bool,
    #[serde(rename = "t")]
    text: String,
}

impl From<Row> for RowRecord {
    fn from(row: Row) -> RowRecord {
        let mut runs: Vec<Run> = Vec::new();
        for cell in &row.cells {
            let wide = match cell.shape {
                Shape::Narrow => false,
                Shape::Wide => true,
                Shape::Tail => continue,
            };
            match runs.last_mut() {
                Some(run) if run.style == cell.style && run.wide == wide => run.text.push(cell.character),
                Some(_) | None => runs.push(Run { style: cell.style, wide, text: cell.character.into() }),
            }
        }
        RowRecord { runs, marks: row.marks, wrapped: row.wrapped }
    }
}

impl From<RowRecord> for Row {
    fn from(record: RowRecord) -> Row {
        let mut row = Row { cells: Vec::new(), marks: record.marks, wrapped: record.wrapped };
        for run in record.runs {
            for character in run.text.chars() {
                if run.wide {
                    row.cells.push(Cell { character, shape: Shape::Wide, style: run.style });
                    row.cells.push(Cell { character: ' ', shape: Shape::Tail, style: run.style });
                } else {
                    row.cells.push(Cell::narrow(character, run.style));
                }
            }
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: fn() -> Style = Style::default;

    fn row(text: &str) -> Row {
        let mut row = Row::default();
        let mut column = 0;
        for character in text.chars() {
            let wide = character == '表';
            row.write(column, character, wide, PLAIN());
            column += if wide { 2 } else { 1 };
        }
        row
    }

    fn text(row: &Row) -> String {
        assert!(row.is_sound(20), "{row:?}");
        let mut text = String::new();
        row.write_text(&mut text, 0);
        text
    }

    #[test]
    fn writing_over_half_a_wide_character_blanks_the_other_half() {
        for (column, wanted) in [(1, "ax 表b"), (2, "a x表b"), (3, "a表x b"), (4, "a表 xb")] {
            let mut row = row("a表表b");
            row.write_ascii(column, b"x", PLAIN());
            assert_eq!(text(&row), wanted);
        }
        let mut row = row("a表表b");
        row.write(2, '表', true, PLAIN());
        assert_eq!(text(&row), "a 表 b");
    }

    #[test]
    fn erasing_and_cropping_never_leave_half_a_character() {
        let mut row = row("a表表b");
        row.erase(2..4, PLAIN());
        assert_eq!(text(&row), "a    b");
        row.crop(2);
        assert_eq!(text(&row), "a ");
    }

    #[test]
    fn inserting_and_deleting_move_characters_with_their_accents() {
        let mut row = row("abc");
        row.add_mark(1, '\u{301}');
        row.insert_blanks(1, 2, PLAIN(), 20);
        assert_eq!(text(&row), "a  b\u{301}c");
        row.delete(0, 2, PLAIN(), 20);
        assert_eq!(text(&row), " b\u{301}c");
        row.insert_blanks(0, 19, PLAIN(), 20);
        assert_eq!(text(&row).trim_end(), "");
        row.delete(0, 100, PLAIN(), 20);
        assert_eq!(text(&row), "");
    }

    #[test]
    fn accents_are_bounded_and_go_with_their_character() {
        let mut row = row("表x");
        for _ in 0..100 {
            row.add_mark(1, '\u{301}');
        }
        assert_eq!(row.marks.len(), MARKS_PER_CELL);
        row.write_ascii(0, b"y", PLAIN());
        assert_eq!(text(&row), "y x");
    }

    #[test]
    fn text_leaves_out_what_would_turn_its_direction() {
        let mut row = row("ab");
        row.add_mark(0, '\u{202e}');
        assert_eq!(text(&row), "ab");
    }

    #[test]
    fn a_row_survives_its_record() {
        let mut row = row("a表b  c");
        row.add_mark(3, '\u{301}');
        row.wrapped = true;
        assert_eq!(Row::from(RowRecord::from(row.clone())), row);
    }
}
