//! No other product crate contains the name of an agent: what is particular to an agent is in this crate, and the
//! others ask for it. Comments count too: such knowledge appears there first. Test code may name agents, as examples.

#![expect(clippy::unwrap_used, reason = "a test that cannot read a source file has failed")]

use std::fs;
use std::path::{Path, PathBuf};

/// Product crates that may name agents: this one, and the built-in agent, which says whose formats it copies.
const MAY_NAME: [&str; 2] = ["agents", "demo"];

#[test]
fn only_this_crate_names_agents() {
    let names: Vec<&str> = ostler_agents::installed::programs().map(|agent| agent.name()).collect();
    assert!(names.len() >= 4, "{names:?}");
    let mut found = Vec::new();
    let mut searched = 0;
    for source in sources() {
        searched += 1;
        let text = fs::read_to_string(&source).unwrap();
        for (number, line) in product_lines(&text) {
            found.extend(
                named_in(line, &names).map(|name| format!("{}:{number}: {name}: {}", source.display(), line.trim())),
            );
        }
    }
    assert!(searched > 100, "only {searched} files were found");
    assert!(
        found.is_empty(),
        "put this behind a trait of crates/agents, or say it without the name:\n{}",
        found.join("\n")
    );
}

fn sources() -> Vec<PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folders = entries(crates).into_iter().filter(|folder| !MAY_NAME.iter().any(|name| folder.ends_with(name)));
    let mut open: Vec<PathBuf> = folders.map(|folder| folder.join("src")).filter(|folder| folder.is_dir()).collect();
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for path in entries(&folder) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            match (path.is_dir(), name.as_str()) {
                (_, "tests" | "tests.rs") => {}
                (true, _) => open.push(path),
                (false, name) if name.ends_with(".rs") => found.push(path),
                (false, _) => {}
            }
        }
    }
    found.sort();
    found
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// The lines of a file before its tests, with their numbers.
fn product_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines: Vec<&str> = text.lines().collect();
    let begins_tests = |place: usize| {
        let item = lines[place + 1..].iter().find(|line| !line.trim_start().starts_with("#["));
        lines[place] == "#[cfg(test)]" && item.is_some_and(|item| item.contains("mod ") && item.ends_with('{'))
    };
    let end = (0..lines.len()).find(|&place| begins_tests(place)).unwrap_or(lines.len());
    lines.into_iter().take(end).enumerate().map(|(place, line)| (place + 1, line))
}

/// The names with which a word of this line begins. `OPENCODE_DB`, `claudes` and `GeminiLines` begin with one too.
fn named_in<'a>(line: &'a str, names: &'a [&str]) -> impl Iterator<Item = &'a str> {
    let words = words(line);
    names.iter().copied().filter(move |name| words.iter().any(|word| word.starts_with(name)))
}

/// The words in lower case; a capital after a small letter begins another word.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_small = false;
    for character in line.chars() {
        if !character.is_ascii_alphanumeric() || (after_small && character.is_ascii_uppercase()) {
            words.push(String::new());
        }
        after_small = character.is_ascii_lowercase();
        if character.is_ascii_alphanumeric() {
            words.last_mut().unwrap().push(character.to_ascii_lowercase());
        }
    }
    words
}

#[test]
fn a_name_is_seen_in_every_spelling_and_in_no_other_word() {
    let seen = |line: &str| named_in(line, &["gemini", "amp"]).next().is_some();
    for line in ["// as Gemini does", "GEMINI_HOME", "fn of_gemini()", "FormatGemini", "two geminis", "-- amp --acp"] {
        assert!(seen(line), "{line}");
    }
    for line in ["an example", "stamp", "/// agents"] {
        assert!(!seen(line), "{line}");
    }
}

#[test]
fn tests_are_passed_over_and_what_only_looks_like_them_is_not() {
    let numbers = |text: &str| product_lines(text).map(|(number, _)| number).collect::<Vec<_>>();
    assert_eq!(numbers("a\n#[cfg(test)]\n#[expect(x)]\nmod tests {\nb\n"), [1]);
    assert_eq!(numbers("a\n#[cfg(test)]\nmod tests;\nb\n"), [1, 2, 3, 4]);
}
