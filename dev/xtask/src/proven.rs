//! docs/agents.md: what works with which agent, written from the tests that passed, so that it cannot be wrong.
//!
//! A test against a real agent says at its end what it has proven (`fixture.proves("…")`), or what ostler has reported
//! as impossible with that agent (`fixture.proves_impossible("…", "why")`). Nothing more is needed to add a row. Only a
//! run in which everything passed counts. Neither the order of the tests nor that of the agents matters.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{agents, workspace};

/// Names the file in which the tests note it.
pub const VARIABLE: &str = "OSTLER_TEST_PROVEN";

const HEAD: &str = "\
# Agents and what works with them

`cargo xtask test` writes this file from the tests that passed against these very versions; do not edit it. A row is what a
test names at its end (`fixture.proves(\"…\")`).

- ✔ proven with this agent in this mode
- ✘ not possible with this agent; a test has seen ostler say so when it matters, and the number has the reason
- – no test says either
";

/// A cell about which the tests contradict each other.
const CONTRADICTION: &str = "proven and impossible";

/// How a session communicates with its agent: one table each.
struct Mode {
    heading: &'static str,
    /// What the abilities of this mode begin with.
    prefix: &'static str,
}

/// The last mode takes all abilities without a prefix.
const MODES: [Mode; 3] = [
    Mode { heading: "In a terminal (`run -t`)", prefix: "terminal: " },
    Mode { heading: "Behind the Agent Client Protocol (`run acp … -- PROGRAM`)", prefix: "acp: " },
    Mode { heading: "Headless", prefix: "" },
];

/// The file for what this run will prove. It does not exist yet.
pub fn begin() -> Result<PathBuf> {
    let file = workspace::target().join("proven");
    match fs::remove_file(&file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error).context("cannot forget what was proven before"),
        Ok(()) | Err(_) => Ok(file),
    }
}

/// After everything has passed: writes the table. On a build machine, fails when the table differs from the existing
/// one.
pub fn conclude(noted: &Path) -> Result<()> {
    let noted = match fs::read_to_string(noted) {
        Ok(noted) => noted,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("\nleft out: docs/agents.md (no test ran a real agent)");
            return Ok(());
        }
        Err(error) => return Err(error).context("cannot read what was proven"),
    };
    let made = table(&noted, &agents::versions()?);
    if let Some(row) = made.lines().find(|row| row.contains(CONTRADICTION)) {
        bail!("tests contradict each other: {row}");
    }
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

/// One note of a test.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Noted<'a> {
    ability: &'a str,
    agent: &'a str,
    /// Why it is not possible; `None` when it was proven.
    impossible: Option<&'a str>,
}

impl<'a> Noted<'a> {
    fn read(line: &'a str) -> Option<Noted<'a>> {
        let mut fields = line.split('\t');
        Some(Noted { agent: fields.next()?, ability: fields.next()?, impossible: fields.next() })
    }
}

/// One table for each mode: one column for each agent, one row for each ability.
fn table(noted: &str, versions: &BTreeMap<String, String>) -> String {
    let mut left: BTreeSet<Noted<'_>> = noted.lines().filter_map(Noted::read).collect();
    let mut tables = Vec::new();
    for mode in &MODES {
        let (here, others) = left.into_iter().partition(|noted| noted.ability.starts_with(mode.prefix));
        left = others;
        tables.push(table_of(mode, &here, versions));
    }
    // The table that most people need comes first.
    tables.rotate_right(1);
    format!("{HEAD}{}", tables.concat())
}

fn table_of(mode: &Mode, noted: &BTreeSet<Noted<'_>>, versions: &BTreeMap<String, String>) -> String {
    if noted.is_empty() {
        return String::new();
    }
    let agents: BTreeSet<&str> = noted.iter().map(|noted| noted.agent).collect();
    let abilities: BTreeSet<&str> = noted.iter().map(|noted| noted.ability).collect();
    let mut reasons: Vec<&str> = Vec::new();
    let mut text = format!("\n## {}\n\n|", mode.heading);
    for agent in &agents {
        let version = versions.get(*agent).map(|version| format!(" {version}")).unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = write!(text, " | {agent}{version}");
    }
    let _ = writeln!(text, " |\n| --- |{}", " --- |".repeat(agents.len()));
    for ability in abilities {
        let _ = write!(text, "| {} |", ability.strip_prefix(mode.prefix).unwrap_or(ability));
        for agent in &agents {
            let about: Vec<&Noted<'_>> =
                noted.iter().filter(|noted| noted.ability == ability && noted.agent == *agent).collect();
            let cell = match about.iter().map(|noted| noted.impossible).collect::<Vec<_>>()[..] {
                [] => "–".to_owned(),
                [Some(why)] => format!("✘ {}", number(&mut reasons, why)),
                [None] => "✔".to_owned(),
                // Proven and impossible, or two reasons: one of the tests is wrong.
                [_, _, ..] => CONTRADICTION.to_owned(),
            };
            let _ = write!(text, " {cell} |");
        }
        text.push('\n');
    }
    for (index, why) in reasons.iter().enumerate() {
        let _ = writeln!(text, "{}{}. {why}", if index == 0 { "\n" } else { "" }, index + 1);
    }
    text
}

/// The number of a reason below its table.
fn number<'a>(reasons: &mut Vec<&'a str>, why: &'a str) -> usize {
    let known = reasons.iter().position(|reason| *reason == why);
    known.unwrap_or_else(|| {
        reasons.push(why);
        reasons.len() - 1
    }) + 1
}

/// The lines that only one of the two texts has.
fn difference(there: &str, made: &str) -> String {
    let only = |mark: &'static str, of: &str, not: &str| -> Vec<String> {
        let not: BTreeSet<String> = not.lines().map(str::to_owned).collect();
        of.lines().filter(|line| !not.contains(*line)).map(|line| format!("    {mark} {line}")).collect()
    };
    let lines = [only("-", there, made), only("+", made, there)].concat();
    if lines.is_empty() { "    the order of its rows".to_owned() } else { lines.join("\n") }
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
        assert_eq!(made, format!("{HEAD}\n## Headless\n\n{rows}"));
    }

    #[test]
    fn each_mode_has_a_table_and_each_impossibility_its_reason() {
        let noted = "codex\tterminal: turns\tit tells nothing\ngemini\tterminal: turns\tit tells nothing\n\
                     claude\tterminal: turns\ngemini\tacp: turns\ncodex\tturns\n";
        let made = table(noted, &BTreeMap::new());
        let terminal = "| | claude | codex | gemini |\n| --- | --- | --- | --- |\n| turns | ✔ | ✘ 1 | ✘ 1 |\n\n\
                        1. it tells nothing\n";
        assert!(made.contains(terminal), "{made}");
        let order: Vec<usize> = MODES.iter().filter_map(|mode| made.find(mode.heading)).collect();
        assert!(order[2] < order[0] && order[0] < order[1], "headless first: {made}");
    }

    #[test]
    fn tests_that_contradict_each_other_show() {
        let made = table("codex\tturns\ncodex\tturns\tit tells nothing\n", &BTreeMap::new());
        assert!(made.contains("| turns | proven and impossible |"), "{made}");
    }

    #[test]
    fn a_difference_shows_only_what_differs() {
        assert_eq!(difference("a\nb\n", "a\nc\n"), "    - b\n    + c");
    }
}
