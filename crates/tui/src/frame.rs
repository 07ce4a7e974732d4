//! From one buffer to the next: the bytes that change a terminal which shows the first so that it shows the second, as
//! one synchronised update. Only the contents of cells are written, and those are clean.

use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::style::{Color, Modifier};
use std::fmt::Write;
use unicode_width::UnicodeWidthStr;

/// Takes over the whole screen: the alternate screen, with bracketed paste and reports of the mouse wheel and of
/// clicks.
pub const ENTER: &str = "\x1b[?1049h\x1b[?2004h\x1b[?1000h\x1b[?1006h\x1b[0m\x1b[2J";
/// Restores the screen as it was.
pub const LEAVE: &str = "\x18\x1b\\\x1b[?2026l\x1b[0m\x1b[?1006l\x1b[?1000l\x1b[?2004l\x1b[?25h\x1b[?1049l";

/// What a terminal shows now.
#[derive(Debug, Default)]
pub struct Frames {
    shown: Option<Buffer>,
    cursor: Option<(u16, u16)>,
}

impl Frames {
    /// What the terminal shows is unknown from now on.
    pub fn forget(&mut self) {
        *self = Frames::default();
    }

    /// The bytes that change the terminal to this buffer, empty when nothing changes. `cursor`: column and row, where
    /// there is one.
    pub fn next(&mut self, buffer: Buffer, cursor: Option<(u16, u16)>) -> String {
        let known = self.shown.take().filter(|shown| shown.area == buffer.area);
        let mut out = String::new();
        let from = match &known {
            Some(shown) => shown,
            None => {
                out.push_str("\x1b[0m\x1b[2J");
                &Buffer::empty(buffer.area)
            }
        };
        write_cells(&mut out, &from.diff(&buffer));
        if out.is_empty() && cursor == self.cursor {
            self.shown = Some(buffer);
            return out;
        }
        if let Some((x, y)) = cursor {
            _ = write!(out, "\x1b[{};{}H\x1b[?25h", y + 1, x + 1);
        }
        (self.shown, self.cursor) = (Some(buffer), cursor);
        format!("\x1b[?2026h\x1b[?25l{out}\x1b[?2026l")
    }
}

fn write_cells(out: &mut String, cells: &[(u16, u16, &Cell)]) {
    let mut next = None;
    let mut style = (Color::Reset, Color::Reset, Modifier::empty());
    for (x, y, cell) in cells {
        if next != Some((*x, *y)) {
            _ = write!(out, "\x1b[{};{}H", y + 1, x + 1);
        }
        let wanted = (cell.fg, cell.bg, cell.modifier);
        if wanted != style {
            write_style(out, cell);
            style = wanted;
        }
        out.push_str(cell.symbol());
        // Terminals disagree on the width of combined characters, so the cursor position is written explicitly after
        // them.
        let plain = cell.symbol().chars().nth(1).is_none() && cell.symbol().width() == 1;
        next = plain.then_some((x + 1, *y));
    }
    if style != (Color::Reset, Color::Reset, Modifier::empty()) {
        out.push_str("\x1b[0m");
    }
}

fn write_style(out: &mut String, cell: &Cell) {
    out.push_str("\x1b[0");
    for (modifier, code) in [
        (Modifier::BOLD, 1),
        (Modifier::DIM, 2),
        (Modifier::ITALIC, 3),
        (Modifier::UNDERLINED, 4),
        (Modifier::REVERSED, 7),
        (Modifier::CROSSED_OUT, 9),
    ] {
        if cell.modifier.contains(modifier) {
            _ = write!(out, ";{code}");
        }
    }
    write_colour(out, cell.fg, 30);
    write_colour(out, cell.bg, 40);
    out.push('m');
}

fn write_colour(out: &mut String, colour: Color, base: u8) {
    let number = match colour {
        Color::Reset => return,
        Color::Rgb(r, g, b) => {
            _ = write!(out, ";{};2;{r};{g};{b}", base + 8);
            return;
        }
        Color::Indexed(index) => {
            _ = write!(out, ";{};5;{index}", base + 8);
            return;
        }
        Color::Black => 0,
        Color::Red => 1,
        Color::Green => 2,
        Color::Yellow => 3,
        Color::Blue => 4,
        Color::Magenta => 5,
        Color::Cyan => 6,
        Color::Gray => 7,
        Color::DarkGray => 60,
        Color::LightRed => 61,
        Color::LightGreen => 62,
        Color::LightYellow => 63,
        Color::LightBlue => 64,
        Color::LightMagenta => 65,
        Color::LightCyan => 66,
        Color::White => 67,
    };
    _ = write!(out, ";{}", base + number);
}

/// The rows of a buffer as text with colours, for a terminal that continues below; without blank rows at the beginning
/// and the end.
#[must_use]
pub fn lines(buffer: &Buffer) -> String {
    let width = buffer.area.width;
    let mut rows: Vec<String> = Vec::new();
    for cells in buffer.content.chunks(usize::from(width).max(1)) {
        let used = cells.iter().rposition(|cell| cell.symbol() != " ").map_or(0, |last| last + 1);
        let (mut row, mut skip) = (String::new(), 0);
        let mut style = (Color::Reset, Color::Reset, Modifier::empty());
        for cell in &cells[..used] {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let wanted = (cell.fg, cell.bg, cell.modifier);
            if wanted != style {
                write_style(&mut row, cell);
                style = wanted;
            }
            row.push_str(cell.symbol());
            skip = cell.symbol().width().saturating_sub(1);
        }
        if style != (Color::Reset, Color::Reset, Modifier::empty()) {
            row.push_str("\x1b[0m");
        }
        rows.push(row);
    }
    let begin = rows.iter().position(|row| !row.is_empty()).unwrap_or(rows.len());
    let end = rows.iter().rposition(|row| !row.is_empty()).map_or(begin, |last| last + 1);
    rows[begin..end].iter().map(|row| format!("{row}\r\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_screen::{Screen, Size};
    use proptest::prelude::*;
    use ratatui_core::layout::Rect;
    use ratatui_core::style::Style;

    fn buffer(rows: &[&str]) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 12, 3));
        for (y, row) in rows.iter().enumerate() {
            buffer.set_stringn(0, y as u16, row, 12, Style::new());
        }
        buffer
    }

    #[test]
    fn only_what_changed_is_written() {
        let mut frames = Frames::default();
        assert!(frames.next(buffer(&["one", "two"]), None).contains("one"));
        assert_eq!(frames.next(buffer(&["one", "two"]), None), "");
        let change = frames.next(buffer(&["one", "twa"]), Some((3, 1)));
        assert_eq!(change, "\x1b[?2026h\x1b[?25l\x1b[2;3Ha\x1b[2;4H\x1b[?25h\x1b[?2026l");
    }

    proptest! {
        #[test]
        fn a_terminal_shows_what_the_buffer_holds(texts in prop::collection::vec(prop::collection::vec("[a-c表é 👍]{0,9}", 3), 1..6)) {
            let mut frames = Frames::default();
            let mut screen = Screen::new(Size { rows: 3, columns: 12 });
            for rows in &texts {
                let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
                screen.feed(frames.next(buffer(&rows), None).as_bytes());
                let cut: Vec<String> = rows.iter().map(|row| crate::wrap::wrap(
                    &[ratatui_core::text::Span::raw(*row)], 12, &[], &[], crate::wrap::Break::Anywhere)[0].to_string().trim_end().to_owned()).collect();
                prop_assert_eq!(screen.text(), cut);
            }
        }
    }
}
