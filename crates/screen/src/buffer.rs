//! One of the two screens of a terminal, the primary or the alternate: its rows, and what belongs to it alone.

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
    /// Programs on one screen do not see what those on the other pushed.
    pub(crate) keyboard: KeyboardStack,
    /// Rows that left at the top, where they are collected.
    #[serde(skip)]
    scrolled_off: Option<ScrolledOff>,
}

/// The last rows that left at the top of a screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScrolledOff {
    rows: VecDeque<Row>,
    most: usize,
    /// There were rows before these that are not kept: too many came, or the program erased them.
    pub(crate) is_cut: bool,
}

impl ScrolledOff {
    pub(crate) fn new(most: usize) -> ScrolledOff {
        ScrolledOff { rows: VecDeque::new(), most: most.max(1), is_cut: false }
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }

    /// Takes a row. Returns one that is no longer kept, whose memory can be used again.
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

    /// From now on keep the last rows that leave at the top.
    pub(crate) fn collect_scrolled_off(&mut self, scrolled_off: Option<ScrolledOff>) {
        self.scrolled_off = scrolled_off;
    }

    pub(crate) fn scrolled_off(&self) -> Option<&ScrolledOff> {
        self.scrolled_off.as_ref()
    }

    /// No longer collects.
    pub(crate) fn take_scrolled_off(&mut self) -> Option<ScrolledOff> {
        self.scrolled_off.take()
    }

    /// Takes the first rows, which are about to be scrolled off, where they are collected.
    pub(crate) fn collect(&mut self, count: usize) {
        if let Some(scrolled_off) = &mut self.scrolled_off {
            for row in self.rows.range_mut(..count) {
                let taken = std::mem::take(row);
                *row = scrolled_off.push(taken);
            }
        }
    }

    /// The rows that were collected so far.
    pub(crate) fn drain_scrolled_off(&mut self) -> impl Iterator<Item = Row> {
        self.scrolled_off.iter_mut().flat_map(|scrolled_off| scrolled_off.rows.drain(..))
    }

    /// The program has erased what scrolled off.
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

    /// Puts rows in place; those that do not fit leave at the top.
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

    /// Makes rows blank; the text above them no longer goes on there.
    pub(crate) fn clear(&mut self, rows: Range<usize>, style: Style, columns: usize) {
        if let Some(above) = rows.start.checked_sub(1) {
            self.rows[above].wrapped = false;
        }
        for row in self.rows.range_mut(rows) {
            row.clear(style, columns);
        }
    }

    /// Moves the rows of `region` up by `count`; blank ones come in at its bottom.
    pub(crate) fn scroll_up(&mut self, region: Range<usize>, count: usize, style: Style, columns: usize) {
        self.cut_wraps(region.clone());
        for _ in 0..count.min(region.len()) {
            let Some(mut row) = self.rows.remove(region.start) else { return };
            row.clear(style, columns);
            self.rows.insert(region.end - 1, row);
        }
    }

    /// Moves the rows of `region` down by `count`; blank ones come in at its top.
    pub(crate) fn scroll_down(&mut self, region: Range<usize>, count: usize, style: Style, columns: usize) {
        for _ in 0..count.min(region.len()) {
            let Some(mut row) = self.rows.remove(region.end - 1) else { return };
            row.clear(style, columns);
            self.rows.insert(region.start, row);
        }
        self.cut_wraps(region);
    }

    /// Text that wrapped over an edge of a scrolled region no longer goes on there.
    fn cut_wraps(&mut self, region: Range<usize>) {
        if region.start > 0 {
            self.rows[region.start - 1].wrapped = false;
        }
        self.rows[region.end - 1].wrapped = false;
    }

    /// Whether a buffer read from a file is one.
    pub(crate) fn is_sound(&self, rows: usize, columns: usize) -> bool {
        self.rows.len() == rows
            && self.rows.iter().all(|row| row.is_sound(columns))
            && self.saved_cursor.is_sound(rows, columns)
    }
}
