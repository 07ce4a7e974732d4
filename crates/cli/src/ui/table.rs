//! Columns that line up, whatever the width of a character, within the width of the window.

use super::style::Style;
use std::io::IsTerminal;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

type Paint = fn(Style, &str) -> String;
type Fit = Box<dyn Fn(usize) -> String + Send>;

/// The width of the window, if standard output is a terminal.
pub fn window() -> Option<usize> {
    let stdout = std::io::stdout();
    if stdout.is_terminal() {
        ostler_engine::process::window(stdout).map(|(_, columns)| usize::from(columns))
    } else {
        None
    }
}

/// One cell: its text, and its style, which is applied after the text was cut to its width.
pub struct Cell {
    text: String,
    /// The width of the text, stored because a long table needs it several times.
    width: usize,
    paint: Option<(Style, Paint)>,
    /// Makes the text fit into a number of columns, instead of cutting its end.
    fit: Option<Fit>,
}

impl Cell {
    /// Untrusted text is made printable here, so that no column can break the screen.
    pub fn new(text: &str) -> Cell {
        let text = ostler_screen::printable(text).into_owned();
        Cell { width: text.width(), text, paint: None, fit: None }
    }

    /// A cell whose text is made for its number of columns.
    pub fn fitting(columns: usize, fit: impl Fn(usize) -> String + Send + 'static) -> Cell {
        let whole = fit(columns);
        Cell { fit: Some(Box::new(fit)), ..Cell::new(&whole) }
    }

    pub fn painted(text: &str, style: Style, paint: Paint) -> Cell {
        Cell { paint: Some((style, paint)), ..Cell::new(text) }
    }

    /// The same, indented by a sign of ours.
    #[must_use]
    pub fn indented(mut self, sign: &str) -> Cell {
        self.text.insert_str(0, sign);
        self.width += sign.width();
        self
    }

    pub fn width(&self) -> usize {
        self.width
    }

    /// The same in at most this width.
    #[must_use]
    pub fn cut(mut self, room: usize) -> Cell {
        if self.width > room {
            self.text = match &self.fit {
                Some(fit) => fit(room),
                None => cut(&self.text, room),
            };
            self.width = self.text.width();
        }
        self
    }

    /// Writes the cell with its style, in at most this width.
    fn show(&self, room: usize, into: &mut String) {
        let short = (self.width > room).then(|| cut(&self.text, room));
        let text = short.as_deref().unwrap_or(&self.text);
        match self.paint {
            Some((style, paint)) if style.colour => into.push_str(&paint(style, text)),
            Some(_) | None => into.push_str(text),
        }
    }
}

/// Lays rows out in columns. With a width, the last column is cut to fit and the others keep their width.
pub fn lay_out(rows: &[Vec<Cell>], width: Option<usize>) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().filter_map(|row| row.get(column)).map(Cell::width).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut used = 0;
        for (column, cell) in row.iter().enumerate() {
            let last = column + 1 == row.len();
            if last {
                let room = width.map_or(usize::MAX, |width| width.saturating_sub(used));
                cell.show(room, &mut text);
            } else {
                cell.show(usize::MAX, &mut text);
                let gap = widths[column] - cell.width + 2;
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
    fn wide_characters_and_untrusted_names_do_not_break_the_columns() {
        let rows = vec![
            vec![Cell::new("表"), Cell::new("x")],
            vec![Cell::new("a\u{1b}[31mb"), Cell::new("y")],
            vec![Cell::new("abc"), Cell::new("a long end that is cut")],
        ];
        assert_eq!(lay_out(&rows, Some(14)), "表   x\nab   y\nabc  a long e…\n");
    }
}
