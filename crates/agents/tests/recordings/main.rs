//! The facts that the decoders find in all recordings of the real agents. When an agent changes, the diff of its
//! recordings shows what it prints now, and the diff of these snapshots shows how we interpret it.
//!
//! `cargo xtask record` makes the recordings, `INSTA_UPDATE=always cargo test -p ostler-agents` accepts new snapshots.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that finds no value has failed")]

use ostler_core::fact::{Fact, Tokens};
use ostler_core::outcome::Exit;
use ostler_replay::{End, Recording};
use ostler_testkit::recordings::{each_has_a_snapshot, recordings};
use std::fmt::Write;

const SNAPSHOTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recordings/snapshots");

/// One line for each fact, run by run.
fn understood(recording: &Recording) -> String {
    let agent = ostler_agents::find(&recording.agent).unwrap();
    let (mut text, mut used) = (String::new(), Tokens::default());
    for (index, run) in recording.runs.iter().enumerate() {
        writeln!(text, "run {}", index + 1).unwrap();
        let mut decoder = agent.decoder();
        decoder.used_before(used);
        let mut facts = Vec::new();
        run.printed().for_each(|line| decoder.line(line.as_bytes(), &mut facts));
        if !facts.iter().any(|fact| matches!(fact, Fact::TurnEnded(_))) {
            writeln!(text, "(its exit is the end of its turn)").unwrap();
            facts.push(Fact::TurnEnded(decoder.turn_end_at_exit(exit(run.end().unwrap()), None)));
        }
        for fact in facts {
            writeln!(text, "{fact:?}").unwrap();
            if let Fact::TurnEnded(end) = fact {
                used += end.tokens.unwrap_or_default();
            }
        }
    }
    text
}

fn exit(end: End) -> Exit {
    match end {
        End::Exit(code) => Exit { code: Some(code), signal: None },
        End::Signal(signal) => Exit { code: None, signal: Some(signal) },
    }
}

fn decodes_as_before(agent: &str) {
    let recordings = recordings().into_iter().filter(|one| one.recording.agent == agent);
    for one in recordings {
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(one.name.as_str(), understood(&one.recording));
        });
    }
}

#[test]
fn claude_is_understood_as_before() {
    decodes_as_before("claude");
}

#[test]
fn codex_is_understood_as_before() {
    decodes_as_before("codex");
}

#[test]
fn gemini_is_understood_as_before() {
    decodes_as_before("gemini");
}

#[test]
fn opencode_is_understood_as_before() {
    decodes_as_before("opencode");
}

#[test]
fn qwen_is_understood_as_before() {
    decodes_as_before("qwen");
}

#[test]
fn every_recording_is_understood() {
    each_has_a_snapshot(SNAPSHOTS);
}

/// A decoder reports what it does not know.
#[test]
fn nothing_that_agents_say_is_unknown() {
    for one in recordings() {
        let unknown: Vec<String> =
            understood(&one.recording).lines().filter(|line| line.starts_with("Unknown")).map(str::to_owned).collect();
        assert!(unknown.is_empty(), "{}: {unknown:?}", one.name);
    }
}

/// The path of an agent in npm's lock file.
fn package(agent: &str) -> &'static str {
    match agent {
        "claude" => "node_modules/@anthropic-ai/claude-code",
        "codex" => "node_modules/@openai/codex",
        "gemini" => "node_modules/@google/gemini-cli",
        "opencode" => "node_modules/opencode-linux-x64",
        "qwen" => "node_modules/@qwen-code/qwen-code",
        other => panic!("which package is {other}?"),
    }
}

#[test]
fn recordings_are_of_the_agents_that_tests_start() {
    let lock = include_str!("../../../../agents/package-lock.json");
    let lock: serde_json::Value = serde_json::from_str(lock).unwrap();
    for one in recordings() {
        let pinned = lock["packages"][package(&one.recording.agent)]["version"].as_str().unwrap();
        assert_eq!(one.recording.version, pinned, "{}: cargo xtask record {}", one.name, one.recording.agent);
    }
}
