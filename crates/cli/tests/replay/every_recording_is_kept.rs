//! One replay of each recording: outcome, text, tokens and session file.

use crate::fixture::{expected_session_file, play};
use ostler_testkit::recordings::{Recorded, each_has_a_snapshot, recordings};
use ostler_testkit::{Harness, Session};
use serde_json::Value;
use std::fmt::Write;

const SNAPSHOTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/replay/snapshots");

/// What `show` and `logs` print at the end.
fn shown_and_logged(harness: &Harness, session: &Session<'_>) -> String {
    let shown: Value = harness.run(&["show", "--json", session.id()]).exits(0).json();
    let mut text = String::new();
    for (of, names) in [(&shown, &["state", "run", "turns"][..]), (&shown["outcome"], &OUTCOME)] {
        for name in names {
            writeln!(text, "{name:<10}{}", of[name]).unwrap();
        }
    }
    let logs = harness.run(&["logs", session.id()]).exits(0).stdout;
    format!("{text}\n{}", without_process_ids(&logs))
}

/// The log names the process that answered; its pid differs from run to run.
fn without_process_ids(text: &str) -> String {
    let mut parts = text.split("(pid ");
    let mut made = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        made.push_str("(pid N");
        made.push_str(part.trim_start_matches(|digit: char| digit.is_ascii_digit()));
    }
    made
}

const OUTCOME: [&str; 8] = ["kind", "source", "exit_code", "signal", "saved", "text", "tokens", "cost_usd"];

fn is_kept(one: &Recorded) {
    let harness = Harness::new(env!("CARGO_BIN_EXE_ostler"));
    let session = play(&harness, &one.file, &one.recording);
    let shown = session.show();
    if shown.outcome().saved == "verified" {
        let file = std::fs::read_to_string(shown.transcript.unwrap()).unwrap();
        assert_eq!(file, expected_session_file(&session, &one.recording), "{}: the session file", one.name);
    }
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(one.name.as_str(), shown_and_logged(&harness, &session));
    });
    tail_equals_end_of_all(&harness, &session);
}

/// `logs -n` reads a long log from its end. It must print the same as the end of the whole log, wherever in the agent's
/// output it begins to read.
fn tail_equals_end_of_all(harness: &Harness, session: &Session<'_>) {
    let out = session.run_file("out");
    // A session that has ended keeps no empty files.
    let once = std::fs::read(&out).unwrap_or_default();
    std::fs::write(&out, once.repeat((1 << 20) / once.len().max(1) + 1)).unwrap();
    let all = harness.run(&["logs", session.id()]).exits(0).stdout;
    let lines: Vec<&str> = all.split_inclusive('\n').collect();
    for count in [1, 5, 300, 2000] {
        let last = harness.run(&["logs", "-n", &count.to_string(), session.id()]).exits(0).stdout;
        assert!(last == lines[lines.len().saturating_sub(count)..].concat(), "the last {count} lines:\n{last}");
    }
}

fn is_kept_as_before(agent: &str) {
    recordings().iter().filter(|one| one.recording.agent == agent).for_each(is_kept);
}

#[test]
fn recorded_claude_is_kept_as_before() {
    is_kept_as_before("claude");
}

#[test]
fn recorded_codex_is_kept_as_before() {
    is_kept_as_before("codex");
}

#[test]
fn recorded_qwen_is_kept_as_before() {
    is_kept_as_before("qwen");
}

#[test]
fn recorded_gemini_is_kept_as_before() {
    is_kept_as_before("gemini");
}

#[test]
fn recorded_opencode_is_kept_as_before() {
    is_kept_as_before("opencode");
}

#[test]
fn every_recording_is_played() {
    each_has_a_snapshot(SNAPSHOTS);
}
