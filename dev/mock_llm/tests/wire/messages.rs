//! Anthropic Messages.

use crate::client::{Client, gathered, text};
use ostler_mock_llm::{INPUT_TOKENS, Kind, OUTPUT_TOKENS, Server};
use serde_json::{Value, json};

fn request(messages: Value) -> Value {
    json!({"model": "m", "stream": true, "tools": [{"name": "Bash"}], "messages": messages})
}

fn whole(messages: Value) -> Value {
    json!({"model": "m", "tools": [{"name": "Bash"}], "messages": messages})
}

#[test]
fn a_text_is_streamed_word_by_word_and_ends_the_turn() {
    let server = Server::start().unwrap();
    let events = Client::of(&server)
        .post("/v1/messages?beta=true", &request(json!([{"role": "user", "content": "stream 3 1"}])))
        .events();
    assert_eq!(gathered(&events, "/delta/text"), ["word1", " word2", " word3"]);
    assert_eq!(events.first().unwrap()["message"]["usage"]["input_tokens"], INPUT_TOKENS);
    assert_eq!(text(&events, "/delta/stop_reason"), "end_turn");
    assert_eq!(gathered(&events, "/usage/output_tokens"), [OUTPUT_TOKENS]);
    assert_eq!(events.last().unwrap()["type"], "message_stop");
}

#[test]
fn tools_are_called_and_their_results_bring_the_next_step() {
    let server = Server::start().unwrap();
    let mut client = Client::of(&server);
    let script = json!({"role": "user", "content": [
        {"type": "text", "text": "<system-reminder>x</system-reminder>"},
        {"type": "text", "text": "tools Bash {\"command\":\"a\"} Bash {\"command\":\"b\"} ; say both"},
    ]});
    let called = client.post("/v1/messages", &whole(json!([script]))).json();
    assert_eq!(called["stop_reason"], "tool_use");
    assert_eq!(gathered(called["content"].as_array().unwrap(), "/input/command"), ["a", "b"]);

    let results: Vec<Value> = called["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| {
            let content = json!([{"type": "text", "text": "out"}]);
            json!({"type": "tool_result", "tool_use_id": call["id"], "content": content})
        })
        .collect();
    let history =
        json!([script, {"role": "assistant", "content": called["content"]}, {"role": "user", "content": results}]);
    let said = client.post("/v1/messages", &whole(history)).json();
    assert_eq!(said["content"][0]["text"], "both");
    let requests = server.requests();
    assert_eq!(requests[1].turn().unwrap().tool_results, ["out", "out"]);
    assert_eq!(requests[1].turn().unwrap().answers, 1);
}

#[test]
fn a_streamed_call_carries_its_input() {
    let server = Server::start().unwrap();
    let messages = json!([{"role": "user", "content": "tool Bash {\"command\":\"id\"}"}]);
    let events = Client::of(&server).post("/v1/messages", &request(messages)).events();
    assert_eq!(text(&events, "/content_block/name"), "Bash");
    assert_eq!(text(&events, "/delta/partial_json"), r#"{"command":"id"}"#);
    assert_eq!(text(&events, "/delta/stop_reason"), "tool_use");
}

#[test]
fn a_title_is_answered_in_its_shape_and_uses_up_no_step() {
    let server = Server::start().unwrap();
    let schema = json!({"type": "object", "properties": {"title": {"type": "string"}}});
    let title = json!({
        "model": "small", "messages": [{"role": "user", "content": "fail 500 always"}],
        "output_config": {"format": {"type": "json_schema", "schema": schema}},
    });
    let answer = Client::of(&server).post("/v1/messages", &title).json();
    assert_eq!(answer["content"][0]["text"], r#"{"title":"Scripted session"}"#);
    assert!(matches!(server.requests()[0].kind, Kind::Background(_)));
    assert!(server.user_messages().is_empty());
}

#[test]
fn tokens_are_counted_and_probes_answered() {
    let server = Server::start().unwrap();
    let mut client = Client::of(&server);
    assert_eq!(client.post("/v1/messages/count_tokens", &json!({})).json()["input_tokens"], INPUT_TOKENS);
    for (method, path) in [("HEAD", "/"), ("GET", "/v1/models"), ("POST", "/api/event_logging/batch")] {
        client.send(method, path, "");
        assert_eq!(client.receive(method).status, 200, "{method} {path}");
    }
    assert!(server.requests().iter().all(|request| request.kind == Kind::Other));
}

#[test]
fn a_failure_has_the_status_and_the_kind_that_clients_look_at() {
    let server = Server::start().unwrap();
    let mut client = Client::of(&server);
    for (status, kind) in [(529, "overloaded_error"), (429, "rate_limit_error"), (400, "invalid_request_error")] {
        let messages = json!([{"role": "user", "content": format!("fail {status} always")}]);
        let answer = client.post("/v1/messages", &request(messages));
        assert_eq!(answer.status, status);
        assert_eq!(serde_json::from_str::<Value>(&answer.body).unwrap()["error"]["type"], kind);
    }
}
