//! Terminal codes in a text. Gemini removes them from each piece of its output and keeps them in its transcript, so
//! texts are compared without them.

use std::borrow::Cow;

/// The text without its terminal codes: colours and similar codes, titles and links, and an escape that begins no code.
pub fn without(text: &str) -> Cow<'_, str> {
    if !text.contains(is_escape) {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(is_escape) {
        let (before, code) = rest.split_at(at);
        kept.push_str(before);
        rest = behind(code);
    }
    kept.push_str(rest);
    Cow::Owned(kept)
}

/// Escape, and the single character that means escape and bracket.
fn is_escape(character: char) -> bool {
    matches!(character, '\u{1b}' | '\u{9b}')
}

/// What follows the code at the beginning of this text.
fn behind(code: &str) -> &str {
    let mut inner = code.chars();
    inner.next();
    let inner = inner.as_str();
    // A title or a link: up to its end.
    if code.starts_with("\u{1b}]") {
        let ends = ["\u{7}", "\u{1b}\\", "\u{9c}"];
        let end = ends.iter().filter_map(|end| inner.find(end).map(|at| at + end.len())).min();
        if let Some(rest) = end.and_then(|end| inner.get(end..)) {
            return rest;
        }
    }
    let numbers = inner.trim_start_matches(['[', ']', '(', ')', '#', ';', '?']);
    let last = numbers.trim_start_matches(|character: char| character.is_ascii_digit() || ";:".contains(character));
    match last.chars().next() {
        Some('A'..='P' | 'R'..='T' | 'Z' | 'c' | 'f'..='n' | 'q'..='u' | 'y' | '=' | '>' | '<' | '~') => {
            last.get(1..).unwrap_or_default()
        }
        // The last letter is missing: a number may end the code, else it is an escape alone.
        Some(_) | None if last.len() < numbers.len() => last,
        Some(_) | None => inner,
    }
}

#[cfg(test)]
mod tests {
    use super::without;

    #[test]
    fn codes_are_left_out_and_nothing_else_is() {
        for (text, kept) in [
            ("plain [31m text", "plain [31m text"),
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{9b}32mgreen", "green"),
            ("\u{1b}]8;;file:///x\u{1b}\\link\u{1b}]8;;\u{1b}\\ é", "link é"),
            ("\u{1b}]0;title\u{7}after", "after"),
            ("\u{1b}[2Kline\u{1b}[?25l", "line"),
            ("an escape \u{1b} alone\u{1b}", "an escape  alone"),
            ("\u{1b}[31", ""),
        ] {
            assert_eq!(without(text), kept, "{text:?}");
        }
    }
}
