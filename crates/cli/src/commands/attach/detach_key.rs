//! Finds the detach key among the keys.
//!
//! A terminal sends it as one byte, unless the program inside has asked for keys to be reported in full: then it comes as
//! a sequence (kitty's `CSI 92 ; 5 u`, xterm's `CSI 27 ; 5 ; 92 ~`). A sequence that is cut off at the end of what was read is
//! held back until the rest of it comes, because half a sequence must not reach the program. The beginning that a person
//! can type (`ESC`, `ESC [`) is never held back.

/// Bits of the modifier number that a locked keyboard sets and nobody means.
const LOCKS: u32 = 0b1100_0000;
const CONTROL: u32 = 0b100;

pub struct DetachKey {
    byte: u8,
    /// The key without Ctrl, as the longer forms name it.
    code: u32,
    held: Vec<u8>,
}

/// Keys for the program, and whether the person wants to leave after them.
#[derive(Debug, PartialEq, Eq)]
pub struct Sorted {
    pub keys: Vec<u8>,
    pub detach: bool,
}

impl DetachKey {
    pub fn new(byte: u8) -> DetachKey {
        let plain = if byte < 0x1b { byte | 0x60 } else { byte | 0x40 };
        DetachKey { byte, code: u32::from(plain), held: Vec::new() }
    }

    pub fn sort(&mut self, read: &[u8]) -> Sorted {
        let mut bytes = std::mem::take(&mut self.held);
        bytes.extend_from_slice(read);
        let mut place = 0;
        while place < bytes.len() {
            if bytes[place] == self.byte && !self.begins_sequence(&bytes[place..]) {
                bytes.truncate(place);
                return Sorted { keys: bytes, detach: true };
            }
            match Sequence::parse(&bytes[place..]) {
                Sequence::None => place += 1,
                Sequence::Whole { length, last, parameters } => {
                    if self.is_meant(last, parameters) {
                        bytes.truncate(place);
                        return Sorted { keys: bytes, detach: true };
                    }
                    place += length;
                }
                Sequence::CutOff => {
                    self.held = bytes.split_off(place);
                    break;
                }
            }
        }
        Sorted { keys: bytes, detach: false }
    }

    /// Whether this byte begins a sequence rather than being a key: for those who detach with `ctrl-[`, which is ESC.
    fn begins_sequence(&self, bytes: &[u8]) -> bool {
        self.byte == 0x1b && matches!(bytes, [_, b'[' | b'O', ..])
    }

    fn is_meant(&self, last: u8, parameters: &[u8]) -> bool {
        let numbers: Vec<Vec<u32>> = parameters
            .split(|&byte| byte == b';')
            .map(|parameter| parameter.split(|&byte| byte == b':').map(number).collect())
            .collect();
        let first = |index: usize| numbers.get(index).and_then(|parts| parts.first()).copied().unwrap_or(0);
        let (code, modifiers, event) = match last {
            b'u' => (first(0), first(1), numbers.get(1).and_then(|parts| parts.get(1)).copied().unwrap_or(1)),
            b'~' if first(0) == 27 => (first(2), first(1), 1),
            _ => return false,
        };
        const RELEASED: u32 = 3;
        code == self.code && event != RELEASED && modifiers.saturating_sub(1) & !LOCKS == CONTROL
    }
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
        let mut key = DetachKey::new(0x1c);
        reads.iter().map(|read| key.sort(read)).map(|sorted| (sorted.keys, sorted.detach)).collect()
    }

    #[test]
    fn keys_before_the_detach_key_are_for_the_program_and_those_after_it_for_nobody() {
        assert_eq!(sorted(&[b"ab\x1ccd"]), [(b"ab".to_vec(), true)]);
        assert_eq!(sorted(&[b"abc", b"\x1c"]), [(b"abc".to_vec(), false), (Vec::new(), true)]);
    }

    #[test]
    fn every_form_that_a_terminal_sends_is_the_detach_key() {
        let forms: [&[u8]; 6] =
            [b"\x1b[92;5u", b"\x1b[92;5:1u", b"\x1b[92::92;5:2u", b"\x1b[92;69u", b"\x1b[92;133;28u", b"\x1b[27;5;92~"];
        for form in forms {
            assert_eq!(sorted(&[form]), [(Vec::new(), true)], "{}", form.escape_ascii());
        }
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
        assert!(DetachKey::new(1).sort(b"x\x01").detach);
        assert!(DetachKey::new(1).sort(b"\x1b[97;5u").detach);
        assert!(!DetachKey::new(0x1b).sort(b"\x1b[A").detach);
        assert!(DetachKey::new(0x1b).sort(b"\x1b").detach);
    }
}
