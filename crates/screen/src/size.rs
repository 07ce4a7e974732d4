//! The size of a screen.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    pub rows: u16,
    pub columns: u16,
}

impl Size {
    /// More than any window has; bounds the memory of a screen.
    const LARGEST: u16 = 1000;

    /// A screen has at least one cell, also when a terminal reports no size.
    pub(crate) fn clamped(self) -> Size {
        Size { rows: self.rows.clamp(1, Self::LARGEST), columns: self.columns.clamp(1, Self::LARGEST) }
    }
}
