//! Questions: asked and answered over the same pipes as prompts.

use serde_json::{Value, json};

use crate::fixture::{Agent, Fixture, outline, read};

fn answer(agent: &mut Agent, request_id: &Value, response: Value) {
    agent.send(&json!({
        "type": "control_response",
        "response": {"subtype": "success", "request_id": request_id, "response": response},
    }));
}

fn asking(fixture: &Fixture) -> (Agent, Value) {
    let mut agent = fixture.start_with(&["--ask", "--session-id", &fixture.session.to_string()]);
    agent.prompt("fix it");
    let question = agent.until("control_request").pop().unwrap();
    (agent, question)
}

#[test]
fn an_allowed_edit_is_made() {
    let fixture = Fixture::new();
    let (mut agent, question) = asking(&fixture);
    assert_eq!(question["request"]["subtype"], "can_use_tool");
    assert_eq!(question["request"]["tool_name"], "Edit");
    assert!(question["request"]["tool_use_id"].is_string());
    assert!(read(&fixture.scratch_file("greet.sh")).contains("$nmae"), "not before the answer");
    let input = question["request"]["input"].clone();
    answer(&mut agent, &question["request_id"], json!({"behavior": "allow", "updatedInput": input}));
    assert_eq!(agent.result()["is_error"], false);
    assert!(read(&fixture.scratch_file("greet.sh")).contains("$name!"));
}

#[test]
fn a_denied_edit_is_not_made_and_the_turn_ends_politely() {
    let fixture = Fixture::new();
    let (mut agent, question) = asking(&fixture);
    answer(&mut agent, &question["request_id"], json!({"behavior": "deny", "message": "not today"}));
    let result = agent.result();
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("success"), &json!(false)));
    assert!(result["result"].as_str().unwrap().contains("not today"));
    assert_eq!(result["permission_denials"][0]["tool_name"], "Edit");
    assert!(read(&fixture.scratch_file("greet.sh")).contains("$nmae"));
}

#[test]
fn an_answer_to_another_question_is_none() {
    let fixture = Fixture::new();
    let (mut agent, question) = asking(&fixture);
    answer(&mut agent, &json!("another"), json!({"behavior": "allow"}));
    answer(&mut agent, &question["request_id"], json!({"behavior": "deny", "message": "no"}));
    agent.result();
    assert!(read(&fixture.scratch_file("greet.sh")).contains("$nmae"));
}

#[test]
fn an_interrupted_question_is_withdrawn() {
    let fixture = Fixture::new();
    let (mut agent, question) = asking(&fixture);
    agent.interrupt();
    let lines = agent.until("result");
    assert_eq!(
        outline(&lines),
        ["control_response", "control_cancel_request", "user:tool_result", "user:text", "result"]
    );
    assert_eq!(lines[1]["request_id"], question["request_id"]);
    assert_eq!(lines[4]["subtype"], "error_during_execution");
}

#[test]
fn a_question_after_the_end_of_input_is_denied() {
    let fixture = Fixture::new();
    let (mut agent, _) = asking(&fixture);
    agent.end_input();
    assert!(agent.result()["result"].as_str().unwrap().contains("no answer can come"));
    assert_eq!(agent.exit(), Some(0));
}

#[test]
fn the_ask_prompt_asks_without_the_option_and_tells_the_verdict() {
    let fixture = Fixture::new();
    let mut agent = fixture.start();
    for (response, wanted) in [
        (json!({"behavior": "allow", "updatedInput": {}}), "allowed: may I"),
        (json!({"behavior": "deny", "message": "no"}), "denied: may I (no)"),
    ] {
        agent.prompt("ask may I");
        let question = agent.until("control_request").pop().unwrap();
        answer(&mut agent, &question["request_id"], response);
        assert_eq!(agent.result()["result"], wanted);
    }
}
