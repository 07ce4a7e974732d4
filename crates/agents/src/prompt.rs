//! What an agent's screen says about its prompt. Messages are typed only into a prompt that is seen to take them, and are
//! sent only when they are seen in it: keys that arrive earlier are lost, and keys that meet a dialog answer it.
//!
//! Each agent that tells nothing about its prompt has a function from its screen to [`Seen`], in its own folder.

use serde::{Deserialize, Serialize};

/// A screen as its emulator has it.
#[derive(Clone, Copy, Debug)]
pub struct Screen<'a> {
    /// Without blanks at their ends.
    pub rows: &'a [String],
    /// Row and column, counted from 0.
    pub cursor: (usize, usize),
    pub title: Option<&'a str>,
}

/// What is seen on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The text in the prompt, when the cursor is in one; empty when there is nothing but a placeholder.
    pub typed: Option<String>,
    /// A turn runs: what is sent now would be mixed into it.
    pub working: bool,
    /// Something else than the prompt takes the keys.
    pub dialog: bool,
    /// What is sent from here begins another conversation: none is open.
    #[serde(default)]
    pub begins: bool,
}

impl Seen {
    /// It takes a message now.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.typed.as_deref() == Some("") && !self.working && !self.dialog
    }

    /// Whether this text is in the prompt, and nothing else.
    #[must_use]
    pub fn shows(&self, text: &str) -> bool {
        self.typed.as_deref().is_some_and(|typed| is_shown_as(typed, text))
    }
}

/// A text that is longer than this may be shown in part.
const SHOWN_WHOLE: usize = 200;

/// What agents show instead of a long paste begins like this: `[Pasted Content 2048 chars]`, `[Pasted Text: 8 lines]`,
/// `[Pasted ~5 lines]`.
const PASTED: &str = "[Pasted ";

/// Where lines are broken, and how blanks and signs are drawn, is the program's own affair; letters and digits are not.
fn is_shown_as(typed: &str, text: &str) -> bool {
    if typed.is_empty() {
        return false;
    }
    if typed.starts_with(PASTED) && typed.ends_with(']') {
        return true;
    }
    let (shown, wanted) = match (letters(typed), letters(text)) {
        // A text of signs alone.
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

/// How many columns a character takes: enough to know that a cursor is not far behind a text.
fn columns(character: char) -> usize {
    let wide = matches!(character, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}' | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}');
    1 + usize::from(wide)
}

impl<'a> Screen<'a> {
    /// A row, or nothing.
    #[must_use]
    pub fn row(&self, place: usize) -> &'a str {
        self.rows.get(place).map_or("", String::as_str)
    }

    /// The row of the prompt's first line and what is in the prompt, when the cursor is in it. `text_of` gives the text of a
    /// first line, which begins with the prompt's mark. Further lines are indented by `indent` columns; the cursor is behind
    /// the mark and not far behind the text.
    pub fn prompt(&self, indent: usize, text_of: impl Fn(&'a str) -> Option<&'a str>) -> Option<(usize, String)> {
        let (row, column) = self.cursor;
        let width: usize = self.row(row).chars().map(columns).sum();
        // A dialog leaves the cursor anywhere.
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

    /// A screen of 24 rows from its text, of which the first row may be given.
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
        assert!(!of("fix the failing test").shows("fix"), "somebody else's words are in it as well");
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
