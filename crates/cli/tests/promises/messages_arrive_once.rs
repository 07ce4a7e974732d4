//! A message that was accepted arrives whole and once, no matter which process is killed on its way.

use crate::harness;
use ostler_core::view::Phase;
use ostler_testkit::misbehave::checksum;
use ostler_testkit::{ProcessKind, Session, alone};
use rustix::process::Signal;

/// The prompts in the agent's own transcript, in order.
fn prompts(session: &Session<'_>) -> Vec<String> {
    let text = std::fs::read_to_string(session.show().transcript.unwrap()).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines
        .filter(|line| line["type"] == "user")
        .filter_map(|line| line["message"]["content"].as_str().map(str::to_owned))
        .collect()
}

fn long_message(length: usize) -> String {
    let mut text = "echo-length ".to_owned();
    while text.len() < length {
        text.push_str(&format!("{:011} é", text.len()));
    }
    text
}

#[test]
fn a_long_message_survives_keepers_killed_in_the_middle_of_it() {
    let _alone = alone();
    for length in [1_000_000, 4_000_000] {
        let harness = harness();
        let session = harness.detach(&["--keep", "demo"]);
        let message = long_message(length);
        // The stopped agent does not read, so the keeper has to wait in the middle of the message.
        session.signal(ProcessKind::Agent, Signal::STOP);
        harness.run_with_input(&["send", session.id(), "-"], message.as_bytes()).exits(0);
        for _ in 0..3 {
            let before = session.kill(ProcessKind::Keeper);
            session.replaced(ProcessKind::Keeper, &before);
        }
        session.signal(ProcessKind::Agent, Signal::CONT);
        for who in [ProcessKind::Keeper, ProcessKind::Holder] {
            let before = session.kill(who);
            session.replaced(who, &before);
        }
        harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
        let answer = format!("{} bytes, checksum {:016x}", message.len(), checksum(message.as_bytes()));
        let shown = session.show();
        assert_eq!((shown.last.as_deref(), shown.turns, shown.queued), (Some(answer.as_str()), 1, 0));
        session.stop();
        assert_eq!(prompts(&session), [message]);
    }
}

#[test]
fn messages_survive_a_keeper_killed_while_they_are_sent_and_delivered() {
    let _alone = alone();
    let harness = harness();
    let session = harness.detach(&["--keep", "demo"]);
    let messages: Vec<String> = (1..=12).map(|number| format!("say message {number}")).collect();
    for (number, message) in messages.iter().enumerate() {
        let sender = harness.start(&["send", session.id(), message]);
        if number % 2 == 0 {
            session.kill(ProcessKind::Keeper);
        }
        sender.finish().exits(0);
    }
    session.until_look("all are answered", |view| view.turns == 12 && view.queued == 0);
    session.stop();
    assert_eq!(prompts(&session), messages);
}

#[test]
fn two_senders_at_once_lose_nothing() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo"]);
    let senders: Vec<_> =
        (1..=8).map(|number| harness.start(&["send", session.id(), &format!("say {number}")])).collect();
    for sender in senders {
        sender.finish().exits(0);
    }
    session.until_look("all are answered", |view| view.turns == 8 && view.queued == 0);
    session.stop();
    let mut said = prompts(&session);
    said.sort();
    assert_eq!(said, (1..=8).map(|number| format!("say {number}")).collect::<Vec<_>>());
}

#[test]
fn a_message_waits_for_the_turn_can_be_listed_and_taken_back() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo", "ask first"]);
    harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    harness.run(&["send", session.id(), "say second"]).exits(0);
    harness.run(&["send", session.id(), "say third"]).exits(0);
    assert_eq!(session.show().queued, 2);
    let listed = harness.run(&["send", session.id(), "--list"]).exits(0);
    assert!(listed.stdout.contains("say second") && listed.stdout.contains("say third"), "{listed:?}");
    harness.run(&["send", session.id(), "--withdraw", "2"]).exits(0);
    harness.run(&["send", session.id(), "--withdraw", "2"]).exits(1).complaint();
    harness.run(&["answer", session.id(), "--deny"]).exits(0);
    session.until_look("the rest is answered", |view| view.turns == 2 && view.queued == 0);
    session.stop();
    assert_eq!(prompts(&session), ["ask first", "say third"]);
}

#[test]
fn a_headless_command_takes_no_messages_and_an_ended_session_keeps_them() {
    let harness = harness();
    let command = harness.detach(&["--", "sleep", "600"]);
    harness.run(&["send", command.id(), "hello"]).exits(1).complaint();
    let ended = harness.detach(&["demo", "say bye"]);
    harness.run(&["wait", ended.id()]).exits(0);
    let output = harness.run(&["send", ended.id(), "say later"]).exits(0);
    assert!(output.stdout.contains("send it now: ostler resume"), "{output:?}");
    assert_eq!(ended.show().queued, 1);
}

#[test]
fn send_wait_prints_the_reply_to_its_own_message() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo"]);
    let id = session.id();
    // Two at the same time: each gets its own reply.
    let first = harness.start(&["send", id, "say one", "--wait"]);
    let second = harness.start(&["send", id, "say two", "--wait"]);
    for (sent, word) in [(first, "one"), (second, "two")] {
        let output = sent.finish().exits(0);
        assert_eq!((output.stdout.trim_end(), output.stderr.as_str()), (word, ""), "{output:?}");
    }
    let json = harness.run(&["send", id, "say three", "--wait", "--json"]).exits(0).json();
    assert_eq!((&json["verdict"], &json["text"]), (&"succeeded".into(), &"three".into()));
    let asks = harness.run(&["send", id, "ask May I?", "--wait"]).exits(4);
    assert!(asks.stdout.contains("status=asking: Ask May I?"), "{asks:?}");
    harness.run(&["interrupt", id]).exits(0);
    session.until_look("it is idle", |view| view.state.word() == "idle");
    session.stop();
    let refused = harness.run(&["send", id, "say more", "--wait"]).exits(2);
    assert!(refused.complaint().contains("ostler resume"), "{refused:?}");
    assert_eq!(session.look().queued, 0, "a refused message is not queued");
}

#[test]
fn an_unreadable_line_of_the_journal_makes_no_message_arrive_twice() {
    let _alone = alone();
    let harness = harness();
    let lines = ["started", "accepted", "feeding", "delivered", "turn_ended", "saved", "exited", "ended"];
    let sessions: Vec<Session<'_>> = lines.iter().map(|_| harness.detach(&["demo", "say one"])).collect();
    for session in &sessions {
        harness.run(&["wait", session.id()]).exits(0);
    }
    // Helpers may write into the journal until they have exited.
    harness.nothing_is_left();
    for (session, what) in sessions.iter().zip(lines) {
        let journal = session.path().join("journal.jsonl");
        let text = std::fs::read_to_string(&journal).unwrap();
        let damaged = text.replacen(&format!("\"what\":\"{what}\""), "\"what\":\"", 1);
        assert_ne!(text, damaged, "no line says {what}");
        std::fs::write(&journal, damaged).unwrap();
    }
    let found = harness.run(&["doctor", "--json"]);
    let found = found.json();
    let reported = found.as_array().unwrap().iter().filter(|finding| finding["check"] == "journals").count();
    assert_eq!(reported, lines.len(), "{found}");
    for (session, what) in sessions.iter().zip(lines) {
        harness.run(&["resume", "-d", session.id(), "say two"]).exits(0);
        harness.run(&["wait", session.id()]).exits(0);
        assert_eq!(prompts(session), ["say one", "say two"], "without {what}");
    }
}

#[test]
fn a_message_that_died_with_its_agent_waits_again_and_the_list_says_so() {
    let mut harness = harness();
    // Nothing is in the transcript before the agent is killed.
    harness.set("OSTLER_DEMO_LATE", "600000");
    let session = harness.detach(&["--keep", "demo", "sleep"]);
    session.until_look("it works", |view| view.state == Phase::Working && view.queued == 0);
    session.kill(ProcessKind::Agent);
    harness.run(&["wait", session.id()]).exits(1);
    let listed = harness.run(&["send", session.id(), "--list"]).exits(0).stdout;
    assert!(listed.contains("waits again, the agent ended before it stored it"), "{listed}");
    let json = harness.run(&["send", session.id(), "--list", "--json"]).exits(0).json();
    assert_eq!((&json["n"], &json["given_before"]), (&1.into(), &true.into()));
}
