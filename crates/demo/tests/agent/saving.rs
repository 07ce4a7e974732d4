//! The transcript: written late, but complete after every orderly exit.

use std::fs::OpenOptions;
use std::io::Write as _;

use rustix::process::Signal;
use serde_json::json;

use crate::fixture::{Fixture, outline};

#[test]
fn killed_at_the_result_the_reply_is_lost() {
    let fixture = Fixture::too_late();
    let mut agent = fixture.start();
    agent.prompt("say something dear");
    agent.result();
    agent.signal(Signal::KILL);
    assert_eq!(agent.exit(), None);
    assert!(!fixture.transcript_path().exists(), "a quick first turn leaves no file at all");
}

#[test]
fn ended_properly_at_the_result_the_reply_is_kept() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 0)] {
        let fixture = Fixture::too_late();
        let mut agent = fixture.start();
        let prompt = agent.prompt("say something dear");
        let lines = agent.until("result");
        agent.signal(signal);
        assert_eq!(agent.exit(), Some(code));
        assert!(fixture.transcript_has(&prompt));
        assert!(fixture.transcript_has(&lines[1]["uuid"]));
    }
}

#[test]
fn the_end_of_input_saves() {
    let fixture = Fixture::too_late();
    let mut agent = fixture.start();
    agent.prompt("fix it");
    agent.end_input();
    let mut lines = agent.until("result");
    assert_eq!(agent.exit(), Some(0));
    lines.retain(|line| line["message"].is_object());
    assert!(lines.iter().all(|line| fixture.transcript_has(&line["uuid"])));
}

#[test]
fn left_alone_the_reply_reaches_the_disk_by_itself() {
    let fixture = Fixture::new();
    let mut agent = fixture.start();
    let mut lines = Vec::new();
    fixture.await_transcript(|| {
        agent.prompt("say hello");
        lines = agent.until("result");
    });
    assert!(fixture.transcript_has(&lines[1]["uuid"]));
}

#[test]
fn a_transcript_is_a_chain_from_the_prompt_to_the_reply() {
    let fixture = Fixture::new();
    let mut agent = fixture.start();
    let prompt = agent.prompt("fix it");
    agent.end_input();
    agent.until("result");
    agent.exit();
    let lines = fixture.transcript();
    assert_eq!(lines[0]["uuid"], prompt);
    assert_eq!(lines[0]["parentUuid"], json!(null));
    assert!(lines.windows(2).all(|pair| pair[1]["parentUuid"] == pair[0]["uuid"]));
    assert!(lines.iter().all(|line| line["sessionId"] == json!(fixture.session.to_string())));
    assert!(lines.iter().all(|line| line["timestamp"].as_str().unwrap().ends_with('Z')));
}

#[test]
fn a_resumed_conversation_remembers() {
    let fixture = Fixture::new();
    let mut agent = fixture.start();
    agent.prompt("fix it");
    agent.end_input();
    agent.until("result");
    agent.exit();

    let mut agent = fixture.resume();
    agent.prompt("go on");
    let lines = agent.until("result");
    assert_eq!(outline(&lines)[1], "assistant:text");
    assert!(lines[1]["message"]["content"][0]["text"].as_str().unwrap().contains("one turn before"));
}

#[test]
fn a_torn_line_does_not_take_the_next_one_along() {
    let fixture = Fixture::new();
    let mut agent = fixture.start();
    agent.prompt("say one");
    agent.end_input();
    agent.until("result");
    agent.exit();
    OpenOptions::new().append(true).open(fixture.transcript_path()).unwrap().write_all(b"{\"torn").unwrap();

    let mut agent = fixture.resume();
    let prompt = agent.prompt("say two");
    agent.end_input();
    agent.until("result");
    agent.exit();
    assert!(fixture.transcript_has(&prompt));
}
