//! JSON of which we read only the fields that we need.
//!
//! An agent's next version may turn a text into a number or a list into an object. Then we may lose that one field, but
//! not the line, which may be the end of a turn. So every field is [`AnyJson`]: it accepts any value, borrows texts
//! from the line, and drops unneeded values without building them. Memory stays in proportion to the line: of a list
//! only the objects are kept, and no more than [`LIST_LIMIT`] of them.

use memchr::memchr;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// The most objects of one list that are read. A message has a handful of parts.
pub const LIST_LIMIT: usize = 4096;

/// Any JSON value; of objects only the fields that `T` needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum AnyJson<'a, T = IgnoredAny> {
    /// Absent, null, or of an unexpected kind.
    #[default]
    Nothing,
    Text(Cow<'a, str>),
    Count(u64),
    Amount(f64),
    Flag(bool),
    Object(T),
    /// The objects of a list.
    List(Vec<T>),
}

impl<T> AnyJson<'_, T> {
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            AnyJson::Text(text) => Some(text),
            AnyJson::Nothing
            | AnyJson::Count(_)
            | AnyJson::Amount(_)
            | AnyJson::Flag(_)
            | AnyJson::Object(_)
            | AnyJson::List(_) => None,
        }
    }

    /// The text, or an empty one.
    #[must_use]
    pub fn text_or_empty(&self) -> String {
        self.text().unwrap_or_default().to_owned()
    }

    #[must_use]
    pub fn is(&self, text: &str) -> bool {
        self.text() == Some(text)
    }

    #[must_use]
    pub fn count(&self) -> Option<u64> {
        match self {
            AnyJson::Count(count) => Some(*count),
            // Some agents count in floating point; a negative amount is not a count.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a saturating cast is meant")]
            AnyJson::Amount(amount) if *amount >= 0.0 => Some(*amount as u64),
            AnyJson::Nothing
            | AnyJson::Text(_)
            | AnyJson::Amount(_)
            | AnyJson::Flag(_)
            | AnyJson::Object(_)
            | AnyJson::List(_) => None,
        }
    }

    #[must_use]
    pub fn amount(&self) -> Option<f64> {
        match self {
            AnyJson::Amount(amount) => Some(*amount),
            #[expect(clippy::cast_precision_loss, reason = "money: far below 2^52")]
            AnyJson::Count(count) => Some(*count as f64),
            AnyJson::Nothing | AnyJson::Text(_) | AnyJson::Flag(_) | AnyJson::Object(_) | AnyJson::List(_) => None,
        }
    }

    #[must_use]
    pub fn flag(&self) -> Option<bool> {
        match self {
            AnyJson::Flag(flag) => Some(*flag),
            AnyJson::Nothing
            | AnyJson::Text(_)
            | AnyJson::Count(_)
            | AnyJson::Amount(_)
            | AnyJson::Object(_)
            | AnyJson::List(_) => None,
        }
    }

    #[must_use]
    pub fn object(&self) -> Option<&T> {
        match self {
            AnyJson::Object(object) => Some(object),
            AnyJson::Nothing
            | AnyJson::Text(_)
            | AnyJson::Count(_)
            | AnyJson::Amount(_)
            | AnyJson::Flag(_)
            | AnyJson::List(_) => None,
        }
    }

    /// The objects of a list; empty when the value is not a list.
    #[must_use]
    pub fn list(&self) -> &[T] {
        match self {
            AnyJson::List(list) => list,
            AnyJson::Nothing
            | AnyJson::Text(_)
            | AnyJson::Count(_)
            | AnyJson::Amount(_)
            | AnyJson::Flag(_)
            | AnyJson::Object(_) => &[],
        }
    }
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for AnyJson<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Whatever { lists: true, of: PhantomData })
    }
}

/// Accepts any value. Lists inside lists are dropped: a line of brackets must not build a deep structure.
struct Whatever<T> {
    lists: bool,
    of: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Whatever<T> {
    type Value = AnyJson<'de, T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("anything")
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Self::Value, E> {
        Ok(AnyJson::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        #[expect(clippy::cast_precision_loss, reason = "negative, so no count; an amount is about right")]
        Ok(u64::try_from(number).map_or(AnyJson::Amount(number as f64), AnyJson::Count))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(AnyJson::Count(number))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(AnyJson::Amount(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(AnyJson::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(AnyJson::Text(Cow::Borrowed(text)))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(AnyJson::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        if self.lists {
            while list.len() < LIST_LIMIT
                && let Some(Element(element)) = seq.next_element()?
            {
                list.extend(element);
            }
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(if self.lists { AnyJson::List(list) } else { AnyJson::Nothing })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(AnyJson::Object)
    }
}

/// An element of a list, when it is an object.
struct Element<T>(Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Element<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let any = deserializer.deserialize_any(Whatever { lists: false, of: PhantomData })?;
        Ok(Element(match any {
            AnyJson::Object(object) => Some(object),
            AnyJson::Nothing
            | AnyJson::Text(_)
            | AnyJson::Count(_)
            | AnyJson::Amount(_)
            | AnyJson::Flag(_)
            | AnyJson::List(_) => None,
        }))
    }
}

/// Reads a line. If that fails, reads the line again without what a text cannot contain. `read` returns whether it
/// succeeded.
pub fn tolerantly(line: &[u8], mut read: impl FnMut(&[u8]) -> bool) -> bool {
    read(line) || repaired(line).is_some_and(|line| read(&line))
}

/// The line with broken UTF-8 and halves of surrogate pairs replaced; `None` when there are none. JavaScript cuts texts
/// between the two halves of a character and writes each half as an escape that other readers reject.
#[must_use]
pub fn repaired(line: &[u8]) -> Option<Vec<u8>> {
    let sound = String::from_utf8_lossy(line);
    let mut repaired = matches!(sound, Cow::Owned(_));
    let mut bytes = sound.into_owned().into_bytes();
    let mut at = 0;
    while let Some(found) = memchr(b'\\', &bytes[at..]) {
        at += found;
        match (unit(&bytes, at), unit(&bytes, at + 6)) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => at += 12,
            (Some(0xd800..0xe000), _) => {
                bytes[at + 2..at + 6].copy_from_slice(b"fffd");
                repaired = true;
                at += 6;
            }
            // Any other escape; the byte after the backslash may itself be a backslash.
            (Some(_) | None, _) => at += 2,
        }
        if at >= bytes.len() {
            break;
        }
    }
    repaired.then_some(bytes)
}

/// The number of an escape of four hexadecimal digits (`\u00e9`) at this place.
fn unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Inner<'a> {
        #[serde(default, borrow)]
        name: AnyJson<'a>,
    }

    #[derive(Debug, Deserialize)]
    struct Outer<'a> {
        #[serde(default, borrow)]
        any: AnyJson<'a, Inner<'a>>,
    }

    fn read(line: &str) -> AnyJson<'_, Inner<'_>> {
        serde_json::from_str::<Outer<'_>>(line).unwrap().any
    }

    #[test]
    fn every_kind_of_value_is_taken_and_only_what_fits_is_found() {
        assert_eq!(read(r#"{"any":"x","other":[{"deep":{}}]}"#).text(), Some("x"));
        assert_eq!(read(r#"{"any":3}"#).count(), Some(3));
        assert_eq!(read(r#"{"any":3.0}"#).count(), Some(3));
        assert_eq!(read(r#"{"any":-3}"#).count(), None);
        assert_eq!(read(r#"{"any":true}"#).flag(), Some(true));
        assert_eq!(read(r#"{"any":{"name":[1,{"x":2}]}}"#).object().map(|inner| inner.name.text()), Some(None));
        for nothing in [r#"{"any":null}"#, "{}"] {
            assert_eq!(read(nothing), AnyJson::Nothing);
        }
        let list = read(r#"{"any":[1,"x",[{"name":"hidden"}],{"name":"a"},null,{"name":"b"}]}"#);
        let names: Vec<_> = list.list().iter().map(|inner| inner.name.text()).collect();
        assert_eq!(names, [Some("a"), Some("b")]);
    }

    #[test]
    fn neither_a_deep_nor_a_long_list_costs_more_than_its_bytes() {
        let deep = format!(r#"{{"any":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert!(serde_json::from_str::<Outer<'_>>(&deep).is_ok(), "nothing wanted is in it");
        let long = format!(r#"{{"any":[{}{{}}]}}"#, "{},".repeat(10 * LIST_LIMIT));
        assert_eq!(read(&long).list().len(), LIST_LIMIT);
    }

    #[test]
    fn half_a_character_is_replaced_and_a_whole_one_is_not() {
        assert_eq!(repaired(br#"{"a":"\ud83d\ude00 \\ud83d \n"}"#), None);
        assert_eq!(repaired(br#"{"a":"\ud83d"}"#).unwrap(), br#"{"a":"\ufffd"}"#);
        assert_eq!(repaired(br#"{"a":"\ude00\ud83d\ude00"}"#).unwrap(), br#"{"a":"\ufffd\ud83d\ude00"}"#);
        assert_eq!(repaired(b"{\"a\":\"\xf0\x9f\"}").unwrap(), "{\"a\":\"\u{fffd}\"}".as_bytes());
        assert_eq!(repaired(b"\\"), None);
    }
}
