//! Recognises, at the beginning of a text, what an agent made up or read from a clock. Each function returns the length
//! of what it has recognised.

/// Whether a name or number may begin after this text. In a JSON string an escaped line break ends with a letter.
pub fn is_boundary(before: &str) -> bool {
    let line_break = ["\\n", "\\r", "\\t"].iter().any(|escape| before.ends_with(escape));
    line_break || !before.ends_with(|last: char| last.is_ascii_alphanumeric())
}

fn run(text: &str, of: impl Fn(char) -> bool) -> usize {
    text.find(|character| !of(character)).unwrap_or(text.len())
}

fn hex_run(text: &str) -> usize {
    run(text, |character| character.is_ascii_hexdigit())
}

pub fn digits(text: &str) -> usize {
    run(text, |character| character.is_ascii_digit())
}

/// A number with or without a fraction.
pub fn number(text: &str) -> usize {
    run(text, |character| character.is_ascii_digit() || character == '.')
}

pub fn uuid(text: &str) -> Option<usize> {
    let mut rest = text;
    for (index, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix('-')?;
        }
        let found = hex_run(rest);
        // In the name of a file more text may follow the UUID, but not more hexadecimal digits.
        if found < length || index == 4 && found > length {
            return None;
        }
        rest = rest.get(length..)?;
    }
    Some(36)
}

/// A checksum, or another name in hexadecimal digits.
pub fn checksum(text: &str) -> Option<usize> {
    let length = run(text, |character| character.is_ascii_alphanumeric());
    (length >= 32 && hex_run(text) == length).then_some(length)
}

/// A name like `ses_e21fb892bffecaS3QOGRzEO6UV`: the length of its prefix, and of the whole.
pub fn prefixed_name(text: &str) -> Option<(usize, usize)> {
    let kind = run(text, |character| character.is_ascii_lowercase());
    let name = run(text.get(kind..)?.strip_prefix('_')?, |character| character.is_ascii_alphanumeric());
    ((2..=6).contains(&kind) && name >= 20).then_some((kind, kind + 1 + name))
}

/// The time of day after a date: `T07:03:12.762Z`, or `T07-03` in the name of a file.
pub fn time_of_day(text: &str) -> usize {
    let two = |text: &str| digits(text) == 2;
    let mut length = 0;
    for marks in ["T", ":-", ":-"] {
        let Some(rest) = text.get(length..).and_then(|rest| rest.strip_prefix(|mark| marks.contains(mark))) else {
            break;
        };
        if !two(rest) {
            break;
        }
        length += 3;
    }
    let fraction = text.get(length..).and_then(|rest| rest.strip_prefix(['.', '-'])).filter(|_| length == 9);
    // In the name of a file, a number may follow that is not a fraction.
    if let Some(count) = fraction.map(digits).filter(|&count| text[length..].starts_with('.') || count == 3) {
        length += 1 + count;
    }
    length + usize::from(length > 0 && text.get(length..).is_some_and(|rest| rest.starts_with('Z')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_recognised_whatever_stands_behind_them() {
        assert_eq!(uuid("01a1de04-6665-7552-a061-89552b5cca9e.jsonl"), Some(36));
        assert_eq!(uuid("01a1de04-6665-7552-a061-89552b5cca9e0"), None);
        assert_eq!(uuid("01a1de04-6665"), None);
        assert_eq!(checksum("d04923d38bb0f6017037e74183378ef4\""), Some(32));
        assert_eq!(checksum("d04923d38bb0f6017037e74183378efz"), None);
        assert_eq!(prefixed_name("ses_e21fb892bffecaS3QOGRzEO6UV\""), Some((3, 30)));
        assert_eq!(prefixed_name("msg_40669_1"), None);
    }

    #[test]
    fn a_name_begins_behind_a_line_break_too_and_not_within_a_word() {
        assert!(is_boundary("") && is_boundary("call_") && is_boundary("done\\n"));
        assert!(!is_boundary("v") && !is_boundary("version"));
    }

    #[test]
    fn a_time_of_day_ends_where_it_ends() {
        assert_eq!(time_of_day("T07:03:12.762Z\""), 14);
        assert_eq!(time_of_day("T07-03-12-01a1de04"), 9);
        assert_eq!(time_of_day("T07-03-12-470Z.json"), 14);
        assert_eq!(time_of_day("T07-03-00000001.jsonl"), 6);
        assert_eq!(time_of_day(" at noon"), 0);
    }
}
