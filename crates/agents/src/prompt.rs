//! What an agent's screen shows about its prompt. Messages are typed only when the screen shows a prompt that accepts
//! them, and sent only when the prompt shows them: keys that arrive earlier are lost, and keys that reach a dialog
//! answer it.
//!
//! Each agent that does not report the state of its prompt has a function from its screen to [`Seen`], in its own
//! folder.

use serde::{Deserialize, Serialize};

/// The screen of the terminal emulator.
#[derive(Clone, Copy, Debug)]
pub struct Screen<'a> {
    /// Without trailing blanks.
    pub rows: &'a [String],
    /// Row and column, counted from 0.
    pub cursor: (usize, usize),
    pub title: Option<&'a str>,
}

/// What the screen shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The text in the prompt, if the cursor is in it; empty when there is only a placeholder.
    pub typed: Option<String>,
    /// A turn is running: a message that is sent now would be mixed into it.
    pub working: bool,
    /// Something other than the prompt receives the keys.
    pub dialog: bool,
    /// A message that is sent now begins another conversation: none is open.
    #[serde(default)]
    pub begins: bool,
}

impl Seen {
    /// The prompt accepts a message now.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.typed.as_deref() == Some("") && !self.working && !self.dialog
    }

    /// Whether the prompt contains this text and nothing else.
    #[must_use]
    pub fn shows(&self, text: &str) -> bool {
        self.typed.as_deref().is_some_and(|typed| is_shown_as(typed, text))
    }
}

/// A longer text may be shown only in part.
const SHOWN_WHOLE: usize = 200;

/// The beginning of what agents show instead of a long paste: `[Pasted Content 2048 chars]`, `[Pasted Text: 8 lines]`,
/// `[Pasted ~5 lines]`.
const PASTED: &str = "[Pasted ";

/// Only letters and digits are compared: each program breaks lines and draws blanks and signs in its own way.
fn is_shown_as(typed: &str, text: &str) -> bool {
    if typed.is_empty() {
        return false;
    }
    if typed.starts_with(PASTED) && typed.ends_with(']') {
        return true;
    }
    let (shown, wanted) = match (letters(typed), letters(text)) {
        // The text has no letters or digits.
        (_, wanted) if wanted.is_empty() => (signs(typed), signs(text)),
        both => both,
    };
    let in_part = wanted.chars().count() > SHOWN_WHOLE && wanted.contains(shown.as_str());
    !shown.is_empty() && (shown == wanted || in_part)
}

fn letters(text: &str) -> String {
    text.chars().filter(|character| character.is_alphanumeric()).collect()
}

fn signs(text: &str) -> String {
    text.chars().filter(|character| !character.is_whitespace() && !character.is_control()).collect()
}

/// How many columns a character takes: exact enough to know that the cursor is not far after a text.
fn columns(character: char) -> usize {
    let wide = matches!(character, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}' | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}');
    1 + usize::from(wide)
}

impl<'a> Screen<'a> {
    /// A row, or an empty text.
    #[must_use]
    pub fn row(&self, place: usize) -> &'a str {
        self.rows.get(place).map_or("", String::as_str)
    }

    /// The row of the prompt's first line and the text of the prompt, if the cursor is in it. `text_of` returns the
    /// text of a first line, which begins with the prompt's mark. Further lines are indented by `indent` columns. The
    /// cursor must be after the mark and not far after the text.
    pub fn prompt(&self, indent: usize, text_of: impl Fn(&'a str) -> Option<&'a str>) -> Option<(usize, String)> {
        let (row, column) = self.cursor;
        let width: usize = self.row(row).chars().map(columns).sum();
        // While a dialog is shown, the cursor may be anywhere.
        if column < indent || column > width.max(indent) + 1 {
            return None;
        }
        let first = (0..=row).rev().find(|&place| text_of(self.row(place)).is_some())?;
        let indented = |line: &str| line.chars().take(indent).all(|character| character == ' ');
        if !(first + 1..=row).all(|place| indented(self.row(place))) {
            return None;
        }
        let mut lines = vec![text_of(self.row(first))?];
        lines.extend((first + 1..=row).map(|place| self.row(place)));
        // The cursor may be in the middle of the text.
        let below = (row + 1..self.rows.len()).map(|place| self.row(place));
        lines.extend(below.take_while(|line| !line.is_empty() && indented(line)));
        let text = lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join("\n");
        Some((first, text.trim().to_owned()))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The screen of this text, filled up to 24 rows.
    pub(crate) fn seen(look: fn(&Screen<'_>) -> Seen, text: &str, cursor: (usize, usize), title: &str) -> Seen {
        let mut rows: Vec<String> = text.lines().map(|line| line.trim_end().to_owned()).collect();
        rows.resize(24, String::new());
        look(&Screen { rows: &rows, cursor, title: Some(title).filter(|title| !title.is_empty()) })
    }

    fn of(typed: &str) -> Seen {
        Seen { typed: Some(typed.to_owned()), ..Seen::default() }
    }

    #[test]
    fn a_text_is_shown_however_its_lines_are_broken() {
        assert!(of("fix the\nfailing test").shows("fix the failing\ntest"));
        assert!(of("[Pasted Text: 8 lines]").shows("one\ntwo"));
        assert!(of("!!").shows("!!"));
        assert!(!of("").shows("fix"));
        assert!(!of("fix the failing test").shows("fix"), "words of another author are in it as well");
        assert!(!of("fix").shows("fix the failing test"), "not all of it has arrived");
    }

    #[test]
    fn of_a_long_text_a_part_is_enough() {
        let long = "0123456789 ".repeat(100);
        assert!(of("3456789\n0123456789 012").shows(&long));
        assert!(!of("3456789 x 0123456789").shows(&long));
    }

    proptest! {
        #[test]
        fn no_screen_makes_a_look_panic(
            rows in prop::collection::vec("[ ›>*┃╹▀a1.✦é]{0,12}", 0..6), row in 0..8usize, column in 0..14usize,
        ) {
            for agent in crate::all() {
                if let Some(look) = agent.prompt() {
                    look(&Screen { rows: &rows, cursor: (row, column), title: None });
                }
            }
        }
    }
}
