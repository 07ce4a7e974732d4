//! Replaces what differs from run to run before it is drawn. Ids and durations keep their width, so that columns stay
//! aligned.

use std::path::Path;

const IDS: [&str; 8] = ["k3v9x2ab", "m2p4c8dd", "q7w1n5ez", "t9r6h3fy", "b5j8s4gx", "c1k7v2hw", "d4n3w9jv", "e8p5x6ku"];
const CONVERSATION: &str = "3f8e7a52-9d5b-4c1e-8a37-2b6d90e1c4f5";

/// The ids of the sessions in this folder, the oldest first.
pub fn ids(sessions: &Path) -> std::io::Result<Vec<String>> {
    let mut found = Vec::new();
    let entries = match std::fs::read_dir(sessions) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let id = entry.file_name().to_string_lossy().into_owned();
        if !id.starts_with('.') {
            found.push((entry.path().join("session.json").metadata()?.modified()?, id));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, id)| id).collect())
}

/// Replaces everything in a text that depends on when it was made.
pub fn steady(text: &str, ids: &[String]) -> String {
    let mut text = text.to_owned();
    for (id, instead) in ids.iter().zip(IDS) {
        text = text.replace(id.as_str(), instead);
    }
    let text = words(&text, |word| conversation(word).or_else(|| duration(word)).or_else(|| commit(word)));
    without_pids(&text)
}

/// `7m 23s` → `7m 20s`: the duration of a scene differs each time. For text that is drawn already, like times of day.
pub fn without_seconds(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let is_count = |word: &str, unit: char| {
        word.strip_suffix(unit)
            .is_some_and(|count| !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let after_minutes = |place: usize| place > 0 && is_count(words[place - 1], 'm') && is_count(words[place], 's');
    let steady = (0..words.len()).map(|place| if after_minutes(place) { "20s" } else { words[place] });
    steady.collect::<Vec<_>>().join(" ")
}

/// `since 07:04` → `since 09:41`. For text that is drawn already: a program that draws on the whole screen may move the
/// cursor between two words.
pub fn without_times(text: &str) -> String {
    const SINCE: &str = "since ";
    let is_time = |text: &str| {
        text.get(..5).is_some_and(|time| {
            time.bytes().enumerate().all(|(place, byte)| if place == 2 { byte == b':' } else { byte.is_ascii_digit() })
        })
    };
    let mut parts = text.split(SINCE);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(SINCE);
        out.push_str(&if is_time(part) { format!("09:41{}", &part[5..]) } else { part.to_owned() });
    }
    out
}

/// `(pid 31)` → `(pid 4711)`.
fn without_pids(text: &str) -> String {
    let mut parts = text.split("(pid ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("(pid 4711");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    out
}

/// Replaces words, which are separated by spaces and by the punctuation of paths.
fn words(text: &str, instead: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let is_inner = |c: char| c.is_alphanumeric() || c == '-' || c == '.';
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = match is_inner(first) {
            true => rest.find(|c| !is_inner(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        // A full stop at the end of a sentence is not part of the word.
        let dots = rest[..end].len() - rest[..end].trim_end_matches('.').len();
        let (word, after) = rest.split_at(if dots < end { end - dots } else { end });
        let (stem, ending) = word.strip_suffix(".jsonl").map_or((word, ""), |stem| (stem, ".jsonl"));
        out.push_str(&instead(stem).unwrap_or_else(|| stem.to_owned()));
        out.push_str(ending);
        rest = after;
    }
    out
}

/// For a UUID, or for the end of one that was cut at its beginning.
fn conversation(word: &str) -> Option<String> {
    let begin = 36_usize.checked_sub(word.len()).filter(|begin| *begin < 16)?;
    let is_uuid = word.bytes().zip(begin..).all(|(byte, place)| match place {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    is_uuid.then(|| CONVERSATION[begin..].to_owned())
}

/// For the short name of a commit.
fn commit(word: &str) -> Option<String> {
    let hex = word.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    (word.len() == 7 && hex && word.bytes().any(|byte| byte.is_ascii_digit())).then(|| "5e0c1f7".to_owned())
}

/// `0.3s` → `4.2s`.
fn duration(word: &str) -> Option<String> {
    let (whole, part) = word.strip_suffix('s')?.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (digits(whole) && digits(part)).then(|| format!("{}.{}s", "4".repeat(whole.len()), "2".repeat(part.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_day_are_replaced() {
        assert_eq!(without_times("idle since 07:04 · x since then since 1"), "idle since 09:41 · x since then since 1");
    }

    #[test]
    fn ids_and_durations_are_replaced_and_nothing_else() {
        let ids = ["abcdefgh".to_owned()];
        let text = "✔ abcdefgh · 0.3s · 12.5s · v1.2s.x ~/a/00000000-1111-2222-3333-444444444444.jsonl 5s";
        assert_eq!(steady(text, &ids), format!("✔ k3v9x2ab · 4.2s · 44.2s · v1.2s.x ~/a/{CONVERSATION}.jsonl 5s"));
        assert_eq!(steady("…1111-2222-3333-444444444444/x", &ids), "…9d5b-4c1e-8a37-2b6d90e1c4f5/x");
        assert_eq!(without_seconds("running 40m 23s · 23s · 1m"), "running 40m 20s · 23s · 1m");
    }
}
