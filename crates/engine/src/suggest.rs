//! "Did you mean …?": the word that was probably meant by a mistyped one.

/// The candidate that is nearest to a word: equal except for case, a beginning or an end of it, or a few letters away.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let allowed = match word.chars().count() {
        0 | 1 => 0,
        2..=4 => 1,
        5..=8 => 2,
        _ => 3,
    };
    let distances = candidates.into_iter().map(|candidate| (distance(&word, &candidate.to_lowercase()), candidate));
    distances.filter(|(distance, _)| *distance <= allowed).min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// `; did you mean X?`, or nothing.
pub fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

/// How many letters have to be added, removed, replaced or swapped with their neighbour.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    // Rows of the usual table: the last but one, the last, and the one that is filled.
    let mut before = vec![0; other.len() + 1];
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (row, letter) in one.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, wanted) in other.iter().enumerate() {
            let replaced = last[column] + usize::from(letter != wanted);
            let mut best = replaced.min(last[column + 1] + 1).min(current[column] + 1);
            if row > 0 && column > 0 && one[row - 1] == *wanted && *letter == other[column - 1] {
                best = best.min(before[column - 1] + 1);
            }
            current.push(best);
        }
        before = std::mem::replace(&mut last, current);
    }
    last[other.len()]
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
    }

    #[test]
    fn letters_are_counted_and_not_bytes() {
        assert_eq!(distance("grüße", "grüse"), 1);
        assert_eq!(distance("ab", "ba"), 1);
        assert_eq!(distance("", "abc"), 3);
    }
}
