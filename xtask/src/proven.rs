//! docs/agents.md: what works with which agent, written from the tests that passed, so that it cannot be wrong.
//!
//! A test against a real agent ends by naming what it has proven (`bed.proves("…")`); that is all it takes to add a row.
//! Only a run in which everything passed is believed. Neither the order of the tests nor of the agents matters.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{agents, workspace};

/// Tells the tests where to note it.
pub const VARIABLE: &str = "OSTLER_TEST_PROVEN";

const HEAD: &str = "\
# Agents and what works with them

`cargo xtask test` writes this file from the tests that passed against these very versions; do not edit it. A row is what a
test names at its end (`bed.proves(\"…\")`), ✔ means proven with this agent, and – that no test says so.
";

/// An empty place for what this run will prove.
pub fn begin() -> Result<PathBuf> {
    let file = workspace::target().join("proven");
    match fs::remove_file(&file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error).context("cannot forget what was proven before"),
        Ok(()) | Err(_) => Ok(file),
    }
}

/// After everything has passed: writes the table, or on a build machine fails when it is not the one that is there.
pub fn conclude(noted: &Path) -> Result<()> {
    let noted = match fs::read_to_string(noted) {
        Ok(noted) => noted,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("\nleft out: docs/agents.md (no test met a real agent)");
            return Ok(());
        }
        Err(error) => return Err(error).context("cannot read what was proven"),
    };
    let made = table(&noted, &agents::versions()?);
    let file = workspace::root().join("docs/agents.md");
    let there = fs::read_to_string(&file).unwrap_or_default();
    if made == there {
        return Ok(());
    }
    if std::env::var_os("CI").is_some_and(|ci| ci == "true") {
        bail!(
            "docs/agents.md is not what the tests prove (cargo xtask test writes it):\n{}",
            difference(&there, &made)
        );
    }
    fs::write(&file, made).context("cannot write docs/agents.md")?;
    eprintln!("\ndocs/agents.md says now what the tests have proven");
    Ok(())
}

/// One column for each agent, one row for each ability.
fn table(noted: &str, versions: &BTreeMap<String, String>) -> String {
    let proven: BTreeSet<(&str, &str)> = noted.lines().filter_map(|line| line.split_once('\t')).collect();
    let agents: BTreeSet<&str> = proven.iter().map(|(agent, _)| *agent).collect();
    let abilities: BTreeSet<&str> = proven.iter().map(|(_, ability)| *ability).collect();
    let mut text = format!("{HEAD}\n|");
    for agent in &agents {
        let version = versions.get(*agent).map(|version| format!(" {version}")).unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = write!(text, " | {agent}{version}");
    }
    let _ = writeln!(text, " |\n| --- |{}", " --- |".repeat(agents.len()));
    for ability in abilities {
        let cells = agents.iter().map(|agent| if proven.contains(&(*agent, ability)) { " ✔ |" } else { " – |" });
        let _ = writeln!(text, "| {ability} |{}", cells.collect::<String>());
    }
    text
}

/// The lines that one has and the other has not.
fn difference(there: &str, made: &str) -> String {
    let only = |mark: &'static str, of: &str, not: &str| -> Vec<String> {
        let not: BTreeSet<String> = not.lines().map(str::to_owned).collect();
        of.lines().filter(|line| !not.contains(*line)).map(|line| format!("    {mark} {line}")).collect()
    };
    [only("-", there, made), only("+", made, there)].concat().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_does_not_depend_on_the_order_of_the_tests() {
        let versions = BTreeMap::from([("claude".to_owned(), "2".to_owned())]);
        let made = table("codex\tresume\nclaude\tresume\nclaude\tasking\n", &versions);
        assert_eq!(made, table("claude\tasking\nclaude\tresume\ncodex\tresume\ncodex\tresume\n", &versions));
        let rows = "| | claude 2 | codex |\n| --- | --- | --- |\n| asking | ✔ | – |\n| resume | ✔ | ✔ |\n";
        assert_eq!(made, format!("{HEAD}\n{rows}"));
    }

    #[test]
    fn a_difference_shows_only_what_differs() {
        assert_eq!(difference("a\nb\n", "a\nc\n"), "    - b\n    + c");
    }
}
