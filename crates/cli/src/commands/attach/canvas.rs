//! A few lines on the ordinary screen that are erased before they are drawn again, and at the end.

use std::fmt::Write;
use unicode_width::UnicodeWidthChar;

pub struct Canvas {
    columns: usize,
    below: Option<Lines>,
    out: String,
}

/// The lines that are on the screen.
struct Lines {
    /// The width of each line above the one with the cursor.
    above: Vec<usize>,
    cursor: usize,
}

impl Lines {
    /// How many rows the cursor is below the first line, in a window that wraps lines that do not fit.
    fn rows_above_cursor(&self, columns: usize) -> usize {
        let rows: usize = self.above.iter().map(|width| width.div_ceil(columns).max(1)).sum();
        rows + self.cursor / columns
    }
}

impl Canvas {
    pub fn new(columns: u16) -> Canvas {
        Canvas { columns: usize::from(columns).max(1), below: None, out: String::new() }
    }

    /// Draws lines, each of which must fit into one row, with the cursor in the last line.
    pub fn put_below(&mut self, lines: &[String], cursor: usize) {
        self.take_away();
        self.out.push_str(&lines.join("\r\n"));
        let _ = write!(self.out, "\x1b[{}G", cursor + 1);
        let above = lines.iter().rev().skip(1).map(|line| visible_width(line)).collect();
        self.below = Some(Lines { above, cursor });
    }

    /// Erases the lines; the cursor is then where they began.
    pub fn take_away(&mut self) {
        let Some(below) = self.below.take() else {
            return;
        };
        self.out.push('\r');
        let rows = below.rows_above_cursor(self.columns);
        if rows > 0 {
            let _ = write!(self.out, "\x1b[{rows}A");
        }
        self.out.push_str("\x1b[J");
    }

    /// What is to be written to the terminal now.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }
}

/// How many columns a text takes that may have colours in it.
fn visible_width(text: &str) -> usize {
    let (mut width, mut in_sequence) = (0, false);
    for character in text.chars() {
        match character {
            '\x1b' => in_sequence = true,
            letter if in_sequence => in_sequence = !letter.is_ascii_alphabetic(),
            other => width += other.width().unwrap_or(0),
        }
    }
    width
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_screen::{Screen, Size};

    #[test]
    fn lines_that_are_drawn_anew_leave_nothing_of_the_old_ones() {
        let mut canvas = Canvas::new(20);
        canvas.put_below(&["\x1b[1mfirst\x1b[0m".to_owned(), "second".to_owned(), "> line".to_owned()], 3);
        canvas.put_below(&["status".to_owned(), "> ".to_owned()], 2);
        let mut screen = Screen::new(Size { rows: 8, columns: 20 });
        screen.feed(b"before\r\n");
        screen.feed(canvas.take().as_bytes());
        assert_eq!(screen.text()[..4], ["before", "status", ">", ""]);
        assert_eq!(screen.cursor(), (2, 2));
        canvas.take_away();
        screen.feed(canvas.take().as_bytes());
        assert_eq!((screen.text()[1].as_str(), screen.cursor()), ("", (1, 0)));
    }
}
