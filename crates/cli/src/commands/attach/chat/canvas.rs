//! A conversation that grows downwards in the ordinary screen, so that it scrolls and can be copied like any text, with a
//! few lines below it that are always taken away before more of it is written and put back after it.

use std::fmt::Write;
use unicode_width::UnicodeWidthChar;

pub struct Canvas {
    columns: usize,
    /// In which column the conversation stands, as its last line may not be finished.
    column: usize,
    below: Option<Below>,
    out: String,
}

/// The lines below that are on the screen.
struct Below {
    /// The width of each line above the one with the cursor.
    above: Vec<usize>,
    cursor: usize,
}

impl Below {
    /// How many rows the cursor is from the first of them, in a window that breaks what does not fit.
    fn rows_above_cursor(&self, columns: usize) -> usize {
        let rows: usize = self.above.iter().map(|width| width.div_ceil(columns).max(1)).sum();
        rows + self.cursor / columns
    }
}

impl Canvas {
    pub fn new(columns: u16) -> Canvas {
        Canvas { columns: usize::from(columns).max(1), column: 0, below: None, out: String::new() }
    }

    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The window has another width, and the terminal has broken its lines anew. Where an unfinished line of the
    /// conversation ends is not known any more, so it goes on below.
    pub fn resize(&mut self, columns: u16) {
        self.columns = usize::from(columns).max(1);
        if self.below.is_some() {
            self.column = 0;
            self.take_away();
        } else {
            self.end_line();
        }
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
        let above = lines.iter().rev().skip(1).map(|line| visible_width(line)).collect();
        self.below = Some(Below { above, cursor });
    }

    /// Takes the lines below away; the cursor is where the conversation stands.
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

    #[test]
    fn a_narrower_window_leaves_no_rubbish_behind() {
        let mut canvas = Canvas::new(40);
        let mut screen = Screen::new(Size { rows: 8, columns: 40 });
        canvas.write("said\nhalf");
        canvas.put_below(&["\x1b[2ma status of more than twenty columns\x1b[0m".to_owned(), "> line".to_owned()], 6);
        screen.feed(canvas.take().as_bytes());
        screen.resize(Size { rows: 8, columns: 20 });
        canvas.resize(20);
        below(&mut canvas);
        screen.feed(canvas.take().as_bytes());
        let rows: Vec<String> = screen.text().into_iter().filter(|row| !row.is_empty()).collect();
        assert_eq!(rows, ["said", "half", "status", "> line"]);
    }
}
