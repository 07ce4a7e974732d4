//! One of the two screens of a terminal, the primary or the alternate: its rows, and the state that each screen has of
//! its own.

use crate::cursor::SavedCursor;
use crate::keyboard::KeyboardStack;
use crate::row::Row;
use crate::style::Style;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Buffer {
    /// Never empty.
    rows: VecDeque<Row>,
    pub(crate) saved_cursor: SavedCursor,
    /// Each screen has its own stack: programs on one screen do not see what those on the other pushed.
    pub(crate) keyboard: KeyboardStack,
    /// Rows that scrolled off at the top; `None`: they are not collected.
    #[serde(skip)]
    scrolled_off: Option<ScrolledOff>,
}

/// The last rows that scrolled off at the top of a screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScrolledOff {
    rows: VecDeque<Row>,
    most: usize,
    /// There were rows before these that are not kept: there were too many, or the program erased them.
    pub(crate) is_cut: bool,
}

impl ScrolledOff {
    pub(crate) fn new(most: usize) -> ScrolledOff {
        ScrolledOff { rows: VecDeque::new(), most: most.max(1), is_cut: false }
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }

    /// Adds a row. Returns a row that is no longer kept, so that its memory can be used again.
    fn push(&mut self, row: Row) -> Row {
        let dropped = if self.rows.len() >= self.most {
            self.is_cut = true;
            self.rows.pop_front()
        } else {
            None
        };
        self.rows.push_back(row);
        dropped.unwrap_or_default()
    }
}

impl Buffer {
    pub(crate) fn new(rows: usize) -> Buffer {
        Buffer {
            rows: VecDeque::from(vec![Row::default(); rows.max(1)]),
            saved_cursor: SavedCursor::default(),
            keyboard: KeyboardStack::default(),
            scrolled_off: None,
        }
    }

    /// From now on keeps the last rows that scroll off at the top.
    pub(crate) fn collect_scrolled_off(&mut self, scrolled_off: Option<ScrolledOff>) {
        self.scrolled_off = scrolled_off;
    }

    pub(crate) fn scrolled_off(&self) -> Option<&ScrolledOff> {
        self.scrolled_off.as_ref()
    }

    /// Stops collecting.
    pub(crate) fn take_scrolled_off(&mut self) -> Option<ScrolledOff> {
        self.scrolled_off.take()
    }

    /// If rows are collected, takes the first rows, which are about to scroll off.
    pub(crate) fn collect(&mut self, count: usize) {
        if let Some(scrolled_off) = &mut self.scrolled_off {
            for row in self.rows.range_mut(..count) {
                let taken = std::mem::take(row);
                *row = scrolled_off.push(taken);
            }
        }
    }

    /// Takes the rows that were collected so far.
    pub(crate) fn drain_scrolled_off(&mut self) -> impl Iterator<Item = Row> {
        self.scrolled_off.iter_mut().flat_map(|scrolled_off| scrolled_off.rows.drain(..))
    }

    /// Drops the collected rows, because the program has erased them.
    pub(crate) fn erase_scrolled_off(&mut self) {
        if let Some(scrolled_off) = &mut self.scrolled_off {
            scrolled_off.rows.clear();
            scrolled_off.is_cut = true;
        }
    }

    pub(crate) fn rows(&self) -> impl DoubleEndedIterator<Item = &Row> + ExactSizeIterator {
        self.rows.iter()
    }

    pub(crate) fn row(&self, row: usize) -> &Row {
        &self.rows[row]
    }

    pub(crate) fn row_mut(&mut self, row: usize) -> &mut Row {
        &mut self.rows[row]
    }

    pub(crate) fn take_rows(&mut self) -> VecDeque<Row> {
        std::mem::take(&mut self.rows)
    }

    /// Replaces the rows; those that do not fit scroll off at the top.
    pub(crate) fn set_rows(&mut self, mut rows: VecDeque<Row>, height: usize) {
        while rows.len() > height {
            if let Some(row) = rows.pop_front()
                && let Some(scrolled_off) = &mut self.scrolled_off
            {
                scrolled_off.push(row);
            }
        }
        rows.resize_with(height, Row::default);
        self.rows = rows;
    }

    /// Makes rows blank; the text above them no longer continues there.
    pub(crate) fn clear(&mut self, rows: Range<usize>, style: Style, columns: usize) {
        if let Some(above) = rows.start.checked_sub(1) {
            self.rows[above].wrapped = false;
        }
        for row in self.rows.range_mut(rows) {
            row.clear(style, columns);
        }
    }

    /// Moves the rows of `region` up by `count`; blank rows are inserted at its bottom.
    pub(crate) fn scroll_up(&mut self, region: Range<usize>, count: usize, style: Style, columns: usize) {
        self.cut_wraps(region.clone());
        for _ in 0..count.min(region.len()) {
            let Some(mut row) = self.rows.remove(region.start) else { return };
            row.clear(style, columns);
            self.rows.insert(region.end - 1, row);
        }
    }

    /// Moves the rows of `region` down by `count`; blank rows are inserted at its top.
    pub(crate) fn scroll_down(&mut self, region: Range<usize>, count: usize, style: Style, columns: usize) {
        for _ in 0..count.min(region.len()) {
            let Some(mut row) = self.rows.remove(region.end - 1) else { return };
            row.clear(style, columns);
            self.rows.insert(region.start, row);
        }
        self.cut_wraps(region);
    }

    /// Text that wrapped over an edge of a scrolled region no longer continues there.
    fn cut_wraps(&mut self, region: Range<usize>) {
        if region.start > 0 {
            self.rows[region.start - 1].wrapped = false;
        }
        self.rows[region.end - 1].wrapped = false;
    }

    /// Whether a buffer read from a file is valid.
    pub(crate) fn is_sound(&self, rows: usize, columns: usize) -> bool {
        self.rows.len() == rows
            && self.rows.iter().all(|row| row.is_sound(columns))
            && self.saved_cursor.is_sound(rows, columns)
    }
}
