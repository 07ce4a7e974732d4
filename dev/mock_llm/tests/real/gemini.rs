//! The Gemini CLI, one process per turn.

use crate::fixture::Fixture;
use crate::running::Ended;
use ostler_mock_llm::Kind;
use ostler_mock_llm::agents::Agent;

const SESSION: &str = "00000000-0000-4000-8000-000000000077";

fn turn(fixture: &Fixture, prompt: &str, more: &[&str]) -> Ended {
    let fixed = ["-p", prompt, "--output-format", "stream-json", "--yolo"];
    fixture.start(fixed.iter().chain(more)).finish()
}

fn final_text(turn: &Ended) -> String {
    let messages = turn.of_type("message").into_iter().filter(|event| event["role"] == "assistant");
    messages.filter_map(|event| event["content"].as_str()).collect()
}

#[test]
fn gemini_runs_a_tool_says_what_the_script_says_and_resumes() {
    let Some(fixture) = Fixture::for_agent(Agent::Gemini) else { return };
    let script = r#"tool run_shell_command {"command":"echo ran > proof; echo told"} ; say all done"#;
    let first = turn(&fixture, script, &["--session-id", SESSION]).well();
    assert_eq!(final_text(&first), "all done");
    assert_eq!(first.last_of_type("result")["status"], "success");
    assert_eq!(fixture.written("proof"), "ran\n");
    assert!(fixture.returned()[0].contains("told"), "{:?}", fixture.returned());
    let background =
        fixture.server.requests().iter().filter(|request| matches!(request.kind, Kind::Background(_))).count();
    eprintln!("measured: {background} background requests in one turn of gemini");

    let second = turn(&fixture, "say more", &["--resume", SESSION]);
    assert_eq!(final_text(&second), "more");
    assert_eq!(fixture.seen(), [script, "say more"]);
}

#[test]
fn gemini_fails_on_what_does_not_pass() {
    let Some(fixture) = Fixture::for_agent(Agent::Gemini) else { return };
    let failed = turn(&fixture, "fail 400 always", &[]);
    assert!(!failed.status.success());
    assert_eq!(failed.last_of_type("result")["status"], "error");
}
