//! OpenAI Chat Completions.

use crate::client::{Client, gathered, text};
use ostler_mock_llm::{INPUT_TOKENS, Server};
use serde_json::{Value, json};

fn request(stream: bool, messages: Value) -> Value {
    let tools = json!([{"type": "function", "function": {"name": "bash"}}]);
    json!({"model": "m", "stream": stream, "tools": tools, "messages": messages})
}

#[test]
fn a_text_is_streamed_and_done() {
    let server = Server::start().unwrap();
    let messages = json!([{"role": "system", "content": "s"}, {"role": "user", "content": "stream 2 1"}]);
    let events = Client::of(&server).post("/v1/chat/completions", &request(true, messages)).events();
    assert_eq!(text(&events, "/choices/0/delta/content"), "word1 word2");
    assert_eq!(text(&events, "/choices/0/finish_reason"), "stop");
    assert_eq!(gathered(&events, "/usage/prompt_tokens"), [INPUT_TOKENS]);
    assert_eq!(events.last().unwrap(), "[DONE]");
}

#[test]
fn a_call_and_its_result_lead_to_the_next_step_streamed_or_whole() {
    let server = Server::start().unwrap();
    let mut client = Client::of(&server);
    // opencode's own quoting of a prompt.
    let script = json!({"role": "user", "content": r#""tool bash {\"command\":\"id\"} ; say done""#});
    let whole = client.post("/v1/chat/completions", &request(false, json!([script]))).json();
    assert_eq!(whole["choices"][0]["finish_reason"], "tool_calls");
    let events = client.post("/v1/chat/completions", &request(true, json!([script]))).events();
    let place = "/choices/0/delta/tool_calls/0/function/arguments";
    assert_eq!(text(&events, place), r#"{"command":"id"}"#);

    let called = &whole["choices"][0]["message"];
    let result = json!({"role": "tool", "tool_call_id": called["tool_calls"][0]["id"], "content": "out"});
    let said = client.post("/v1/chat/completions", &request(false, json!([script, called, result]))).json();
    assert_eq!(said["choices"][0]["message"]["content"], "done");
}
