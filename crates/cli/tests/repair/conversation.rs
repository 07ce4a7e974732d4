//! The requests that the model received, and the transcript that they come from.

use crate::fixture::Fixture;
use ostler_mock_llm::Request;
use ostler_mock_llm::agents::Agent;
use ostler_testkit::Session;
use serde_json::Value;
use std::path::PathBuf;

/// The agent's own transcript of a session.
#[track_caller]
pub fn transcript(fixture: &Fixture, session: &Session<'_>) -> PathBuf {
    let shown: Value = fixture.harness.run(&["show", "--json", session.id()]).exits(0).json();
    PathBuf::from(shown["transcript"].as_str().unwrap_or_else(|| panic!("no transcript in {shown}")))
}

/// The body of the newest request of the conversation.
#[track_caller]
pub fn last_request(fixture: &Fixture) -> Value {
    fixture
        .server
        .requests()
        .iter()
        .rev()
        .find(|request| request.turn().is_some())
        .map(|Request { body, .. }| body.clone())
        .unwrap()
}

/// Fails unless every tool call in the newest request has a result, and every result a call.
#[track_caller]
pub fn is_well_formed(fixture: &Fixture) -> String {
    let body = last_request(fixture);
    match fixture.agent {
        Agent::Claude | Agent::ClaudeAcp => claude_pairs(&body),
        Agent::Codex | Agent::CodexAcp => {
            let (calls, results) = (
                named(&body["input"], "function_call", "call_id"),
                named(&body["input"], "function_call_output", "call_id"),
            );
            assert_eq!(calls, results, "{body}");
        }
        Agent::Gemini => gemini_pairs(&body),
        Agent::Opencode | Agent::Qwen => panic!("ostler does not repair its transcripts"),
    }
    body.to_string()
}

fn named(list: &Value, kind: &str, name: &str) -> Vec<String> {
    let of_kind = list.as_array().into_iter().flatten().filter(|item| item["type"] == kind);
    let mut names: Vec<String> = of_kind.map(|item| item[name].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

/// Results must be in the message right after the one with their calls.
#[track_caller]
fn claude_pairs(body: &Value) {
    let messages: Vec<&Value> =
        body["messages"].as_array().unwrap().iter().filter(|message| message["role"] != "system").collect();
    for (at, message) in messages.iter().enumerate() {
        let calls = named(&message["content"], "tool_use", "id");
        let next = messages.get(at + 1).map_or(&Value::Null, |next| &next["content"]);
        assert_eq!(
            calls,
            if calls.is_empty() { Vec::new() } else { named(next, "tool_result", "tool_use_id") },
            "{body}"
        );
        let results = named(&message["content"], "tool_result", "tool_use_id");
        let before = at.checked_sub(1).map_or(&Value::Null, |before| &messages[before]["content"]);
        assert_eq!(results, if results.is_empty() { Vec::new() } else { named(before, "tool_use", "id") }, "{body}");
    }
}

/// Gemini sends the same result twice when it resumes, so only the sets of ids are compared.
#[track_caller]
fn gemini_pairs(body: &Value) {
    let parts: Vec<&Value> = body["contents"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|message| message["parts"].as_array().into_iter().flatten())
        .collect();
    let ids = |name: &str| {
        let mut ids: Vec<&str> = parts.iter().filter_map(|part| part[name]["id"].as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    };
    assert_eq!(ids("functionCall"), ids("functionResponse"), "{body}");
}
