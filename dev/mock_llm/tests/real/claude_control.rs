//! What claude's stdin and stdout carry besides new messages: questions, interrupts, and messages that it has had
//! before.

use crate::claude::{headless, user, uuid};
use crate::fixture::Fixture;
use crate::running::{LIMIT, ends_within};
use ostler_mock_llm::Ending;
use ostler_mock_llm::agents::Agent;
use ostler_sys::process::{Identity, command_line};
use serde_json::{Value, json};
use std::time::Instant;

fn answer(request: &Value, response: Value) -> Value {
    let id = &request["request_id"];
    json!({"type": "control_response", "response": {"subtype": "success", "request_id": id, "response": response}})
}

fn interrupt() -> Value {
    json!({"type": "control_request", "request_id": "stop-it", "request": {"subtype": "interrupt"}})
}

#[test]
fn claude_asks_over_stdio_and_does_as_it_is_told() {
    let Some(fixture) = Fixture::for_agent(Agent::Claude) else { return };
    let mut claude = headless(&fixture, &["--permission-prompt-tool", "stdio"]);
    claude.send(&user(&uuid(1), r#"ask twice Bash {"command":"touch once"} ; say asked"#));

    let denied = claude.until_type("control_request");
    assert_eq!(denied["request"]["subtype"], "can_use_tool");
    assert_eq!(denied["request"]["tool_name"], "Bash");
    assert_eq!(denied["request"]["input"]["command"], "touch once");
    claude.send(&answer(&denied, json!({"behavior": "deny", "message": "not yet"})));

    let allowed = claude.until_type("control_request");
    assert!(!fixture.work().join("once").exists(), "denied is denied");
    claude.send(&answer(&allowed, json!({"behavior": "allow", "updatedInput": allowed["request"]["input"]})));
    let result = claude.until_type("result");
    assert_eq!(result["result"], "asked");
    assert_eq!(result["permission_denials"].as_array().map(Vec::len), Some(1));
    claude.finish().well();
    assert!(fixture.work().join("once").exists(), "allowed is done");
    assert!(fixture.returned()[0].contains("not yet"), "{:?}", fixture.returned());
}

#[test]
fn an_interrupt_ends_a_streaming_turn_and_the_next_message_works() {
    let Some(fixture) = Fixture::for_agent(Agent::Claude) else { return };
    let mut claude = headless(&fixture, &["--include-partial-messages"]);
    claude.send(&user(&uuid(1), "stream 100000 20"));
    let shown = |event: &Value| event.pointer("/event/delta/text").is_some_and(|text| text == " word5");
    claude.until("fifth word", shown);
    let sent = Instant::now();
    claude.send(&interrupt());
    let (ended, result) = claude.until("result", |event| event["type"] == "result");
    eprintln!("measured: interrupt of a stream to result {:?}", ended - sent);
    assert_eq!(result["subtype"], "error_during_execution");
    fixture.server.wait_for(|requests| requests.iter().any(|request| request.ending == Ending::ClosedEarly)).unwrap();
    claude.send(&user(&uuid(2), "say again"));
    assert_eq!(claude.until_type("result")["result"], "again");
    claude.finish().well();
    assert_eq!(fixture.seen(), ["stream 100000 20", "say again"]);
}

#[test]
fn an_interrupt_ends_a_turn_whose_model_hangs() {
    let Some(fixture) = Fixture::for_agent(Agent::Claude) else { return };
    let mut claude = headless(&fixture, &[]);
    claude.send(&user(&uuid(1), "hang"));
    fixture.server.wait_for(|requests| requests.iter().any(|request| request.turn().is_some())).unwrap();
    claude.send(&interrupt());
    assert_eq!(claude.until_type("result")["subtype"], "error_during_execution");
    fixture.server.wait_for(|requests| requests.iter().any(|request| request.ending == Ending::ClosedEarly)).unwrap();
    claude.finish();
}

#[test]
fn an_interrupt_ends_a_running_tool_and_its_process() {
    let Some(fixture) = Fixture::for_agent(Agent::Claude) else { return };
    let mut claude = headless(&fixture, &["--allowedTools", "Bash"]);
    claude.send(&user(&uuid(1), r#"tool Bash {"command":"mkfifo gate; echo held > held; cat gate"} ; say never"#));
    claude.until("tool call", |event| event.pointer("/message/content/0/type").is_some_and(|kind| kind == "tool_use"));
    let tool = tool_process(&fixture);
    let sent = Instant::now();
    claude.send(&interrupt());
    let (ended, result) = claude.until("result", |event| event["type"] == "result");
    assert!(ends_within(&tool, LIMIT), "the tool's process is gone");
    eprintln!(
        "measured: interrupt of a tool to result {:?}, to the end of its process {:?}",
        ended - sent,
        sent.elapsed()
    );
    assert_eq!(result["subtype"], "error_during_execution");
    claude.send(&user(&uuid(2), "say again"));
    assert_eq!(claude.until_type("result")["result"], "again");
    claude.finish().well();
}

/// The process that blocks the tool. There is no event for its start, so this looks until it exists.
fn tool_process(fixture: &Fixture) -> Identity {
    let deadline = Instant::now() + LIMIT;
    loop {
        let found = fixture.alive().into_iter().find(|process| command_line(process.pid()).join(" ") == "cat gate");
        if let Some(found) = found {
            return found;
        }
        assert!(Instant::now() < deadline, "no tool is running");
        std::thread::yield_now();
    }
}

#[test]
fn a_message_with_a_known_uuid_is_swallowed_without_a_word() {
    let Some(fixture) = Fixture::for_agent(Agent::Claude) else { return };
    let session = uuid(77);
    let mut first = headless(&fixture, &["--session-id", &session]);
    first.send(&user(&uuid(1), "say one"));
    first.until_type("result");
    first.finish().well();

    let mut second = headless(&fixture, &["--resume", &session]);
    second.send(&user(&uuid(1), "say one"));
    second.send(&user(&uuid(2), "say two"));
    assert_eq!(second.until_type("result")["result"], "two", "the first result belongs to the second message");
    let rest = second.finish().well();
    assert!(rest.of_type("result").is_empty(), "and there is no other");
    assert_eq!(fixture.seen(), ["say one", "say two"]);
}
