//! OpenAI Responses.

use crate::client::{Client, gathered, text};
use ostler_mock_llm::{INPUT_TOKENS, Server};
use serde_json::{Value, json};

fn request(input: Value) -> Value {
    let tools = json!([{"type": "function", "name": "sh"}]);
    json!({"model": "m", "stream": true, "tools": tools, "input": input, "prompt_cache_key": "thread"})
}

fn user(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

#[test]
fn a_text_is_streamed_and_completed_with_usage() {
    let server = Server::start().unwrap();
    let events = Client::of(&server).post("/v1/responses", &request(json!([user("stream 2 1")]))).events();
    assert_eq!(gathered(&events, "/delta"), ["word1", " word2"]);
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.completed");
    assert_eq!(last["response"]["usage"]["input_tokens"], INPUT_TOKENS);
    assert_eq!(last["response"]["output"][0]["content"][0]["text"], "word1 word2");
}

#[test]
fn calls_and_their_outputs_lead_to_the_next_step() {
    let server = Server::start().unwrap();
    let mut client = Client::of(&server);
    let script = user("tools sh {\"cmd\":\"a\"} sh {\"cmd\":\"b\"} ; say both");
    let notes = user("<environment_context>x</environment_context>");
    let events = client.post("/v1/responses", &request(json!([notes, script]))).events();
    let calls: Vec<Value> =
        gathered(&events, "/item").into_iter().filter(|item| item["status"] == "completed").collect();
    assert_eq!(gathered(&calls, "/arguments"), [r#"{"cmd":"a"}"#, r#"{"cmd":"b"}"#]);

    let mut input = vec![notes, script];
    input.extend(calls.clone());
    input.extend(
        calls.iter().map(|call| json!({"type": "function_call_output", "call_id": call["call_id"], "output": "out"})),
    );
    let events = client.post("/v1/responses", &request(json!(input))).events();
    assert_eq!(text(&events, "/delta"), "both");
    let turn = server.requests()[1].turn().unwrap().clone();
    assert_eq!((turn.answers, turn.tool_results.len(), turn.conversation.as_str()), (1, 2, "thread"));
}

#[test]
fn an_answer_may_be_whole_and_a_failure_is_one() {
    let server = Server::start().unwrap();
    let mut client = Client::of(&server);
    let whole = json!({"model": "m", "tools": [{"name": "sh"}], "input": "say hello"});
    assert_eq!(client.post("/v1/responses", &whole).json()["output"][0]["content"][0]["text"], "hello");
    assert_eq!(client.post("/v1/responses", &request(json!([user("fail 503 always")]))).status, 503);
}
