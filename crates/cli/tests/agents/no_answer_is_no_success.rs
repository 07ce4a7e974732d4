//! A turn without an answer is not a success, whatever the agent calls it, and the reason is in the agent's own words.
//! The cases: an answer that is cut off, an empty answer, a call that cannot be parsed, the same call again and again.

use crate::errors_are_failures::{failed, impatient};
use crate::fixture::Fixture;
use ostler_mock_llm::agents::Agent;

#[test]
fn gemini_that_stops_a_loop_has_failed() {
    let Some(fixture) = Fixture::new(Agent::Gemini) else { return };
    let script = vec![fixture.tool("echo same"); 12].join(" ; ");
    failed(&fixture, fixture.follow(&script), &["Loop detected, stopping execution"]);
    assert_ne!(fixture.last().show().outcome().saved, "unverified");
    fixture.proves("the agent stops a loop of tool calls: failed, with the reason");
}

#[test]
fn gemini_whose_model_sends_a_malformed_tool_call_has_failed() {
    let Some(fixture) = Fixture::new(Agent::Gemini) else { return };
    let output = fixture.follow("malformed run_shell_command");
    failed(&fixture, output, &["Model stream ended with malformed function call."]);
    fixture.proves("a malformed tool call: failed, with the reason");
}

#[test]
fn gemini_without_an_answer_has_failed() {
    let Some(fixture) = Fixture::new(Agent::Gemini) else { return };
    failed(&fixture, fixture.follow("empty"), &["The model returned an empty response"]);
    fixture.proves("an empty answer: failed, with the reason");
    failed(&fixture, fixture.follow("cut 3"), &["API error: terminated"]);
    let logs = fixture.harness.run(&["logs", fixture.last().id()]).exits(0).stdout;
    assert!(logs.contains("word1 word2 word3\n"), "what it said: {logs}");
    let outcome = fixture.last().show().outcome().clone();
    assert_eq!(outcome.saved, "verified", "the prompt is, and nothing else was complete: {outcome:?}");
    fixture.proves("an answer that is cut off: failed, with the reason");
}

#[test]
fn codex_without_an_answer_has_failed() {
    let Some(fixture) = impatient(Fixture::new(Agent::Codex)) else { return };
    failed(&fixture, fixture.follow("empty"), &["the agent ended its turn without an answer"]);
    fixture.proves("an empty answer: failed, with the reason");
    failed(&fixture, fixture.follow("cut 3"), &["stream disconnected before completion"]);
    fixture.proves("an answer that is cut off: failed, with the reason");
}

// Opencode asks again for ever when an answer was cut off: see hangs_can_be_interrupted.
#[test]
fn opencode_without_an_answer_has_failed() {
    let Some(fixture) = Fixture::new(Agent::Opencode) else { return };
    failed(&fixture, fixture.follow("empty"), &["the agent ended its turn without an answer"]);
    fixture.proves("an empty answer: failed, with the reason");
    let refused = fixture.follow(r#"tool read {"filePath":"/nowhere/x"}"#);
    failed(&fixture, refused, &["the agent ended its turn without an answer: The user rejected permission"]);
    fixture.proves("a tool that is refused ends the turn: failed, with the reason");
}
