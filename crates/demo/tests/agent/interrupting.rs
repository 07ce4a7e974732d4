//! An interrupt ends a turn at any point, and nothing else.

use crate::fixture::{Fixture, outline};

#[test]
fn an_interrupt_in_a_tool_kills_the_tool_and_keeps_the_agent() {
    let fixture = Fixture::new();
    let mut agent = fixture.start();
    agent.prompt("sleep");
    let tool = agent.tool_process();
    agent.interrupt();
    let lines = agent.until("result");
    tool.await_end();
    assert_eq!(outline(&lines), ["control_response", "user:tool_result", "user:text", "result"]);
    assert_eq!(lines[0]["response"]["request_id"], "i1");
    let result = &lines[3];
    assert_eq!(result["subtype"], "error_during_execution");
    assert_eq!(result["is_error"], true);
    assert_eq!(result.get("result"), None);

    agent.prompt("say still here");
    assert_eq!(agent.result()["result"], "still here");
}

#[test]
fn an_interrupt_in_a_text_keeps_what_was_said() {
    let fixture = Fixture::new();
    let text = "word ".repeat(100_000);
    let mut command = fixture.command(&["--partial", "--session-id", &fixture.session.to_string()]);
    // At this pace the text takes ten seconds to come.
    command.env("OSTLER_DEMO_PACE", "100");
    let mut agent = fixture.spawn(command);
    agent.prompt(&format!("say {text}"));
    agent.until("stream_event");
    agent.interrupt();
    let lines = agent.until("result");
    let said = lines.iter().find(|line| line["type"] == "assistant").unwrap();
    let said_text = said["message"]["content"][0]["text"].as_str().unwrap();
    assert!(!said_text.is_empty() && said_text.len() < text.len() && text.starts_with(said_text));
    agent.end_input();
    assert_eq!(agent.exit(), Some(0));
    assert!(fixture.transcript_has(&said["uuid"]));
}

#[test]
fn a_waiting_prompt_runs_after_an_interrupt() {
    let fixture = Fixture::new();
    let mut agent = fixture.start();
    agent.prompt("sleep");
    agent.prompt("say I waited");
    agent.tool_process();
    agent.interrupt();
    assert_eq!(agent.result()["subtype"], "error_during_execution");
    assert_eq!(agent.result()["result"], "I waited");
}

#[test]
fn an_interrupt_between_turns_is_answered_and_forgotten() {
    let fixture = Fixture::new();
    let mut agent = fixture.start();
    agent.interrupt();
    agent.until("control_response");
    agent.prompt("say hello");
    assert_eq!(agent.result()["result"], "hello");
}
