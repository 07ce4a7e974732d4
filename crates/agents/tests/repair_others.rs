//! Transcripts of codex and gemini, in the shape that codex 0.166.0 and gemini 0.61.0 write.

#![expect(clippy::unwrap_used, reason = "a test that finds no value has failed")]

use ostler_agents::repair::{Format, examine};
use ostler_transcript::{Branches, Finding, MAY_HAVE_RUN};
use serde_json::{Value, json};
use std::io::Cursor;

fn format(agent: &str) -> Format {
    Format::of_agent(agent).unwrap()
}

fn file(records: &[Value]) -> Vec<u8> {
    records.iter().flat_map(|record| format!("{record}\n").into_bytes()).collect()
}

fn repair(format: Format, bytes: &[u8]) -> (Vec<Value>, Vec<Finding>) {
    let examination = examine(format, Cursor::new(bytes), Branches::Join).unwrap();
    let mut out = Vec::new();
    examination.edits.apply(Cursor::new(bytes), &mut out).unwrap();
    let again = examine(format, Cursor::new(&out), Branches::Join).unwrap();
    assert!(!again.repairs(), "{:?} after {:?}", again.findings, examination.findings);
    let lines = out.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    (lines.map(|line| serde_json::from_slice(line).unwrap()).collect(), examination.findings)
}

fn rollout() -> Vec<Value> {
    let at = |number: usize| format!("2026-11-15T07:04:5{number}.000Z");
    let line = |number: usize, kind: &str, payload: Value| json!({ "timestamp": at(number), "type": kind, "payload": payload });
    vec![
        line(0, "session_meta", json!({ "id": "t", "cwd": "/w" })),
        line(1, "turn_context", json!({ "cwd": "/w" })),
        line(
            2,
            "response_item",
            json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "go" }] }),
        ),
        line(
            3,
            "response_item",
            json!({ "type": "function_call", "call_id": "c", "name": "exec_command", "arguments": "{}" }),
        ),
        line(4, "token_usage_record", json!({ "thread_id": "t", "session_id": "t" })),
        line(5, "response_item", json!({ "type": "function_call_output", "call_id": "c", "output": "out" })),
    ]
}

#[test]
fn a_rollout_is_left_alone_and_a_call_without_result_gets_one() {
    assert_eq!(repair(format("codex"), &file(&rollout())).1, []);
    let (repaired, findings) = repair(format("codex"), &file(&rollout()[..5]));
    assert_eq!(findings, [Finding::CallWithoutResult { tool: "exec_command".to_owned() }]);
    assert_eq!(
        (&repaired[4]["payload"]["call_id"], &repaired[4]["payload"]["output"]),
        (&json!("c"), &json!(MAY_HAVE_RUN))
    );
}

#[test]
fn a_result_without_its_call_stays_as_words_and_copies_go() {
    let mut records = rollout();
    records.remove(3);
    records.push(records[2].clone());
    let (repaired, findings) = repair(format("codex"), &file(&records));
    assert_eq!(findings, [Finding::Copies { records: 1 }, Finding::ResultWithoutCall]);
    assert_eq!(repaired.len(), 5);
    assert_eq!((&repaired[4]["payload"]["type"], &repaired[4]["payload"]["role"]), (&json!("message"), &json!("user")));
    assert!(repaired[4]["payload"]["content"][0]["text"].as_str().unwrap().ends_with("\n\nout"));
}

#[test]
fn a_doubled_rollout_is_the_single_one_and_notes_that_are_alike_stay() {
    let once = rollout();
    let (repaired, findings) = repair(format("codex"), &file(&[once.clone(), once.clone()].concat()));
    assert_eq!(findings, [Finding::Copies { records: once.len() }]);
    assert_eq!(findings[0].to_string(), "6 records are there twice: the copies removed");
    assert_eq!(repaired, once);
    let alike = [once.clone(), vec![once[4].clone()]].concat();
    assert_eq!(repair(format("codex"), &file(&alike)).1, [], "two notes of one moment");
}

#[test]
fn a_lost_beginning_is_made_anew_from_what_is_there_or_not_at_all() {
    let (repaired, findings) = repair(format("codex"), &file(&rollout()[1..]));
    assert_eq!(findings, [Finding::BeginningMade]);
    assert_eq!(
        (&repaired[0]["type"], &repaired[0]["payload"]["id"], &repaired[0]["payload"]["cwd"]),
        (&json!("session_meta"), &json!("t"), &json!("/w"))
    );
    let bare = examine(format("codex"), Cursor::new(file(&rollout()[2..3])), Branches::Join).unwrap();
    assert!(bare.cannot_be_repaired() && !bare.repairs(), "{:?}", bare.findings);
}

fn chat() -> Vec<Value> {
    vec![
        json!({ "sessionId": "s", "projectHash": "p", "kind": "main" }),
        json!({ "$set": { "messages": [{ "id": "0", "type": "user", "content": [{ "text": "preface" }] }] } }),
        json!({ "id": "1", "type": "user", "timestamp": "t", "content": [{ "text": "go" }] }),
        json!({ "id": "2", "type": "gemini", "timestamp": "t", "content": "" }),
        json!({ "id": "2", "type": "gemini", "timestamp": "t", "content": "", "toolCalls": [{ "id": "c", "result": [] }] }),
        json!({ "id": "3", "type": "user", "content": [{ "functionResponse": { "id": "c", "response": { "output": "out" } } }] }),
        json!({ "id": "4", "type": "gemini", "content": "done" }),
        json!({ "$set": { "lastUpdated": "t" } }),
    ]
}

#[test]
fn a_chat_is_left_alone_and_one_that_was_cut_off_says_so() {
    assert_eq!(repair(format("gemini"), &file(&chat())).1, []);
    let (repaired, findings) = repair(format("gemini"), &file(&chat()[..4]));
    assert_eq!(findings, [Finding::CutOff]);
    assert_eq!(repaired[4]["type"], "user");
    assert!(repaired[4]["content"][0]["text"].as_str().unwrap().contains("may have run"));
}

#[test]
fn messages_that_a_lost_list_was_to_bring_back_are_brought_back() {
    let mut records = chat();
    records.push(records[1].clone());
    let list = json!({ "$set": { "messages": [records[2], records[4], records[5], records[6]] } });
    let whole = [file(&records), file(std::slice::from_ref(&list))].concat();
    assert_eq!(repair(format("gemini"), &whole).1, [], "as gemini does when it resumes");
    let torn = &whole[..whole.len() - 20];
    let (repaired, findings) = repair(format("gemini"), torn);
    assert!(matches!(findings[..], [Finding::TornTail { .. }, Finding::Emptied]), "{findings:?}");
    assert_eq!(repaired, chat());
}

#[test]
fn a_response_without_its_call_stays_as_words() {
    let mut records = chat();
    records.remove(4);
    let (repaired, findings) = repair(format("gemini"), &file(&records));
    assert_eq!(findings, [Finding::ResultWithoutCall]);
    assert!(repaired[4]["content"][0]["text"].as_str().unwrap().ends_with("\n\nout"), "{repaired:?}");
}

#[test]
fn a_file_says_whose_it_is() {
    let told = |records: &[Value]| Format::detect(Cursor::new(file(records))).unwrap();
    assert_eq!(told(&rollout()), Some(format("codex")));
    assert_eq!(told(&chat()), Some(format("gemini")));
    assert_eq!(told(&[json!({ "type": "user", "parentUuid": null, "uuid": "a" })]), Some(format("claude")));
    assert_eq!(told(&[json!({ "name": "package" })]), None);
}
