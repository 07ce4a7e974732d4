//! The screen of a program, drawn into a part of our own screen: its cells with their colours, cut where there is no
//! room.

use crate::clean::clean_line;
use crate::theme::Theme;
use crate::wrap::graphemes;
use ostler_screen::{Look, Paint, Piece};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};

/// Draws these rows from the top of the area on.
pub fn render(rows: &[Vec<Piece>], area: Rect, buffer: &mut Buffer, theme: Theme) {
    for (row, y) in rows.iter().zip(area.top()..area.bottom()) {
        for piece in row {
            let style = style(piece.look, theme);
            // Hidden text is drawn as blanks.
            let text = if piece.look.hidden { " ".repeat(piece.width) } else { clean_line(&piece.text) };
            let mut column = piece.column;
            for (grapheme, wide) in graphemes(&text) {
                if column + wide > usize::from(area.width) {
                    break;
                }
                // Less than the width of the area, as was just checked.
                let x = area.x + u16::try_from(column).unwrap_or(u16::MAX - area.x);
                buffer.set_stringn(x, y, grapheme, wide.max(1), style);
                column += wide;
            }
        }
    }
}

fn style(look: Look, theme: Theme) -> Style {
    let mut style = Style::new();
    if theme.colour {
        style = style.fg(colour(look.foreground)).bg(colour(look.background));
    }
    for (is_so, modifier) in [
        (look.bold, Modifier::BOLD),
        (look.dim, Modifier::DIM),
        (look.italic, Modifier::ITALIC),
        (look.underlined, Modifier::UNDERLINED),
        (look.inverse, Modifier::REVERSED),
        (look.crossed_out, Modifier::CROSSED_OUT),
    ] {
        if is_so {
            style = style.add_modifier(modifier);
        }
    }
    style
}

fn colour(paint: Paint) -> Color {
    match paint {
        Paint::Default => Color::Reset,
        Paint::Indexed(index) => Color::Indexed(index),
        Paint::Rgb(red, green, blue) => Color::Rgb(red, green, blue),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_screen::{Screen, Size};

    #[test]
    fn a_screen_is_drawn_with_its_colours_and_cut_at_the_edge() {
        let mut screen = Screen::new(Size { rows: 2, columns: 20 });
        screen.feed("a\x1b[1;31m表e\u{301}\x1b[0m and more\r\n\x1b[8msecret\x1b[0m.".as_bytes());
        let area = Rect::new(1, 0, 8, 2);
        let mut buffer = Buffer::empty(Rect::new(0, 0, 10, 2));
        render(&screen.pieces(), area, &mut buffer, Theme { colour: true });
        let row = |y: u16| (0..10).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        assert_eq!((row(0).as_str(), row(1).trim_end()), (" a表 e\u{301} and ", "       ."));
        assert_eq!(buffer[(2, 0)].fg, Color::Indexed(1));
        let mut plain = Buffer::empty(Rect::new(0, 0, 10, 2));
        render(&screen.pieces(), area, &mut plain, Theme { colour: false });
        assert_eq!(plain[(2, 0)].fg, Color::Reset);
    }
}
