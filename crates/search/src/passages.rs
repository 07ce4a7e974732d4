//! Passages: the entries of the index. A passage is a number of neighbouring messages of one conversation, all of the
//! same role, with about [`LENGTH`] bytes of text.
//!
//! Why not one entry for each message: SQLite takes a third of a microsecond for each word of each entry, and that is
//! nearly all that indexing costs. Words repeat within a conversation. An entry for a passage has each of its words
//! once, which is several times fewer. The few passages that a query finds are read again from the transcript: there
//! each message is checked for order, phrases and exclusions, and the text to show comes from there. So the index
//! contains no text.

use crate::message::{Message, Role};
use crate::tokens;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// How many bytes of text a passage has.
const LENGTH: usize = 16 * 1024;
/// The maximum number of messages in a passage.
const MESSAGES: usize = 256;

/// Where the messages of a passage are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Places {
    /// Lines of a file: where each begins and how long it is.
    #[serde(rename = "l")]
    Lines(Vec<(u64, u64)>),
    /// Rows of a database, by their ids.
    #[serde(rename = "r")]
    Rows(Vec<String>),
    /// The records of a session can only be read in order, so their texts are stored here, each with its time.
    #[serde(rename = "t")]
    Texts(Vec<(Option<i64>, String)>),
}

/// Where one message is.
pub(crate) enum Place<'a> {
    Line { start: u64, length: u64 },
    Row(&'a str),
    Text,
}

/// A passage that is ready for the index.
#[derive(Debug)]
pub(crate) struct Passage {
    pub source: i64,
    pub role: Role,
    /// The time of its newest message, in milliseconds since 1970.
    pub newest_ms: i64,
    pub places: Places,
    /// Each word once.
    pub words: String,
}

/// Makes passages of the messages of one conversation.
#[derive(Default)]
pub(crate) struct Builder {
    open: [Open; 3],
    /// The time of the last message that had one.
    at_ms: i64,
}

#[derive(Default)]
struct Open {
    words: String,
    seen: HashSet<u64, BuildHasherDefault<Hashed>>,
    text: usize,
    messages: usize,
    newest_ms: i64,
    places: Option<Places>,
}

impl Builder {
    /// `at_ms`: the time of messages before the first one that has a time.
    pub fn new(at_ms: i64) -> Builder {
        Builder { at_ms, ..Builder::default() }
    }

    /// Adds a message; a passage that is long enough goes to `done`.
    pub fn add(&mut self, source: i64, message: Message, place: &Place<'_>, done: &mut Vec<Passage>) {
        let ms = message.at.map_or(self.at_ms, jiff::Timestamp::as_millisecond);
        self.at_ms = ms;
        let role = message.role;
        let Some(open) = usize::try_from(role.number()).ok().and_then(|number| self.open.get_mut(number)) else {
            return;
        };
        open.add(ms, message, place);
        if open.text >= LENGTH || open.messages >= MESSAGES {
            done.extend(open.close(source, role));
        }
    }

    /// Also finishes the passages that are not full.
    pub fn close(&mut self, source: i64, done: &mut Vec<Passage>) {
        for role in Role::ALL {
            if let Some(open) = usize::try_from(role.number()).ok().and_then(|number| self.open.get_mut(number)) {
                done.extend(open.close(source, role));
            }
        }
    }
}

impl Open {
    fn add(&mut self, ms: i64, message: Message, place: &Place<'_>) {
        let Open { words, seen, .. } = self;
        tokens::each(&message.text, |word, _| {
            if seen.insert(hash(word.as_bytes())) {
                words.push_str(word);
                words.push(' ');
            }
        });
        self.text += message.text.len();
        self.messages += 1;
        self.newest_ms = self.newest_ms.max(ms);
        match (place, &mut self.places) {
            // A line that has several messages of a role is read once.
            (Place::Line { start, length }, Some(Places::Lines(lines))) => {
                if lines.last().is_none_or(|(last, _)| last != start) {
                    lines.push((*start, *length));
                }
            }
            (Place::Row(id), Some(Places::Rows(rows))) => {
                if rows.last().is_none_or(|last| last != id) {
                    rows.push((*id).to_owned());
                }
            }
            (Place::Text, Some(Places::Texts(texts))) => {
                texts.push((message.at.map(jiff::Timestamp::as_millisecond), message.text));
            }
            (Place::Line { start, length }, places) => *places = Some(Places::Lines(vec![(*start, *length)])),
            (Place::Row(id), places) => *places = Some(Places::Rows(vec![(*id).to_owned()])),
            (Place::Text, places) => {
                *places = Some(Places::Texts(vec![(message.at.map(jiff::Timestamp::as_millisecond), message.text)]));
            }
        }
    }

    fn close(&mut self, source: i64, role: Role) -> Option<Passage> {
        let places = self.places.take()?;
        let words = std::mem::take(&mut self.words);
        self.seen.clear();
        (self.text, self.messages) = (0, 0);
        let newest_ms = std::mem::take(&mut self.newest_ms);
        Some(Passage { source, role, newest_ms, places, words })
    }
}

/// Two different words have the same hash once in many billions of passages; then the second word would not be found in
/// that passage.
fn hash(word: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = word.len() as u64;
    let (pieces, rest) = word.as_chunks::<8>();
    for piece in pieces {
        hash = (hash ^ u64::from_le_bytes(*piece)).wrapping_mul(FACTOR);
        hash ^= hash >> 29;
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(FACTOR);
    hash ^ (hash >> 32)
}

/// A hasher for numbers that are hashes already.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(role: Role, text: &str) -> Message {
        Message { at: None, role, text: text.to_owned() }
    }

    #[test]
    fn a_passage_has_messages_of_one_role_and_each_word_once() {
        let (mut builder, mut done) = (Builder::new(7), Vec::new());
        for (number, role) in [Role::User, Role::Agent, Role::User].into_iter().enumerate() {
            let place = Place::Line { start: number as u64 * 10, length: 9 };
            builder.add(1, message(role, "one two One"), &place, &mut done);
        }
        assert!(done.is_empty());
        builder.close(1, &mut done);
        let shown: Vec<_> = done.iter().map(|one| (one.role, one.words.as_str(), one.newest_ms, &one.places)).collect();
        let (user, agent) = (Places::Lines(vec![(0, 9), (20, 9)]), Places::Lines(vec![(10, 9)]));
        assert_eq!(shown, [(Role::User, "one two ", 7, &user), (Role::Agent, "one two ", 7, &agent)]);
    }

    #[test]
    fn a_long_conversation_becomes_several_passages() {
        let (mut builder, mut done) = (Builder::new(0), Vec::new());
        for start in 0..100 {
            builder.add(1, message(Role::Tool, &"x".repeat(1024)), &Place::Line { start, length: 1 }, &mut done);
        }
        builder.close(1, &mut done);
        assert_eq!(done.len(), 7);
    }

    #[test]
    fn words_have_numbers_of_their_own() {
        let words: Vec<String> = (0..100_000).map(|number| format!("w{number}")).collect();
        let hashes: HashSet<u64> = words.iter().map(|word| hash(word.as_bytes())).collect();
        assert_eq!(hashes.len(), words.len());
        assert_ne!(hash(b"abcdefgh"), hash(b"abcdefgh\0"));
    }
}
