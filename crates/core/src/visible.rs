//! Text in which nothing is hidden.
//!
//! A person allows a command by what they read, so everything that is in it must be visible: a line break, an escape
//! sequence, a mark that reverses the direction of what follows, a character without width, a run of spaces that pushes
//! the rest out of sight. [`visible`] gives each of them a sign of its own. The signs themselves are replaced where
//! they are part of the text, so that two different texts never look the same.

use std::borrow::Cow;
use std::fmt::Write;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Stands for a line break.
pub const LINE_BREAK: char = '⏎';
/// A run of spaces is shown as it is up to this many.
const SPACES: usize = 16;
/// A run of line breaks likewise.
const BREAKS: usize = 3;

/// The text on one line, with a sign for everything that would not show.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + text.len() / 8);
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let run = rest.chars().take_while(|next| *next == character).count();
        match character {
            ' ' if run <= SPACES => shown.extend(std::iter::repeat_n(' ', run)),
            ' ' => push(&mut shown, format_args!("⟨{run} spaces⟩")),
            '\n' if run <= BREAKS => shown.extend(std::iter::repeat_n(LINE_BREAK, run)),
            '\n' => push(&mut shown, format_args!("⟨{run} line breaks⟩")),
            other => (0..run).for_each(|_| push_one(&mut shown, other)),
        }
        rest = &rest[run * character.len_utf8()..];
    }
    Cow::Owned(shown)
}

/// Writing to a text cannot fail.
fn push(shown: &mut String, sign: std::fmt::Arguments<'_>) {
    let _ = shown.write_fmt(sign);
}

fn push_one(shown: &mut String, character: char) {
    match character {
        // Unicode has a picture for each control character, in the same order.
        '\0'..='\x1f' => shown.push(char::from_u32(0x2400 + u32::from(character)).unwrap_or('\u{fffd}')),
        '\x7f' => shown.push('␡'),
        other if is_hidden(other) || is_sign(other) => push(shown, format_args!("⟨U+{:04X}⟩", u32::from(other))),
        other => shown.push(other),
    }
}

/// Whether nothing has to be replaced, as in most texts: printable ASCII without a long run of spaces.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..0x7f).contains(&byte)) && !text.contains("                 ")
}

/// The signs that we write for something else.
fn is_sign(character: char) -> bool {
    matches!(character, LINE_BREAK | '⟨' | '⟩' | '\u{2400}'..='\u{243f}')
}

/// Characters that take no room, look like a space without being one, or change the direction of other text.
fn is_hidden(character: char) -> bool {
    matches!(character,
        '\u{80}'..='\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{1680}'
        | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}'
        | '\u{205f}'..='\u{206f}' | '\u{2800}' | '\u{3000}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{e0fff}' | '\u{f0000}'..='\u{10ffff}')
}

/// The text in this many columns. If it does not fit, its middle is left out, and its length is shown there if there is
/// room for it.
#[must_use]
pub fn shortened(text: &str, columns: usize) -> Cow<'_, str> {
    if text.width() <= columns {
        return Cow::Borrowed(text);
    }
    // Both ends matter more than the length, unless nearly all of the text is left out.
    let count = text.chars().count();
    let (long, short) = (format!("…[{count} chars]…"), format!("…[{count}]…"));
    let mark = match columns {
        _ if columns >= long.width() + 12 => long.as_str(),
        _ if count > columns * 4 && columns >= short.width() + 6 => short.as_str(),
        _ => "…",
    };
    let room = columns.saturating_sub(mark.width());
    let head = fitting(text.chars(), room.div_ceil(2));
    let tail = fitting(text.chars().rev(), room / 2);
    let tail_start = text.len() - tail;
    Cow::Owned(format!("{}{mark}{}", &text[..head], &text[tail_start..]))
}

/// How many bytes of these characters fit into so many columns.
fn fitting(characters: impl Iterator<Item = char>, columns: usize) -> usize {
    let mut used = 0;
    characters
        .take_while(|character| {
            used += character.width().unwrap_or(0);
            used <= columns
        })
        .map(char::len_utf8)
        .sum()
}

/// The text in rows of at most so many columns.
pub fn rows(text: &str, columns: usize) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        // A character wider than the window gets a row of its own.
        let first = text.chars().next().map_or(0, char::len_utf8);
        let end = fitting(text.chars(), columns).max(first);
        rest = Some(&text[end..]).filter(|rest| !rest.is_empty());
        Some(&text[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn everything_that_would_not_show_has_a_sign() {
        for (text, shown) in [
            ("ls -l", "ls -l"),
            ("naïve — 表 👍", "naïve — 表 👍"),
            ("echo harmless\nrm -rf x", "echo harmless⏎rm -rf x"),
            ("a\r\n\tb", "a␍⏎␉b"),
            ("\x1b[2K\x07\0\x7f", "␛[2K␇␀␡"),
            ("a\u{9b}31m", "a⟨U+009B⟩31m"),
            ("a\u{202e}b\u{2066}c\u{200f}d\u{61c}", "a⟨U+202E⟩b⟨U+2066⟩c⟨U+200F⟩d⟨U+061C⟩"),
            ("r\u{200b}m\u{feff}\u{2060}\u{ad}", "r⟨U+200B⟩m⟨U+FEFF⟩⟨U+2060⟩⟨U+00AD⟩"),
            ("rm\u{a0}-rf\u{3000}x\u{2028}", "rm⟨U+00A0⟩-rf⟨U+3000⟩x⟨U+2028⟩"),
            ("a\u{e0041}", "a⟨U+E0041⟩"),
            ("⏎ ⟨2⟩ ␛", "⟨U+23CE⟩ ⟨U+27E8⟩2⟨U+27E9⟩ ⟨U+241B⟩"),
        ] {
            assert_eq!(visible(text), shown, "{text:?}");
        }
        assert_eq!(visible(&format!("ls{}; rm", " ".repeat(300))), "ls⟨300 spaces⟩; rm");
        assert_eq!(visible(&format!("ls{}; rm", " ".repeat(16))), format!("ls{}; rm", " ".repeat(16)));
        assert_eq!(visible(&format!("ls{}rm", "\n".repeat(300))), "ls⟨300 line breaks⟩rm");
    }

    #[test]
    fn what_does_not_fit_loses_its_middle_and_tells_its_length() {
        let long = format!("begin{}end", "x".repeat(100_000));
        let short = shortened(&long, 40);
        assert_eq!(short, "beginxxxxxxx…[100008 chars]…xxxxxxxxxend");
        assert_eq!(short.width(), 40);
        assert_eq!(shortened(&long, 11), "begin…xxend");
        assert_eq!(shortened("fits", 4), "fits");
        assert_eq!(shortened("表表表表", 5), "表…表");
        assert_eq!(shortened("long", 0), "…");
    }

    #[test]
    fn rows_hold_all_of_the_text() {
        assert_eq!(rows("abcdefg", 3).collect::<Vec<_>>(), ["abc", "def", "g"]);
        assert_eq!(rows("表表", 1).collect::<Vec<_>>(), ["表", "表"]);
        assert_eq!(rows("", 3).collect::<Vec<_>>(), [""]);
    }

    /// The text that is shown in this way.
    fn meant(shown: &str) -> String {
        let mut text = String::new();
        let mut rest = shown;
        while let Some(character) = rest.chars().next() {
            rest = &rest[character.len_utf8()..];
            match character {
                LINE_BREAK => text.push('\n'),
                '␡' => text.push('\x7f'),
                '\u{2400}'..='\u{241f}' => text.extend(char::from_u32(u32::from(character) - 0x2400)),
                '⟨' => {
                    let (sign, behind) = rest.split_once('⟩').unwrap_or((rest, ""));
                    rest = behind;
                    if let Some(number) = sign.strip_prefix("U+") {
                        text.extend(u32::from_str_radix(number, 16).ok().and_then(char::from_u32));
                    } else {
                        let (count, what) = sign.split_once(' ').unwrap_or((sign, ""));
                        let one = if what == "spaces" { " " } else { "\n" };
                        text.push_str(&one.repeat(count.parse().unwrap_or(0)));
                    }
                }
                other => text.push(other),
            }
        }
        text
    }

    fn untrusted() -> impl Strategy<Value = String> {
        let pieces = prop::sample::select(vec![
            "\n",
            "\n\n\n\n\n",
            " ",
            "                    ",
            "\x1b",
            "\r",
            "\t",
            "\u{202e}",
            "\u{200b}",
            "⏎",
            "⟨",
            "⟩",
            "⟨U+0041⟩",
            "⟨3 spaces⟩",
            "␛",
            "a",
            "表",
            "\u{a0}",
            "\u{e0041}",
            "é",
        ]);
        prop_oneof![prop::collection::vec(pieces, 0..30).prop_map(|pieces| pieces.concat()), any::<String>()]
    }

    proptest! {
        #[test]
        fn two_texts_never_look_the_same(text in untrusted()) {
            let shown = visible(&text);
            prop_assert_eq!(&meant(&shown), &text);
            prop_assert!(!shown.chars().any(|character| character.is_control() || is_hidden(character)));
        }

        #[test]
        fn nothing_is_wider_than_its_room_and_rows_lose_nothing(text in untrusted(), columns in 2usize..60) {
            let shown = visible(&text);
            prop_assert!(shortened(&shown, columns).width() <= columns);
            prop_assert_eq!(rows(&shown, columns).collect::<String>(), shown.as_ref());
            prop_assert!(rows(&shown, columns).all(|row| row.width() <= columns));
        }
    }
}
