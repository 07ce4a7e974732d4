//! A conversation that grows downwards in the ordinary screen, so that it scrolls and can be copied like any text, with a
//! few lines below it that are always taken away before more of it is written and put back after it.

use std::fmt::Write;
use unicode_width::UnicodeWidthChar;

pub struct Canvas {
    columns: usize,
    /// In which column the conversation stands, as its last line may not be finished.
    column: usize,
    /// Rows of the lines below it that are on the screen, up to and with the one of the cursor.
    below: usize,
    out: String,
}

impl Canvas {
    pub fn new(columns: u16) -> Canvas {
        Canvas { columns: usize::from(columns).max(1), column: 0, below: 0, out: String::new() }
    }

    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The window has another width. What stood on the screen may have moved; it is left alone and we go on below it.
    pub fn resize(&mut self, columns: u16) {
        self.take_away();
        self.columns = usize::from(columns).max(1);
        self.end_line();
    }

    /// Adds to the conversation. The text may have colours, and lines end with `\n`.
    pub fn write(&mut self, text: &str) {
        self.take_away();
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            match character {
                '\n' => {
                    self.out.push_str("\r\n");
                    self.column = 0;
                }
                '\t' => {
                    self.out.push_str("    ");
                    self.advance(4);
                }
                '\x1b' => {
                    self.out.push('\x1b');
                    for part in characters.by_ref() {
                        self.out.push(part);
                        if part.is_ascii_alphabetic() {
                            break;
                        }
                    }
                }
                other => {
                    self.out.push(other);
                    self.advance(other.width().unwrap_or(0));
                }
            }
        }
    }

    fn advance(&mut self, width: usize) {
        self.column += width;
        if self.column > self.columns {
            // What does not fit is on the next row, whole.
            self.column = width.min(self.columns);
        }
    }

    /// Begins a new line unless one begins here.
    pub fn end_line(&mut self) {
        if self.column > 0 {
            self.write("\n");
        }
    }

    /// Puts lines below the conversation, each of which must fit into one row, with the cursor in the last.
    pub fn put_below(&mut self, lines: &[String], cursor: usize) {
        self.take_away();
        if self.column > 0 {
            self.out.push_str("\r\n");
        }
        self.out.push_str(&lines.join("\r\n"));
        let _ = write!(self.out, "\x1b[{}G", cursor + 1);
        self.below = lines.len();
    }

    /// Takes the lines below away; the cursor is where the conversation stands.
    pub fn take_away(&mut self) {
        if self.below == 0 {
            return;
        }
        self.out.push('\r');
        if self.below > 1 {
            let _ = write!(self.out, "\x1b[{}A", self.below - 1);
        }
        self.out.push_str("\x1b[J");
        self.below = 0;
        if self.column >= self.columns {
            // The row above is full: the conversation goes on where we are.
            self.column = 0;
        } else if self.column > 0 {
            let _ = write!(self.out, "\x1b[A\x1b[{}G", self.column + 1);
        }
    }

    /// What is to be written to the terminal now.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_screen::{Screen, Size};

    fn drawn(columns: u16, steps: impl FnOnce(&mut Canvas)) -> Vec<String> {
        let mut canvas = Canvas::new(columns);
        steps(&mut canvas);
        let mut screen = Screen::new(Size { rows: 8, columns });
        screen.feed(canvas.take().as_bytes());
        screen.text().into_iter().filter(|row| !row.is_empty()).collect()
    }

    fn below(canvas: &mut Canvas) {
        canvas.put_below(&["status".to_owned(), "> line".to_owned()], 3);
    }

    #[test]
    fn a_line_that_comes_in_pieces_is_one_line() {
        let rows = drawn(20, |canvas| {
            canvas.write("\x1b[1mtold\x1b[0m\nhal");
            below(canvas);
            canvas.write("f a line");
            below(canvas);
            canvas.write("\nnext");
            below(canvas);
        });
        assert_eq!(rows, ["told", "half a line", "next", "status", "> line"]);
    }

    #[test]
    fn a_line_that_breaks_at_the_edge_loses_nothing() {
        for cut in 0..12 {
            let text = "abcd表efghijk";
            let (first, second) = text.split_at(text.char_indices().nth(cut).map_or(text.len(), |(at, _)| at));
            let rows = drawn(8, |canvas| {
                canvas.write(first);
                below(canvas);
                canvas.write(second);
                below(canvas);
            });
            assert_eq!(rows, ["abcd表ef", "ghijk", "status", "> line"], "{cut}");
        }
    }

    #[test]
    fn a_screen_that_scrolls_keeps_what_stands_below() {
        let rows = drawn(20, |canvas| {
            for number in 0..30 {
                canvas.write(&format!("line {number}\nhalf"));
                below(canvas);
                canvas.write(" whole\n");
                below(canvas);
            }
        });
        assert_eq!(rows[4..], ["line 29", "half whole", "status", "> line"]);
    }
}
