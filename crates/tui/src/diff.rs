//! What an edit changes, line by line.

use crate::clean::clean;

/// How many unchanged lines are shown around a change.
const CONTEXT: usize = 2;
/// Up to this many pairs of lines the shortest list of changes is computed; above it everything that differs is shown
/// as removed and added.
const PAIRS: usize = 250_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    Same(String),
    Removed(String),
    Added(String),
    /// This many unchanged lines are left out.
    Skipped(usize),
}

/// How many lines are added and removed.
pub fn counts(changes: &[Changed]) -> (usize, usize) {
    let count = |wanted: fn(&Changed) -> bool| changes.iter().filter(|change| wanted(change)).count();
    (count(|change| matches!(change, Changed::Added(_))), count(|change| matches!(change, Changed::Removed(_))))
}

pub fn changes(old: &str, new: &str) -> Vec<Changed> {
    let (old, new) = (clean(old), clean(new));
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let begin = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let end = old[begin..].iter().rev().zip(new[begin..].iter().rev()).take_while(|(old, new)| old == new).count();
    let same = |lines: &[&str]| lines.iter().map(|line| Changed::Same((*line).to_owned())).collect::<Vec<_>>();
    let mut all = same(&old[..begin]);
    middle(&old[begin..old.len() - end], &new[begin..new.len() - end], &mut all);
    all.extend(same(&old[old.len() - end..]));
    near_changes(all)
}

fn middle(old: &[&str], new: &[&str], all: &mut Vec<Changed>) {
    let removed = |line: &&str| Changed::Removed((*line).to_owned());
    let added = |line: &&str| Changed::Added((*line).to_owned());
    if old.len().saturating_mul(new.len()) > PAIRS {
        all.extend(old.iter().map(removed));
        all.extend(new.iter().map(added));
        return;
    }
    // longest[i][j]: the length of the longest common part of old[i..] and new[j..].
    let columns = new.len() + 1;
    let mut longest = vec![0u32; (old.len() + 1) * columns];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            longest[i * columns + j] = if old[i] == new[j] {
                longest[(i + 1) * columns + j + 1] + 1
            } else {
                longest[(i + 1) * columns + j].max(longest[i * columns + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            all.push(Changed::Same(old[i].to_owned()));
            (i, j) = (i + 1, j + 1);
        } else if i < old.len() && (j == new.len() || longest[(i + 1) * columns + j] >= longest[i * columns + j + 1]) {
            all.push(removed(&old[i]));
            i += 1;
        } else {
            all.push(added(&new[j]));
            j += 1;
        }
    }
}

/// Leaves out unchanged lines that are far from a change.
fn near_changes(all: Vec<Changed>) -> Vec<Changed> {
    let is_same = |change: &Changed| matches!(change, Changed::Same(_));
    let mut near = vec![false; all.len()];
    for place in all.iter().enumerate().filter(|(_, change)| !is_same(change)).map(|(place, _)| place) {
        let end = (place + CONTEXT + 1).min(all.len());
        near[place.saturating_sub(CONTEXT)..end].fill(true);
    }
    let mut shown: Vec<Changed> = Vec::new();
    for (change, near) in all.into_iter().zip(near) {
        match shown.last_mut() {
            _ if near => shown.push(change),
            Some(Changed::Skipped(count)) => *count += 1,
            Some(_) | None => shown.push(Changed::Skipped(1)),
        }
    }
    // Lines before the first and after the last change are left out without a mark.
    let begin = usize::from(matches!(shown.first(), Some(Changed::Skipped(_))));
    let end = usize::from(matches!(shown.last(), Some(Changed::Skipped(_))) && shown.len() > begin);
    shown.truncate(shown.len() - end);
    shown.split_off(begin.min(shown.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(old: &str, new: &str) -> Vec<String> {
        let sign = |change: Changed| match change {
            Changed::Same(line) => format!(" {line}"),
            Changed::Removed(line) => format!("-{line}"),
            Changed::Added(line) => format!("+{line}"),
            Changed::Skipped(count) => format!("~{count}"),
        };
        changes(old, new).into_iter().map(sign).collect()
    }

    #[test]
    fn only_what_changed_and_what_is_near_it_is_shown() {
        assert_eq!(shown("a\nb\nc\n", "a\nB\nc\n"), [" a", "-b", "+B", " c"]);
        assert_eq!(shown("", "x\ny"), ["+x", "+y"]);
        assert_eq!(
            shown("1\n2\n3\n4\n5\n6\n7\n8\n9", "1\n2\nx\n4\n5\n6\n7\ny\n9"),
            [" 1", " 2", "-3", "+x", " 4", " 5", " 6", " 7", "-8", "+y", " 9"]
        );
        let long: String = (0..30).map(|n| format!("{n}\n")).collect();
        let shown = shown(&long, &long.replace("\n3\n", "\nx\n").replace("\n20\n", "\ny\n"));
        assert_eq!(shown[3..7], ["+x", " 4", " 5", "~12"]);
        assert_eq!(changes("same", "same"), []);
    }
}
