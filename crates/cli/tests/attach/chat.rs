//! A headless session as a conversation: lines go in, answers come out, and a line that was not sent is not lost.

use crate::harness;
use crate::person::{Person, SIZE};
use ostler_core::view::Phase;
use ostler_testkit::{Harness, Session, Who};
use rustix::process::Signal;

fn idle_demo(harness: &Harness) -> Session<'_> {
    let session = harness.detach(&["--keep", "demo"]);
    session.until_look("it is idle", |view| view.state == Phase::Idle);
    session
}

#[test]
fn a_line_is_sent_and_the_answer_shown() {
    let harness = harness();
    let session = idle_demo(&harness);
    let mut person = Person::attaches(&harness, session.id());
    person.sees("idle");
    person.types("grüße the wrold\x1b[D\x1b[D\x1b[D\x7fro\x7f\x7for\x1b[3~\r".as_bytes());
    session.until_look("a turn is over", |view| view.turns == 1 && view.state == Phase::Idle);
    person.sees("You asked for “grüße the world”");
    person.sees("idle");
    person.types(b"\x04");
    person.is_left_with(0);
    assert!(person.has_an_ordinary_terminal() && person.shows("[detached;"));
    assert!(session.look().alive);
}

#[test]
fn a_keeper_killed_in_between_is_not_noticed() {
    let harness = harness();
    let session = idle_demo(&harness);
    let mut person = Person::attaches(&harness, session.id());
    person.sees("idle");
    session.kill(Who::Keeper);
    person.types(b"still there?\r");
    session.until_look("a turn is over", |view| view.turns == 1);
    person.sees("idle");
}

#[test]
fn a_line_that_was_begun_is_back_at_the_next_attach() {
    let harness = harness();
    let session = idle_demo(&harness);
    let draft = session.path().join("draft");
    for ending in [None, Some(Signal::KILL), Some(Signal::TERM)] {
        let mut person = Person::attaches(&harness, session.id());
        person.sees("idle");
        person.types("ä half".as_bytes());
        person.sees("ä half");
        session.until("the draft is kept", || draft.exists().then_some(()));
        match ending {
            None => person.closes_the_terminal(),
            Some(signal) => person.signals(signal),
        }
        person.waits();

        let mut person = Person::attaches(&harness, session.id());
        person.sees("your unfinished message is restored");
        person.sees("› ä half");
        person.types(b"\x15");
        session.until("the draft is gone", || (!draft.exists()).then_some(()));
        person.types(b"\x1c");
        person.is_left_with(0);
    }
}

#[test]
fn a_draft_that_is_sent_is_gone() {
    let harness = harness();
    let session = idle_demo(&harness);
    std::fs::write(session.path().join("draft"), "from before").unwrap();
    let mut person = Person::attaches(&harness, session.id());
    person.sees("› from before");
    person.types(b"\r");
    session.until_look("a turn is over", |view| view.turns == 1);
    session.until("the draft is gone", || (!session.path().join("draft").exists()).then_some(()));
}

#[test]
fn ctrl_c_ends_the_turn_once_and_never_the_session() {
    let mut harness = harness();
    harness.set("OSTLER_DEMO_PACE", "200");
    let session = idle_demo(&harness);
    let mut person = Person::attaches(&harness, session.id());
    person.sees("idle");
    person.types(b"work\r");
    person.sees("I am");
    person.types(b"\x03");
    person.sees("interrupted");
    session.until_look("the turn is over", |view| view.turns == 1 && view.state == Phase::Idle);
    person.sees("idle");
    person.types(b"\x03");
    person.sees("ostler stop");
    assert!(session.look().alive);
}

#[test]
fn the_end_of_the_session_ends_the_conversation() {
    let harness = harness();
    let session = idle_demo(&harness);
    let mut person = Person::attaches(&harness, session.id());
    person.sees("idle");
    session.stop();
    person.waits();
    assert!(person.shows("has ended") && person.has_an_ordinary_terminal());
}

#[test]
fn a_pasted_text_is_sent_as_one_message() {
    let harness = harness();
    let session = idle_demo(&harness);
    let mut person = Person::attaches(&harness, session.id());
    person.sees("idle");
    person.types(b"\x1b[200~one\rtwo\x1b[201~");
    person.sees_that("both lines", |person| {
        person.screen.text().windows(2).any(|rows| rows[0] == "› one" && rows[1] == "  two")
    });
    person.types(b"\r");
    session.until_look("a turn is over", |view| view.turns == 1 && view.queued == 0);
    let inbox = std::fs::read_to_string(session.path().join("inbox.jsonl")).unwrap();
    assert!(inbox.contains(r#""text":"one\ntwo""#), "{inbox}");
}

#[test]
fn one_who_only_looks_at_a_conversation_says_nothing() {
    let harness = harness();
    let session = idle_demo(&harness);
    let mut person = Person::runs(&harness, SIZE, &["attach", "--read-only", session.id()]);
    person.sees("idle");
    person.types(b"never\r\x03");
    person.is_left_with(0);
    assert!(!session.path().join("draft").exists());
    assert_eq!(session.look().turns, 0);
}

#[test]
fn a_command_is_followed_and_interrupted() {
    let harness = harness();
    let script = "trap 'echo interrupted; exit 0' INT; echo ready; while :; do read -r x; sleep 1; done";
    let session = harness.detach(&["--", "sh", "-c", script]);
    session.until_printed("ready");
    let mut person = Person::attaches(&harness, session.id());
    person.sees("ready");
    person.types(b"\x1c");
    person.is_left_with(0);
    let mut person = Person::attaches(&harness, session.id());
    person.sees("ready");
    person.types(b"\x03");
    person.sees("interrupted");
    person.waits();
}
