//! opencode, one process per turn. It quotes its prompt on the way to the model.

use crate::fixture::Fixture;
use crate::running::Ended;
use ostler_mock_llm::agents::Agent;

fn run(fixture: &Fixture, more: &[&str]) -> Ended {
    let fixed = ["run", "--format", "json"];
    fixture.start(fixed.iter().chain(more)).finish()
}

fn final_text(turn: &Ended) -> &str {
    turn.last_of_type("text")["part"]["text"].as_str().unwrap()
}

#[test]
fn opencode_runs_a_tool_says_what_the_script_says_and_resumes() {
    let Some(fixture) = Fixture::for_agent(Agent::Opencode) else { return };
    let script = r#"tool bash {"command":"echo ran > proof; echo told","description":"proves it"} ; say all done"#;
    let first = run(&fixture, &[script]).well();
    assert_eq!(final_text(&first), "all done");
    assert_eq!(first.of_type("tool_use").len(), 1);
    assert_eq!(fixture.written("proof"), "ran\n");
    assert!(fixture.returned()[0].contains("told"), "{:?}", fixture.returned());

    let session = first.last_of_type("text")["sessionID"].as_str().unwrap();
    let second = run(&fixture, &["-s", session, "say more"]);
    assert_eq!(final_text(&second), "more");
    assert_eq!(fixture.seen(), [script, "say more"]);
}
