//! Gemini generateContent.

use crate::client::{Client, gathered, text};
use ostler_mock_llm::{INPUT_TOKENS, Kind, Server};
use serde_json::{Value, json};

const STREAM: &str = "/v1beta/models/gemini-x:streamGenerateContent?alt=sse";
const WHOLE: &str = "/v1beta/models/gemini-x:generateContent";

fn request(contents: Value) -> Value {
    json!({"contents": contents, "tools": [{"functionDeclarations": [{"name": "sh"}]}]})
}

#[test]
fn a_text_is_streamed_and_the_last_piece_stops() {
    let server = Server::start().unwrap();
    let contents =
        json!([{"role": "user", "parts": [{"text": "<session_context>x</session_context>"}, {"text": "stream 2 1"}]}]);
    let events = Client::of(&server).post(STREAM, &request(contents)).events();
    assert_eq!(text(&events, "/candidates/0/content/parts/0/text"), "word1 word2");
    assert_eq!(gathered(&events, "/candidates/0/finishReason"), ["STOP"]);
    assert_eq!(gathered(&events, "/usageMetadata/promptTokenCount"), [INPUT_TOKENS]);
    assert_eq!(server.requests()[0].turn().unwrap().model, "gemini-x");
}

#[test]
fn a_call_and_its_result_lead_to_the_next_step() {
    let server = Server::start().unwrap();
    let mut client = Client::of(&server);
    let script = json!({"role": "user", "parts": [{"text": "tools sh {\"c\":1} sh {\"c\":2} ; say done"}]});
    let called = client.post(WHOLE, &request(json!([script]))).json()["candidates"][0]["content"].clone();
    assert_eq!(gathered(called["parts"].as_array().unwrap(), "/functionCall/args/c"), [1, 2]);
    let result = json!({"functionResponse": {"name": "sh", "response": {"output": "out"}}});
    let contents = json!([script, called, {"role": "user", "parts": [result, result]}]);
    let events = client.post(STREAM, &request(contents)).events();
    assert_eq!(text(&events, "/candidates/0/content/parts/0/text"), "done");
}

#[test]
fn a_malformed_call_ends_the_answer_with_its_reason() {
    let server = Server::start().unwrap();
    let contents = json!([{"role": "user", "parts": [{"text": "malformed sh"}]}]);
    let events = Client::of(&server).post(STREAM, &request(contents)).events();
    assert_eq!(gathered(&events, "/candidates/0/finishReason"), ["MALFORMED_FUNCTION_CALL"]);
}

#[test]
fn what_gemini_adds_after_an_empty_answer_is_not_what_the_user_said() {
    let server = Server::start().unwrap();
    let note = "\n[System: You previously returned an empty response with no text or thoughts.]";
    let contents = json!([{"role": "user", "parts": [{"text": "empty"}, {"text": note}]}]);
    let events = Client::of(&server).post(STREAM, &request(contents)).events();
    assert_eq!(gathered(&events, "/candidates/0/finishReason"), ["STOP"]);
    assert_eq!(text(&events, "/candidates/0/content/parts/0/text"), "");
}

#[test]
fn a_routing_decision_is_answered_in_its_shape() {
    let server = Server::start().unwrap();
    let mut routed = request(json!([{"role": "user", "parts": [{"text": "hang"}]}]));
    routed["generationConfig"] = json!({
        "responseMimeType": "application/json",
        "responseJsonSchema": {"type": "object", "properties": {
            "model_choice": {"type": "string", "enum": ["flash", "pro"]},
        }},
    });
    let answer = Client::of(&server).post(WHOLE, &routed).json();
    assert_eq!(answer["candidates"][0]["content"]["parts"][0]["text"], r#"{"model_choice":"flash"}"#);
    assert!(matches!(server.requests()[0].kind, Kind::Background(_)));
}

#[test]
fn tokens_are_counted() {
    let server = Server::start().unwrap();
    let counted = Client::of(&server).post("/v1beta/models/gemini-x:countTokens", &json!({})).json();
    assert_eq!(counted["totalTokens"], INPUT_TOKENS);
}
