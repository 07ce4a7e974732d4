//! UTF-8, one byte at a time, so that a character cut by a read is put together by the next one.
//!
//! Bytes that are no UTF-8 become U+FFFD, one for each longest wrong piece, exactly as `String::from_utf8_lossy` counts
//! them, wherever the input was cut.

use serde::{Deserialize, Serialize};

/// A character of which some bytes are still to come, or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Partial {
    bits: u32,
    missing: u8,
    /// What the next byte must lie between; only the first continuation byte has limits of its own.
    lowest: u8,
    highest: u8,
}

/// What a byte did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// More bytes are needed.
    Unfinished,
    Finished(char),
    /// The byte cannot start a character.
    Wrong,
    /// The character before the byte was cut off; the byte itself is still to be looked at.
    CutOff,
}

impl Partial {
    pub(crate) fn is_empty(&self) -> bool {
        self.missing == 0
    }

    /// Takes one byte of 0x80 or above, or any byte while a character is unfinished.
    pub(crate) fn push(&mut self, byte: u8) -> Step {
        if self.is_empty() {
            return self.start(byte);
        }
        if !(self.lowest..=self.highest).contains(&byte) {
            *self = Partial::default();
            return Step::CutOff;
        }
        self.bits = self.bits << 6 | u32::from(byte & 0x3f);
        self.missing -= 1;
        (self.lowest, self.highest) = (0x80, 0xbf);
        if self.missing > 0 {
            return Step::Unfinished;
        }
        let character = char::from_u32(self.bits).unwrap_or(char::REPLACEMENT_CHARACTER);
        *self = Partial::default();
        Step::Finished(character)
    }

    fn start(&mut self, byte: u8) -> Step {
        let (missing, lowest, highest, mask) = match byte {
            0xc2..=0xdf => (1, 0x80, 0xbf, 0x1f),
            0xe0 => (2, 0xa0, 0xbf, 0x0f),
            0xed => (2, 0x80, 0x9f, 0x0f),
            0xe1..=0xef => (2, 0x80, 0xbf, 0x0f),
            0xf0 => (3, 0x90, 0xbf, 0x07),
            0xf1..=0xf3 => (3, 0x80, 0xbf, 0x07),
            0xf4 => (3, 0x80, 0x8f, 0x07),
            0x00..=0xc1 | 0xf5..=0xff => return Step::Wrong,
        };
        *self = Partial { bits: u32::from(byte & mask), missing, lowest, highest };
        Step::Unfinished
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
