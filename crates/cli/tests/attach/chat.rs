//! A headless session as a conversation: lines go in, answers come out, and a line that was not sent is not lost.

use crate::harness;
use crate::person::{Person, SIZE};
use ostler_core::view::Phase;
use ostler_testkit::{Harness, ProcessKind, Session};
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
fn a_keeper_killed_in_between_does_not_disturb_the_chat() {
    let harness = harness();
    let session = idle_demo(&harness);
    let mut person = Person::attaches(&harness, session.id());
    person.sees("idle");
    session.kill(ProcessKind::Keeper);
    person.types(b"still there?\r");
    session.until_look("a turn is over", |view| view.turns == 1);
    person.sees("idle");
}

#[test]
fn a_line_that_was_begun_is_back_at_the_next_attach() {
    let harness = harness();
    let session = idle_demo(&harness);
    let draft = session.path().join("draft");
    for ending in [None, Some(Signal::KILL), Some(Signal::TERM), Some(Signal::HUP)] {
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
        if [Some(Signal::TERM), Some(Signal::HUP)].contains(&ending) {
            assert!(person.has_an_ordinary_terminal() && !person.screen.is_alternate());
            let text = String::from_utf8_lossy(&person.bytes).into_owned();
            assert!(text.rfind("\u{1b}[?1000l") > text.rfind("\u{1b}[?1000h"), "mouse reports are off");
        }

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

/// The rows of the line that is being written. They are above the last row.
fn written(person: &Person) -> Vec<String> {
    let rows = person.screen.text();
    let begin = rows.iter().rposition(|row| row.starts_with('›')).unwrap_or(rows.len());
    rows.get(begin..rows.len() - 1).unwrap_or_default().to_vec()
}

#[test]
fn a_line_is_edited_as_in_a_shell_and_has_several_rows() {
    let harness = harness();
    let session = idle_demo(&harness);
    let mut person = Person::attaches(&harness, session.id());
    person.sees("idle");
    person.types(b"one two three\x17\x17\x19\x01\x1bd\x05!");
    person.sees_that("the edited line", |person| written(person) == ["›  two three!"]);
    person.types(b"\x1bb\x1bb\x0b\x15");
    person.sees_that("an empty line", |person| written(person) == ["›"]);
    // What Ctrl-K and Ctrl-U delete one after the other comes back as one text.
    person.types(b"\x19\x15a\x1b\rb\nc");
    person.sees_that("three rows", |person| written(person) == ["› a", "  b", "  c"]);
    person.types(b"\x1b[A\x1b[A\x1b[D\x1b[Dsay ");
    person.sees_that("the first row changed", |person| written(person) == ["› say a", "  b", "  c"]);
    person.types(b"\r");
    session.until_look("a turn is over", |view| view.turns == 1 && view.state == Phase::Idle);
    let inbox = std::fs::read_to_string(session.path().join("inbox.jsonl")).unwrap();
    assert!(inbox.contains(r#""text":"say a\nb\nc""#), "{inbox}");
    let long = format!("{} end", "word ".repeat(20));
    person.types(long.as_bytes());
    person.sees_that("two rows", |person| written(person).len() == 2 && written(person)[1].ends_with("end"));
}

#[test]
fn what_was_sent_comes_back_with_the_arrow_up_also_after_a_new_attach() {
    let harness = harness();
    let session = idle_demo(&harness);
    for text in ["say first", "say second"] {
        harness.run(&["send", session.id(), text]).exits(0);
    }
    session.until_look("both turns are over", |view| view.turns == 2 && view.state == Phase::Idle);
    let mut person = Person::attaches(&harness, session.id());
    person.sees("idle");
    person.types(b"own\x1b[A");
    person.sees_that("the last", |person| written(person) == ["› say second"]);
    person.types(b"\x1b[A");
    person.sees_that("the one before", |person| written(person) == ["› say first"]);
    person.types(b"\x1b[B\x1b[B");
    person.sees_that("the own line", |person| written(person) == ["› own"]);
}

#[test]
fn ctrl_c_clears_the_line_first() {
    let mut harness = harness();
    harness.set("OSTLER_DEMO_PACE", "200");
    let session = idle_demo(&harness);
    let mut person = Person::attaches(&harness, session.id());
    person.sees("idle");
    person.types(b"sleep\r");
    person.sees("● Bash sleep 1000 …");
    person.types(b"half a line");
    person.sees_that("the line", |person| written(person) == ["› half a line"]);
    person.types(b"\x03");
    person.sees_that("an empty line", |person| written(person) == ["›"]);
    assert_eq!(session.look().state, Phase::Working, "the turn still runs");
    person.types(b"\x1b[A");
    person.sees_that("it is not lost", |person| written(person) == ["› half a line"]);
    person.types(b"\x03\x03");
    session.until_look("the turn is over", |view| view.turns == 1 && view.state == Phase::Idle);
}

#[test]
fn a_message_that_is_sent_during_a_turn_waits_for_its_end() {
    let harness = harness();
    let session = idle_demo(&harness);
    let mut person = Person::attaches(&harness, session.id());
    person.sees("idle");
    person.types(b"sleep\r");
    person.sees("● Bash sleep 1000 …");
    person.types(b"say queued words\r");
    person.sees("1 queued");
    person.sees("queued › say queued words");
    person.types(b"\x03");
    person.sees_that("the answer", |person| person.screen.text().iter().any(|row| row == "queued words"));
}

#[test]
fn ctrl_z_stops_it_and_fg_resumes_it() {
    let harness = harness();
    let session = idle_demo(&harness);
    let mut person = Person::runs_program(&harness, SIZE, &["bash", "--norc", "--noprofile", "-i"]);
    person.types(format!("PS1='ready> '; {} attach {}\r", harness.program().display(), session.id()).as_bytes());
    person.sees("idle since");
    assert!(person.screen.is_alternate());
    person.types(b"half\x1a");
    person.sees("Stopped");
    person.sees_that("the shell", |person| person.shows("ready>") && !person.screen.is_alternate());
    person.types(b"fg\r");
    person.sees_that("the chat", |person| person.screen.is_alternate() && written(person) == ["› half"]);
    person.types(b"\x1c");
    person.sees("[detached;");
    person.types(b"exit\r");
    person.is_left_with(0);
    // Without a shell that could resume it, Ctrl-Z does not stop it.
    let mut person = Person::attaches(&harness, session.id());
    person.sees("idle since");
    person.types(b"\x1a goes on");
    person.sees_that("the line", |person| person.screen.is_alternate() && written(person) == ["› half goes on"]);
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
    assert!(person.shows("was stopped by") && person.shows("ostler resume") && person.has_an_ordinary_terminal());
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
fn a_read_only_client_of_a_conversation_sends_nothing() {
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
