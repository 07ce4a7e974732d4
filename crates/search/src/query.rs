//! What is searched for: words, "phrases", beginnings*, and -words that must not be there. Nothing that a person types
//! is an error: what is not understood as one of these is a word.

use crate::tokens;
use std::ops::Range;

/// What a message must and must not contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// All of these.
    pub wanted: Vec<Term>,
    /// None of these.
    pub unwanted: Vec<Term>,
}

/// Words that are next to each other. What a person types as one word may be several to the index: `src/main.rs`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Term {
    words: Vec<String>,
    /// Of the last word only the beginning is given.
    is_beginning: bool,
}

impl Terms {
    /// From what was typed, in one piece or in several.
    pub fn parse<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Terms {
        let mut terms = Terms::default();
        for argument in arguments {
            terms.read(argument);
        }
        terms
    }

    fn read(&mut self, text: &str) {
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let (unwanted, behind) = match rest.strip_prefix('-') {
                Some(behind) if behind.starts_with(|next: char| next == '"' || next.is_alphanumeric()) => {
                    (true, behind)
                }
                Some(_) | None => (false, rest),
            };
            let (inside, star, after) = match behind.strip_prefix('"') {
                // A phrase that is not closed extends to the end.
                Some(open) => match open.split_once('"') {
                    Some((inside, after)) => (inside, after.starts_with('*'), after.trim_start_matches('*')),
                    None => (open, open.ends_with('*'), ""),
                },
                None => {
                    let end = behind.find(|next: char| next.is_whitespace() || next == '"').unwrap_or(behind.len());
                    let (word, after) = behind.split_at(end);
                    (word, word.ends_with('*'), after)
                }
            };
            let term = Term::new(inside, star);
            if !term.words.is_empty() {
                if unwanted { self.unwanted.push(term) } else { self.wanted.push(term) }
            }
            rest = after.trim_start();
        }
    }

    /// The query for the index, which knows neither order nor roles: every word, in any place. `None` when there is no
    /// wanted word.
    #[must_use]
    pub fn expression(&self) -> Option<String> {
        let words = self.wanted.iter().flat_map(|term| {
            let last = term.words.len().saturating_sub(1);
            term.words.iter().enumerate().map(move |(place, word)| {
                // Words consist of letters and digits, so that nothing in them has to be quoted.
                if term.is_beginning && place == last { format!("\"{word}\" *") } else { format!("\"{word}\"") }
            })
        });
        let words: Vec<String> = words.collect();
        (!words.is_empty()).then(|| words.join(" AND "))
    }

    /// Whether the text of a message can contain the wanted words, judged from its JSON. Most of what the index
    /// proposes does not, and decoding it costs ten times as much as this check.
    #[must_use]
    pub fn may_be_in(&self, json: &[u8]) -> bool {
        let words = || self.wanted.iter().flat_map(|term| &term.words);
        // Letters that are not ASCII, and characters that are written as `\u` escapes, can match any word.
        words().all(|word| !word.is_ascii() || contains(json, word.as_bytes()))
            || !json.is_ascii()
            || memchr::memmem::find(json, b"\\u").is_some()
    }

    /// Where the wanted words are in a text, in order; `None` when the text does not match.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<Vec<Range<usize>>> {
        let mut found: Vec<Vec<Range<usize>>> = vec![Vec::new(); self.wanted.len()];
        let mut begun: Vec<Vec<Begun>> = vec![Vec::new(); self.wanted.len() + self.unwanted.len()];
        let mut refused = false;
        tokens::each(text, |word, place| {
            for (number, term) in self.wanted.iter().chain(&self.unwanted).enumerate() {
                if let Some(whole) = term.advance(&mut begun[number], word, &place) {
                    match found.get_mut(number) {
                        Some(found) => found.push(whole),
                        None => refused = true,
                    }
                }
            }
        });
        if refused || found.iter().any(Vec::is_empty) {
            return None;
        }
        let mut places: Vec<Range<usize>> = found.into_iter().flatten().collect();
        places.sort_by_key(|place| (place.start, place.end));
        places.dedup_by(|next, before| {
            let overlap = next.start < before.end;
            if overlap {
                before.end = before.end.max(next.end);
            }
            overlap
        });
        Some(places)
    }
}

/// Letters and digits, approximately from the rarest to the most frequent.
const RARE_FIRST: &[u8] = b"zqxjkvbpygfwmucldrhsnioate9876543210";

/// Whether a lower-case word is in a text, in upper or lower case. Searches for its rarest letter first.
fn contains(text: &[u8], word: &[u8]) -> bool {
    let rank = |byte: u8| RARE_FIRST.iter().position(|&one| one == byte).unwrap_or(0);
    let Some((place, &rarest)) = word.iter().enumerate().min_by_key(|(_, byte)| rank(**byte)) else {
        return true;
    };
    memchr::memchr2_iter(rarest, rarest.to_ascii_uppercase(), text).any(|at| {
        let start = at.checked_sub(place);
        start
            .and_then(|start| text.get(start..start + word.len()))
            .is_some_and(|found| found.eq_ignore_ascii_case(word))
    })
}

/// A phrase whose first words were found.
#[derive(Clone, Debug)]
struct Begun {
    start: usize,
    words: usize,
}

impl Term {
    fn new(text: &str, is_beginning: bool) -> Term {
        let mut words = Vec::new();
        tokens::each(text, |word, _| words.push(word.to_owned()));
        Term { words, is_beginning }
    }

    /// Takes the next word of a text. Returns where the phrase is, if this word completes it.
    fn advance(&self, begun: &mut Vec<Begun>, word: &str, place: &Range<usize>) -> Option<Range<usize>> {
        let last = self.words.len() - 1;
        let fits = |number: usize| {
            let wanted = self.words[number].as_str();
            if self.is_beginning && number == last { word.starts_with(wanted) } else { word == wanted }
        };
        begun.retain_mut(|phrase| {
            let fits = fits(phrase.words);
            phrase.words += 1;
            fits
        });
        if fits(0) {
            begun.push(Begun { start: place.start, words: 1 });
        }
        let whole = begun.iter().position(|phrase| phrase.words == self.words.len())?;
        Some(begun.remove(whole).start..place.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(query: &str, text: &str) -> Option<Vec<String>> {
        Some(Terms::parse([query]).find(text)?.into_iter().map(|place| text[place].to_owned()).collect())
    }

    #[test]
    fn words_phrases_beginnings_and_exclusions_mean_what_they_say() {
        let text = "The index is rebuilt when src/main.rs changes; the old index goes";
        assert_eq!(
            found("INDEX rebuilt", text).as_deref(),
            Some(["index", "rebuilt", "index"].map(str::to_owned).as_slice())
        );
        assert_eq!(found("index missing", text), None);
        assert_eq!(found("\"old index\"", text).as_deref(), Some(["old index".to_owned()].as_slice()));
        assert_eq!(found("\"index old\"", text), None);
        assert_eq!(found("src/main.rs", text).as_deref(), Some(["src/main.rs".to_owned()].as_slice()));
        assert_eq!(found("main/src", text), None);
        assert_eq!(found("reb* chang*", text).as_deref(), Some(["rebuilt", "changes"].map(str::to_owned).as_slice()));
        assert_eq!(found("reb", text), None);
        assert_eq!(found("index -goes", text), None);
        assert_eq!(found("index -\"goes old\"", text).map(|found| found.len()), Some(2));
        assert_eq!(found("index -go*", text), None);
    }

    #[test]
    fn a_phrase_that_begins_again_within_itself_is_found() {
        assert_eq!(found("\"a a b\"", "a a a b").as_deref(), Some(["a a b".to_owned()].as_slice()));
    }

    #[test]
    fn the_json_check_refuses_a_text_without_all_words() {
        let may = |query: &str, json: &str| Terms::parse([query]).may_be_in(json.as_bytes());
        assert!(may("zebra lock", r#"{"text":"The ZEBRA\nlocks"}"#));
        assert!(!may("zebra lock", r#"{"text":"The zebr"}"#));
        assert!(may("cafe", r#"{"text":"caf\u00e9"}"#) && may("cafe", "caf\u{e9}"));
    }

    #[test]
    fn nothing_that_is_typed_is_an_error() {
        let expression = |query: &str| Terms::parse([query]).expression();
        assert_eq!(expression("foo_bar -x \"p q").as_deref(), Some(r#""foo" AND "bar" AND "p" AND "q""#));
        assert_eq!(expression("fo*").as_deref(), Some(r#""fo" *"#));
        for nothing in ["", "\"", "-", "*", "-\"\"", "(", "--", "AND*\"", "-word"] {
            let expression = expression(nothing);
            assert!(expression.is_none() || expression.as_deref() == Some(r#""and" *"#), "{nothing}: {expression:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_found_in_a_text_passes_the_look_at_its_json(word in "[a-zé0-9]{1,4}", before in "\\PC{0,9}", space in "[\n\t /\"\\\\]") {
            let terms = Terms::parse([word.as_str()]);
            let text = format!("{before}{space}{}{space}", word.to_uppercase());
            prop_assert!(terms.find(&text).is_none() || terms.may_be_in(&serde_json::to_vec(&text).unwrap_or_default()));
        }

        #[test]
        fn any_query_on_any_text_ends(query in "\\PC{0,40}", text in "\\PC{0,80}") {
            let terms = Terms::parse([query.as_str()]);
            if let Some(places) = terms.find(&text) {
                prop_assert!(places.iter().all(|place| text.get(place.clone()).is_some()));
                prop_assert!(places.windows(2).all(|pair| pair[0].end <= pair[1].start));
            }
        }
    }
}
