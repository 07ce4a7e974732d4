//! Changes the size of a screen.
//!
//! The primary screen is wrapped again, as most terminals do it: a line that was wrapped is joined and wrapped at the
//! new edge, so that no text is lost when a window was narrow for a while. The alternate screen is cut or padded; its
//! program draws it again anyway.

use crate::buffer::Buffer;
use crate::cursor::Cursor;
use crate::row::{Cell, Mark, Row, Shape, marks_in};
use crate::style::Style;
use std::collections::VecDeque;

/// Gives the primary screen a new size. `cursors` move with their text; the first of them stays on the screen, whatever
/// rows scroll off at the top.
pub(crate) fn rewrap(
    buffer: &mut Buffer,
    old_columns: usize,
    rows: usize,
    columns: usize,
    cursors: &mut [&mut Cursor],
) {
    let old_rows = buffer.take_rows();
    let mut wrapped =
        if old_columns == columns { old_rows } else { wrap_lines(old_rows, old_columns, columns, cursors) };

    let needed = cursors.first().map_or(0, |cursor| cursor.row + 1);
    while wrapped.len() > rows.max(needed) && wrapped.back().is_some_and(|row| row.used() == 0) {
        wrapped.pop_back();
    }
    // Rows that leave at the top are scrolled off, rows that are cut at the bottom are lost. So rows are cut only as
    // far as needed to keep the cursor.
    let leaving = wrapped.len().saturating_sub(rows).min(needed.saturating_sub(1));
    wrapped.truncate(leaving + rows);
    buffer.set_rows(wrapped, rows);
    for cursor in cursors {
        cursor.row = cursor.row.saturating_sub(leaving);
        cursor.clamp(rows, columns);
    }
}

/// Gives the alternate screen a new size.
pub(crate) fn cut(buffer: &mut Buffer, rows: usize, columns: usize, cursors: &mut [&mut Cursor]) {
    let mut kept = buffer.take_rows();
    kept.truncate(rows);
    for row in &mut kept {
        row.crop(columns);
    }
    buffer.set_rows(kept, rows);
    for cursor in cursors {
        cursor.clamp(rows, columns);
        cursor.wrap_pending = false;
    }
}

/// A line of text before it is broken into rows.
#[derive(Default)]
struct Line {
    cells: Vec<Cell>,
    marks: Vec<Mark>,
    /// Which cursors are in it, and how many cells come before each cursor.
    cursors: Vec<(usize, usize)>,
}

fn wrap_lines(rows: VecDeque<Row>, old_columns: usize, columns: usize, cursors: &mut [&mut Cursor]) -> VecDeque<Row> {
    let before: Vec<Cursor> = cursors.iter().map(|cursor| **cursor).collect();
    let mut result = VecDeque::new();
    let mut line = Line::default();
    let mut rows = rows.into_iter().enumerate().peekable();
    while let Some((number, row)) = rows.next() {
        let start = line.cells.len();
        for (index, cursor) in before.iter().enumerate().filter(|(_, cursor)| cursor.row == number) {
            line.cursors.push((index, start + cursor.column + usize::from(cursor.wrap_pending)));
        }
        let next_is_wide = rows.peek().is_some_and(|(_, next)| next.cell(0).shape == Shape::Wide);
        let goes_on = row.wrapped && rows.peek().is_some();
        line.append(&row, if goes_on { filled_columns(&row, old_columns, next_is_wide) } else { row.used() });
        if !goes_on {
            std::mem::take(&mut line).break_into(&mut result, columns, cursors);
        }
    }
    result
}

/// How much of a wrapped row belongs to its text: all of it, except for a last column that stayed free because a wide
/// character did not fit there.
fn filled_columns(row: &Row, columns: usize, next_is_wide: bool) -> usize {
    if next_is_wide && row.cells().len() < columns { columns - 1 } else { columns }
}

impl Line {
    fn append(&mut self, row: &Row, columns: usize) {
        let start = self.cells.len();
        self.cells.extend(row.cells().iter().take(columns));
        self.cells.resize(start + columns, Cell::blank(Style::default()));
        let marks = row.marks_in(0..columns);
        self.marks.extend(marks.iter().map(|mark| Mark { column: start + mark.column, character: mark.character }));
    }

    /// Appends this line to `rows`, wrapped at `columns`, and sets its cursors.
    fn break_into(mut self, rows: &mut VecDeque<Row>, columns: usize, cursors: &mut [&mut Cursor]) {
        if columns == 1 {
            self.drop_wide();
        }
        let mut start = 0;
        loop {
            let end = self.row_end(start, columns);
            let last = end == self.cells.len();
            for &(index, offset) in
                self.cursors.iter().filter(|(_, offset)| *offset >= start && (*offset < end || last))
            {
                let column = offset - start;
                // After the last cell of a full row the cursor is in the last column, with a pending wrap.
                let wrap_pending = column == columns && end - start == columns;
                *cursors[index] = Cursor { row: rows.len(), column: column.min(columns - 1), wrap_pending };
            }
            let marks = marks_in(&self.marks, start..end).iter();
            let marks = marks.map(|mark| Mark { column: mark.column - start, character: mark.character });
            rows.push_back(Row::from_parts(self.cells[start..end].to_vec(), marks.collect(), !last));
            if last {
                return;
            }
            start = end;
        }
    }

    fn row_end(&self, start: usize, columns: usize) -> usize {
        let end = (start + columns).min(self.cells.len());
        let cuts_wide = self.cells.get(end).is_some_and(|cell| cell.shape == Shape::Tail);
        if cuts_wide { end - 1 } else { end }
    }

    /// A single column has no room for a wide character.
    fn drop_wide(&mut self) {
        for cell in self.cells.iter_mut().filter(|cell| cell.shape != Shape::Narrow) {
            *cell = Cell::blank(cell.style);
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::buffer::ScrolledOff;

    /// Makes a screen of four rows with these lines, wrapped where they are longer than the screen is wide.
    fn screen(lines: &[&str], columns: usize) -> Buffer {
        let mut rows = VecDeque::new();
        for line in lines {
            let chunks: Vec<&[u8]> = line.as_bytes().chunks(columns).collect();
            for (index, chunk) in chunks.iter().enumerate() {
                let mut row = Row::default();
                row.write_ascii(0, chunk, Style::default());
                row.wrapped = index + 1 < chunks.len();
                rows.push_back(row);
            }
        }
        let mut buffer = Buffer::new(4);
        buffer.collect_scrolled_off(Some(ScrolledOff::new(10)));
        buffer.set_rows(rows, 4);
        buffer
    }

    fn texts<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<String> {
        rows.map(|row| {
            assert!(row.is_sound(1000), "{row:?}");
            let mut text = String::new();
            row.write_text(&mut text, 0);
            text
        })
        .collect()
    }

    #[test]
    fn a_line_is_broken_at_the_new_edge_and_joined_again() {
        let mut buffer = screen(&["abcdef", "x"], 6);
        let mut cursor = Cursor { row: 1, column: 1, wrap_pending: false };
        rewrap(&mut buffer, 6, 4, 4, &mut [&mut cursor]);
        assert_eq!(texts(buffer.rows()), ["abcd", "ef", "x", ""]);
        assert_eq!((cursor.row, cursor.column), (2, 1));
        rewrap(&mut buffer, 4, 4, 6, &mut [&mut cursor]);
        assert_eq!(texts(buffer.rows()), ["abcdef", "x", "", ""]);
        assert_eq!((cursor.row, cursor.column), (1, 1));
    }

    #[test]
    fn what_does_not_fit_leaves_at_the_top() {
        let mut buffer = screen(&["abcdef", "ghijkl", "$"], 6);
        let mut cursor = Cursor { row: 2, column: 1, wrap_pending: false };
        rewrap(&mut buffer, 6, 3, 3, &mut [&mut cursor]);
        assert_eq!(texts(buffer.rows()), ["ghi", "jkl", "$"]);
        assert_eq!(texts(buffer.scrolled_off().unwrap().rows()), ["abc", "def"]);
        assert_eq!((cursor.row, cursor.column), (2, 1));
    }

    #[test]
    fn blank_rows_below_the_cursor_go_first() {
        let mut buffer = screen(&["a", "b"], 6);
        let mut cursor = Cursor { row: 1, column: 1, wrap_pending: false };
        rewrap(&mut buffer, 6, 2, 6, &mut [&mut cursor]);
        assert_eq!(texts(buffer.rows()), ["a", "b"]);
        assert_eq!(cursor.row, 1);
    }

    #[test]
    fn a_cursor_that_waits_at_the_edge_goes_on_in_the_text() {
        let mut buffer = screen(&["abcd"], 4);
        let mut cursor = Cursor { row: 0, column: 3, wrap_pending: true };
        rewrap(&mut buffer, 4, 4, 8, &mut [&mut cursor]);
        assert_eq!(cursor, Cursor { row: 0, column: 4, wrap_pending: false });
        rewrap(&mut buffer, 8, 4, 2, &mut [&mut cursor]);
        assert_eq!(cursor, Cursor { row: 1, column: 1, wrap_pending: true });
    }

    #[test]
    fn wide_characters_are_never_cut() {
        let mut buffer = Buffer::new(4);
        let row = buffer.row_mut(0);
        row.write_ascii(0, b"a", Style::default());
        row.write(1, '表', true, Style::default());
        row.write(3, '示', true, Style::default());
        let mut cursor = Cursor::default();
        rewrap(&mut buffer, 5, 4, 4, &mut [&mut cursor]);
        assert_eq!(texts(buffer.rows()), ["a表", "示", "", ""]);
        rewrap(&mut buffer, 4, 4, 2, &mut [&mut cursor]);
        assert_eq!(texts(buffer.rows()), ["a", "表", "示", ""]);
        rewrap(&mut buffer, 2, 4, 9, &mut [&mut cursor]);
        assert_eq!(texts(buffer.rows()), ["a表示", "", "", ""]);
        rewrap(&mut buffer, 9, 4, 1, &mut [&mut cursor]);
        assert_eq!(texts(buffer.rows()), ["a", " ", " ", " "]);
    }
}
