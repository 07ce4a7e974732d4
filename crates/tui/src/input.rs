//! The lines that a person is writing: editing as in a shell, a history of sent lines, several rows in view.

use crate::keys::Key;
use crate::theme::Theme;
use crate::wrap::graphemes;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::text::{Line, Span};
use std::ops::Range;
use unicode_segmentation::GraphemeCursor;

/// The mark before the first row.
const MARK: &str = "› ";
const MARK_COLUMNS: usize = 2;
/// Of a longer text only the part around the cursor is measured.
const AROUND: usize = 16 * 1024;
/// How many sent lines are remembered.
const REMEMBERED: usize = 500;

#[derive(Debug)]
pub struct Input {
    text: String,
    /// In bytes, at the edge of a grapheme.
    cursor: usize,
    /// What was deleted last.
    deleted: String,
    /// The previous key deleted, too: what is deleted next is joined with it.
    deleting: bool,
    sent: Vec<String>,
    /// Which of the sent lines is shown, and the text before it.
    recalled: Option<(usize, String)>,
    columns: usize,
    /// The column to which the cursor goes back when it moves over shorter rows.
    column: Option<usize>,
}

impl Input {
    #[must_use]
    pub fn new(text: &str) -> Input {
        Input {
            text: text.to_owned(),
            cursor: text.len(),
            deleted: String::new(),
            deleting: false,
            sent: Vec::new(),
            recalled: None,
            columns: 80,
            column: None,
        }
    }

    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub fn clear(&mut self) {
        self.set("");
    }

    /// Empties it; the up arrow brings the text back.
    pub fn give_up(&mut self) {
        let text = std::mem::take(&mut self.text);
        self.remember(&text);
        self.clear();
    }

    /// Remembers a sent line, for the up arrow.
    pub fn remember(&mut self, text: &str) {
        if self.sent.last().is_some_and(|last| last == text) || text.trim().is_empty() {
            return;
        }
        if self.sent.len() == REMEMBERED {
            self.sent.remove(0);
        }
        self.sent.push(text.to_owned());
    }

    fn set(&mut self, text: &str) {
        text.clone_into(&mut self.text);
        self.cursor = self.text.len();
        (self.recalled, self.column) = (None, None);
    }

    /// Handles a key. Keys that do not concern a text change nothing.
    pub fn press(&mut self, key: Key) {
        let deleting = std::mem::take(&mut self.deleting);
        let column = self.column.take();
        match key {
            Key::Text(character) | Key::Pasted(character) => self.insert(character.encode_utf8(&mut [0; 4])),
            Key::NewLine => self.insert("\n"),
            Key::Tab => self.insert(" "),
            Key::Backspace => self.drop(self.before()..self.cursor),
            Key::Delete | Key::EndOfInput => self.drop(self.cursor..self.after()),
            Key::Left => self.cursor = self.before(),
            Key::Right => self.cursor = self.after(),
            Key::WordLeft => self.cursor = self.word_before(),
            Key::WordRight => self.cursor = self.word_after(),
            Key::Home => self.cursor = self.line_start(),
            Key::End => self.cursor = self.line_end(),
            Key::DeleteBefore => self.delete(self.line_start()..self.cursor, deleting),
            Key::DeleteAfter => {
                // At the end of a line, deletes the line end.
                let end = if self.line_end() == self.cursor { self.after() } else { self.line_end() };
                self.delete(self.cursor..end, deleting);
            }
            Key::DeleteWord => self.delete(self.word_before()..self.cursor, deleting),
            Key::DeleteWordAfter => self.delete(self.cursor..self.word_after(), deleting),
            Key::Yank => self.insert(&self.deleted.clone()),
            Key::Up => self.up(column),
            Key::Down => self.down(column),
            Key::HistoryBefore => self.recall_before(),
            Key::HistoryAfter => self.recall_after(),
            Key::Enter
            | Key::Interrupt
            | Key::Redraw
            | Key::Suspend
            | Key::PageUp
            | Key::PageDown
            | Key::RowUp
            | Key::RowDown
            | Key::Top
            | Key::Bottom
            | Key::WheelUp { .. }
            | Key::WheelDown { .. }
            | Key::Click { .. }
            | Key::Unfold
            | Key::UnfoldAll
            | Key::ChooseBefore
            | Key::ChooseAfter
            | Key::BackTab
            | Key::Escape => {}
        }
    }

    fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
        // What was typed may have combined with the character before or after it.
        let mut edge = GraphemeCursor::new(self.cursor, self.text.len(), true);
        if !edge.is_boundary(&self.text, 0).unwrap_or(true) {
            self.cursor = edge.next_boundary(&self.text, 0).ok().flatten().unwrap_or(self.text.len());
        }
    }

    fn drop(&mut self, range: Range<usize>) {
        self.text.drain(range.clone());
        self.cursor = range.start;
    }

    /// Deletes text so that it can be put back; several deletions in a row are put back as one text.
    fn delete(&mut self, range: Range<usize>, joins: bool) {
        if range.is_empty() {
            self.deleting = joins;
            return;
        }
        let part = self.text[range.clone()].to_owned();
        let forwards = range.start == self.cursor;
        match (joins, forwards) {
            (true, true) => self.deleted.push_str(&part),
            (true, false) => self.deleted.insert_str(0, &part),
            (false, true | false) => self.deleted = part,
        }
        self.deleting = true;
        self.drop(range);
    }

    fn before(&self) -> usize {
        let mut edge = GraphemeCursor::new(self.cursor, self.text.len(), true);
        edge.prev_boundary(&self.text, 0).ok().flatten().unwrap_or(0)
    }

    fn after(&self) -> usize {
        let mut edge = GraphemeCursor::new(self.cursor, self.text.len(), true);
        edge.next_boundary(&self.text, 0).ok().flatten().unwrap_or(self.text.len())
    }

    fn word_before(&self) -> usize {
        let head = self.text[..self.cursor].trim_end_matches(char::is_whitespace);
        head.rfind(char::is_whitespace).map_or(0, |gap| gap + head[gap..].chars().next().map_or(1, char::len_utf8))
    }

    fn word_after(&self) -> usize {
        let rest = &self.text[self.cursor..];
        let start = rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
        let length = rest[start..].find(char::is_whitespace).unwrap_or(rest.len() - start);
        self.cursor + start + length
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |end| end + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |end| self.cursor + end)
    }

    /// One row up, or from the first row to the line sent before.
    fn up(&mut self, column: Option<usize>) {
        let rows = self.rows();
        let row = self.row_of_cursor(&rows);
        match row.checked_sub(1) {
            Some(above) => self.move_to(&rows, row, above, column),
            None => self.recall_before(),
        }
    }

    fn down(&mut self, column: Option<usize>) {
        let rows = self.rows();
        let row = self.row_of_cursor(&rows);
        if row + 1 < rows.len() { self.move_to(&rows, row, row + 1, column) } else { self.recall_after() }
    }

    fn move_to(&mut self, rows: &[Range<usize>], from: usize, to: usize, column: Option<usize>) {
        let column = column.unwrap_or_else(|| shown_width(&self.text[rows[from].start..self.cursor]));
        let mut used = 0;
        let mut place = rows[to].start;
        for (grapheme, width) in shown_graphemes(&self.text[rows[to].clone()]) {
            if used + width > column || grapheme == "\n" {
                break;
            }
            used += width;
            place += grapheme.len();
        }
        // The position after a wrapped row belongs to the next row.
        if place == rows[to].end && to + 1 < rows.len() && place > rows[to].start {
            let mut edge = GraphemeCursor::new(place, self.text.len(), true);
            place = edge.prev_boundary(&self.text, 0).ok().flatten().unwrap_or(rows[to].start);
        }
        self.cursor = place;
        self.column = Some(column);
    }

    fn recall_before(&mut self) {
        let (place, own) = match self.recalled.take() {
            Some((place, own)) => (place, own),
            None => (self.sent.len(), self.text.clone()),
        };
        match place.checked_sub(1) {
            Some(before) => {
                self.set(&self.sent[before].clone());
                self.recalled = Some((before, own));
            }
            None if place < self.sent.len() => self.recalled = Some((place, own)),
            None => {}
        }
    }

    fn recall_after(&mut self) {
        let Some((place, own)) = self.recalled.take() else {
            return;
        };
        match self.sent.get(place + 1).cloned() {
            Some(text) => {
                self.set(&text);
                self.recalled = Some((place + 1, own));
            }
            None => self.set(&own),
        }
    }

    /// How many rows it takes in a window of this width, at most `most`.
    pub fn height(&mut self, columns: usize, most: usize) -> usize {
        self.columns = columns;
        self.rows().len().clamp(1, most.max(1))
    }

    /// Draws it and returns the position of the cursor.
    pub fn render(&mut self, area: Rect, buffer: &mut Buffer, theme: Theme) -> (u16, u16) {
        self.columns = usize::from(area.width);
        let rows = self.rows();
        let row = self.row_of_cursor(&rows);
        let height = usize::from(area.height).max(1);
        // The cursor's row is in view, with as many rows before it as fit.
        let first = (row + 1).saturating_sub(height).min(rows.len().saturating_sub(height));
        for (number, range) in rows.iter().enumerate().skip(first).take(height) {
            let mark = if number == 0 && range.start == 0 { MARK } else { "  " };
            let text: String =
                shown_graphemes(&self.text[range.clone()]).map(|(grapheme, _)| shown(grapheme)).collect();
            let line = Line::from(vec![Span::styled(mark, theme.own().patch(theme.bold())), Span::raw(text)]);
            let y = area.y.saturating_add(u16::try_from(number - first).unwrap_or(u16::MAX));
            buffer.set_line(area.x, y, &line, area.width);
        }
        let column = MARK_COLUMNS + shown_width(&self.text[rows[row].start..self.cursor]);
        let x = area.x.saturating_add(u16::try_from(column).unwrap_or(u16::MAX));
        let y = area.y.saturating_add(u16::try_from(row - first).unwrap_or(u16::MAX));
        (x.min(area.right().saturating_sub(1)), y)
    }

    /// The parts of the text that are in one row each. Never empty.
    fn rows(&self) -> Vec<Range<usize>> {
        let room = self.columns.saturating_sub(MARK_COLUMNS + 1).max(1);
        let window = self.window();
        let mut rows = Vec::new();
        let mut start = window.start;
        for line in self.text[window].split_inclusive('\n') {
            let end = start + line.len();
            let mut rest = start;
            while let Some(length) = row_length(&self.text[rest..end], room) {
                rows.push(rest..rest + length);
                rest += length;
            }
            rows.push(rest..end);
            start = end;
        }
        if rows.is_empty() || self.text[..start].ends_with('\n') {
            rows.push(start..start);
        }
        rows
    }

    /// The part around the cursor, from the beginning of a line if there is one near.
    fn window(&self) -> Range<usize> {
        let floor = |mut place: usize| {
            while !self.text.is_char_boundary(place) {
                place -= 1;
            }
            place
        };
        let from = floor(self.cursor.saturating_sub(AROUND));
        let from =
            if from == 0 { 0 } else { self.text[from..self.cursor].find('\n').map_or(from, |end| from + end + 1) };
        from..floor((self.cursor + AROUND).min(self.text.len()))
    }

    fn row_of_cursor(&self, rows: &[Range<usize>]) -> usize {
        rows.iter().rposition(|row| row.start <= self.cursor).unwrap_or(0)
    }
}

/// How much of a line is in its first row, when it does not fit into one.
fn row_length(line: &str, room: usize) -> Option<usize> {
    let (mut used, mut place, mut word) = (0, 0, None);
    for (grapheme, width) in shown_graphemes(line) {
        if grapheme == "\n" {
            return None;
        }
        if used + width > room {
            // A space that does not fit stays after its word, invisible.
            if grapheme == " " {
                return Some(place + 1);
            }
            return Some(word.unwrap_or(place.max(grapheme.len())));
        }
        used += width;
        place += grapheme.len();
        if grapheme == " " {
            word = Some(place);
        }
    }
    None
}

/// Every character has a width, so that the cursor is where it seems to be.
fn shown_graphemes(text: &str) -> impl Iterator<Item = (&str, usize)> {
    use unicode_segmentation::UnicodeSegmentation;
    text.graphemes(true).map(|grapheme| {
        let width = match grapheme {
            "\n" | "\r\n" => 0,
            other => graphemes(other).map(|(_, width)| width).sum::<usize>().max(1),
        };
        (grapheme, width)
    })
}

fn shown_width(text: &str) -> usize {
    shown_graphemes(text).map(|(_, width)| width).sum()
}

/// Characters without width, or that would move the cursor, are replaced by a sign.
fn shown(grapheme: &str) -> &str {
    match grapheme {
        "\n" | "\r\n" => "",
        "\t" => " ",
        other if graphemes(other).all(|(_, width)| width == 0) || other.chars().any(char::is_control) => "·",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressed(text: &str, keys: &[Key]) -> (String, usize) {
        let mut input = Input::new(text);
        for key in keys {
            input.press(*key);
        }
        (input.text.clone(), input.cursor)
    }

    #[test]
    fn every_key_does_what_it_does_in_a_shell() {
        assert_eq!(pressed("ab", &[Key::Left, Key::Text('表')]), ("a表b".to_owned(), 4));
        assert_eq!(pressed("ab", &[Key::Backspace]), ("a".to_owned(), 1));
        assert_eq!(pressed("ae\u{301}", &[Key::Backspace]), ("a".to_owned(), 1), "a whole character");
        assert_eq!(pressed("ab", &[Key::Home, Key::Backspace, Key::Delete]), ("b".to_owned(), 0));
        assert_eq!(pressed("one two", &[Key::WordLeft, Key::DeleteBefore]), ("two".to_owned(), 0));
        assert_eq!(pressed("one two", &[Key::Home, Key::WordRight, Key::DeleteAfter]), ("one".to_owned(), 3));
        assert_eq!(pressed("one two  ", &[Key::DeleteWord]), ("one ".to_owned(), 4));
        assert_eq!(pressed("one two", &[Key::Home, Key::DeleteWordAfter]), (" two".to_owned(), 0));
        assert_eq!(pressed("", &[Key::Left, Key::Right, Key::DeleteWord, Key::EndOfInput]), (String::new(), 0));
    }

    #[test]
    fn what_is_deleted_in_a_row_comes_back_as_one() {
        let keys = [Key::DeleteWord, Key::DeleteWord, Key::Text('x'), Key::Yank];
        assert_eq!(pressed("one two three", &keys).0, "one xtwo three");
        let keys = [Key::DeleteWord, Key::Left, Key::DeleteWord, Key::Yank];
        assert_eq!(pressed("one two", &keys).0, "one ");
    }

    #[test]
    fn lines_of_a_text_have_their_own_beginnings_and_ends() {
        assert_eq!(pressed("one\ntwo", &[Key::Home, Key::Text('x')]).0, "one\nxtwo");
        assert_eq!(pressed("one\ntwo", &[Key::Up, Key::End, Key::Text('x')]).0, "onex\ntwo");
        assert_eq!(pressed("one\ntwo", &[Key::DeleteBefore]).0, "one\n");
        assert_eq!(pressed("one\ntwo", &[Key::Up, Key::End, Key::DeleteAfter]).0, "onetwo");
        assert_eq!(
            pressed("long line\na\nother one", &[Key::Up, Key::Up, Key::Text('x')]).0,
            "long linex\na\nother one"
        );
    }

    #[test]
    fn the_arrow_up_brings_back_what_was_sent_and_down_the_own_line() {
        let mut input = Input::new("own");
        ["first", "second", "second"].iter().for_each(|line| input.remember(line));
        let mut seen = |key| {
            input.press(key);
            input.text.clone()
        };
        assert_eq!([Key::Up, Key::Up, Key::Up].map(&mut seen), ["second", "first", "first"]);
        assert_eq!([Key::Down, Key::Down, Key::Down].map(&mut seen), ["second", "own", "own"]);
    }

    fn drawn(text: &str, keys: &[Key], columns: u16, height: u16) -> (Vec<String>, (u16, u16)) {
        let mut input = Input::new(text);
        let area = Rect::new(0, 0, columns, height);
        let mut buffer = Buffer::empty(area);
        input.render(area, &mut buffer, Theme { colour: false });
        keys.iter().for_each(|key| input.press(*key));
        buffer.reset();
        let cursor = input.render(area, &mut buffer, Theme { colour: false });
        let row = |y: u16| (0..columns).map(|x| buffer[(x, y)].symbol().to_owned()).collect::<String>();
        ((0..height).map(|y| row(y).trim_end().to_owned()).collect(), cursor)
    }

    #[test]
    fn a_long_text_breaks_between_words_and_the_cursor_is_in_view() {
        assert_eq!(drawn("hello world", &[], 10, 2), (vec!["› hello".to_owned(), "  world".to_owned()], (7, 1)));
        assert_eq!(drawn("one\ntwo\nthree", &[], 20, 2), (vec!["  two".to_owned(), "  three".to_owned()], (7, 1)));
        assert_eq!(drawn("one\ntwo\nthree", &[Key::Up, Key::Up], 20, 2).0, ["› one", "  two"]);
        assert_eq!(drawn("abcdefghijkl", &[], 9, 2).0, ["› abcdef", "  ghijkl"]);
        assert_eq!(drawn("a\n", &[], 9, 2), (vec!["› a".to_owned(), String::new()], (2, 1)));
        assert_eq!(drawn("表\tb", &[Key::Left], 20, 1), (vec!["› 表  b".to_owned()], (5, 0)));
    }

    #[test]
    fn a_huge_paste_stays_quick() {
        let mut input = Input::new(&"x".repeat(8 << 20));
        let started = std::time::Instant::now();
        for _ in 0..20 {
            input.press(Key::Left);
            input.height(80, 8);
        }
        assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
    }
}
