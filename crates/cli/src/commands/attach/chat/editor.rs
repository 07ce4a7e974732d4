//! One line of text being written, and the part of it that fits into the window.

use super::keys::Key;
use unicode_width::UnicodeWidthChar;

#[derive(Debug, Default)]
pub struct Editor {
    text: Vec<char>,
    /// Before which character the next one goes.
    cursor: usize,
}

/// The part of the line that is shown, and the column of the cursor in it.
#[derive(Debug, PartialEq, Eq)]
pub struct Visible {
    pub text: String,
    pub column: usize,
}

impl Editor {
    pub fn new(text: &str) -> Editor {
        let text: Vec<char> = text.chars().collect();
        Editor { cursor: text.len(), text }
    }

    pub fn text(&self) -> String {
        self.text.iter().collect()
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub fn clear(&mut self) {
        *self = Editor::default();
    }

    /// Keys that mean nothing to a text change nothing.
    pub fn press(&mut self, key: Key) {
        match key {
            Key::Text(character) => {
                self.text.insert(self.cursor, character);
                self.cursor += 1;
            }
            Key::Backspace if self.cursor > 0 => {
                self.cursor -= 1;
                self.text.remove(self.cursor);
            }
            Key::Delete | Key::EndOfInput if self.cursor < self.text.len() => {
                self.text.remove(self.cursor);
            }
            Key::Left => self.cursor = self.cursor.saturating_sub(1),
            Key::Right => self.cursor = (self.cursor + 1).min(self.text.len()),
            Key::WordLeft => self.cursor = self.word_before(),
            Key::WordRight => self.cursor = self.word_after(),
            Key::Home => self.cursor = 0,
            Key::End => self.cursor = self.text.len(),
            Key::DeleteBefore => {
                self.text.drain(..self.cursor);
                self.cursor = 0;
            }
            Key::DeleteAfter => self.text.truncate(self.cursor),
            Key::DeleteWord => {
                let start = self.word_before();
                self.text.drain(start..self.cursor);
                self.cursor = start;
            }
            Key::Backspace | Key::Delete | Key::EndOfInput | Key::Enter | Key::Interrupt | Key::Redraw => {}
        }
    }

    fn word_before(&self) -> usize {
        let end = self.text[..self.cursor].iter().rposition(|c| !c.is_whitespace()).map_or(0, |last| last + 1);
        self.text[..end].iter().rposition(|c| c.is_whitespace()).map_or(0, |gap| gap + 1)
    }

    fn word_after(&self) -> usize {
        let rest = &self.text[self.cursor..];
        let start = rest.iter().position(|c| !c.is_whitespace()).unwrap_or(rest.len());
        let length = rest[start..].iter().position(|c| c.is_whitespace()).unwrap_or(rest.len() - start);
        self.cursor + start + length
    }

    /// What fits into so many columns, with the cursor in it.
    pub fn visible(&self, columns: usize) -> Visible {
        let mut start = self.cursor;
        let mut column = 0;
        // One column is for the cursor itself when it stands behind the text.
        while start > 0 && column + width(self.text[start - 1]) < columns {
            start -= 1;
            column += width(self.text[start]);
        }
        let (mut text, mut used) = (String::new(), 0);
        for &character in &self.text[start..] {
            used += width(character);
            if used > columns {
                break;
            }
            text.push(shown(character));
        }
        Visible { text, column }
    }
}

/// How a character looks in the line: what would move the cursor has a sign instead.
fn shown(character: char) -> char {
    match character {
        '\n' => '⏎',
        '\t' => ' ',
        other if width(other) == 0 => '·',
        other => other,
    }
}

/// Every character takes some room, so that the cursor is where it seems to be.
fn width(character: char) -> usize {
    character.width().unwrap_or(0).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressed(text: &str, keys: &[Key]) -> (String, usize) {
        let mut editor = Editor::new(text);
        for key in keys {
            editor.press(*key);
        }
        (editor.text(), editor.cursor)
    }

    #[test]
    fn every_key_does_what_it_does_in_a_shell() {
        assert_eq!(pressed("ab", &[Key::Left, Key::Text('表')]), ("a表b".to_owned(), 2));
        assert_eq!(pressed("ab", &[Key::Backspace]), ("a".to_owned(), 1));
        assert_eq!(pressed("ab", &[Key::Home, Key::Backspace, Key::Delete]), ("b".to_owned(), 0));
        assert_eq!(pressed("one two", &[Key::WordLeft, Key::DeleteBefore]), ("two".to_owned(), 0));
        assert_eq!(pressed("one two", &[Key::Home, Key::WordRight, Key::DeleteAfter]), ("one".to_owned(), 3));
        assert_eq!(pressed("one two  ", &[Key::DeleteWord]), ("one ".to_owned(), 4));
        assert_eq!(pressed("", &[Key::Left, Key::Right, Key::DeleteWord, Key::EndOfInput]), (String::new(), 0));
    }

    #[test]
    fn a_long_line_shows_the_part_around_the_cursor() {
        let visible = |text: &str, keys: &[Key], columns| {
            let mut editor = Editor::new(text);
            keys.iter().for_each(|key| editor.press(*key));
            let visible = editor.visible(columns);
            (visible.text, visible.column)
        };
        assert_eq!(visible("hello", &[], 10), ("hello".to_owned(), 5));
        assert_eq!(visible("hello world", &[], 6), ("world".to_owned(), 5));
        assert_eq!(visible("hello world", &[Key::Home], 6), ("hello ".to_owned(), 0));
        assert_eq!(visible("表表表", &[], 4), ("表".to_owned(), 2));
        assert_eq!(visible("a\nb", &[], 9), ("a⏎b".to_owned(), 3));
    }
}
