//! A transcript with each known kind of damage: `resume` repairs it first, says so, and the model gets all that
//! survived.

use crate::conversation::{is_well_formed, transcript};
use crate::fixture::Fixture;
use ostler_mock_llm::agents::Agent;
use serde_json::Value;

struct Case {
    name: &'static str,
    damage: fn(&[Vec<u8>]) -> Vec<u8>,
    /// What `resume` prints.
    says: &'static str,
    /// What the model must receive, in addition to the new prompt.
    sees: &'static [&'static str],
}

fn joined<'a>(lines: impl IntoIterator<Item = &'a Vec<u8>>) -> Vec<u8> {
    lines.into_iter().flat_map(|line| [line.as_slice(), b"\n"].concat()).collect()
}

fn record(line: &[u8]) -> Value {
    serde_json::from_slice(line).unwrap_or_default()
}

/// The line of the n-th record that `wanted` accepts.
fn nth(lines: &[Vec<u8>], n: usize, wanted: impl Fn(&Value) -> bool) -> usize {
    lines.iter().enumerate().filter(|(_, line)| wanted(&record(line))).nth(n).unwrap().0
}

fn without(lines: &[Vec<u8>], gone: usize) -> Vec<u8> {
    joined(lines.iter().enumerate().filter(|(at, _)| *at != gone).map(|(_, line)| line))
}

fn broken(lines: &[Vec<u8>], at: usize) -> Vec<u8> {
    let mut lines = lines.to_vec();
    lines[at].truncate(100);
    joined(&lines)
}

/// The agent was killed in the middle of a line.
fn torn_end(sees: &'static [&'static str]) -> Case {
    let damage = |lines: &[Vec<u8>]| [joined(lines), lines[2][..30].to_vec()].concat();
    Case { name: "torn end", damage, says: "the last line is torn", sees }
}

/// Makes a conversation with these prompts, then resumes it once for each damage.
fn each_is_repaired(agent: Agent, prompts: impl Fn(&Fixture) -> Vec<String>, cases: &[Case]) {
    let Some(fixture) = Fixture::new(agent) else { return };
    // No automatic copies: `resume` would restore the missing parts from a copy.
    let config = fixture.harness.root().join("home/.config/ostler");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("config.toml"), "autosave = \"off\"\n").unwrap();
    let prompts = prompts(&fixture);
    fixture.follow(&prompts[0]).exits(0);
    let session = fixture.last();
    for prompt in &prompts[1..] {
        let output = fixture.harness.run(&["resume", session.id(), prompt]).exits(0);
        assert!(!output.stderr.contains("repaired"), "it is not damaged: {output:?}");
    }
    let file = transcript(&fixture, &session);
    let whole = std::fs::read(&file).unwrap();
    let lines: Vec<Vec<u8>> =
        whole.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect();
    for Case { name, damage, says, sees } in cases {
        std::fs::write(&file, damage(&lines)).unwrap();
        let output = fixture.harness.run(&["resume", session.id(), &format!("say next {name}")]).exits(0);
        assert!(output.stderr.contains(says), "{name}: {output:?}");
        let seen = is_well_formed(&fixture);
        for text in sees.iter().chain([name]) {
            assert!(seen.contains(text), "{name}: {text:?} is not in {seen}");
        }
        let again = fixture.harness.run(&["repair", session.id(), "--dry-run"]).exits(0);
        assert!(again.stdout.contains("nothing to repair"), "{name}: {again:?}");
    }
}

fn is_answer(record: &Value) -> bool {
    record["type"] == "assistant"
}

fn is_result(record: &Value) -> bool {
    record["message"]["content"][0]["type"] == "tool_result"
}

#[test]
fn claude_gets_everything_that_survived() {
    const ALL: &[&str] = &["alpha", "one-out", "two-out", "beta", "three-out", "gamma"];
    let prompts = |fixture: &Fixture| {
        let two = r#"tools Bash {"command":"echo one-out"} Bash {"command":"echo two-out"} ; say beta"#.to_owned();
        vec!["say alpha".to_owned(), two, format!("{} ; say gamma", fixture.tool("echo three-out"))]
    };
    each_is_repaired(
        Agent::Claude,
        prompts,
        &[
            torn_end(ALL),
            Case {
                name: "no newline",
                damage: |lines| {
                    let mut all = joined(lines);
                    all.pop();
                    all
                },
                says: "newline added",
                sees: ALL,
            },
            Case {
                name: "broken line",
                damage: |lines| broken(lines, nth(lines, 0, is_answer)),
                says: "is damaged",
                sees: &["one-out", "two-out", "beta", "three-out", "gamma"],
            },
            Case {
                name: "call without result",
                damage: |lines| without(lines, nth(lines, 0, is_result)),
                says: "a call of Bash has no result",
                sees: &["alpha", "beta", "three-out", "gamma", "may have run in part or in full"],
            },
            Case {
                name: "result without call",
                damage: |lines| without(lines, nth(lines, 4, is_answer)),
                says: "a tool's result has no call",
                sees: ALL,
            },
            Case {
                name: "parallel result without call",
                damage: |lines| without(lines, nth(lines, 1, is_answer)),
                says: "a tool's result has no call",
                sees: ALL,
            },
            Case {
                name: "lost prompt",
                damage: |lines| without(lines, nth(lines, 1, |record| record["type"] == "user" && !is_result(record))),
                says: "linked to the one before it",
                sees: ALL,
            },
            Case {
                name: "everything twice",
                damage: |lines| joined(lines.iter().flat_map(|line| [line, line])),
                says: "records are there twice: the copies removed",
                sees: ALL,
            },
            Case {
                name: "a record on a torn one",
                damage: |lines| {
                    let at = nth(lines, 2, |record| record["type"] == "user" && !is_result(record));
                    let glued = [&lines[0][..20], lines[at].as_slice()].concat();
                    let mut lines = lines.to_vec();
                    lines[at] = glued;
                    joined(&lines)
                },
                says: "1 whole record in it saved",
                sees: ALL,
            },
        ],
    );
}

#[test]
fn codex_gets_everything_that_survived() {
    const ALL: &[&str] = &["alpha", "one-out", "beta"];
    let prompts =
        |fixture: &Fixture| vec!["say alpha".to_owned(), format!("{} ; say beta", fixture.tool("echo one-out"))];
    each_is_repaired(
        Agent::Codex,
        prompts,
        &[
            torn_end(ALL),
            Case {
                name: "broken line",
                damage: |lines| broken(lines, nth(lines, 0, |record| record["payload"]["role"] == "assistant")),
                says: "is damaged",
                sees: &["one-out", "beta"],
            },
            Case {
                name: "result without call",
                damage: |lines| without(lines, nth(lines, 0, |record| record["payload"]["type"] == "function_call")),
                says: "a tool's result has no call",
                sees: ALL,
            },
            Case {
                name: "everything twice",
                damage: |lines| joined(lines[..1].iter().chain(lines[1..].iter().flat_map(|line| [line, line]))),
                says: "records are there twice: the copies removed",
                sees: ALL,
            },
            Case {
                name: "the file twice",
                damage: |lines| [joined(lines), joined(lines)].concat(),
                says: "records are there twice: the copies removed",
                sees: ALL,
            },
            Case { name: "lost beginning", damage: |lines| without(lines, 0), says: "created again", sees: ALL },
        ],
    );
}

#[test]
fn gemini_gets_everything_that_survived() {
    const ALL: &[&str] = &["alpha", "one-out", "beta"];
    let prompts =
        |fixture: &Fixture| vec!["say alpha".to_owned(), format!("{} ; say beta", fixture.tool("echo one-out"))];
    each_is_repaired(
        Agent::Gemini,
        prompts,
        &[
            torn_end(ALL),
            Case {
                name: "broken line",
                damage: |lines| broken(lines, nth(lines, 0, |record| record["content"] == "beta")),
                says: "is damaged",
                sees: &["alpha", "one-out"],
            },
            Case {
                name: "result without call",
                damage: |lines| without(lines, nth(lines, 0, |record| record["toolCalls"].is_array())),
                says: "a tool's result has no call",
                sees: ALL,
            },
            Case {
                name: "lost list",
                // When gemini is resumed in the minute in which the conversation began, it writes a list with only the
                // first message, and then the whole list. In a later minute it writes the first list to a separate
                // file.
                damage: |lines| {
                    let length = |line: &Vec<u8>| record(line)["$set"]["messages"].as_array().map_or(0, Vec::len);
                    let first = lines.iter().position(|line| length(line) == 1).unwrap();
                    let after = lines[first + 1..].iter().filter(|line| length(line) != 1);
                    let mut lines: Vec<Vec<u8>> = lines[..=first].iter().chain(after).cloned().collect();
                    let whole = lines.iter().position(|line| length(line) > 1).unwrap();
                    lines.insert(whole, lines[first].clone());
                    broken(&lines, whole + 1)
                },
                says: "messages restored",
                sees: ALL,
            },
        ],
    );
}
