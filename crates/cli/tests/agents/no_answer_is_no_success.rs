//! A turn without an answer is no success, whatever the agent calls it, and the reason is in the agent's own words: an answer
//! that is cut off, an empty one, a call that cannot be read, the same call again and again.

use crate::bed::Bed;
use crate::errors_are_failures::{failed, impatient};
use ostler_mock_llm::agents::Agent;

#[test]
fn gemini_that_stops_a_loop_has_failed() {
    let Some(bed) = Bed::new(Agent::Gemini) else { return };
    let script = vec![bed.tool("echo same"); 12].join(" ; ");
    failed(&bed, bed.follow(&script), &["Loop detected, stopping execution"]);
    assert_ne!(bed.last().show().outcome().saved, "unverified");
    bed.proves("the agent stops a loop of tool calls: failed, with the reason");
}

#[test]
fn gemini_whose_model_calls_a_tool_in_a_way_that_cannot_be_read_has_failed() {
    let Some(bed) = Bed::new(Agent::Gemini) else { return };
    let output = bed.follow("malformed run_shell_command");
    failed(&bed, output, &["Model stream ended with malformed function call."]);
    bed.proves("a malformed tool call: failed, with the reason");
}

#[test]
fn gemini_without_an_answer_has_failed() {
    let Some(bed) = Bed::new(Agent::Gemini) else { return };
    failed(&bed, bed.follow("empty"), &["The model returned an empty response"]);
    bed.proves("an empty answer: failed, with the reason");
    failed(&bed, bed.follow("cut 3"), &["API error: terminated"]);
    let logs = bed.harness.run(&["logs", bed.last().id()]).exits(0).stdout;
    assert!(logs.contains("word1 word2 word3\n"), "what it said: {logs}");
    let outcome = bed.last().show().outcome().clone();
    assert_eq!(outcome.saved, "verified", "the prompt is, and nothing else was complete: {outcome:?}");
    bed.proves("an answer that is cut off: failed, with the reason");
}

#[test]
fn codex_without_an_answer_has_failed() {
    let Some(bed) = impatient(Bed::new(Agent::Codex)) else { return };
    failed(&bed, bed.follow("empty"), &["the agent ended its turn without an answer"]);
    bed.proves("an empty answer: failed, with the reason");
    failed(&bed, bed.follow("cut 3"), &["stream disconnected before completion"]);
    bed.proves("an answer that is cut off: failed, with the reason");
}

// It asks again for ever when an answer was cut off: see hangs_can_be_interrupted.
#[test]
fn opencode_without_an_answer_has_failed() {
    let Some(bed) = Bed::new(Agent::Opencode) else { return };
    failed(&bed, bed.follow("empty"), &["the agent ended its turn without an answer"]);
    bed.proves("an empty answer: failed, with the reason");
    let refused = bed.follow(r#"tool read {"filePath":"/nowhere/x"}"#);
    failed(&bed, refused, &["the agent ended its turn without an answer: The user rejected permission"]);
    bed.proves("a tool that is refused ends the turn: failed, with the reason");
}
