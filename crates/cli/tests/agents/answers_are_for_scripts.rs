//! `$(ostler run AGENT "…")` is what the agent said last: its tools and everything else are on standard error.

use crate::fixture::{Fixture, for_every_agent};
use ostler_mock_llm::agents::Agent;

fn answers_a_script(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let prompt = format!("{} ; say the answer", fixture.tool("echo from a tool"));
    let output = fixture.follow(&prompt).exits(0);
    assert_eq!(output.stdout, "the answer\n", "{output:?}");
    assert!(output.stderr.contains("from a tool") && !output.stderr.contains("the answer\n\n"), "{output:?}");
    fixture.proves("a script gets the final answer alone");
}

for_every_agent!(answers_a_script:
    claude_answers_a_script Claude,
    codex_answers_a_script Codex,
    gemini_answers_a_script Gemini,
    opencode_answers_a_script Opencode,
    qwen_answers_a_script Qwen,
);
