//! The screen as pieces of text of the same style, for code that draws it by other means than a terminal.

use crate::row::{Row, Shape};
use crate::style::{Colour, Style};

/// A colour as the program chose it; the code that draws decides which colour that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    Default,
    /// 0–15: the sixteen of the palette; 16–231: a cube of 6×6×6; 232–255: shades of grey.
    Indexed(u8),
    Rgb(u8, u8, u8),
}

/// How a piece looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub foreground: Paint,
    pub background: Paint,
    pub bold: bool,
    pub dim: bool,
    pub italic: bool,
    pub underlined: bool,
    pub inverse: bool,
    pub hidden: bool,
    pub crossed_out: bool,
}

/// Text of one style in one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub column: usize,
    /// In columns.
    pub width: usize,
    pub text: String,
    pub look: Look,
}

impl From<Colour> for Paint {
    fn from(colour: Colour) -> Paint {
        match colour {
            Colour::Default => Paint::Default,
            Colour::Indexed(index) => Paint::Indexed(index),
            Colour::Rgb(red, green, blue) => Paint::Rgb(red, green, blue),
        }
    }
}

/// The pieces of a row, up to its last character that is not blank.
pub(crate) fn of_row(row: &Row) -> Vec<Piece> {
    let mut pieces: Vec<(Style, Piece)> = Vec::new();
    for column in 0..row.used() {
        let cell = row.cell(column);
        let mut text = String::new();
        match cell.shape {
            Shape::Narrow | Shape::Wide => text.push(cell.character),
            // The character is already in the piece.
            Shape::Tail => {}
        }
        text.extend(row.marks_in(column..column + 1).iter().map(|mark| mark.character));
        match pieces.last_mut() {
            Some((style, piece)) if *style == cell.style => {
                piece.text.push_str(&text);
                piece.width += 1;
            }
            Some(_) | None => {
                pieces.push((cell.style, Piece { column, width: 1, text, look: cell.style.look() }));
            }
        }
    }
    pieces.into_iter().map(|(_, piece)| piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Screen, Size};

    #[test]
    fn a_row_is_cut_where_its_look_changes_and_wide_characters_count_twice() {
        let mut screen = Screen::new(Size { rows: 2, columns: 20 });
        screen.feed("a\x1b[1;31m表e\u{301}\x1b[0m b\r\n\x1b[48;2;1;2;3m \x1b[0m".as_bytes());
        let rows = screen.pieces();
        let seen: Vec<(usize, usize, &str)> =
            rows[0].iter().map(|piece| (piece.column, piece.width, piece.text.as_str())).collect();
        assert_eq!(seen, [(0, 1, "a"), (1, 3, "表e\u{301}"), (4, 2, " b")]);
        assert!(rows[0][1].look.bold && rows[0][1].look.foreground == Paint::Indexed(1));
        assert_eq!(rows[1][0].look.background, Paint::Rgb(1, 2, 3), "a painted blank is seen");
    }
}
