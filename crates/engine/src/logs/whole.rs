//! How much of a text that is still being written may be shown.

/// A line is shown in parts once this much of it has come.
const LONG_LINE: usize = 1 << 20;
/// Longer than any escape sequence, so that the beginning of one is found within this many bytes.
const LONG_SEQUENCE: usize = 4096;

/// How many bytes may be shown. Only whole lines: half an escape sequence looks harmless. A line that is too long to
/// keep in memory is cut, but not inside a sequence or a character.
#[must_use]
pub fn end_of_whole(text: &[u8]) -> usize {
    if let Some(place) = text.iter().rposition(|&byte| byte == b'\n') {
        return place + 1;
    }
    if text.len() < LONG_LINE {
        return 0;
    }
    let tail = text.len() - LONG_SEQUENCE;
    let escape = text[tail..].iter().rposition(|&byte| byte == b'\x1b').map(|place| tail + place);
    let character = (tail..text.len()).rev().find(|&place| text[place] & 0xc0 != 0x80);
    escape.or(character).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_end_is_shown_in_parts_that_break_neither_sequence_nor_character() {
        assert_eq!(end_of_whole(b"one\ntwo"), 4);
        assert_eq!(end_of_whole(b"still coming"), 0);
        let mut text = vec![b'x'; LONG_LINE];
        text.extend("é".as_bytes());
        assert_eq!(end_of_whole(&text[..=LONG_LINE]), LONG_LINE, "before half a character");
        text.extend(b"\x1b[3");
        assert_eq!(end_of_whole(&text), LONG_LINE + 2, "before half a sequence");
    }
}
