//! Styled text wrapped into rows: between words where possible, otherwise between graphemes.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// At most this many code points of one grapheme are shown: a long stack of marks is not a character.
const MARKS: usize = 12;

/// Where a row may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    Words,
    Anywhere,
}

/// One grapheme.
struct Piece<'a> {
    text: &'a str,
    width: usize,
    style: Style,
    blank: bool,
}

/// The columns that a text takes.
#[must_use]
pub fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { graphemes(text).map(|(_, width)| width).sum() }
}

/// The columns of styled text.
pub fn spans_width(spans: &[Span<'_>]) -> usize {
    spans.iter().map(|span| width(&span.content)).sum()
}

/// The text in at most this many columns, with a sign where its end is left out.
#[must_use]
pub fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let (mut shown, mut used) = (String::new(), 0);
    for (grapheme, wide) in graphemes(text) {
        if used + wide + 1 > columns {
            break;
        }
        used += wide;
        shown.push_str(grapheme);
    }
    if columns > 0 {
        shown.push('…');
    }
    shown
}

/// A path in at most this many columns: its end says more than its beginning.
#[must_use]
pub fn cut_front(text: &str, columns: usize) -> String {
    let all = width(text);
    if all <= columns {
        return text.to_owned();
    }
    let mut left_out = 0;
    let mut rest = text;
    for (grapheme, wide) in graphemes(text) {
        if all - left_out < columns {
            break;
        }
        left_out += wide;
        rest = rest.get(grapheme.len()..).unwrap_or_default();
    }
    if columns > 0 { format!("…{rest}") } else { String::new() }
}

/// The graphemes of a text, each with its width.
pub fn graphemes(text: &str) -> impl Iterator<Item = (&str, usize)> {
    text.graphemes(true).map(|grapheme| {
        let end = grapheme.char_indices().nth(MARKS).map_or(grapheme.len(), |(place, _)| place);
        let grapheme = &grapheme[..end];
        (grapheme, grapheme.width().min(2))
    })
}

/// The rows of a text in a window of this many columns; a row may end anywhere in a line.
#[must_use]
pub fn rows_of(text: &str, columns: u16) -> Vec<String> {
    let columns = usize::from(columns).max(1);
    let mut rows = Vec::new();
    for line in text.split('\n') {
        let (mut row, mut used) = (String::new(), 0);
        for (grapheme, wide) in graphemes(line) {
            if used + wide > columns {
                rows.push(std::mem::take(&mut row));
                used = 0;
            }
            row.push_str(grapheme);
            used += wide;
        }
        rows.push(row);
    }
    rows
}

/// A sentence in rows of this many columns, wrapped between words where possible.
#[must_use]
pub fn rows_of_words(text: &str, columns: u16) -> Vec<String> {
    let lines = wrap(&[Span::raw(text)], usize::from(columns).max(1), &[], &[], Break::Words);
    lines.iter().map(ToString::to_string).collect()
}

/// Wraps spans into rows of at most `columns`; `first` is put before the first row, `rest` before the others.
pub fn wrap(
    spans: &[Span<'_>],
    columns: usize,
    first: &[Span<'static>],
    rest: &[Span<'static>],
    at: Break,
) -> Vec<Line<'static>> {
    let pieces: Vec<Piece<'_>> = spans
        .iter()
        .flat_map(|span| {
            graphemes(&span.content).map(|(text, width)| Piece { text, width, style: span.style, blank: text == " " })
        })
        .collect();
    let mut lines = Vec::new();
    let mut start = 0;
    loop {
        let before = if lines.is_empty() { first } else { rest };
        let room = columns.saturating_sub(spans_width(before)).max(1);
        let (end, next) = row(&pieces, start, room, at);
        lines.push(line(before, &pieces[start..end]));
        if next >= pieces.len() {
            return lines;
        }
        start = next;
    }
}

/// Where the row that begins here ends, and where the next one begins.
fn row(pieces: &[Piece<'_>], start: usize, room: usize, at: Break) -> (usize, usize) {
    let (mut end, mut used, mut chance) = (start, 0, None);
    while let Some(piece) = pieces.get(end)
        && used + piece.width <= room
    {
        if piece.blank {
            chance = Some((end, end + 1));
        } else if piece.width == 2 {
            // Between the characters of scripts without spaces.
            chance = Some((end + 1, end + 1));
        }
        used += piece.width;
        end += 1;
    }
    let Some(over) = pieces.get(end) else {
        return (end, end);
    };
    let (end, next) = match (at, chance) {
        (Break::Words, _) if over.blank => (end, end + 1),
        (Break::Words, Some((chance, next))) if chance > start => (chance, next),
        // A character wider than the room gets a row of its own.
        (Break::Words | Break::Anywhere, _) => (end.max(start + 1), end.max(start + 1)),
    };
    match at {
        Break::Words => {
            let blanks = pieces[start..end].iter().rev().take_while(|piece| piece.blank).count();
            (end - blanks, next + pieces[next..].iter().take_while(|piece| piece.blank).count())
        }
        Break::Anywhere => (end, next),
    }
}

fn line(before: &[Span<'static>], pieces: &[Piece<'_>]) -> Line<'static> {
    let mut spans = before.to_vec();
    let mut run: Option<(Style, String)> = None;
    for piece in pieces {
        match &mut run {
            Some((style, text)) if *style == piece.style => text.push_str(piece.text),
            _ => {
                spans.extend(run.take().map(|(style, text)| Span::styled(text, style)));
                run = Some((piece.style, piece.text.to_owned()));
            }
        }
    }
    spans.extend(run.map(|(style, text)| Span::styled(text, style)));
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows(text: &str, columns: usize) -> Vec<String> {
        let lines = wrap(&[Span::raw(text)], columns, &[Span::raw("> ")], &[Span::raw("  ")], Break::Words);
        lines.iter().map(Line::to_string).collect()
    }

    #[test]
    fn rows_end_between_words_and_hang_below_the_first() {
        assert_eq!(rows("one two three", 9), ["> one two", "  three"]);
        assert_eq!(rows("one  two", 6), ["> one", "  two"]);
        assert_eq!(rows("abcdefgh ij", 6), ["> abcd", "  efgh", "  ij"]);
        assert_eq!(rows("", 6), ["> "]);
    }

    #[test]
    fn wide_and_combined_characters_keep_whole() {
        assert_eq!(rows("表表表", 6), ["> 表表", "  表"]);
        assert_eq!(rows("e\u{301}e\u{301}e\u{301}", 4), ["> e\u{301}e\u{301}", "  e\u{301}"]);
        assert_eq!(cut("表表表", 5), "表表…");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!([cut_front("/a/b/c.rs", 6), cut_front("表表表", 5)], ["…/c.rs", "…表表"]);
        assert!(width(&format!("a{}", "\u{301}".repeat(1000))) == 1);
    }

    proptest! {
        #[test]
        fn no_row_is_wider_than_its_room_and_no_letter_is_lost(text in "[a-z表é ]{0,200}", columns in 6usize..60) {
            let lines = wrap(&[Span::raw(&text)], columns, &[], &[], Break::Words);
            let letters = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
            let shown: String = lines.iter().map(Line::to_string).collect();
            prop_assert!(lines.iter().all(|line| spans_width(&line.spans) <= columns));
            prop_assert_eq!(letters(&shown), letters(&text));
        }
    }
}
