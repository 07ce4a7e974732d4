//! Codex, one process per turn.

use crate::fixture::Fixture;
use crate::running::Ended;
use ostler_mock_llm::agents::Agent;
use ostler_mock_llm::{INPUT_TOKENS, OUTPUT_TOKENS};

fn exec(fixture: &Fixture, more: &[&str]) -> Ended {
    let fixed = ["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"];
    fixture.start(fixed.iter().chain(more)).finish()
}

fn final_text(turn: &Ended) -> Option<&str> {
    let said = turn.of_type("item.completed").into_iter().rev();
    said.map(|event| &event["item"]).find(|item| item["type"] == "agent_message")?["text"].as_str()
}

#[test]
fn codex_runs_a_tool_says_what_the_script_says_and_resumes() {
    let Some(fixture) = Fixture::for_agent(Agent::Codex) else { return };
    let script = r#"tool exec_command {"cmd":"echo ran > proof; echo told"} ; say all done"#;
    let turn = exec(&fixture, &[script]).well();
    assert_eq!(final_text(&turn), Some("all done"));
    let usage = &turn.last_of_type("turn.completed")["usage"];
    assert_eq!(
        (&usage["input_tokens"], &usage["output_tokens"]),
        (&(2 * INPUT_TOKENS).into(), &(2 * OUTPUT_TOKENS).into())
    );
    assert_eq!(fixture.written("proof"), "ran\n");
    assert!(fixture.returned()[0].contains("told"), "{:?}", fixture.returned());

    let thread = turn.last_of_type("thread.started")["thread_id"].as_str().unwrap();
    let next = exec(&fixture, &["resume", thread, "say more"]);
    assert_eq!(final_text(&next), Some("more"));
    assert_eq!(fixture.seen(), [script, "say more"]);
}

#[test]
fn codex_runs_several_tools_of_one_answer() {
    let Some(fixture) = Fixture::for_agent(Agent::Codex) else { return };
    let turn = exec(&fixture, &[r#"tools exec_command {"cmd":"echo a"} exec_command {"cmd":"echo b"} ; say both"#]);
    assert_eq!(final_text(&turn), Some("both"));
    assert_eq!(fixture.returned().len(), 2, "{:?}", fixture.returned());
}

#[test]
fn codex_retries_what_passes_and_fails_on_what_does_not() {
    let Some(fixture) = Fixture::for_agent(Agent::Codex) else { return };
    let better = exec(&fixture, &["fail 500 once ; say better"]);
    assert_eq!(final_text(&better), Some("better"));
    let failed = exec(&fixture, &["fail 400 always"]);
    assert_eq!(failed.status.code(), Some(1));
    assert_eq!(failed.of_type("turn.failed").len(), 1);
}
