//! Untrusted text made safe for a terminal.
//!
//! The output of an agent or a command, or a file name, may contain escape sequences that move the cursor, change the
//! title, make the terminal send input, or reverse the direction of the text so that it reads differently. They are
//! removed as a whole. Every other control character becomes U+FFFD, so that its place stays visible. Text without any
//! of this is returned as it is, at the speed of reading it.
//!
//! A control string that is not terminated ends with its line: it must not hide the lines after it.

use std::borrow::Cow;

/// Replaces a control character.
const REPLACEMENT: &str = "\u{fffd}";

/// One line of untrusted text. A tab or a line break becomes a space.
pub fn printable(untrusted: &str) -> Cow<'_, str> {
    let Some(first) = next_special::<false>(untrusted, 0) else { return Cow::Borrowed(untrusted) };
    let mut clean = String::with_capacity(untrusted.len());
    clean.push_str(&untrusted[..first]);
    each_piece::<false>(untrusted, first, |piece| match piece {
        Piece::Text(text) => clean.push_str(text),
        Piece::Control('\t' | '\n' | '\r') => clean.push(' '),
        Piece::Control(_) => clean.push_str(REPLACEMENT),
    });
    Cow::Owned(clean)
}

/// Many lines of untrusted text. Line breaks stay. Of a line that was overwritten after a carriage return, as progress
/// bars do it, the last version stays.
pub fn printable_lines(untrusted: &str) -> Cow<'_, str> {
    many_lines(untrusted, Return::Overwrites)
}

/// Many lines of a conversation. A carriage return is a line break, alone or before a line feed: a message contains no
/// progress bars, and no text of it may be missing.
pub fn printable_text(untrusted: &str) -> Cow<'_, str> {
    many_lines(untrusted, Return::BreaksLine)
}

/// What a carriage return that is not part of a line end does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Return {
    Overwrites,
    BreaksLine,
}

fn many_lines(untrusted: &str, meaning: Return) -> Cow<'_, str> {
    let Some(first) = next_special::<true>(untrusted, 0) else { return Cow::Borrowed(untrusted) };
    let mut lines = Lines { clean: String::with_capacity(untrusted.len()), line_start: 0, returned: false, meaning };
    lines.push(&untrusted[..first]);
    each_piece::<true>(untrusted, first, |piece| match piece {
        Piece::Text(text) => lines.push(text),
        Piece::Control('\r') => lines.carriage_return(),
        Piece::Control('\t') => lines.push(" "),
        Piece::Control(_) => lines.push(REPLACEMENT),
    });
    lines.end();
    Cow::Owned(lines.clean)
}

/// Invisible characters that reverse the direction of the text after them.
pub(crate) fn is_hidden_direction(character: char) -> bool {
    matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

struct Lines {
    clean: String,
    line_start: usize,
    /// The last character was a carriage return: what follows, unless it is the end of the line, replaces the line or
    /// begins a new one.
    returned: bool,
    meaning: Return,
}

impl Lines {
    fn push(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.returned && !text.starts_with('\n') {
            match self.meaning {
                Return::Overwrites => self.clean.truncate(self.line_start),
                Return::BreaksLine => self.clean.push('\n'),
            }
        }
        self.returned = false;
        if let Some(newline) = text.rfind('\n') {
            self.line_start = self.clean.len() + newline + 1;
        }
        self.clean.push_str(text);
    }

    fn carriage_return(&mut self) {
        // Two in a row are two line breaks.
        self.end();
        self.returned = true;
    }

    /// Ends the line after a carriage return that is followed by nothing or by another carriage return.
    fn end(&mut self) {
        if self.returned && self.meaning == Return::BreaksLine {
            self.clean.push('\n');
        }
        self.returned = false;
    }
}

enum Piece<'a> {
    Text(&'a str),
    /// A control character that is not part of an escape sequence.
    Control(char),
}

/// Passes on `text` from `at` on, without its escape sequences. At `at` is a special character.
fn each_piece<const LINES: bool>(text: &str, mut at: usize, mut hand_out: impl FnMut(Piece<'_>)) {
    while let Some(character) = text[at..].chars().next() {
        let after = match sequence_end(text.as_bytes(), at, character) {
            Some(end) => end,
            None => {
                hand_out(Piece::Control(character));
                at + character.len_utf8()
            }
        };
        at = next_special::<LINES>(text, after).unwrap_or(text.len());
        hand_out(Piece::Text(&text[after..at]));
    }
}

/// The position of the next control character or hidden direction; with `LINES`, a line feed is not special.
fn next_special<const LINES: bool>(text: &str, from: usize) -> Option<usize> {
    /// Twice as much as the processor compares at once.
    const STRIDE: usize = 32;

    // Without short-circuit operators, so that a whole stride is compared at once.
    let suspicious =
        |byte: u8| ((byte < b' ') & !(LINES & (byte == b'\n'))) | (byte == 0x7f) | (byte == 0xc2) | (byte == 0xe2);
    let bytes = text.as_bytes();
    let mut at = from;
    loop {
        let clean = bytes[at..].chunks_exact(STRIDE);
        at += STRIDE * clean.take_while(|chunk| !chunk.iter().fold(false, |any, &byte| any | suspicious(byte))).count();
        at += bytes[at..].iter().position(|&byte| suspicious(byte))?;
        // Most characters that start with 0xc2 or 0xe2 are ordinary.
        let special = match bytes[at..] {
            [0xc2, second, ..] => second < 0xa0,
            [0xe2, 0x80, third, ..] => (0xaa..=0xae).contains(&third),
            [0xe2, 0x81, third, ..] => (0xa6..=0xa9).contains(&third),
            [0xe2, ..] => false,
            _ => true,
        };
        if special {
            return Some(at);
        }
        at += 1;
    }
}

/// The end of the escape sequence that `introducer` begins at `at`; `None` if it begins none.
fn sequence_end(bytes: &[u8], at: usize, introducer: char) -> Option<usize> {
    let body = at + introducer.len_utf8();
    let is = |range: std::ops::RangeInclusive<u8>| move |byte: &u8| range.contains(byte);
    match introducer {
        '\x1b' => match bytes.get(body) {
            Some(b'[') => Some(csi_end(bytes, body + 1)),
            Some(b']') => Some(string_end(bytes, body + 1, true)),
            Some(b'P' | b'X' | b'^' | b'_') => Some(string_end(bytes, body + 1, false)),
            Some(_) | None => {
                let last = body + run(bytes, body, is(b' '..=b'/'));
                Some(last + usize::from(bytes.get(last).is_some_and(is(b'0'..=b'~'))))
            }
        },
        '\u{9b}' => Some(csi_end(bytes, body)),
        '\u{9d}' => Some(string_end(bytes, body, true)),
        '\u{90}' | '\u{98}' | '\u{9e}' | '\u{9f}' => Some(string_end(bytes, body, false)),
        _ => None,
    }
}

/// `at` is after `ESC [`. An incomplete sequence ends where it breaks off.
fn csi_end(bytes: &[u8], at: usize) -> usize {
    let last = at + run(bytes, at, |byte| (b' '..=b'?').contains(byte));
    last + usize::from(bytes.get(last).is_some_and(|byte| (b'@'..=b'~').contains(byte)))
}

/// `at` is inside a control string.
fn string_end(bytes: &[u8], at: usize, ends_at_bell: bool) -> usize {
    let mut at = at;
    loop {
        at += run(bytes, at, |&byte| byte >= b' ' && byte != 0xc2);
        match bytes[at..] {
            [] | [b'\n', ..] => return at,
            [0x07, ..] if ends_at_bell => return at + 1,
            [0x18 | 0x1a, ..] => return at + 1,
            [0x1b, b'\\', ..] | [0xc2, 0x9c, ..] => return at + 2,
            [0x1b, ..] => return at,
            [_, ..] => at += 1,
        }
    }
}

fn run(bytes: &[u8], at: usize, belongs: impl Fn(&u8) -> bool) -> usize {
    bytes[at..].iter().take_while(|byte| belongs(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn clean_text_is_borrowed() {
        for text in ["", "plain", "naïve — “quoted” ⏺ 表 👍🏽 ½ ¡", &"long ".repeat(50)] {
            assert!(matches!(printable(text), Cow::Borrowed(same) if same == text), "{text}");
            assert!(matches!(printable_lines(text), Cow::Borrowed(same) if same == text), "{text}");
        }
        assert!(matches!(printable_lines("a\nb\n"), Cow::Borrowed("a\nb\n")));
    }

    #[test]
    fn escape_sequences_are_taken_out_whole() {
        for (untrusted, clean) in [
            ("a\x1b[1;31mb\x1b[0mc", "abc"),
            ("a\x1b]0;title\x07b", "ab"),
            ("a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb"),
            ("a\x1bP1$r0m\x07still inside\x1b\\b", "ab"),
            ("a\x1b(0b\x1b7c\x1b#8d", "abcd"),
            ("a\u{9b}31mb\u{9d}0;t\u{9c}c\u{90}x\u{9c}d", "abcd"),
            ("a\x1b[?2004hb\x1b[2 qc\x1b[>4;2md", "abcd"),
            ("a\x1b]0;never ended", "a"),
            ("a\x1b[31\x1b[32mb\x1b", "ab"),
            ("a\x1b]0;t\x1b[31mb", "ab"),
            ("a\x1b[31é", "aé"),
        ] {
            assert_eq!(printable(untrusted), clean, "{untrusted:?}");
            assert_eq!(printable_lines(untrusted), clean, "{untrusted:?}");
        }
    }

    #[test]
    fn other_controls_and_hidden_directions_are_shown_as_replaced() {
        assert_eq!(
            printable("a\0b\x07c\x7fd\u{85}e\u{202e}f\u{2066}g"),
            "a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}e\u{fffd}f\u{fffd}g"
        );
        assert_eq!(printable("a\tb\nc\r\nd"), "a b c  d");
    }

    #[test]
    fn lines_stay_lines_and_a_progress_bar_keeps_its_last_version() {
        for (untrusted, clean) in [
            ("a\r\nb\r\n", "a\nb\n"),
            ("10%\r50%\r100%\ndone\n", "100%\ndone\n"),
            ("kept\r", "kept"),
            ("kept\r\r\nb", "kept\nb"),
            ("first\n10%\r\x1b[K20%", "first\n20%"),
            ("a\x1b]0;never ended\nb", "a\nb"),
            ("a\tb", "a b"),
        ] {
            assert_eq!(printable_lines(untrusted), clean, "{untrusted:?}");
        }
    }

    #[test]
    fn a_carriage_return_in_a_conversation_is_a_line_break_and_drops_nothing() {
        for (untrusted, clean) in [
            ("one\rtwo", "one\ntwo"),
            ("one\r\ntwo\r\n", "one\ntwo\n"),
            ("one\r", "one\n"),
            ("one\r\rtwo", "one\n\ntwo"),
            ("one\r\x1b[Ktwo\tx", "one\ntwo x"),
        ] {
            assert_eq!(printable_text(untrusted), clean, "{untrusted:?}");
        }
    }

    fn harmless(text: &str) -> bool {
        !text.chars().any(|character| character.is_control() || is_hidden_direction(character))
    }

    fn untrusted() -> impl Strategy<Value = String> {
        let pieces = prop::sample::select(vec![
            "\x1b", "[", "]", "P", "\\", "\x07", "31m", "\u{9b}", "\u{9c}", "\u{9d}", "\u{202e}", "\n", "\r", "é",
            "表", "a", "\u{2067}", "\t", "\x18", "~", " ", "\0", "\u{c2}",
        ]);
        prop_oneof![prop::collection::vec(pieces, 0..80).prop_map(|pieces| pieces.concat()), any::<String>()]
    }

    proptest! {
        #[test]
        fn nothing_harmful_passes(text in untrusted()) {
            prop_assert!(harmless(&printable(&text)));
            prop_assert!(printable_lines(&text).split('\n').all(harmless));
            prop_assert!(printable_text(&text).split('\n').all(harmless));
        }

        #[test]
        fn what_has_passed_passes_unchanged(text in untrusted()) {
            let once = printable(&text).into_owned();
            prop_assert!(matches!(printable(&once), Cow::Borrowed(_)));
            let once = printable_lines(&text).into_owned();
            prop_assert!(matches!(printable_lines(&once), Cow::Borrowed(_)));
        }

        #[test]
        fn special_characters_are_found_wherever_they_are(before in "[a-z—é]{0,70}", after in "[a-z—é]{0,70}") {
            let text = format!("{before}\u{1}{after}");
            prop_assert_eq!(next_special::<false>(&text, 0), Some(before.len()));
        }
    }
}
