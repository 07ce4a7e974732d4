//! What holds for every protocol: temporary failures, hanging, hanging up, waiting, closing.

use crate::client::Client;
use ostler_mock_llm::{Ending, POLITE, Server};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn prompt(text: &str) -> Value {
    json!({"model": "m", "stream": true, "tools": [{"name": "Bash"}], "messages": [{"role": "user", "content": text}]})
}

fn ask(client: &mut Client, text: &str) -> (u16, String) {
    let answer = client.post("/v1/messages", &prompt(text));
    (answer.status, crate::client::text(&answer.events(), "/delta/text"))
}

#[test]
fn a_failure_that_passes_fails_once_for_each_message() {
    let server = Server::start().unwrap();
    let mut client = Client::of(&server);
    assert_eq!(ask(&mut client, "fail 529 once ; fail 500 once ; say ok").0, 529);
    assert_eq!(ask(&mut client, "fail 529 once ; fail 500 once ; say ok").0, 500);
    assert_eq!(ask(&mut client, "fail 529 once ; fail 500 once ; say ok"), (200, "ok".to_owned()));

    // The same text again, later in the same conversation, is another message.
    let mut again = prompt("fail 529 once ; fail 500 once ; say ok");
    let repeated = again["messages"][0].clone();
    let messages = again["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": "ok"}));
    messages.push(repeated);
    assert_eq!(client.post("/v1/messages", &again).status, 529);
}

#[test]
fn a_failure_for_ever_never_passes() {
    let server = Server::start().unwrap();
    let mut client = Client::of(&server);
    for _ in 0..3 {
        assert_eq!(ask(&mut client, "fail 400 always").0, 400);
    }
    // The record is updated just after the last byte.
    server.wait_for(|requests| requests.iter().all(|request| request.ending == Ending::Answered(400))).unwrap();
}

#[test]
fn a_hang_says_nothing_until_the_agent_hangs_up() {
    let server = Server::start().unwrap();
    let mut client = Client::of(&server);
    client.send("POST", "/v1/messages", &prompt("hang").to_string());
    let requests = server.wait_for(|requests| !requests.is_empty()).unwrap();
    assert_eq!(requests[0].ending, Ending::Open);
    drop(client);
    server.wait_for(|requests| requests[0].ending == Ending::ClosedEarly).unwrap();
}

#[test]
fn an_agent_that_hangs_up_in_the_middle_is_noticed_before_the_next_word_is_due() {
    let server = Server::start().unwrap();
    let mut client = Client::of(&server);
    client.send("POST", "/v1/messages", &prompt("stream 100 60000").to_string());
    while !client.line().contains("content_block_start") {}
    drop(client);
    server.wait_for(|requests| requests[0].ending == Ending::ClosedEarly).unwrap();
}

#[test]
fn words_come_with_their_pauses() {
    let server = Server::start().unwrap();
    let begun = Instant::now();
    let (_, text) = ask(&mut Client::of(&server), "stream 4 25");
    assert_eq!(text, "word1 word2 word3 word4");
    assert!(begun.elapsed() >= Duration::from_millis(100), "{:?}", begun.elapsed());
}

#[test]
fn a_cut_answer_has_its_words_and_no_end() {
    let server = Server::start().unwrap();
    for (script, said) in [("cut 2", "word1 word2"), ("cut 0", "")] {
        let mut client = Client::of(&server);
        client.send("POST", "/v1/messages", &prompt(script).to_string());
        let got = client.until_closed();
        let data = got.lines().filter_map(|line| line.strip_prefix("data: "));
        let events: Vec<Value> = data.map(|text| serde_json::from_str(text).unwrap()).collect();
        assert_eq!(crate::client::text(&events, "/delta/text"), said, "{got}");
        assert!(!got.contains("message_stop") && !got.ends_with("0\r\n\r\n"), "{got}");
    }
    server.wait_for(|requests| requests.iter().all(|request| request.ending == Ending::HungUp)).unwrap();
}

#[test]
fn an_empty_answer_is_whole_and_says_nothing_in_every_protocol() {
    let server = Server::start().unwrap();
    let mut client = Client::of(&server);
    let contents = json!([{"role": "user", "parts": [{"text": "empty"}]}]);
    let requests = [
        ("/v1/messages", prompt("empty"), "message_stop"),
        ("/v1/chat/completions", prompt("empty"), "[DONE]"),
        ("/v1/responses", json!({"stream": true, "tools": [{}], "input": "empty"}), "response.completed"),
        (
            "/v1beta/models/m:streamGenerateContent",
            json!({"contents": contents, "tools": [{"functionDeclarations": [{"name": "sh"}]}]}),
            "STOP",
        ),
    ];
    for (path, body, end) in requests {
        let answer = client.post(path, &body);
        assert!(answer.body.contains(end), "{path}: {}", answer.body);
        assert!(!answer.body.contains(POLITE), "{path}: {}", answer.body);
        assert!(!answer.body.contains("\"text\":"), "{path}: {}", answer.body);
    }
}

#[test]
fn a_huge_answer_has_exactly_the_size_that_was_asked_for() {
    let server = Server::start().unwrap();
    let mut client = Client::of(&server);
    for bytes in [0, 1, 8191, 8192, 1_000_003] {
        assert_eq!(ask(&mut client, &format!("huge {bytes}")).1.len(), bytes);
    }
}

#[test]
fn words_that_are_no_script_get_the_polite_answer() {
    let server = Server::start().unwrap();
    assert_eq!(ask(&mut Client::of(&server), "How are you?"), (200, POLITE.to_owned()));
}

#[test]
fn what_the_model_saw_is_told_by_conversation() {
    let server = Server::start().unwrap();
    let mut client = Client::of(&server);
    let in_session = |session: &str, texts: &[&str]| {
        let messages: Vec<Value> = texts.iter().map(|text| json!({"role": "user", "content": text})).collect();
        let user = json!({"session_id": session}).to_string();
        json!({"model": "m", "tools": [{"name": "t"}], "metadata": {"user_id": user}, "messages": messages})
    };
    client.post("/v1/messages", &in_session("a", &["say 1"]));
    client.post("/v1/messages", &in_session("b", &["say 2"]));
    client.post("/v1/messages", &in_session("a", &["say 1", "say 3"]));
    let seen: Vec<(String, Vec<String>)> =
        server.user_messages().into_iter().map(|conversation| (conversation.id, conversation.messages)).collect();
    let expected = [("a", vec!["say 1", "say 3"]), ("b", vec!["say 2"])];
    let expected = expected.map(|(id, said)| (id.to_owned(), said.into_iter().map(str::to_owned).collect::<Vec<_>>()));
    assert_eq!(seen, expected);
}

#[test]
fn a_request_may_come_in_chunks() {
    let server = Server::start().unwrap();
    let mut client = Client::of(&server);
    let body = prompt("say chunky").to_string();
    let (first, second) = body.split_at(10);
    client.send_raw("POST /v1/messages HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n");
    client.send_raw(&format!("{:x}\r\n{first}\r\n{:X};x=y\r\n{second}\r\n0\r\n\r\n", first.len(), second.len()));
    let answer = client.receive("POST");
    assert_eq!(crate::client::text(&answer.events(), "/delta/text"), "chunky");
}

#[test]
fn waiting_in_vain_says_what_came_instead() {
    let server = Server::start().unwrap();
    Client::of(&server).post("/v1/messages", &prompt("say x"));
    let Err(error) = server.wait_for_within(Duration::from_millis(20), |requests| requests.len() > 1) else {
        panic!("one request is not two");
    };
    assert!(error.to_string().contains("POST /v1/messages"), "{error}");
}

#[test]
fn a_dropped_server_hangs_up_on_everyone_and_frees_its_port() {
    let server = Server::start().unwrap();
    let port = server.port();
    let mut hanging = Client::of(&server);
    hanging.send("POST", "/v1/messages", &prompt("hang").to_string());
    let idle = Client::of(&server);
    server.wait_for(|requests| !requests.is_empty()).unwrap();
    drop(server);
    assert_eq!(hanging.line(), "", "the connection is closed");
    drop((hanging, idle));
    let again = Server::on_port(port).unwrap();
    assert_eq!(ask(&mut Client::of(&again), "say back").1, "back");
}
