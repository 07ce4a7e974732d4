//! The line drawing characters of the VT100, which old programs still use for boxes.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Charset {
    #[default]
    Ascii,
    LineDrawing,
}

/// The characters for the bytes 0x5f to 0x7e in the line drawing set.
const LINE_DRAWING: [char; 32] = [
    ' ', '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺', '⎻', '─', '⎼', '⎽', '├', '┤',
    '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
];

impl Charset {
    /// `ESC ( 0` and the like; every other set is close enough to ASCII.
    pub(crate) fn designated_by(last: u8) -> Charset {
        match last {
            b'0' | b'2' => Charset::LineDrawing,
            _ => Charset::Ascii,
        }
    }

    pub(crate) fn designator(self) -> u8 {
        match self {
            Charset::Ascii => b'B',
            Charset::LineDrawing => b'0',
        }
    }

    pub(crate) fn translate(self, byte: u8) -> char {
        match self {
            Charset::Ascii => char::from(byte),
            Charset::LineDrawing => byte
                .checked_sub(0x5f)
                .and_then(|index| LINE_DRAWING.get(usize::from(index)).copied())
                .unwrap_or(char::from(byte)),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Charsets {
    pub(crate) g0: Charset,
    pub(crate) g1: Charset,
    /// Shift-out: G1 is in use.
    pub(crate) shifted: bool,
}

impl Charsets {
    pub(crate) fn active(self) -> Charset {
        if self.shifted { self.g1 } else { self.g0 }
    }
}
