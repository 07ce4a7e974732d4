//! Where the next character goes and what it will look like.

use crate::charset::Charsets;
use crate::style::Style;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cursor {
    pub(crate) row: usize,
    pub(crate) column: usize,
    /// The last column has just been written; the next character starts a new row. Until then the cursor stays there.
    pub(crate) wrap_pending: bool,
}

impl Cursor {
    pub(crate) fn is_sound(&self, rows: usize, columns: usize) -> bool {
        self.row < rows && self.column < columns && (!self.wrap_pending || self.column + 1 == columns)
    }

    /// Moves the cursor onto a screen of this size.
    pub(crate) fn clamp(&mut self, rows: usize, columns: usize) {
        self.row = self.row.min(rows - 1);
        self.column = self.column.min(columns - 1);
        self.wrap_pending &= self.column + 1 == columns;
    }
}

/// What saving the cursor (`ESC 7`) keeps. Restoring a cursor that was never saved moves it to the first cell, with the
/// plain style.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedCursor {
    pub(crate) cursor: Cursor,
    pub(crate) style: Style,
    pub(crate) charsets: Charsets,
    pub(crate) origin: bool,
}

impl SavedCursor {
    pub(crate) fn is_sound(&self, rows: usize, columns: usize) -> bool {
        self.cursor.is_sound(rows, columns)
    }
}
