//! "Did you mean …?": the word that was probably meant by a mistyped one.

/// The candidate that is nearest to a word: equal except for case, a beginning or an end of it, or a few letters away.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let allowed = match word.chars().count() {
        0 | 1 => 0,
        2..=5 => 1,
        6..=8 => 2,
        _ => 3,
    };
    let word: Vec<char> = word.chars().collect();
    let mut rows = Rows::default();
    let mut found: Option<(usize, &str)> = None;
    for candidate in candidates {
        // Only a nearer one is of interest; of equally near ones the first is taken.
        let limit = match found {
            Some((0, _)) => break,
            Some((distance, _)) => distance - 1,
            None => allowed,
        };
        found = rows.distance(&word, candidate, limit).map(|distance| (distance, candidate)).or(found);
    }
    found.map(|(_, name)| name)
}

/// `; did you mean X?`, or nothing.
pub fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

/// The last three rows of the usual table of distances. A mistyped session name is compared with the names of all
/// sessions, so the memory is used again and most comparisons end early.
#[derive(Default)]
struct Rows {
    other: Vec<char>,
    before: Vec<usize>,
    last: Vec<usize>,
    current: Vec<usize>,
}

impl Rows {
    /// How many letters have to be added, removed, replaced or swapped with their neighbour, whatever their case. `None`:
    /// more than the limit. `word` is in lower case.
    fn distance(&mut self, word: &[char], other: &str, limit: usize) -> Option<usize> {
        let Rows { other: letters, before, last, current } = self;
        letters.clear();
        letters.extend(other.chars().flat_map(char::to_lowercase));
        if word.len().abs_diff(letters.len()) > limit {
            return None;
        }
        before.clear();
        last.clear();
        last.extend(0..=letters.len());
        for (row, letter) in word.iter().enumerate() {
            current.clear();
            current.push(row + 1);
            for (column, wanted) in letters.iter().enumerate() {
                let replaced = last[column] + usize::from(letter != wanted);
                let mut best = replaced.min(last[column + 1] + 1).min(current[column] + 1);
                if row > 0 && column > 0 && word[row - 1] == *wanted && *letter == letters[column - 1] {
                    best = best.min(before[column - 1] + 1);
                }
                current.push(best);
            }
            // A swap adds to the row before the last, so two rows have to be above the limit.
            let least = |row: &[usize]| row.iter().min().is_some_and(|least| *least > limit);
            if least(current) && least(last) {
                return None;
            }
            std::mem::swap(before, last);
            std::mem::swap(last, current);
        }
        Some(last[letters.len()]).filter(|distance| *distance <= limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_wrong_letters_still_mean_the_word() {
        let agents = ["claude", "codex", "gemini", "opencode", "demo"];
        for (typed, meant) in [("claud", "claude"), ("Claude", "claude"), ("cluade", "claude"), ("gemni", "gemini")] {
            assert_eq!(nearest(typed, agents), Some(meant), "{typed}");
        }
        for other in ["fix", "", "x", "do", "refactor", "explain"] {
            assert_eq!(nearest(other, agents), None, "{other}");
        }
        assert_eq!(nearest("lss", ["ls", "logs"]), Some("ls"));
        assert_eq!(nearest("tests", ["texts", "tests-2", "rests", "test"]), Some("texts"), "the first of the nearest");
        assert_eq!(nearest("tests", ["texts", "TESTS", "tests"]), Some("TESTS"));
    }

    #[test]
    fn letters_are_counted_and_not_bytes() {
        let mut rows = Rows::default();
        let mut distance = |one: &str, other, limit| rows.distance(&one.chars().collect::<Vec<_>>(), other, limit);
        assert_eq!(distance("grüße", "GRÜSE", 9), Some(1));
        assert_eq!(distance("ab", "ba", 9), Some(1));
        assert_eq!(distance("", "abc", 9), Some(3));
        assert_eq!(distance("abcdef", "badcfe", 3), Some(3));
        assert_eq!(distance("abcdef", "badcfe", 2), None);
    }
}
