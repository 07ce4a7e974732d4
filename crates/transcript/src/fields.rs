//! Fields of records, read without keeping or copying their text: ids become numbers, everything else is skipped.
//!
//! An agent may change the type of a field in its next version. A field of an unknown type counts as absent, and never
//! makes its record unreadable.

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::marker::PhantomData;

/// An id (of a message, a tool call, an answer) as a number; 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(pub u64);

/// Bytes as a number.
#[must_use]
pub fn number(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

impl Name {
    #[must_use]
    pub fn of(text: &str) -> Name {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        Name(hasher.finish().max(1))
    }

    /// An id that no record has.
    #[must_use]
    pub fn unset() -> Name {
        Name(u64::MAX)
    }

    #[must_use]
    pub fn is_some(self) -> bool {
        self.0 != 0
    }
}

/// The value of a text field, if it is a known one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known<T>(pub Option<T>);

/// A set of values that a text field can have.
pub trait Words: Sized {
    fn of(text: &str) -> Option<Self>;
}

/// True only when the field is the JSON value `true`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flag(pub bool);

/// A time as agents write it, in milliseconds since 1970; 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u64);

impl Moment {
    /// `2026-11-15T07:00:06.374Z`, in days of the civil calendar.
    fn of(text: &str) -> Option<Moment> {
        let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        let thousandth = number(20, 23).unwrap_or(0);
        if !(1..=12).contains(&month) || year < 1970 {
            return None;
        }
        // If years begin in March, the leap day is at their end.
        let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day.max(1) - 1;
        let days = days.checked_sub(719_468)?;
        Some(Moment((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + thousandth))
    }
}

/// Something that can be read from any JSON value: an unexpected value is skipped.
trait Field<'de>: Default {
    fn text(_: &str) -> Self {
        Self::default()
    }

    fn truth(_: bool) -> Self {
        Self::default()
    }

    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }

    fn object<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
}

struct Any<T>(PhantomData<T>);

impl<'de, T: Field<'de>> Visitor<'de> for Any<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("anything")
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(T::text(text))
    }

    fn visit_bool<E>(self, truth: bool) -> Result<T, E> {
        Ok(T::truth(truth))
    }

    fn visit_i64<E>(self, _: i64) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::object(map)
    }
}

fn any<'de, T: Field<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_any(Any(PhantomData))
}

impl Field<'_> for Name {
    fn text(text: &str) -> Name {
        Name::of(text)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        any(deserializer)
    }
}

impl<T> Default for Known<T> {
    fn default() -> Known<T> {
        Known(None)
    }
}

impl<T: Words> Field<'_> for Known<T> {
    fn text(text: &str) -> Known<T> {
        Known(T::of(text))
    }
}

impl<'de, T: Words> Deserialize<'de> for Known<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Known<T>, D::Error> {
        any(deserializer)
    }
}

impl Field<'_> for Moment {
    fn text(text: &str) -> Moment {
        Moment::of(text).unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Moment, D::Error> {
        any(deserializer)
    }
}

impl Field<'_> for Flag {
    fn truth(truth: bool) -> Flag {
        Flag(truth)
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Flag, D::Error> {
        any(deserializer)
    }
}

/// The elements of a list; any other value has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Items<T> {
    pub items: Vec<T>,
    /// The value was a text that is not empty.
    pub is_text: bool,
}

impl<T> Default for Items<T> {
    fn default() -> Items<T> {
        Items { items: Vec::new(), is_text: false }
    }
}

impl<'de, T: Deserialize<'de>> Field<'de> for Items<T> {
    fn text(text: &str) -> Items<T> {
        Items { items: Vec::new(), is_text: !text.is_empty() }
    }

    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Items<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Items { items, is_text: false })
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Items<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Items<T>, D::Error> {
        any(deserializer)
    }
}

/// An object; any other value has no fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object<T>(pub T);

impl<'de, T: Default + Deserialize<'de>> Field<'de> for Object<T> {
    fn object<A: MapAccess<'de>>(map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

impl<'de, T: Default + Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<T>, D::Error> {
        any(deserializer)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_another_type_is_none_and_its_record_is_read() {
        #[derive(Deserialize)]
        struct Record {
            #[serde(default)]
            id: Name,
            #[serde(default)]
            flag: Flag,
            #[serde(default)]
            at: Moment,
            #[serde(default)]
            list: Items<Name>,
            #[serde(default)]
            object: Object<Inner>,
        }
        #[derive(Default, Deserialize)]
        struct Inner {
            #[serde(default)]
            id: Name,
        }
        for odd in ["7", "-7", "0.5", "null", "[1,{\"a\":2}]", "{\"a\":[3]}"] {
            let text = format!(r#"{{"id":{odd},"flag":{odd},"at":{odd},"list":{odd},"object":{odd}}}"#);
            let record: Record = serde_json::from_str(&text).unwrap();
            assert!(!record.id.is_some() && !record.flag.0 && record.at.0 == 0, "{text}");
            assert!(!record.list.is_text && !record.object.0.id.is_some());
        }
    }

    #[test]
    fn times_are_counted_from_1970() {
        assert_eq!(Moment::of("1970-01-01T00:00:00.000Z"), Some(Moment(0)));
        assert_eq!(Moment::of("2000-03-01T00:00:00Z"), Some(Moment(951_868_800_000)));
        assert_eq!(Moment::of("2026-11-15T07:00:06.374Z"), Some(Moment(1_794_726_006_374)));
        assert_eq!(Moment::of("yesterday"), None);
    }
}
