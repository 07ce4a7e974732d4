//! The part of a message that is shown with a hit: one line around the words that were searched for.

use schemars::JsonSchema;
use serde::Serialize;
use std::ops::Range;

/// A part of a snippet.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Piece {
    /// One line of printable text.
    pub text: String,
    /// Whether this was searched for.
    pub marked: bool,
}

/// The maximum length of a snippet in characters.
pub const LENGTH: usize = 240;
/// How many of them may be before the first word that was searched for.
const BEFORE: usize = 60;

/// The snippet of a text with the words at these places, which are in order and do not overlap.
#[must_use]
pub fn cut(text: &str, places: &[Range<usize>]) -> Vec<Piece> {
    let start = densest(text, places);
    let begin = before(text, start);
    let mut pieces = Pieces::default();
    if begin > 0 {
        pieces.push("…", false);
    }
    let mut at = begin + text[begin..].len() - text[begin..].trim_start().len();
    for place in places.iter().filter(|place| place.start >= begin) {
        if !pieces.push(&text[at..place.start], false) || !pieces.push(&text[place.clone()], true) {
            return pieces.end();
        }
        at = place.end;
    }
    if pieces.push(&text[at..], false) { pieces.done } else { pieces.end() }
}

/// The start of the part in which the most words are close together: this is most likely what a person looks for.
fn densest(text: &str, places: &[Range<usize>]) -> usize {
    let within = |first: &Range<usize>| {
        let close =
            places.iter().filter(|place| place.start >= first.start && place.end <= first.start + LENGTH - BEFORE);
        // Different words count for more than the same one again.
        let mut words: Vec<&str> = close.map(|place| &text[place.clone()]).collect();
        let all = words.len();
        words.sort_unstable();
        words.dedup();
        words.len() * 4 + all.min(3)
    };
    // The first of the best parts. Only some are compared: a message may have thousands of places.
    let best = places.iter().take(64).map(|place| (within(place), place.start));
    best.rev().max_by_key(|(close, _)| *close).map_or(0, |(_, start)| start)
}

/// Where a snippet begins whose first found word is at `start`: at the beginning of a word.
fn before(text: &str, start: usize) -> usize {
    let mut at = start;
    let mut left = BEFORE;
    let mut word = start;
    for (place, character) in text[..start].char_indices().rev() {
        if left == 0 {
            return word;
        }
        // An empty line separates paragraphs: what is before it does not belong to the snippet.
        if character == '\n' && text[..place].ends_with('\n') {
            return word;
        }
        if character.is_whitespace() {
            word = at;
        }
        at = place;
        left -= 1;
    }
    0
}

/// Collects pieces, with all white space as single spaces.
#[derive(Default)]
struct Pieces {
    done: Vec<Piece>,
    length: usize,
    space: bool,
}

impl Pieces {
    /// False when there is no room for all of it.
    fn push(&mut self, text: &str, marked: bool) -> bool {
        let mut piece = String::new();
        let mut whole = true;
        for character in ostler_screen::printable(text).chars() {
            if character.is_whitespace() {
                self.space = self.length > 0;
                continue;
            }
            if self.length >= LENGTH {
                whole = false;
                break;
            }
            if std::mem::take(&mut self.space) {
                self.length += 1;
                if piece.is_empty() && marked { self.append(" ", false) } else { piece.push(' ') }
            }
            piece.push(character);
            self.length += 1;
        }
        self.append(&piece, marked);
        whole
    }

    fn append(&mut self, text: &str, marked: bool) {
        match self.done.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.marked == marked => last.text.push_str(text),
            Some(_) | None => self.done.push(Piece { text: text.to_owned(), marked }),
        }
    }

    fn end(mut self) -> Vec<Piece> {
        self.append("…", false);
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Terms;
    use proptest::prelude::*;

    fn shown(query: &str, text: &str) -> String {
        let places = Terms::parse([query]).find(text).unwrap_or_default();
        let mark = |piece: &Piece| if piece.marked { format!("[{}]", piece.text) } else { piece.text.clone() };
        cut(text, &places).iter().map(mark).collect()
    }

    #[test]
    fn words_are_marked_in_one_line() {
        assert_eq!(
            shown("two", "one\n\n  two\tthree\u{1b}[31m\u{7} two"),
            "[two] three\u{fffd} [two]".replace("[two] three", "…[two] three")
        );
        assert_eq!(shown("one", "one two"), "[one] two");
    }

    #[test]
    fn the_words_are_in_it_however_long_the_message_is() {
        let text = format!("{} needle {} hay needle {}", "hay ".repeat(500), "hay ".repeat(500), "hay ".repeat(500));
        let snippet = shown("needle", &text);
        assert!(snippet.contains("[needle]") && snippet.starts_with('…') && snippet.ends_with('…'), "{snippet}");
        assert!(snippet.chars().count() <= LENGTH + 8, "{snippet}");
        let apart = format!("one {} one two", "x ".repeat(500));
        assert!(shown("one two", &apart).contains("[one] [two]"));
    }

    proptest! {
        #[test]
        fn a_snippet_has_no_control_characters(text in "(\\PC|[\\x00-\\x1f]|a b|\u{1b}\\[3){0,60}") {
            let places = Terms::parse(["a"]).find(&text).unwrap_or_default();
            for piece in cut(&text, &places) {
                prop_assert!(!piece.text.chars().any(char::is_control), "{:?}", piece);
            }
        }
    }
}
