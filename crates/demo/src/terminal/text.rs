//! Text in cells: its width, where it wraps, and which characters may safely be sent to a terminal.

/// How many cells a character takes. Not all of Unicode: enough to keep the frame straight for what people type.
pub fn width(character: char) -> usize {
    match u32::from(character) {
        0x0300..=0x036f | 0x1ab0..=0x1aff | 0x200b..=0x200f | 0x20d0..=0x20ff | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f
        | 0x2e80..=0x303e
        | 0x3041..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f
        | 0x1f680..=0x1f6ff
        | 0x1f900..=0x1f9ff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

pub fn text_width(text: &str) -> usize {
    text.chars().map(width).sum()
}

/// A character that may be sent to a terminal: one that would control the terminal or reorder its text becomes a dot.
pub fn harmless(character: char) -> char {
    match character {
        '\t' => ' ',
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '·',
        other if other.is_control() => '·',
        other => other,
    }
}

/// `text` in exactly `columns` cells: cut, or filled with blanks.
pub fn fit(text: &str, columns: usize) -> String {
    let mut fitted = String::new();
    let mut used = 0;
    for character in text.chars() {
        if used + width(character) > columns {
            break;
        }
        used += width(character);
        fitted.push(character);
    }
    fitted.extend(std::iter::repeat_n(' ', columns - used));
    fitted
}

/// The end of `text` that fits into `columns` cells.
pub fn end(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (index, character) in text.char_indices().rev() {
        used += width(character);
        if used > columns {
            return &text[index + character.len_utf8()..];
        }
    }
    text
}

/// `text` in lines of at most `columns` cells, broken at blanks where there are any. At least one line.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(2);
    let mut lines = Vec::new();
    for paragraph in text.trim_end_matches('\n').split('\n') {
        let mut line = String::new();
        let mut used = 0;
        for word in paragraph.trim_end_matches('\r').split_inclusive(' ') {
            let word: String = word.chars().map(harmless).collect();
            // A blank at the end of a line may exceed the width.
            if used > 0 && used + text_width(word.trim_end()) > columns {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            for character in word.chars() {
                if used + width(character) > columns {
                    if character == ' ' {
                        continue;
                    }
                    lines.push(std::mem::take(&mut line));
                    used = 0;
                }
                used += width(character);
                line.push(character);
            }
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_wraps_at_blanks_and_only_breaks_words_that_are_too_long() {
        assert_eq!(wrap("one two three", 8), ["one two ", "three"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("a\n\nb\n", 4), ["a", "", "b"]);
        assert_eq!(wrap("", 4), [""]);
        assert_eq!(wrap("日本語", 4), ["日本", "語"]);
    }

    #[test]
    fn nothing_that_commands_a_terminal_gets_through() {
        let shown = wrap("red \x1b[31m\u{9b}2J\u{202e}x\ty", 80).concat();
        assert_eq!(shown, "red ·[31m··2J·x y".replace("··2J", "·2J"));
        assert!(!shown.chars().any(char::is_control));
    }

    #[test]
    fn fitted_text_takes_exactly_its_cells() {
        for (text, columns) in [("abc", 5), ("abcdef", 3), ("日本語", 5), ("", 0), ("日", 1)] {
            assert_eq!(text_width(&fit(text, columns)), columns);
        }
        assert_eq!(end("hello world", 5), "world");
        assert_eq!(end("a日", 2), "日");
    }
}
