//! The private words that this project once used must not come back: a new reader should need no dictionary. The list
//! is the left column of the glossary. Some of these words remain on disk and on the wire, in quotes.

#![expect(clippy::unwrap_used, reason = "a test that cannot read a source file has failed")]

use std::path::{Path, PathBuf};

/// Whole words, in lower case, and what to say instead.
const OLD: [(&str, &str); 37] = [
    ("wish", "request"),
    ("wishes", "requests"),
    ("door", "socket"),
    ("stand_in", "replacement"),
    ("stand-in", "replacement"),
    ("mend", "repair"),
    ("mends", "repairs"),
    ("mended", "repaired"),
    ("mending", "repairing"),
    ("stranger", "foreign process"),
    ("strangers", "foreign processes"),
    ("shelf", "sessions folder"),
    ("whereabouts", "location"),
    ("passedover", "LineTooLong"),
    ("lay_to_rest", "write_summary"),
    ("hoped_for", "unconfirmed"),
    ("see_it_off", "shutdown_steps"),
    ("was_pushed", "end_requested"),
    ("named_alone", "parse_fast"),
    ("side_by_side", "parallel"),
    ("making_way", "upgrade"),
    ("conversing", "conversation_lock"),
    ("whoever", "the process that, anyone who"),
    ("heed", "handle, obey"),
    ("heeds", "handles, obeys"),
    ("heeded", "handled, obeyed"),
    ("nobody", "no process, no person"),
    ("somebody", "a process, a person, the user"),
    ("anybody", "any process, any person"),
    ("owed", "due"),
    ("telling", "AgentFeed, notifying"),
    ("naming", "native_id"),
    ("stage", "fixture"),
    ("strike", "inject, remove"),
    ("struck", "injected, hit"),
    ("hostile", "untrusted, fuzz_targets"),
    ("stood", "was up"),
];

#[test]
fn no_word_of_the_glossarys_left_column_is_back() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let sources = sources(&workspace);
    assert!(sources.len() > 300, "only {} files were found", sources.len());
    let mut found = Vec::new();
    for source in sources {
        for (number, line) in std::fs::read_to_string(&source).unwrap().lines().enumerate() {
            let file = source.strip_prefix(&workspace).unwrap().display();
            let old = old_in(line);
            found.extend(old.map(|(word, plain)| format!("{file}:{}: {word}, say: {plain}", number + 1)));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_word_counts_alone_and_not_as_a_value_on_the_wire() {
    let words = |line: &str| old_in(line).map(|(word, _)| word).collect::<Vec<_>>();
    assert_eq!(words("// Whoever opens the door"), ["whoever", "door"]);
    assert_eq!(words("let wish = 1;"), ["wish"]);
    assert_eq!(words("fn nobody_waits() {}"), ["nobody"]);
    assert!(words(r#"#[serde(rename = "wish")] recommended outdoor"#).is_empty());
}

fn old_in(line: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let line = line.to_lowercase();
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let words: Vec<String> = line
        .split(|c: char| !(part_of_word(c) || c == '"' || c == '`'))
        .filter(|word| !['"', '`'].iter().any(|&mark| word.starts_with(mark) && word.ends_with(mark)))
        .map(|word| word.trim_matches(['"', '`']))
        // Also as a part of a name.
        .flat_map(|word| std::iter::once(word).chain(word.split('_')))
        .map(str::to_owned)
        .collect();
    let mut found: Vec<(usize, (&str, &str))> =
        OLD.iter().filter_map(|&old| Some((words.iter().position(|word| word == old.0)?, old))).collect();
    found.sort_unstable();
    found.into_iter().map(|(_, old)| old)
}

/// What people read and write: code, manifests and documentation, but not this list and not recordings.
fn sources(workspace: &Path) -> Vec<PathBuf> {
    let mut open: Vec<PathBuf> = ["crates", "dev", "docs"].iter().map(|folder| workspace.join(folder)).collect();
    let mut found = vec![workspace.join("README.md"), workspace.join("Cargo.toml")];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_text = path
                .extension()
                .is_some_and(|extension| ["rs", "md", "toml", "js"].iter().any(|one| extension == *one));
            if path.is_dir() && !path.ends_with("dev/fuzz") && !path.ends_with("target") {
                open.push(path);
            } else if is_text && !path.ends_with("plain_words.rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
