//! What is piped into `run AGENT PROMPT` reaches the model after the prompt, and the prompt may begin with a dash.

use crate::fixture::{Fixture, for_every_agent};
use ostler_mock_llm::agents::Agent;

fn reads_what_is_piped_in(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let words = fixture.words(&[], Some("- review this"));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    fixture.harness.run_with_input(&words, b"--- a/file\n+++ b/file\n+ a line; say seen").exits(0);
    assert_eq!(fixture.seen(), ["- review this\n\n--- a/file\n+++ b/file\n+ a line; say seen"]);
    fixture.proves("piped input follows the prompt");
}

for_every_agent!(reads_what_is_piped_in:
    claude_reads_what_is_piped_in Claude,
    codex_reads_what_is_piped_in Codex,
    gemini_reads_what_is_piped_in Gemini,
    opencode_reads_what_is_piped_in Opencode,
);
