//! A screen as SVG: text on a grid, in the viewer's own fixed-width font. No script, no external font, no link, and a
//! background of its own, so that it can be read on a light and on a dark page.

use ostler_screen::{Look, Paint, Piece};
use std::fmt::Write;

/// The size of one cell, for a font size of 14.
const CELL: (f64, f64) = (8.4, 19.0);
/// The margin around the text; above the text is the title bar of the window.
const MARGIN: (f64, f64) = (18.0, 46.0);

const BACKGROUND: &str = "#1d2026";
const FOREGROUND: &str = "#d8dce4";
const PALETTE: [&str; 16] = [
    "#3b4048", "#f0716b", "#8cc570", "#e5c07b", "#61afef", "#cf8ee0", "#56c2cc", "#d8dce4", "#7f8794", "#ff8f88",
    "#a6dd88", "#f0d399", "#83c5ff", "#e0aaf0", "#7adbe4", "#ffffff",
];

/// Draws the rows up to the last that shows something.
pub fn draw(rows: &[Vec<Piece>], columns: u16, title: &str) -> String {
    let used = rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
    let width = MARGIN.0 * 2.0 + CELL.0 * f64::from(columns);
    let height = MARGIN.1 + CELL.1 * used as f64 + MARGIN.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" role=\"img\" aria-label=\"{0}\">\n\
         <title>{0}</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"9\" fill=\"{BACKGROUND}\" stroke=\"#4a505a\"/>\n\
         <circle cx=\"22\" cy=\"20\" r=\"6\" fill=\"#f0716b\"/><circle cx=\"42\" cy=\"20\" r=\"6\" fill=\"#e5c07b\"/>\
         <circle cx=\"62\" cy=\"20\" r=\"6\" fill=\"#8cc570\"/>\n\
         <g font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" \
         font-size=\"14\" fill=\"{FOREGROUND}\">\n",
        escaped(title)
    );
    for (place, row) in rows[..used].iter().enumerate() {
        let top = MARGIN.1 + CELL.1 * place as f64;
        row.iter().for_each(|piece| draw_piece(&mut svg, piece, top));
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

fn draw_piece(svg: &mut String, piece: &Piece, top: f64) {
    let (foreground, background) = colours(&piece.look);
    let (x, width) = (MARGIN.0 + CELL.0 * piece.column as f64, CELL.0 * piece.width as f64);
    // Writing to a string cannot fail.
    if let Some(background) = background {
        let height = CELL.1;
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{background}\"/>"
        );
    }
    if piece.look.hidden || piece.text.trim().is_empty() {
        return;
    }
    let Look { bold, dim, italic, underlined, crossed_out, .. } = piece.look;
    let mut attributes = String::new();
    if let Some(foreground) = foreground {
        let _ = write!(attributes, " fill=\"{foreground}\"");
    }
    let decoration = match (underlined, crossed_out) {
        (true, true) => Some("underline line-through"),
        (true, false) => Some("underline"),
        (false, true) => Some("line-through"),
        (false, false) => None,
    };
    let more = [
        bold.then_some(" font-weight=\"bold\"".to_owned()),
        dim.then_some(" opacity=\"0.65\"".to_owned()),
        italic.then_some(" font-style=\"italic\"".to_owned()),
        decoration.map(|line| format!(" text-decoration=\"{line}\"")),
    ];
    attributes.extend(more.into_iter().flatten());
    // The text length keeps the grid with any font.
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{:.1}\" textLength=\"{width:.1}\" lengthAdjust=\"spacingAndGlyphs\" \
         xml:space=\"preserve\"{attributes}>{}</text>",
        top + CELL.1 * 0.74,
        escaped(&piece.text)
    );
}

/// `None`: the colour of the window.
fn colours(look: &Look) -> (Option<String>, Option<String>) {
    let (foreground, background) = (colour(look.foreground), colour(look.background));
    match look.inverse {
        false => (foreground, background),
        true => (
            Some(background.unwrap_or_else(|| BACKGROUND.to_owned())),
            Some(foreground.unwrap_or_else(|| FOREGROUND.to_owned())),
        ),
    }
}

fn colour(paint: Paint) -> Option<String> {
    /// The six steps of the cube's sides.
    const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let hex = |red: u8, green: u8, blue: u8| format!("#{red:02x}{green:02x}{blue:02x}");
    match paint {
        Paint::Default => None,
        Paint::Indexed(index @ 0..=15) => Some(PALETTE[usize::from(index)].to_owned()),
        Paint::Indexed(index @ 16..=231) => {
            let step = |place: u8| STEPS[usize::from((index - 16) / place % 6)];
            Some(hex(step(36), step(6), step(1)))
        }
        Paint::Indexed(index @ 232..=255) => {
            let grey = 8 + (index - 232) * 10;
            Some(hex(grey, grey, grey))
        }
        Paint::Rgb(red, green, blue) => Some(hex(red, green, blue)),
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_screen::{Screen, Size};

    #[test]
    fn a_picture_is_text_on_a_grid_and_loads_nothing() {
        let mut screen = Screen::new(Size { rows: 3, columns: 10 });
        screen.feed(b"<a> \x1b[1;31mred\x1b[0m\r\n\x1b[7minv\x1b[0m");
        let svg = draw(&screen.pieces(), 10, "a & b");
        for part in ["&lt;a&gt;", "font-weight=\"bold\"", "#f0716b", "a &amp; b", "fill=\"#d8dce4\"/>"] {
            assert!(svg.contains(part), "{part} is missing in {svg}");
        }
        for part in ["<script", "href", "@import", "url("] {
            assert!(!svg.contains(part), "{svg}");
        }
    }
}
