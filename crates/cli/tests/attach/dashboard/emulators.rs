//! A second terminal emulator checks what the dashboard draws: the same bytes must lead to the same screen. Terminals
//! differ where a program relies on the width of unusual characters or on a state that it did not set itself. Then
//! these two emulators differ as well.

use crate::person::Person;
use ostler_screen::{Look, Screen};
use std::num::NonZeroU16;

/// What is seen of a row: all of its text, and the inverse and bold parts.
#[derive(Debug, Default, PartialEq, Eq)]
struct Row {
    text: String,
    inverse: String,
    bold: String,
}

impl Row {
    fn push(&mut self, text: &str, inverse: bool, bold: bool) {
        self.text.push_str(text);
        self.inverse.push_str(if inverse { text } else { "" });
        // On a blank, bold is not visible.
        self.bold.extend(text.chars().filter(|character| bold && !character.is_whitespace()));
    }

    /// Blanks at the end do not count.
    fn trimmed(self) -> Row {
        let trim = |text: String| text.trim_end().to_owned();
        Row { text: trim(self.text), inverse: trim(self.inverse), bold: trim(self.bold) }
    }
}

fn by_ours(screen: &Screen) -> Vec<Row> {
    let row = |pieces: Vec<ostler_screen::Piece>| {
        let (mut row, mut column) = (Row::default(), 0);
        for piece in pieces {
            row.push(&" ".repeat(piece.column - column), false, false);
            let Look { inverse, bold, .. } = piece.look;
            row.push(&piece.text, inverse, bold);
            column = piece.column + piece.width;
        }
        row.trimmed()
    };
    screen.pieces().into_iter().map(row).collect()
}

fn by_another(screen: &vt100::Screen, rows: u16, columns: u16) -> Vec<Row> {
    let row = |y: u16| {
        let mut row = Row::default();
        for cell in (0..columns).filter_map(|x| screen.cell(y, x)).filter(|cell| !cell.is_wide_continuation()) {
            let text = if cell.has_contents() { cell.contents() } else { " " };
            row.push(text, cell.inverse(), cell.bold());
        }
        row.trimmed()
    };
    (0..rows).map(row).collect()
}

/// Fails unless both emulators show the same: rows, inverse and bold text, where the cursor is, and which screen.
#[track_caller]
pub fn agree(person: &Person) {
    let size = person.screen.size();
    let [rows, columns] = [size.rows, size.columns].map(|number| NonZeroU16::new(number).unwrap());
    // After a resize everything is drawn again, so all bytes may be shown at the present size. The other emulator
    // treats the replacement character as a decoding error of its own and drops it.
    let bytes = String::from_utf8_lossy(&person.bytes).replace('\u{fffd}', "?").into_bytes();
    let mut screen = Screen::new(size);
    screen.feed(&bytes);
    let mut other = vt100::Parser::new(rows, columns, 0);
    other.process(&bytes);
    let other = other.screen();
    let (ours, theirs) = (by_ours(&screen), by_another(other, size.rows, size.columns));
    for (place, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(ours, theirs, "row {place}");
    }
    assert_eq!(screen.is_alternate(), other.alternate_screen());
    if !other.hide_cursor() {
        assert_eq!(screen.cursor(), other.cursor_position());
    }
}
