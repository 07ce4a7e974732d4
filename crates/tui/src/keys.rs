//! What the bytes of a keyboard and a mouse mean. An incomplete character or sequence waits for the rest; an unknown
//! sequence is dropped as a whole, so that no part of it appears in the line.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Text(char),
    /// A character of pasted text, including line ends. It is text, and never a command.
    Pasted(char),
    Enter,
    /// A line end that is part of the text: Alt-Enter, Ctrl-J.
    NewLine,
    Backspace,
    Delete,
    Left,
    Right,
    Up,
    Down,
    WordLeft,
    WordRight,
    Home,
    End,
    DeleteBefore,
    DeleteAfter,
    DeleteWord,
    DeleteWordAfter,
    /// Puts back what was deleted last.
    Yank,
    HistoryBefore,
    HistoryAfter,
    PageUp,
    PageDown,
    RowUp,
    RowDown,
    /// Ctrl-Home and Ctrl-End: the beginning and the end of everything.
    Top,
    Bottom,
    /// The wheel, over this row and column, counted from 0.
    WheelUp {
        row: u16,
        column: u16,
    },
    WheelDown {
        row: u16,
        column: u16,
    },
    /// The left button, in this row and column, counted from 0.
    Click {
        row: u16,
        column: u16,
    },
    /// Unfolds one thing.
    Unfold,
    UnfoldAll,
    ChooseBefore,
    ChooseAfter,
    Interrupt,
    /// Ctrl-D: end of input on an empty line.
    EndOfInput,
    Redraw,
    Suspend,
    Tab,
    /// Shift-Tab.
    BackTab,
    /// The Escape key itself; see [`Keys::escape`].
    Escape,
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
    /// Whether an escape came alone: it is the key itself, or the beginning of a sequence whose rest is still to come.
    #[must_use]
    pub fn has_lone_escape(&self) -> bool {
        self.unfinished == [0x1b]
    }

    /// To be called when nothing has followed an escape that came alone: it was the key.
    pub fn escape(&mut self) -> Option<Key> {
        self.has_lone_escape().then(|| {
            self.unfinished.clear();
            Key::Escape
        })
    }

    pub fn read(&mut self, bytes: &[u8]) -> Vec<Key> {
        let mut rest = std::mem::take(&mut self.unfinished);
        let (mut keys, mut place) = (Vec::new(), 0);
        // An escape that came alone was the key itself, unless a sequence continues it: Escape and later Enter is not
        // Alt-Enter.
        if rest == [0x1b] && !self.pasting && !matches!(bytes.first(), Some(b'[' | b'O')) {
            rest.clear();
            keys.push(Key::Escape);
        }
        rest.extend_from_slice(bytes);
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
            // In a paste, only the sequence that ends it counts.
            [0x1b, ..] if self.pasting && !could_end_paste(bytes) => Next::Key(1, None),
            [0x1b, b'[', rest @ ..] => sequence(rest),
            [0x1b, b'O'] => Next::Unfinished,
            [0x1b, b'O', letter, ..] => Next::Key(3, letter_key(*letter, b"")),
            [0x1b, letter, ..] => match with_alt(*letter) {
                Some(key) => Next::Key(2, Some(key)),
                // Not a key with Alt: Escape, and what follows it.
                None => Next::Key(1, Some(Key::Escape)),
            },
            [byte, ..] if self.pasting => pasted(*byte, bytes),
            [byte @ (0..0x20 | 0x7f), ..] => Next::Key(1, control(*byte)),
            _ => character(bytes, Key::Text),
        }
    }
}

fn could_end_paste(bytes: &[u8]) -> bool {
    const END: &[u8] = b"\x1b[201~";
    END.starts_with(&bytes[..bytes.len().min(END.len())])
}

fn with_alt(letter: u8) -> Option<Key> {
    match letter {
        b'b' | b'B' => Some(Key::WordLeft),
        b'f' | b'F' => Some(Key::WordRight),
        b'd' | b'D' => Some(Key::DeleteWordAfter),
        b'o' => Some(Key::UnfoldAll),
        b'\r' | b'\n' => Some(Key::NewLine),
        8 | 0x7f => Some(Key::DeleteWord),
        b'<' => Some(Key::Top),
        b'>' => Some(Key::Bottom),
        _ => None,
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
        b'\t' => Some(Key::Tab),
        b'\n' => Some(Key::NewLine),
        b'\r' => Some(Key::Enter),
        11 => Some(Key::DeleteAfter),
        12 => Some(Key::Redraw),
        14 => Some(Key::HistoryAfter),
        15 => Some(Key::Unfold),
        16 => Some(Key::HistoryBefore),
        21 => Some(Key::DeleteBefore),
        23 => Some(Key::DeleteWord),
        25 => Some(Key::Yank),
        26 => Some(Key::Suspend),
        _ => None,
    }
}

/// In a paste nothing is a command, especially not a line end.
fn pasted(byte: u8, bytes: &[u8]) -> Next {
    match byte {
        b'\r' if bytes.get(1) == Some(&b'\n') => Next::Key(2, Some(Key::Pasted('\n'))),
        b'\r' | b'\n' => Next::Key(1, Some(Key::Pasted('\n'))),
        b'\t' => Next::Key(1, Some(Key::Pasted('\t'))),
        0..0x20 | 0x7f => Next::Key(1, None),
        _ => character(bytes, Key::Pasted),
    }
}

fn character(bytes: &[u8], key: fn(char) -> Key) -> Next {
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
        Some(character) => Next::Key(character.len_utf8(), Some(character).filter(|c| !c.is_control()).map(key)),
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
        (letter @ (b'M' | b'm'), [b'<', report @ ..]) => Next::Key(length, mouse(report, letter == b'M')),
        (letter, parameters) => Next::Key(length, letter_key(letter, parameters)),
    }
}

fn letter_key(letter: u8, parameters: &[u8]) -> Option<Key> {
    let (number, modifier) = match parameters.iter().position(|byte| *byte == b';') {
        Some(place) => (&parameters[..place], &parameters[place + 1..]),
        None => (parameters, &b""[..]),
    };
    let (alt, control, shift) = (modifier == b"3", modifier == b"5", modifier == b"2");
    match letter {
        b'A' if alt => Some(Key::ChooseBefore),
        b'B' if alt => Some(Key::ChooseAfter),
        b'A' if shift || control => Some(Key::RowUp),
        b'B' if shift || control => Some(Key::RowDown),
        b'A' => Some(Key::Up),
        b'B' => Some(Key::Down),
        b'C' if alt || control => Some(Key::WordRight),
        b'D' if alt || control => Some(Key::WordLeft),
        b'C' => Some(Key::Right),
        b'D' => Some(Key::Left),
        b'Z' => Some(Key::BackTab),
        b'H' if control => Some(Key::Top),
        b'F' if control => Some(Key::Bottom),
        b'H' => Some(Key::Home),
        b'F' => Some(Key::End),
        b'~' => match number {
            b"1" | b"7" if control => Some(Key::Top),
            b"4" | b"8" if control => Some(Key::Bottom),
            b"1" | b"7" => Some(Key::Home),
            b"4" | b"8" => Some(Key::End),
            b"3" if alt || control => Some(Key::DeleteWordAfter),
            b"3" => Some(Key::Delete),
            b"5" => Some(Key::PageUp),
            b"6" => Some(Key::PageDown),
            // Shift-Enter or Alt-Enter, from a terminal that reports them.
            b"27" if matches!(modifier, b"2;13" | b"3;13") => Some(Key::NewLine),
            _ => None,
        },
        b'u' if number == b"13" && (shift || alt) => Some(Key::NewLine),
        _ => None,
    }
}

/// A report of the mouse in the form `button;column;row`.
fn mouse(report: &[u8], pressed: bool) -> Option<Key> {
    let text = std::str::from_utf8(report).ok()?;
    let mut numbers = text.split(';').map(|number| number.parse::<u16>().ok());
    let (button, column, row) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let (row, column) = (row.saturating_sub(1), column.saturating_sub(1));
    /// Bits of the keys that were held.
    const HELD: u16 = 0b1_1100;
    match button & !HELD {
        64 => Some(Key::WheelUp { row, column }),
        65 => Some(Key::WheelDown { row, column }),
        0 if pressed => Some(Key::Click { row, column }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_and_sequences_are_whole_wherever_they_are_cut() {
        let bytes = "aé表\x1b[D\x1bOC\x1b[3~\x1b[<64;3;4M\x1b[5~\x1b[1;3A\r".as_bytes();
        let whole = Keys::default().read(bytes);
        let text = ['a', 'é', '表'].map(Key::Text);
        let others = [
            Key::Left,
            Key::Right,
            Key::Delete,
            Key::WheelUp { row: 3, column: 2 },
            Key::PageUp,
            Key::ChooseBefore,
            Key::Enter,
        ];
        assert_eq!(whole, [&text[..], &others[..]].concat());
        for cut in 0..bytes.len() {
            let mut keys = Keys::default();
            let mut parts = keys.read(&bytes[..cut]);
            parts.extend(keys.read(&bytes[cut..]));
            assert_eq!(parts, whole, "{cut}");
        }
    }

    #[test]
    fn a_paste_is_text_and_sends_nothing() {
        let keys = Keys::default().read(b"\x1b[200~one\r\ntwo\x03\n\x1b\r\x1b[A\x1b[201~\r");
        let text: String =
            keys.iter().filter_map(|key| if let Key::Pasted(c) = key { Some(*c) } else { None }).collect();
        assert_eq!((text.as_str(), keys.last()), ("one\ntwo\n\n[A", Some(&Key::Enter)));
        assert!(!keys.contains(&Key::Interrupt) && !keys.contains(&Key::NewLine));
    }

    #[test]
    fn a_new_line_has_several_keys_and_escape_before_enter_is_none_of_them() {
        for bytes in [&b"\x1b\r"[..], b"\n", b"\x1b[13;2u", b"\x1b[27;2;13~"] {
            assert_eq!(Keys::default().read(bytes), [Key::NewLine], "{}", bytes.escape_ascii());
        }
        let mut keys = Keys::default();
        assert_eq!(keys.read(b"\x1b"), []);
        assert_eq!(keys.read(b"\r"), [Key::Escape, Key::Enter]);
    }

    #[test]
    fn an_escape_that_stays_alone_is_a_key() {
        let mut keys = Keys::default();
        assert_eq!((keys.read(b"\x1b"), keys.has_lone_escape()), (vec![], true));
        assert_eq!((keys.escape(), keys.escape()), (Some(Key::Escape), None));
        assert_eq!((keys.read(b"\x1b"), keys.read(b"[A")), (vec![], vec![Key::Up]));
        assert_eq!(keys.read(b"\t\x1b[Z"), [Key::Tab, Key::BackTab]);
    }

    #[test]
    fn unknown_sequences_and_broken_characters_leave_nothing_behind() {
        assert_eq!(Keys::default().read(b"\x1b[<35;3;4M\xff\x1b[19~\x1b[1;9Px\x00"), [Key::Text('x')]);
    }
}
