//! Bytes into terminal actions: text, control characters, escape sequences, control strings.
//!
//! The parser is a small state machine of our own (after Paul Williams' description of the DEC terminals) because its
//! state has to go into a snapshot: a sequence or a character that is cut in two, by a read or between two processes,
//! is joined as if it had not been cut. Its memory is bounded for any input: numbers have a fixed amount, and of a
//! control string only as much is kept as a window title may have.

use crate::params::Params;
use crate::utf8::{Partial, Step};
use serde::{Deserialize, Serialize};

/// What is kept of a control string: a window title, with its number in front.
const STRING_LIMIT: usize = 1024;

const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;
const ESC: u8 = 0x1b;
const DEL: u8 = 0x7f;

/// Carries out what the parser has recognised.
pub(crate) trait Perform {
    /// A run of printable ASCII.
    fn text(&mut self, ascii: &[u8]);
    /// Any other printable character; U+FFFD for bytes that are not UTF-8.
    fn character(&mut self, character: char);
    /// A control character, 0x00 to 0x1f.
    fn control(&mut self, byte: u8);
    /// `ESC intermediate last`.
    fn escape(&mut self, intermediate: Option<u8>, last: u8);
    /// `ESC [ …`.
    fn csi(&mut self, sequence: &Csi, last: u8);
    /// `ESC ] …`, what is between the brackets; cut at a limit.
    fn osc(&mut self, payload: &[u8]);
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Parser {
    state: State,
    /// Empty except in the ground state.
    partial: Partial,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    #[default]
    Ground,
    Escape {
        intermediate: Option<u8>,
    },
    Csi(Csi),
    /// A malformed `ESC [ …`, read to its end and ignored.
    BadCsi,
    Text(ControlString),
}

/// `ESC [ marker parameters intermediate`, without the last byte.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Csi {
    /// One of `<=>?`.
    pub(crate) marker: Option<u8>,
    pub(crate) params: Params,
    pub(crate) intermediate: Option<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ControlString {
    kind: StringKind,
    payload: Vec<u8>,
    /// The byte before was 0xc2; with 0x9c it makes U+009C, which ends the string.
    after_c2: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum StringKind {
    Osc,
    /// DCS, SOS, PM, APC: nothing in them changes the screen.
    Ignored,
}

impl Parser {
    pub(crate) fn feed(&mut self, bytes: &[u8], to: &mut impl Perform) {
        let mut rest = bytes;
        while let Some(&byte) = rest.first() {
            let plain = match &mut self.state {
                State::Ground if self.partial.is_empty() => {
                    let run = printable_run(rest);
                    if run > 0 {
                        to.text(&rest[..run]);
                    }
                    run
                }
                State::Text(string) => string.take_run(rest),
                State::Ground | State::Escape { .. } | State::Csi(_) | State::BadCsi => 0,
            };
            if plain > 0 {
                rest = &rest[plain..];
                continue;
            }
            self.advance(byte, to);
            rest = &rest[1..];
        }
    }

    /// Writes what was read of an incomplete character or sequence, for a terminal that will be given the rest. For a
    /// string that is not kept as a whole, it writes an introducer that makes the terminal skip the rest of the string.
    pub(crate) fn write_unfinished(&self, out: &mut Vec<u8>) {
        match &self.state {
            State::Ground => out.extend_from_slice(self.partial.bytes()),
            State::Escape { intermediate } => {
                out.push(ESC);
                out.extend(*intermediate);
            }
            State::Csi(csi) => {
                out.extend_from_slice(b"\x1b[");
                out.extend(csi.marker);
                csi.params.write(out);
                out.extend(csi.intermediate);
            }
            State::BadCsi => out.extend_from_slice(b"\x1b[0<"),
            State::Text(string) => match string.kind {
                StringKind::Osc if string.payload.len() < STRING_LIMIT => {
                    out.extend_from_slice(b"\x1b]");
                    out.extend_from_slice(&string.payload);
                }
                // No terminal knows this number.
                StringKind::Osc => out.extend_from_slice(b"\x1b]99999;"),
                StringKind::Ignored => out.extend_from_slice(b"\x1b^"),
            },
        }
    }

    fn advance(&mut self, byte: u8, to: &mut impl Perform) {
        match &mut self.state {
            State::Ground => self.ground(byte, to),
            State::Escape { intermediate } => match byte {
                b' '..=b'/' => *intermediate = Some(byte),
                b'0'..=b'~' => {
                    let intermediate = *intermediate;
                    self.end_escape(intermediate, byte, to);
                }
                _ => self.anywhere(byte, to),
            },
            State::Csi(csi) => match byte {
                b'0'..=b'?' if csi.intermediate.is_some() => self.state = State::BadCsi,
                b'0'..=b'9' => csi.params.digit(byte - b'0'),
                b';' => csi.params.semicolon(),
                b':' => csi.params.colon(),
                b'<'..=b'?' if csi.marker.is_none() && csi.params.is_empty() => csi.marker = Some(byte),
                b'<'..=b'?' => self.state = State::BadCsi,
                b' '..=b'/' if csi.intermediate.is_none() => csi.intermediate = Some(byte),
                b' '..=b'/' => self.state = State::BadCsi,
                b'@'..=b'~' => {
                    to.csi(csi, byte);
                    self.state = State::Ground;
                }
                _ => self.anywhere(byte, to),
            },
            State::BadCsi => match byte {
                b' '..=b'?' => {}
                b'@'..=b'~' => self.state = State::Ground,
                _ => self.anywhere(byte, to),
            },
            State::Text(string) => {
                let ends = match byte {
                    0x07 => string.kind == StringKind::Osc,
                    0x9c => string.after_c2,
                    CAN | SUB => {
                        self.state = State::Ground;
                        return;
                    }
                    ESC => {
                        // Either the first half of the terminator `ESC \`, which does nothing more on its own, or
                        // the start of another sequence, which ends the string as well.
                        string.end(to);
                        self.state = State::Escape { intermediate: None };
                        return;
                    }
                    _ => false,
                };
                if ends {
                    string.end(to);
                    self.state = State::Ground;
                } else {
                    string.take(byte);
                }
            }
        }
    }

    /// Bytes that mean the same inside every escape sequence.
    fn anywhere(&mut self, byte: u8, to: &mut impl Perform) {
        match byte {
            CAN | SUB => self.state = State::Ground,
            ESC => self.state = State::Escape { intermediate: None },
            0x00..=0x1f => to.control(byte),
            DEL => {}
            // A character that cannot be part of a sequence cancels the sequence and is shown.
            _ => {
                self.state = State::Ground;
                self.ground(byte, to);
            }
        }
    }

    fn ground(&mut self, byte: u8, to: &mut impl Perform) {
        if byte >= 0x80 || !self.partial.is_empty() {
            match self.partial.push(byte) {
                Step::Unfinished => {}
                Step::Finished(control @ '\u{80}'..='\u{9f}') => {
                    // An eight-bit control is short for ESC and the byte 0x40 below it.
                    self.end_escape(None, (u32::from(control) - 0x40) as u8, to);
                }
                Step::Finished(character) => to.character(character),
                Step::Wrong => to.character(char::REPLACEMENT_CHARACTER),
                Step::CutOff => {
                    to.character(char::REPLACEMENT_CHARACTER);
                    self.ground(byte, to);
                }
            }
            return;
        }
        match byte {
            ESC => self.state = State::Escape { intermediate: None },
            0x00..=0x1f => to.control(byte),
            DEL => {}
            _ => to.text(&[byte]),
        }
    }

    fn end_escape(&mut self, intermediate: Option<u8>, last: u8, to: &mut impl Perform) {
        self.state = match (intermediate, last) {
            (None, b'[') => State::Csi(Csi::default()),
            (None, b']') => State::Text(ControlString::new(StringKind::Osc)),
            (None, b'P' | b'X' | b'^' | b'_') => State::Text(ControlString::new(StringKind::Ignored)),
            (_, _) => {
                to.escape(intermediate, last);
                State::Ground
            }
        };
    }
}

impl ControlString {
    fn new(kind: StringKind) -> ControlString {
        ControlString { kind, payload: Vec::new(), after_c2: false }
    }

    fn take(&mut self, byte: u8) {
        self.after_c2 = byte == 0xc2;
        if self.kind == StringKind::Osc && byte >= b' ' && self.payload.len() < STRING_LIMIT {
            self.payload.push(byte);
        }
    }

    /// Takes the bytes that cannot be the end of the string, in one step; returns how many.
    fn take_run(&mut self, bytes: &[u8]) -> usize {
        let special = |&byte: &u8| byte < b' ' || byte == 0xc2 || byte == 0x9c;
        let run = bytes.iter().position(special).unwrap_or(bytes.len());
        if run > 0 {
            self.after_c2 = false;
            if self.kind == StringKind::Osc {
                let room = STRING_LIMIT.saturating_sub(self.payload.len());
                self.payload.extend_from_slice(&bytes[..run.min(room)]);
            }
        }
        run
    }

    fn end(&mut self, to: &mut impl Perform) {
        match self.kind {
            StringKind::Osc => {
                // The first byte of a terminating U+009C was stored as text.
                let payload = self.payload.strip_suffix(b"\xc2").unwrap_or(&self.payload);
                to.osc(payload);
            }
            StringKind::Ignored => {}
        }
    }
}

/// How many bytes at the start are printable ASCII.
fn printable_run(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| !(b' '..=b'~').contains(byte)).unwrap_or(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Records the calls.
    #[derive(Default)]
    struct Notes(Vec<String>);

    impl Perform for Notes {
        fn text(&mut self, ascii: &[u8]) {
            for &byte in ascii {
                self.0.push(char::from(byte).to_string());
            }
        }
        fn character(&mut self, character: char) {
            self.0.push(character.to_string());
        }
        fn control(&mut self, byte: u8) {
            self.0.push(format!("^{byte:02x}"));
        }
        fn escape(&mut self, intermediate: Option<u8>, last: u8) {
            self.0.push(format!(
                "ESC{}{}",
                intermediate.map(char::from).map_or(String::new(), String::from),
                last as char
            ));
        }
        fn csi(&mut self, sequence: &Csi, last: u8) {
            let marker = sequence.marker.map(char::from);
            let intermediate = sequence.intermediate.map(char::from);
            let values = sequence.params.values();
            self.0.push(format!("CSI{marker:?}{values:?}{intermediate:?}{}", last as char));
        }
        fn osc(&mut self, payload: &[u8]) {
            self.0.push(format!("OSC{}", String::from_utf8_lossy(payload)));
        }
    }

    fn notes(bytes: &[u8]) -> Vec<String> {
        let mut notes = Notes::default();
        Parser::default().feed(bytes, &mut notes);
        notes.0
    }

    #[test]
    fn sequences_are_told_apart_from_text() {
        assert_eq!(notes(b"a\x1b[?25;1lb\r"), ["a", "CSISome('?')[25, 1]Nonel", "b", "^0d"]);
        assert_eq!(notes(b"\x1b[2 q\x1b(0\x1b7"), ["CSINone[2]Some(' ')q", "ESC(0", "ESC7"]);
    }

    #[test]
    fn a_title_ends_at_bell_or_at_either_string_terminator() {
        let wanted = ["OSC0;tïtle", "x"];
        assert_eq!(notes("\x1b]0;tïtle\x07x".as_bytes()), wanted);
        assert_eq!(notes("\x1b]0;tïtle\u{9c}x".as_bytes()), wanted);
        assert_eq!(notes("\u{9d}0;tïtle\x1b\\x".as_bytes()), ["OSC0;tïtle", "ESC\\", "x"]);
    }

    #[test]
    fn control_strings_other_than_titles_vanish_whole() {
        assert_eq!(notes(b"a\x1bPq#1~~\nxx\x07yy\x1b\\b"), ["a", "ESC\\", "b"]);
        assert_eq!(notes(b"\x1b_Gi=1;AAAA\x1b\\b"), ["ESC\\", "b"]);
        assert_eq!(notes(b"\x1b]0;never\x18b"), ["b"]);
    }

    #[test]
    fn controls_inside_a_sequence_take_effect_at_once() {
        assert_eq!(notes(b"\x1b[1\n2C"), ["^0a", "CSINone[12]NoneC"]);
        assert_eq!(notes(b"\x1b[1\x18x"), ["x"]);
        assert_eq!(notes(b"\x1b[1\x1b[2mx"), ["CSINone[2]Nonem", "x"]);
    }

    #[test]
    fn malformed_sequences_are_swallowed_to_their_end() {
        assert_eq!(notes(b"\x1b[1?2hx"), ["x"]);
        assert_eq!(notes(b"\x1b[ 1qx"), ["x"]);
        assert_eq!(notes("\x1b[1表x".as_bytes()), ["表", "x"]);
    }

    #[test]
    fn wrong_utf8_is_replaced_and_never_swallows_an_escape() {
        assert_eq!(notes(b"\xff\xe8\xa1\x1b[m\xe8a"), ["\u{fffd}", "\u{fffd}", "CSINone[]Nonem", "\u{fffd}", "a"]);
    }

    #[test]
    fn an_endless_string_takes_no_space() {
        let mut parser = Parser::default();
        parser.feed(b"\x1b]2;", &mut Notes::default());
        for _ in 0..1000 {
            parser.feed(&[b'x'; 10_000], &mut Notes::default());
        }
        let State::Text(string) = &parser.state else { unreachable!("still inside the string") };
        assert_eq!(string.payload.len(), STRING_LIMIT);
        assert!(string.payload.capacity() <= 4 * STRING_LIMIT);
    }

    proptest! {
        #[test]
        fn where_the_input_is_cut_makes_no_difference(
            bytes in prop::collection::vec(
                prop_oneof![any::<u8>(), prop::sample::select(&b"\x1b\x1b\x1b[]P;:?01\x07\\\xc2\x9c\xe8\xa1\xa8m"[..])],
                0..60,
            ),
            cut in any::<prop::sample::Index>(),
        ) {
            let cut = cut.index(bytes.len() + 1);
            let mut parser = Parser::default();
            let mut parts = Notes::default();
            parser.feed(&bytes[..cut], &mut parts);
            parser.feed(&bytes[cut..], &mut parts);
            prop_assert_eq!(parts.0, notes(&bytes));
        }
    }
}
