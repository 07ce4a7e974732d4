//! Codex, one process per turn.

use crate::bed::Bed;
use crate::running::Ended;
use ostler_mock_llm::agents::Agent;
use ostler_mock_llm::{INPUT_TOKENS, OUTPUT_TOKENS};

fn exec(bed: &Bed, more: &[&str]) -> Ended {
    let fixed = ["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"];
    bed.start(fixed.iter().chain(more)).finish()
}

fn final_text(turn: &Ended) -> Option<&str> {
    let said = turn.of_type("item.completed").into_iter().rev();
    said.map(|event| &event["item"]).find(|item| item["type"] == "agent_message")?["text"].as_str()
}

#[test]
fn codex_runs_a_tool_says_what_the_script_says_and_resumes() {
    let Some(bed) = Bed::for_agent(Agent::Codex) else { return };
    let script = r#"tool exec_command {"cmd":"echo ran > proof; echo told"} ; say all done"#;
    let turn = exec(&bed, &[script]).well();
    assert_eq!(final_text(&turn), Some("all done"));
    let usage = &turn.last_of_type("turn.completed")["usage"];
    assert_eq!(
        (&usage["input_tokens"], &usage["output_tokens"]),
        (&(2 * INPUT_TOKENS).into(), &(2 * OUTPUT_TOKENS).into())
    );
    assert_eq!(bed.written("proof"), "ran\n");
    assert!(bed.returned()[0].contains("told"), "{:?}", bed.returned());

    let thread = turn.last_of_type("thread.started")["thread_id"].as_str().unwrap();
    let next = exec(&bed, &["resume", thread, "say more"]);
    assert_eq!(final_text(&next), Some("more"));
    assert_eq!(bed.seen(), [script, "say more"]);
}

#[test]
fn codex_runs_several_tools_of_one_answer() {
    let Some(bed) = Bed::for_agent(Agent::Codex) else { return };
    let turn = exec(&bed, &[r#"tools exec_command {"cmd":"echo a"} exec_command {"cmd":"echo b"} ; say both"#]);
    assert_eq!(final_text(&turn), Some("both"));
    assert_eq!(bed.returned().len(), 2, "{:?}", bed.returned());
}

#[test]
fn codex_retries_what_passes_and_fails_on_what_does_not() {
    let Some(bed) = Bed::for_agent(Agent::Codex) else { return };
    let better = exec(&bed, &["fail 500 once ; say better"]);
    assert_eq!(final_text(&better), Some("better"));
    let failed = exec(&bed, &["fail 400 always"]);
    assert_eq!(failed.status.code(), Some(1));
    assert_eq!(failed.of_type("turn.failed").len(), 1);
}
