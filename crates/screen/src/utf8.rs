//! UTF-8, one byte at a time, so that a character that is cut by a read is completed by the next read.
//!
//! Bytes that are not UTF-8 become U+FFFD, one for each longest invalid piece, exactly as `String::from_utf8_lossy`
//! counts them, wherever the input was cut.

use serde::{Deserialize, Serialize};

/// A character with missing bytes, or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Partial {
    bytes: [u8; 4],
    length: u8,
    missing: u8,
}

/// The result of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// More bytes are needed.
    Unfinished,
    Finished(char),
    /// The byte cannot start a character.
    Wrong,
    /// The character before the byte was cut off; the byte itself has to be handled again.
    CutOff,
}

impl Partial {
    pub(crate) fn is_empty(&self) -> bool {
        self.missing == 0
    }

    /// The bytes so far.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }

    /// Takes one byte of 0x80 or above, or any byte while a character is unfinished.
    pub(crate) fn push(&mut self, byte: u8) -> Step {
        if self.is_empty() {
            return match following(byte) {
                0 => Step::Wrong,
                missing => {
                    *self = Partial { bytes: [byte, 0, 0, 0], length: 1, missing };
                    Step::Unfinished
                }
            };
        }
        let allowed = self.allows(byte);
        match self.bytes.get_mut(usize::from(self.length)) {
            Some(slot) if allowed => *slot = byte,
            Some(_) | None => {
                *self = Partial::default();
                return Step::CutOff;
            }
        }
        self.length += 1;
        self.missing -= 1;
        if self.missing > 0 {
            return Step::Unfinished;
        }
        let finished = std::mem::take(self);
        let character = str::from_utf8(finished.bytes()).ok().and_then(|text| text.chars().next());
        Step::Finished(character.unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    /// Whether `byte` may come next. After some first bytes not every second byte is allowed: it would be a second way
    /// to write a character, a surrogate, or a number beyond Unicode.
    fn allows(&self, byte: u8) -> bool {
        match (self.length, self.bytes[0]) {
            (1, 0xe0) => (0xa0..=0xbf).contains(&byte),
            (1, 0xed) => (0x80..=0x9f).contains(&byte),
            (1, 0xf0) => (0x90..=0xbf).contains(&byte),
            (1, 0xf4) => (0x80..=0x8f).contains(&byte),
            (_, _) => (0x80..=0xbf).contains(&byte),
        }
    }
}

/// How many bytes follow this first byte; 0 if it cannot be a first byte.
fn following(first: u8) -> u8 {
    match first {
        0xc2..=0xdf => 1,
        0xe0..=0xef => 2,
        0xf0..=0xf4 => 3,
        0x00..=0xc1 | 0xf5..=0xff => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(bytes: &[u8]) -> String {
        let mut partial = Partial::default();
        let mut text = String::new();
        for &byte in bytes {
            loop {
                if partial.is_empty() && byte < 0x80 {
                    text.push(char::from(byte));
                    break;
                }
                match partial.push(byte) {
                    Step::Unfinished => break,
                    Step::Finished(character) => {
                        text.push(character);
                        break;
                    }
                    Step::Wrong => {
                        text.push(char::REPLACEMENT_CHARACTER);
                        break;
                    }
                    Step::CutOff => text.push(char::REPLACEMENT_CHARACTER),
                }
            }
        }
        if !partial.is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
        text
    }

    proptest! {
        #[test]
        fn any_bytes_read_as_the_standard_library_reads_them(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(decode(&bytes), String::from_utf8_lossy(&bytes));
        }

        #[test]
        fn any_text_reads_as_itself(text in any::<String>()) {
            prop_assert_eq!(decode(text.as_bytes()), text);
        }
    }
}
