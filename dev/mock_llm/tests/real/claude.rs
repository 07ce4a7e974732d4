//! Claude Code, headless.

use crate::fixture::Fixture;
use crate::running::Running;
use ostler_mock_llm::agents::Agent;
use ostler_mock_llm::{INPUT_TOKENS, Kind};
use serde_json::{Value, json};

const HEADLESS: [&str; 6] = ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];

pub fn headless<'a>(fixture: &Fixture, more: &[&'a str]) -> Running {
    let arguments: Vec<&'a str> = HEADLESS.into_iter().chain(more.iter().copied()).collect();
    fixture.start_with(&[("CLAUDE_CODE_MAX_RETRIES", "2")], arguments)
}

pub fn user(uuid: &str, text: &str) -> Value {
    json!({"type": "user", "uuid": uuid, "message": {"role": "user", "content": text}})
}

pub fn uuid(number: u64) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

#[test]
fn claude_runs_a_tool_and_says_what_the_script_says() {
    let Some(fixture) = Fixture::for_agent(Agent::Claude) else { return };
    let mut claude = headless(&fixture, &["--allowedTools", "Bash"]);
    claude.send(&user(&uuid(1), r#"tool Bash {"command":"echo ran > proof; echo told"} ; say all done"#));
    let result = claude.until_type("result");
    assert_eq!((&result["result"], &result["is_error"]), (&json!("all done"), &json!(false)));
    claude.send(&user(&uuid(2), "stream 3 5"));
    assert_eq!(claude.until_type("result")["result"], "word1 word2 word3");
    claude.finish().well();

    assert_eq!(fixture.written("proof"), "ran\n");
    assert_eq!(fixture.returned(), ["told"]);
    let script = r#"tool Bash {"command":"echo ran > proof; echo told"} ; say all done"#;
    assert_eq!(fixture.seen(), [script, "stream 3 5"]);
}

#[test]
fn claude_runs_several_tools_of_one_answer() {
    let Some(fixture) = Fixture::for_agent(Agent::Claude) else { return };
    let mut claude = headless(&fixture, &["--allowedTools", "Bash"]);
    claude.send(&user(&uuid(1), r#"tools Bash {"command":"echo a"} Bash {"command":"echo b"} ; say both"#));
    assert_eq!(claude.until_type("result")["result"], "both");
    claude.finish().well();
    // The results are in the order in which the tools ended.
    let mut returned = fixture.returned();
    returned.sort();
    assert_eq!(returned, ["a", "b"]);
}

#[test]
fn claude_retries_what_passes_and_reports_what_does_not() {
    let Some(fixture) = Fixture::for_agent(Agent::Claude) else { return };
    let mut claude = headless(&fixture, &[]);
    claude.send(&user(&uuid(1), "fail 529 once ; say better"));
    assert_eq!(claude.until_type("result")["result"], "better");
    claude.send(&user(&uuid(2), "fail 400 always"));
    let result = claude.until_type("result");
    // A failure with the subtype `success`: this is why the subtype alone must not be used.
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("success"), &json!(true)));
    assert_eq!(result["api_error_status"], 400);
    claude.finish();
}

#[test]
fn claude_reports_the_tokens_that_the_server_charged() {
    let Some(fixture) = Fixture::for_agent(Agent::Claude) else { return };
    let mut claude = headless(&fixture, &[]);
    claude.send(&user(&uuid(1), "say cheap"));
    let result = claude.until_type("result");
    claude.finish();
    assert_eq!(result["usage"]["input_tokens"], INPUT_TOKENS);
    let turns = fixture.server.requests().iter().filter(|request| matches!(request.kind, Kind::Turn(_))).count();
    assert_eq!(turns, 1);
}

#[test]
fn a_subagent_of_claudes_is_a_conversation_of_its_own() {
    let Some(fixture) = Fixture::for_agent(Agent::Claude) else { return };
    let mut claude = headless(&fixture, &["--allowedTools", "Task"]);
    let input = json!({"description": "d", "prompt": "say from below", "subagent_type": "general-purpose"});
    let script = format!("tool Task {input} ; say from above");
    claude.send(&user(&uuid(1), &script));
    assert_eq!(claude.until_type("result")["result"], "from above");
    claude.finish().well();
    let conversations = fixture.server.user_messages();
    let said: Vec<&[String]> = conversations.iter().map(|conversation| conversation.messages.as_slice()).collect();
    assert_eq!(said, [[script], ["say from below".to_owned()]]);
    assert!(fixture.returned()[0].contains("from below"));
}
