//! Turns the bytes that a terminal sends into keys. Bytes may be cut anywhere. Escape sequences of keys that we do not
//! use are ignored as a whole. A paste is one key, with any contents.

#[derive(Debug, PartialEq, Eq)]
pub enum Key {
    Character(char),
    Pasted(String),
    Enter,
    Backspace,
    /// Ctrl-W.
    EraseWord,
    /// Ctrl-U.
    EraseLine,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    Leave,
}

const PASTE_BEGINS: &[u8] = b"200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";
/// A sequence longer than this is not an escape sequence; what follows is read as keys again.
const LONGEST_SEQUENCE: usize = 32;

#[derive(Default)]
pub struct Keys {
    state: State,
}

#[derive(Default)]
enum State {
    #[default]
    Ground,
    /// Inside a character of several bytes.
    Character {
        bytes: Vec<u8>,
        length: usize,
    },
    Escape,
    /// After ESC O: one more byte.
    Shift,
    /// After ESC [: up to a final byte.
    Control {
        bytes: Vec<u8>,
    },
    Paste {
        bytes: Vec<u8>,
    },
}

impl Keys {
    pub fn read(&mut self, bytes: &[u8]) -> Vec<Key> {
        bytes.iter().filter_map(|byte| self.step(*byte)).collect()
    }

    fn step(&mut self, byte: u8) -> Option<Key> {
        match std::mem::take(&mut self.state) {
            State::Ground => self.ground(byte),
            State::Character { bytes, length } => self.character(bytes, length, byte),
            State::Escape => {
                match byte {
                    b'[' => self.state = State::Control { bytes: Vec::new() },
                    b'O' => self.state = State::Shift,
                    0x1b => self.state = State::Escape,
                    // Alt and a key: not used.
                    _ => {}
                }
                None
            }
            State::Shift => None,
            State::Control { mut bytes } => {
                bytes.push(byte);
                if bytes == PASTE_BEGINS {
                    self.state = State::Paste { bytes: Vec::new() };
                } else if !(0x40..=0x7e).contains(&byte) && bytes.len() < LONGEST_SEQUENCE {
                    self.state = State::Control { bytes };
                }
                None
            }
            State::Paste { mut bytes } => {
                bytes.push(byte);
                if bytes.ends_with(PASTE_ENDS) {
                    bytes.truncate(bytes.len() - PASTE_ENDS.len());
                    // Terminals send a carriage return for each line end of what is pasted.
                    let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n").replace('\r', "\n");
                    return Some(Key::Pasted(text));
                }
                self.state = State::Paste { bytes };
                None
            }
        }
    }

    fn ground(&mut self, byte: u8) -> Option<Key> {
        match byte {
            b'\r' | b'\n' => Some(Key::Enter),
            0x03 => Some(Key::Interrupt),
            0x04 => Some(Key::Leave),
            0x08 | 0x7f => Some(Key::Backspace),
            0x15 => Some(Key::EraseLine),
            0x17 => Some(Key::EraseWord),
            0x1b => {
                self.state = State::Escape;
                None
            }
            0x20..=0x7e => Some(Key::Character(char::from(byte))),
            0xc2..=0xdf => self.begin_character(byte, 2),
            0xe0..=0xef => self.begin_character(byte, 3),
            0xf0..=0xf4 => self.begin_character(byte, 4),
            0x80..=0xc1 | 0xf5..=0xff => Some(Key::Character(char::REPLACEMENT_CHARACTER)),
            // Other control keys.
            0x00..=0x1f => None,
        }
    }

    fn begin_character(&mut self, byte: u8, length: usize) -> Option<Key> {
        self.state = State::Character { bytes: vec![byte], length };
        None
    }

    fn character(&mut self, mut bytes: Vec<u8>, length: usize, byte: u8) -> Option<Key> {
        if !(0x80..=0xbf).contains(&byte) {
            // A broken character: the byte that broke it is read as a key.
            return self.ground(byte);
        }
        bytes.push(byte);
        if bytes.len() < length {
            self.state = State::Character { bytes, length };
            return None;
        }
        let character = std::str::from_utf8(&bytes).ok().and_then(|text| text.chars().next());
        Some(Key::Character(character.unwrap_or(char::REPLACEMENT_CHARACTER)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_the_same_however_the_bytes_are_cut() {
        let bytes = "a\x1b[200~two\rlines\x1b[201~é🐎\x1b[A\x1bOP\x7f\r\x03".as_bytes();
        let whole = Keys::default().read(bytes);
        assert_eq!(
            whole,
            [
                Key::Character('a'),
                Key::Pasted("two\nlines".into()),
                Key::Character('é'),
                Key::Character('🐎'),
                Key::Backspace,
                Key::Enter,
                Key::Interrupt,
            ]
        );
        for size in 1..bytes.len() {
            let mut keys = Keys::default();
            let pieces: Vec<Key> = bytes.chunks(size).flat_map(|chunk| keys.read(chunk)).collect();
            assert_eq!(pieces, whole);
        }
    }

    #[test]
    fn control_characters_in_a_paste_are_text() {
        let keys = Keys::default().read(b"\x1b[200~\x03\x04\x1b[201~");
        assert_eq!(keys, [Key::Pasted("\u{3}\u{4}".into())]);
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_such_and_lose_no_key() {
        let keys = Keys::default().read(b"\xff\xe2\x82x\r");
        let broken = char::REPLACEMENT_CHARACTER;
        assert_eq!(keys, [Key::Character(broken), Key::Character('x'), Key::Enter]);
    }
}
