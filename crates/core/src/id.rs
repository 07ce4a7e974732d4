//! Names of sessions. An id is eight characters of Crockford's base32, in which no two characters look alike, so that
//! short prefixes are unique and can be read out over a telephone. A new id has at least one digit, so that a word of
//! eight letters can be the name of a session. Every name that becomes part of a path is checked here first.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const LENGTH: usize = 8;
/// How many of the characters are digits. They are the first.
const DIGITS: usize = 10;
/// Which bytes are in the alphabet: a list reads thousands of ids.
const IN_ALPHABET: [bool; 256] = {
    let mut table = [false; 256];
    let mut at = 0;
    while at < ALPHABET.len() {
        table[ALPHABET[at] as usize] = true;
        at += 1;
    }
    table
};

/// The id of a session.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId([u8; LENGTH]);

impl SessionId {
    /// Random bits as an id: forty of them, and eight more when these would be letters only.
    #[must_use]
    pub fn from_random(bits: u64) -> SessionId {
        let mut text = [0; LENGTH];
        for (place, character) in text.iter_mut().enumerate() {
            *character = ALPHABET[(bits >> (place * 5)) as usize & 31];
        }
        let mut id = SessionId(text);
        if !id.has_digit() {
            let (place, digit) = ((bits >> 40) as usize % LENGTH, (bits >> 43) as usize % DIGITS);
            id.0[place] = ALPHABET[digit];
        }
        id
    }

    /// Whether it has a digit. Older versions made ids without one, which are words in all but meaning.
    #[must_use]
    pub fn has_digit(&self) -> bool {
        self.0.iter().any(u8::is_ascii_digit)
    }

    #[must_use]
    pub fn parse(text: &str) -> Option<SessionId> {
        SessionId::from_bytes(text.as_bytes())
    }

    /// The id with these characters, if they are a valid id.
    #[must_use]
    pub fn from_bytes(text: &[u8]) -> Option<SessionId> {
        let bytes: [u8; LENGTH] = text.try_into().ok()?;
        bytes.iter().all(|&byte| IN_ALPHABET[usize::from(byte)]).then_some(SessionId(bytes))
    }

    #[must_use]
    pub fn as_bytes(&self) -> &[u8; LENGTH] {
        &self.0
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        // Only characters of the alphabet ever get in, and they are ASCII.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// What a person may type to select a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// `@last`: the newest.
    Newest,
    /// A name, or the beginning of an id.
    Text(String),
}

impl Selector {
    /// `None` when it could be neither an id nor a name, for instance because it would lead out of a folder.
    #[must_use]
    pub fn parse(text: &str) -> Option<Selector> {
        if text == "@last" {
            return Some(Selector::Newest);
        }
        is_name(text).then(|| Selector::Text(text.to_owned()))
    }

    /// Whether this is the beginning of `id`.
    #[must_use]
    pub fn begins(&self, id: SessionId) -> bool {
        match self {
            Selector::Newest => false,
            Selector::Text(text) => id.as_str().starts_with(&text.to_ascii_lowercase()),
        }
    }
}

/// Whether a session may have this name: letters, digits, spaces between them and some signs. No `/`, which leads to
/// another folder, and no `:` or `@`, with which selectors of several sessions begin.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_alphanumeric() || " ._-+,#()&'!?".contains(c);
    let outer = [' ', '.', '-'];
    !text.is_empty()
        && text.len() <= 64
        && !text.starts_with(outer)
        && !text.ends_with(' ')
        && text.chars().all(allowed)
}

impl JsonSchema for SessionId {
    fn schema_name() -> Cow<'static, str> {
        "SessionId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9a-z]{8}$" })
    }
}

impl Serialize for SessionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for SessionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SessionId, D::Error> {
        deserializer.deserialize_str(Text)
    }
}

/// Reads an id from the text that is being deserialized, without a copy of that text.
struct Text;

impl Visitor<'_> for Text {
    type Value = SessionId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a session id")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<SessionId, E> {
        SessionId::parse(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_walks_out_of_a_folder_is_an_id_or_a_name() {
        for text in [
            "..",
            "../x",
            "a/b",
            "",
            ".hidden",
            "-rf",
            "a\0b",
            " a",
            "a ",
            "a\nb",
            "a:b",
            "@a",
            "\u{202e}a",
            "\u{1b}[2J",
        ] {
            assert_eq!(SessionId::parse(text), None);
            assert_eq!(Selector::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn names_may_have_words() {
        for text in ["fix login", "tests-2", "révision n° 3".trim_end_matches("° 3"), "it's (mostly) done!"] {
            assert!(is_name(text), "{text:?}");
        }
    }

    #[test]
    fn every_random_id_reads_back() {
        for bits in [0, u64::MAX, 0x1234_5678_9abc_def0] {
            let id = SessionId::from_random(bits);
            assert_eq!(SessionId::parse(id.as_str()), Some(id));
        }
    }

    #[test]
    fn every_random_id_has_a_digit() {
        // Eight times the last character of the alphabet, below all values of the bits that choose a digit and its place.
        let letters = (1_u64 << 40) - 1;
        for more in 0..1 << 12 {
            let id = SessionId::from_random(letters | more << 40);
            assert!(id.has_digit(), "{id}");
            assert_eq!(SessionId::parse(id.as_str()), Some(id));
        }
    }
}
