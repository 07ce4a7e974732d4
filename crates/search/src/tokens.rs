//! Words of a text, as the index knows them: runs of letters and digits, in lower case, without accents. A character of
//! a script without spaces, or a pictogram, is a word of its own.
//!
//! Every text is processed here, so there is a fast path for plain ASCII.

use std::ops::Range;

/// The longest word in bytes; only the beginning of a longer word counts. Long enough for any hash that people search
/// for.
pub const LONGEST: usize = 64;

/// Calls `each` with every word of a text and its place there.
pub fn each(text: &str, mut each: impl FnMut(&str, Range<usize>)) {
    let bytes = text.as_bytes();
    let mut word = Word::default();
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if byte.is_ascii_alphanumeric() {
            word.begin(at);
            word.push_byte(byte.to_ascii_lowercase());
            at += 1;
            continue;
        }
        if byte.is_ascii() {
            word.end(at, &mut each);
            at += 1;
            continue;
        }
        // `at` is always the beginning of a character.
        let Some(character) = text[at..].chars().next() else { break };
        let next = at + character.len_utf8();
        if is_combining(character) {
            // It belongs to the letter before it.
        } else if stands_alone(character) {
            word.end(at, &mut each);
            word.begin(at);
            word.push(character);
            word.end(next, &mut each);
        } else if !character.is_alphanumeric() {
            word.end(at, &mut each);
        } else {
            word.begin(at);
            // The lower-case form of some capital letters is a letter and a combining mark.
            let letters = character.to_lowercase().filter(|letter| !is_combining(*letter));
            letters.map(without_accent).for_each(|letter| match letter {
                // The capital form is written SS.
                'ß' => "ss".chars().for_each(|letter| word.push(letter)),
                letter => word.push(letter),
            });
        }
        at = next;
    }
    word.end(bytes.len(), &mut each);
}

/// The word that is being read. It is in an array, so that no memory is allocated.
struct Word {
    start: Option<usize>,
    bytes: [u8; LONGEST],
    length: usize,
}

impl Default for Word {
    fn default() -> Word {
        Word { start: None, bytes: [0; LONGEST], length: 0 }
    }
}

impl Word {
    fn begin(&mut self, at: usize) {
        if self.start.is_none() {
            self.start = Some(at);
        }
    }

    fn push_byte(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    fn push(&mut self, letter: char) {
        let mut buffer = [0; 4];
        let encoded = letter.encode_utf8(&mut buffer).as_bytes();
        if self.length + encoded.len() <= LONGEST {
            encoded.iter().for_each(|&byte| self.push_byte(byte));
        }
    }

    fn end(&mut self, at: usize, each: &mut impl FnMut(&str, Range<usize>)) {
        if let Some(start) = self.start.take() {
            // Whole characters went in, so this is UTF-8.
            if let Ok(word) = std::str::from_utf8(&self.bytes[..self.length])
                && !word.is_empty()
            {
                each(word, start..at);
            }
        }
        self.length = 0;
    }
}

/// Marks that are put over or under the letter before them.
fn is_combining(character: char) -> bool {
    matches!(character, '\u{300}'..='\u{36f}')
}

/// Chinese and Japanese are written without spaces, Thai, Lao, Burmese and Khmer as well. Pictograms are written next
/// to anything.
fn stands_alone(character: char) -> bool {
    match character {
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' => character.is_alphanumeric(),
        '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}' => {
            character.is_alphanumeric()
        }
        '\u{2600}'..='\u{27bf}' | '\u{1f300}'..='\u{1faff}' => true,
        _ => false,
    }
}

/// The letters from U+00E0 to U+017F as people type them without such keys. A dot means that the letter stays as it is.
const PLAIN: &[u8; 0xa0] = b"aaaaaa.ceeeeiiii.nooooo.ouuuuy.y\
                     aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiii..jjkk.lllllllll\
                     lnnnnnn...oooooo..rrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzzs";
/// The same from U+1E00 to U+1EFF, where the letters of Vietnamese are.
const PLAIN_ADDITIONAL: &[u8; 0x100] =
    b"aabbbbbbccddddddddddeeeeeeeeeeffgghhhhhhhhhhiiiikkkkkkllllllllmmmmmmnnnnnnnnoooooooopppp\
                     rrrrrrrrssssssssssttttttttuuuuuuuuuuvvvvwwwwwwwwwwxxxxyyzzzzzzhtwy......\
                     aaaaaaaaaaaaaaaaaaaaaaaaeeeeeeeeeeeeeeeeiiiioooooooooooooooooooooooouuuuuuuuuuuuuuyyyyyyyy......";

/// A lower-case letter without its accent. Some programs write the accent as a separate mark after the letter.
fn without_accent(letter: char) -> char {
    let of = |table: &[u8], first: u32| match table.get((letter as u32 - first) as usize) {
        Some(b'.') | None => letter,
        Some(&plain) => char::from(plain),
    };
    match letter {
        '\u{e0}'..='\u{17f}' => of(PLAIN, 0xe0),
        '\u{1e00}'..='\u{1eff}' => of(PLAIN_ADDITIONAL, 0x1e00),
        'ά' => 'α',
        'έ' => 'ε',
        'ή' => 'η',
        'ί' | 'ϊ' | 'ΐ' => 'ι',
        'ό' => 'ο',
        'ύ' | 'ϋ' | 'ΰ' => 'υ',
        'ώ' => 'ω',
        // This form is used only at the end of a word.
        'ς' => 'σ',
        'й' => 'и',
        'ё' => 'е',
        'ї' => 'і',
        'ў' => 'у',
        'ѓ' => 'г',
        'ќ' => 'к',
        _ => letter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        each(text, |word, place| {
            assert!(text.get(place).is_some());
            words.push(word.to_owned());
        });
        words
    }

    #[test]
    fn words_are_runs_of_letters_and_digits_in_lower_case() {
        assert_eq!(words("Fix src/main.rs: foo_bar(42)!"), ["fix", "src", "main", "rs", "foo", "bar", "42"]);
        assert_eq!(words(""), [""; 0]);
        assert_eq!(words(&"x".repeat(100)), ["x".repeat(LONGEST)]);
    }

    #[test]
    fn accents_of_latin_letters_do_not_count() {
        assert_eq!(
            words("Über façade e\u{301}te\u{301} NAÏVE Łódź žluť ŠŽ Ÿ"),
            ["uber", "facade", "ete", "naive", "lodz", "zlut", "sz", "y"]
        );
        assert_eq!(words("straße STRASSE STRAẞE ærø"), ["strasse", "strasse", "strasse", "æro"]);
        assert_eq!(words("tiếng Việt Ệ"), ["tieng", "viet", "e"]);
        assert_eq!(words("Ёлка Мой мои\u{306} ΟΔΟΣ οδός"), ["елка", "мои", "мои", "οδοσ", "οδοσ"]);
    }

    #[test]
    fn a_capital_whose_small_letter_has_a_mark_is_that_letter() {
        assert_eq!(words("İstanbul ISPARTA ısı"), ["istanbul", "isparta", "isi"]);
    }

    #[test]
    fn a_pictogram_is_a_word() {
        assert_eq!(words("done🎉 👍🏽!"), ["done", "🎉", "👍", "🏽"]);
    }

    #[test]
    fn scripts_without_spaces_are_read_character_by_character() {
        assert_eq!(words("修复bug了"), ["修", "复", "bug", "了"]);
        assert_eq!(words("привет Мир"), ["привет", "мир"]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_and_its_words_read_again_are_the_same(text in "\\PC{0,200}") {
            let once = words(&text);
            prop_assert_eq!(words(&once.join(" ")), once);
        }
    }
}
