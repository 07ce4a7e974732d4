//! A prompt of a megabyte, piped in, reaches the model byte for byte.

use crate::fixture::{Fixture, for_every_agent};
use ostler_mock_llm::agents::Agent;

fn takes_a_megabyte(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let mut prompt = "say read all of it ;".to_owned();
    while prompt.len() < 1 << 20 {
        prompt.push_str(&format!(" {:09} é\"\\", prompt.len()));
    }
    prompt.push_str(" end");
    let words = fixture.words(&[], Some("-"));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    fixture.harness.run_with_input(&words, prompt.as_bytes()).exits(0);
    let seen = fixture.seen();
    assert_eq!(seen.len(), 1, "one message");
    assert!(seen[0] == prompt, "{} bytes became {}", prompt.len(), seen[0].len());
    fixture.proves("prompt of a megabyte");
}

for_every_agent!(takes_a_megabyte:
    claude_takes_a_megabyte Claude,
    codex_takes_a_megabyte Codex,
    gemini_takes_a_megabyte Gemini,
    opencode_takes_a_megabyte Opencode,
    qwen_takes_a_megabyte Qwen,
);

/// Codex takes a megabyte of characters at most, and reports the refusal outside of the conversation.
#[test]
fn a_prompt_that_is_too_long_for_codex_is_a_failure_with_its_reason_in_one_line() {
    let Some(fixture) = Fixture::new(Agent::Codex) else { return };
    let prompt = fixture.harness.root().join("prompt");
    std::fs::write(&prompt, "long ".repeat(600_000)).unwrap();
    let output = fixture.harness.run(&["run", "-f", prompt.to_str().unwrap(), "codex"]).exits(1);
    let shown = fixture.last().show();
    let cause = &shown.outcome().cause;
    assert!(cause.contains("Input exceeds the maximum length") && !cause.contains('\n'), "{shown:?}");
    assert!(output.stderr.contains(cause.as_str()) && shown.last.as_ref() == Some(cause), "{output:?}");
}
