//! What the bytes of a keyboard mean to a line of text. Half a character or half a sequence waits for the rest; an unknown
//! sequence is dropped whole, so that it leaves no rubbish in the line.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Also what was pasted, line ends and all.
    Text(char),
    Enter,
    Backspace,
    Delete,
    Left,
    Right,
    WordLeft,
    WordRight,
    Home,
    End,
    DeleteBefore,
    DeleteAfter,
    DeleteWord,
    Interrupt,
    /// Ctrl-D: end of input on an empty line.
    EndOfInput,
    Redraw,
}

#[derive(Default)]
pub struct Keys {
    unfinished: Vec<u8>,
    pasting: bool,
}

/// What the next bytes are.
enum Next {
    Key(usize, Option<Key>),
    Paste(usize, bool),
    Unfinished,
}

impl Keys {
    pub fn read(&mut self, bytes: &[u8]) -> Vec<Key> {
        let mut rest = std::mem::take(&mut self.unfinished);
        rest.extend_from_slice(bytes);
        let (mut keys, mut place) = (Vec::new(), 0);
        while place < rest.len() {
            match self.next(&rest[place..]) {
                Next::Key(length, key) => {
                    keys.extend(key);
                    place += length;
                }
                Next::Paste(length, pasting) => {
                    self.pasting = pasting;
                    place += length;
                }
                Next::Unfinished => {
                    self.unfinished = rest.split_off(place);
                    break;
                }
            }
        }
        keys
    }

    fn next(&self, bytes: &[u8]) -> Next {
        match bytes {
            [] | [0x1b] => Next::Unfinished,
            [0x1b, b'[', rest @ ..] => sequence(rest),
            [0x1b, b'O'] => Next::Unfinished,
            [0x1b, b'O', letter, ..] => Next::Key(3, arrow(*letter, false)),
            [0x1b, b'b', ..] => Next::Key(2, Some(Key::WordLeft)),
            [0x1b, b'f', ..] => Next::Key(2, Some(Key::WordRight)),
            // Escape itself means nothing here; what follows it does.
            [0x1b, ..] => Next::Key(1, None),
            [byte, ..] if self.pasting => pasted(*byte, bytes),
            [byte @ (0..0x20 | 0x7f), ..] => Next::Key(1, control(*byte)),
            _ => character(bytes),
        }
    }
}

fn control(byte: u8) -> Option<Key> {
    match byte {
        1 => Some(Key::Home),
        2 => Some(Key::Left),
        3 => Some(Key::Interrupt),
        4 => Some(Key::EndOfInput),
        5 => Some(Key::End),
        6 => Some(Key::Right),
        8 | 0x7f => Some(Key::Backspace),
        b'\t' => Some(Key::Text(' ')),
        b'\n' | b'\r' => Some(Key::Enter),
        11 => Some(Key::DeleteAfter),
        12 => Some(Key::Redraw),
        21 => Some(Key::DeleteBefore),
        23 => Some(Key::DeleteWord),
        _ => None,
    }
}

/// Inside a paste nothing is a command, least of all the end of a line.
fn pasted(byte: u8, bytes: &[u8]) -> Next {
    match byte {
        b'\r' if bytes.get(1) == Some(&b'\n') => Next::Key(2, Some(Key::Text('\n'))),
        b'\r' | b'\n' => Next::Key(1, Some(Key::Text('\n'))),
        b'\t' => Next::Key(1, Some(Key::Text('\t'))),
        0..0x20 | 0x7f => Next::Key(1, None),
        _ => character(bytes),
    }
}

fn character(bytes: &[u8]) -> Next {
    let head = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default(),
        Err(error) => match error.error_len() {
            Some(length) => return Next::Key(length, None),
            None => return Next::Unfinished,
        },
    };
    match valid.chars().next() {
        Some(character) => Next::Key(character.len_utf8(), Some(character).filter(|c| !c.is_control()).map(Key::Text)),
        None => Next::Key(1, None),
    }
}

/// What follows `CSI`.
fn sequence(rest: &[u8]) -> Next {
    /// Longer than any key.
    const LONGEST: usize = 64;
    let Some(end) = rest.iter().position(|byte| matches!(byte, 0x40..=0x7e)) else {
        return if rest.len() > LONGEST { Next::Key(2, None) } else { Next::Unfinished };
    };
    let length = end + 3;
    let parameters = &rest[..end];
    match (rest[end], parameters) {
        (b'~', b"200") => Next::Paste(length, true),
        (b'~', b"201") => Next::Paste(length, false),
        (b'~', b"1" | b"7") => Next::Key(length, Some(Key::Home)),
        (b'~', b"4" | b"8") => Next::Key(length, Some(Key::End)),
        (b'~', b"3") => Next::Key(length, Some(Key::Delete)),
        (letter, _) => Next::Key(length, arrow(letter, parameters.ends_with(b";5") || parameters.ends_with(b";3"))),
    }
}

fn arrow(letter: u8, by_word: bool) -> Option<Key> {
    match letter {
        b'C' if by_word => Some(Key::WordRight),
        b'D' if by_word => Some(Key::WordLeft),
        b'C' => Some(Key::Right),
        b'D' => Some(Key::Left),
        b'H' => Some(Key::Home),
        b'F' => Some(Key::End),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_and_sequences_are_whole_wherever_they_are_cut() {
        let bytes = "aé表\x1b[D\x1bOC\x1b[3~\r".as_bytes();
        let whole = Keys::default().read(bytes);
        assert_eq!(
            whole,
            [Key::Text('a'), Key::Text('é'), Key::Text('表'), Key::Left, Key::Right, Key::Delete, Key::Enter]
        );
        for cut in 0..bytes.len() {
            let mut keys = Keys::default();
            let mut parts = keys.read(&bytes[..cut]);
            parts.extend(keys.read(&bytes[cut..]));
            assert_eq!(parts, whole, "{cut}");
        }
    }

    #[test]
    fn a_paste_is_text_and_sends_nothing() {
        let keys = Keys::default().read(b"\x1b[200~one\r\ntwo\x03\n\x1b[201~\r");
        let text: String = keys.iter().filter_map(|key| if let Key::Text(c) = key { Some(*c) } else { None }).collect();
        assert_eq!((text.as_str(), keys.last()), ("one\ntwo\n", Some(&Key::Enter)));
        assert!(!keys.contains(&Key::Interrupt));
    }

    #[test]
    fn unknown_sequences_and_broken_characters_leave_nothing_behind() {
        assert_eq!(Keys::default().read(b"\x1b[<35;3;4M\xff\x1b[5~\x1b[Ax"), [Key::Text('x')]);
    }
}
