//! A line of JSON that is too long to keep, with its long texts cut off: the kind of line, and whether it ends a turn,
//! are outside those texts.

/// How much of a text is kept.
const TEXT_LIMIT: usize = 64 * 1024;

/// What is kept of a line that comes in pieces.
#[derive(Debug, Default)]
pub struct Shortened {
    kept: Vec<u8>,
    at: At,
    /// How many bytes of the present text are kept.
    text: usize,
}

/// The state at the next byte.
#[derive(Clone, Copy, Debug, Default)]
enum At {
    #[default]
    Outside,
    Text,
    /// After a backslash.
    Escape,
    /// In a number after `\u`; this many digits are missing.
    Number(u8),
    /// In the part of a text that is cut off.
    Cut,
    CutEscape,
}

impl Shortened {
    /// Takes the next bytes of the line. False: even the shortened line is longer than `limit`.
    #[must_use]
    pub fn feed(&mut self, bytes: &[u8], limit: usize) -> bool {
        for &byte in bytes {
            let before = self.at;
            self.at = self.next(byte);
            let ends = matches!((before, self.at), (At::Cut, At::Outside));
            if ends || !matches!(self.at, At::Cut | At::CutEscape) {
                self.text += 1;
                self.kept.push(byte);
            }
        }
        self.kept.len() <= limit
    }

    /// The line so far.
    #[must_use]
    pub fn line(&self) -> &[u8] {
        &self.kept
    }

    fn next(&mut self, byte: u8) -> At {
        match (self.at, byte) {
            (At::Outside, b'"') => {
                self.text = 0;
                At::Text
            }
            (At::Outside, _) | (At::Text | At::Cut, b'"') => At::Outside,
            (At::Text, b'\\') => At::Escape,
            // The cut is before a plain character: never inside a character, nor between the halves of an escaped pair.
            (At::Text, b' '..=b'~') if self.text > TEXT_LIMIT => At::Cut,
            (At::Escape, b'u') => At::Number(4),
            (At::Number(missing @ 2..), _) => At::Number(missing - 1),
            (At::Text | At::Escape | At::Number(_), _) => At::Text,
            (At::Cut, b'\\') => At::CutEscape,
            (At::Cut | At::CutEscape, _) => At::Cut,
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn shortened(line: &str, piece: usize) -> Value {
        let mut short = Shortened::default();
        for piece in line.as_bytes().chunks(piece) {
            assert!(short.feed(piece, usize::MAX));
        }
        serde_json::from_slice(short.line()).unwrap()
    }

    #[test]
    fn everything_but_the_end_of_a_long_text_is_there() {
        let long = "a \"quoted\" \\ line\n".repeat(10_000);
        let line = json!({ "type": "result", "result": long, "is_error": false, "n": [1, "two"] }).to_string();
        let short = shortened(&line, 999);
        assert_eq!(
            (&short["type"], &short["is_error"], &short["n"]),
            (&json!("result"), &json!(false), &json!([1, "two"]))
        );
        let text = short["result"].as_str().unwrap_or_default();
        assert!(long.starts_with(text) && (TEXT_LIMIT / 2..=TEXT_LIMIT + 1).contains(&text.len()), "{}", text.len());
    }

    #[test]
    fn what_has_no_texts_to_cut_is_given_up() {
        assert!(!Shortened::default().feed(&[b'x'; 200], 100));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn a_cut_text_is_a_beginning_of_it_whatever_is_in_it(part in "\\PC{1,40}", piece in 1..5000usize) {
            let part = format!("{part}plain \u{1F600}\u{e9}\n");
            let long = part.repeat(2 * TEXT_LIMIT / part.len() + 1);
            let escaped: String = long.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            for line in [json!({ "text": long, "end": 1 }).to_string(), format!("{{\"text\":\"{escaped}x\",\"end\":1}}")] {
                let short = shortened(&line, piece);
                prop_assert_eq!(&short["end"], &json!(1));
                let text = short["text"].as_str().unwrap_or("?");
                prop_assert!(long.starts_with(text.strip_suffix('x').filter(|_| text.len() > long.len()).unwrap_or(text)));
            }
        }
    }
}
