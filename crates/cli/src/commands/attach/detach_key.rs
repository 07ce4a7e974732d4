//! Finds the detach key in the keyboard input.
//!
//! A terminal sends it as one byte, unless the program inside has asked for keys to be reported in full: then it is a
//! sequence (kitty's `CSI 92 ; 5 u`, xterm's `CSI 27 ; 5 ; 92 ~`). A sequence that is cut off at the end of a read is
//! held back until the rest of it arrives, because half a sequence must not reach the program. The beginnings that a
//! person can type (`ESC`, `ESC [`) are never held back.
//!
//! Pressed twice, the key goes to the program once: this is how to leave an attach inside an attach. Only the second
//! press, or its absence, shows whether a press was the first of two. So detaching waits [`AGAIN_WITHIN`], and nothing
//! else waits. A prefix key as in tmux needs no wait, but then detaching always takes two keys. The time is shorter
//! than the time after which a key that is held down repeats (at least a quarter of a second, mostly half a second),
//! and longer than two quick presses take. Another key within that time shows that no second press follows: it detaches
//! at once.

use std::time::{Duration, Instant};

/// A second press counts within this time.
pub const AGAIN_WITHIN: Duration = Duration::from_millis(240);

/// The bits of the modifier number for Caps Lock and Num Lock, which are ignored.
const LOCKS: u32 = 0b1100_0000;
const CONTROL: u32 = 0b100;
/// The modifier keys, where a terminal reports them as keys of their own.
const HELD: std::ops::RangeInclusive<u32> = 57441..=57454;

pub struct DetachKey {
    byte: u8,
    /// The key without Ctrl, as the longer forms name it.
    code: u32,
    held: Vec<u8>,
    twice: Twice,
}

/// What a second press does.
enum Twice {
    /// There is no program inside that it could be for.
    Nothing,
    /// The key goes to the program.
    Passes {
        /// The time of the first press.
        pressed: Option<Instant>,
    },
}

/// Keys for the program, and whether to detach after them.
#[derive(Debug, PartialEq, Eq)]
pub struct Sorted {
    pub keys: Vec<u8>,
    pub detach: bool,
}

/// What was found at a position of the input.
enum Found {
    DetachKey,
    /// The release of a key, or a modifier key: it means nothing by itself.
    Echo,
    Other,
}

impl DetachKey {
    fn new(byte: u8, twice: Twice) -> DetachKey {
        DetachKey { byte, code: u32::from(plain(byte)), held: Vec::new(), twice }
    }

    /// One press detaches, at once.
    pub fn at_once(byte: u8) -> DetachKey {
        DetachKey::new(byte, Twice::Nothing)
    }

    /// One press detaches; two presses send the key to the program once.
    pub fn passing_on(byte: u8) -> DetachKey {
        DetachKey::new(byte, Twice::Passes { pressed: None })
    }

    pub fn sort(&mut self, read: &[u8], now: Instant) -> Sorted {
        let mut bytes = std::mem::take(&mut self.held);
        bytes.extend_from_slice(read);
        let mut keys = Vec::new();
        let mut place = 0;
        while place < bytes.len() {
            let (length, found) = match Sequence::parse(&bytes[place..]) {
                _ if bytes[place] == self.byte && !self.begins_sequence(&bytes[place..]) => (1, Found::DetachKey),
                Sequence::None => (1, Found::Other),
                Sequence::Whole { length, last, parameters } => (length, self.meaning(last, parameters)),
                Sequence::CutOff => {
                    self.held = bytes.split_off(place);
                    break;
                }
            };
            let these = &bytes[place..place + length];
            place += length;
            match (found, &mut self.twice) {
                (Found::DetachKey, Twice::Nothing) => return Sorted { keys, detach: true },
                (Found::DetachKey, Twice::Passes { pressed }) => match pressed.take() {
                    Some(first) if now < first + AGAIN_WITHIN => keys.extend_from_slice(these),
                    Some(_) => return Sorted { keys, detach: true },
                    None => *pressed = Some(now),
                },
                (Found::Echo, Twice::Passes { pressed: Some(_) }) => {}
                (Found::Other, Twice::Passes { pressed: Some(_) }) => return Sorted { keys, detach: true },
                (Found::Echo | Found::Other, Twice::Nothing | Twice::Passes { pressed: None }) => {
                    keys.extend_from_slice(these);
                }
            }
        }
        Sorted { keys, detach: false }
    }

    /// When a press is known to be a single one.
    pub fn due(&self) -> Option<Instant> {
        match &self.twice {
            Twice::Nothing => None,
            Twice::Passes { pressed } => pressed.map(|pressed| pressed + AGAIN_WITHIN),
        }
    }

    /// Whether this byte begins a sequence instead of being the key: needed when the detach key is `ctrl-[`, which is
    /// ESC.
    fn begins_sequence(&self, bytes: &[u8]) -> bool {
        self.byte == 0x1b && matches!(bytes, [_, b'[' | b'O', ..])
    }

    fn meaning(&self, last: u8, parameters: &[u8]) -> Found {
        let numbers: Vec<Vec<u32>> = parameters
            .split(|&byte| byte == b';')
            .map(|parameter| parameter.split(|&byte| byte == b':').map(number).collect())
            .collect();
        let first = |index: usize| numbers.get(index).and_then(|parts| parts.first()).copied().unwrap_or(0);
        let (code, modifiers, event) = match last {
            b'u' => (first(0), first(1), numbers.get(1).and_then(|parts| parts.get(1)).copied().unwrap_or(1)),
            b'~' if first(0) == 27 => (first(2), first(1), 1),
            _ => return Found::Other,
        };
        const RELEASED: u32 = 3;
        if event == RELEASED || HELD.contains(&code) {
            Found::Echo
        } else if code == self.code && modifiers.saturating_sub(1) & !LOCKS == CONTROL {
            Found::DetachKey
        } else {
            Found::Other
        }
    }
}

/// The letter of a control key.
fn plain(byte: u8) -> u8 {
    if byte < 0x1b { byte | 0x60 } else { byte | 0x40 }
}

/// The usual name of the key: `Ctrl-\`.
pub fn name(byte: u8) -> String {
    format!("Ctrl-{}", char::from(plain(byte)).to_ascii_uppercase())
}

fn number(digits: &[u8]) -> u32 {
    std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// A sequence of the form `CSI numbers letter`.
enum Sequence<'a> {
    None,
    Whole { length: usize, last: u8, parameters: &'a [u8] },
    CutOff,
}

impl Sequence<'_> {
    /// Longer than any key.
    const LONGEST: usize = 64;

    fn parse(bytes: &[u8]) -> Sequence<'_> {
        let Some(rest) = bytes.strip_prefix(b"\x1b[") else {
            return Sequence::None;
        };
        let end = rest.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b';' | b':'));
        match end {
            Some(0) => Sequence::None,
            Some(end) => Sequence::Whole { length: end + 3, last: rest[end], parameters: &rest[..end] },
            None if rest.is_empty() || rest.len() > Self::LONGEST => Sequence::None,
            None => Sequence::CutOff,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(reads: &[&[u8]]) -> Vec<(Vec<u8>, bool)> {
        let mut key = DetachKey::at_once(0x1c);
        reads.iter().map(|read| key.sort(read, Instant::now())).map(|sorted| (sorted.keys, sorted.detach)).collect()
    }

    const FORMS: [&[u8]; 7] = [
        b"\x1c",
        b"\x1b[92;5u",
        b"\x1b[92;5:1u",
        b"\x1b[92::92;5:2u",
        b"\x1b[92;69u",
        b"\x1b[92;133;28u",
        b"\x1b[27;5;92~",
    ];

    #[test]
    fn keys_before_the_detach_key_reach_the_program_and_later_keys_are_dropped() {
        assert_eq!(sorted(&[b"ab\x1ccd"]), [(b"ab".to_vec(), true)]);
        assert_eq!(sorted(&[b"abc", b"\x1c"]), [(b"abc".to_vec(), false), (Vec::new(), true)]);
    }

    #[test]
    fn every_form_that_a_terminal_sends_is_the_detach_key() {
        for form in FORMS {
            assert_eq!(sorted(&[form]), [(Vec::new(), true)], "{}", form.escape_ascii());
        }
    }

    #[test]
    fn pressed_twice_it_goes_to_the_program_once_and_pressed_once_it_leaves_when_the_time_is_over() {
        let start = Instant::now();
        let soon = start + AGAIN_WITHIN / 2;
        for form in FORMS {
            let mut key = DetachKey::passing_on(0x1c);
            assert_eq!(key.sort(form, start), Sorted { keys: Vec::new(), detach: false });
            assert_eq!(key.due(), Some(start + AGAIN_WITHIN));
            assert_eq!(key.sort(form, soon), Sorted { keys: form.to_vec(), detach: false }, "{}", form.escape_ascii());
            assert_eq!(key.due(), None);
        }
        let mut key = DetachKey::passing_on(0x1c);
        assert_eq!(key.sort(b"a\x1c\x1c\x1c\x1cb", start).keys, b"a\x1c\x1cb");
    }

    #[test]
    fn another_key_in_between_leaves_at_once_and_letting_go_of_it_does_not() {
        let start = Instant::now();
        let mut key = DetachKey::passing_on(0x1c);
        assert_eq!(key.sort(b"a\x1cb", start), Sorted { keys: b"a".to_vec(), detach: true });
        let mut key = DetachKey::passing_on(0x1c);
        let press = b"\x1b[92;5u\x1b[92;5:3u\x1b[57442;5:3u";
        assert_eq!(key.sort(press, start), Sorted { keys: Vec::new(), detach: false });
        assert_eq!(key.sort(b"\x1b[92;5u", start).keys, b"\x1b[92;5u");
        let mut key = DetachKey::passing_on(0x1c);
        key.sort(b"\x1c", start);
        assert!(key.sort(b"\x1c", start + AGAIN_WITHIN).detach, "too late for a second press");
    }

    #[test]
    fn a_form_that_is_cut_off_is_held_back_whole() {
        assert_eq!(sorted(&[b"a\x1b[92", b";5u"]), [(b"a".to_vec(), false), (Vec::new(), true)]);
        assert_eq!(sorted(&[b"\x1b[1", b"5~b"]), [(Vec::new(), false), (b"\x1b[15~b".to_vec(), false)]);
    }

    #[test]
    fn other_keys_pass_and_nothing_a_person_types_waits() {
        let others: [&[u8]; 9] = [
            b"\x1b",
            b"\x1b[",
            b"\\",
            b"\x1b[A",
            b"\x1b[92;5:3u",
            b"\x1b[92u",
            b"\x1b[92;6u",
            b"\x1b[<35;1;2M",
            "ünïcödé".as_bytes(),
        ];
        for other in others {
            assert_eq!(sorted(&[other]), [(other.to_vec(), false)], "{}", other.escape_ascii());
        }
    }

    #[test]
    fn another_key_may_be_chosen() {
        let now = Instant::now();
        assert!(DetachKey::at_once(1).sort(b"x\x01", now).detach);
        assert!(DetachKey::at_once(1).sort(b"\x1b[97;5u", now).detach);
        assert!(!DetachKey::at_once(0x1b).sort(b"\x1b[A", now).detach);
        assert!(DetachKey::at_once(0x1b).sort(b"\x1b", now).detach);
        assert_eq!([0x1c, 1, 0x1d].map(name), ["Ctrl-\\", "Ctrl-A", "Ctrl-]"]);
    }
}
