//! Columns that line up, whatever the width of a character, within the width of the window.

use std::io::IsTerminal;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

type Paint = Box<dyn Fn(&str) -> String>;
type Fit = Box<dyn Fn(usize) -> String>;

/// How wide the window is, if standard output is one.
pub fn window() -> Option<usize> {
    let stdout = std::io::stdout();
    if stdout.is_terminal() {
        ostler_engine::process::window(stdout).map(|(_, columns)| usize::from(columns))
    } else {
        None
    }
}

/// One cell: what is shown, and how it looks once it has its width.
pub struct Cell {
    text: String,
    paint: Option<Paint>,
    /// Makes it fit into so many columns, in place of a cut at its end.
    fit: Option<Fit>,
}

impl Cell {
    /// Untrusted text is made printable here, so that no column can break the screen.
    pub fn new(text: &str) -> Cell {
        Cell { text: ostler_screen::printable(text).into_owned(), paint: None, fit: None }
    }

    /// Of something that knows itself how to be shown in so many columns.
    pub fn fitting(columns: usize, fit: impl Fn(usize) -> String + 'static) -> Cell {
        let whole = fit(columns);
        Cell { fit: Some(Box::new(fit)), ..Cell::new(&whole) }
    }

    pub fn painted(text: &str, paint: impl Fn(&str) -> String + 'static) -> Cell {
        Cell { paint: Some(Box::new(paint)), ..Cell::new(text) }
    }

    pub fn width(&self) -> usize {
        self.text.width()
    }

    /// The same in this width at most.
    #[must_use]
    pub fn cut(mut self, room: usize) -> Cell {
        self.text = match &self.fit {
            Some(fit) if self.width() > room => fit(room),
            Some(_) | None => cut(&self.text, room),
        };
        self
    }

    fn show(&self, text: &str) -> String {
        match &self.paint {
            Some(paint) => paint(text),
            None => text.to_owned(),
        }
    }
}

/// Lays rows out in columns. With a width, the last column is cut to fit and the others keep their own.
pub fn lay_out(rows: &[Vec<Cell>], width: Option<usize>) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.width()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut used = 0;
        for (column, cell) in row.iter().enumerate() {
            let last = column + 1 == row.len();
            if last {
                let room = width.map_or(usize::MAX, |width| width.saturating_sub(used));
                text.push_str(&cell.show(&cut(&cell.text, room)));
            } else {
                text.push_str(&cell.show(&cell.text));
                let gap = widths[column] - cell.text.width() + 2;
                text.extend(std::iter::repeat_n(' ', gap));
                used += widths[column] + 2;
            }
        }
        let end = text.trim_end_matches(' ').len();
        text.truncate(end);
        text.push('\n');
    }
    text
}

/// The beginning of a text that fits, with a mark that something is missing.
pub fn cut(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut used = 0;
    let mut short = String::new();
    for character in text.chars() {
        used += character.width().unwrap_or(0);
        if used + 1 > room {
            break;
        }
        short.push(character);
    }
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_and_hostile_names_do_not_break_the_columns() {
        let rows = vec![
            vec![Cell::new("表"), Cell::new("x")],
            vec![Cell::new("a\u{1b}[31mb"), Cell::new("y")],
            vec![Cell::new("abc"), Cell::new("a long end that is cut")],
        ];
        assert_eq!(lay_out(&rows, Some(14)), "表   x\nab   y\nabc  a long e…\n");
    }
}
