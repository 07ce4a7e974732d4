//! `terminal = true` below `[notify]`: the terminal of a person who is attached tells of the moment by itself.

use crate::harness;
use crate::person::Person;
use ostler_testkit::Harness;

fn has(person: &Person, bytes: &str) -> bool {
    person.bytes.windows(bytes.len()).any(|window| window == bytes.as_bytes())
}

fn telling_in_terminals() -> Harness {
    let harness = harness();
    harness.configure("[notify]\nterminal = true\n");
    harness
}

#[test]
fn a_chat_tells_of_questions_and_turns_and_hostile_words_end_no_sequence() {
    let harness = telling_in_terminals();
    let session = harness.detach(&["--keep", "--name", "tests", "demo", "say first"]);
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    let mut person = Person::attaches(&harness, session.id());
    person.sees("first");
    harness.run(&["send", session.id(), "say second\u{1b}]0;owned\u{7};third"]).exits(0);
    person.sees_that("the terminal is told of the turn", |person| {
        has(person, "\u{1b}]777;notify;tests has finished its turn;second,third\u{1b}\\\u{7}")
    });
    harness.run(&["send", session.id(), "ask me"]).exits(0);
    person.sees_that("the terminal is told of the question", |person| has(person, "\u{1b}]777;notify;tests asks;"));
    assert!(!has(&person, "\u{1b}]0;owned"), "words of an agent reach no terminal as a sequence");
    // Nothing else was configured, so nothing else was done.
    assert!(!harness.home().join("notify").exists());
    person.types(b"\x1c");
    person.is_left_with(0);
}

#[test]
fn a_terminal_session_tells_of_its_end_beside_what_the_program_draws() {
    let harness = telling_in_terminals();
    let session = harness.detach(&["--name", "build", "-t", "--", "sh", "-c", "echo ready; read line; exit 3"]);
    let mut person = Person::attaches(&harness, session.id());
    person.sees("ready");
    person.types(b"\r");
    person.sees_that("the terminal is told of the end", |person| {
        has(person, "\u{1b}]777;notify;build has failed;") && has(person, "\u{1b}\\\u{7}")
    });
    person.is_left_with(1);
}

#[test]
fn who_is_attached_needs_no_other_notification_where_only_the_detached_are_told() {
    let harness = harness();
    let file = harness.root().join("told");
    let command = format!("['sh', '-c', 'echo \"$OSTLER_NOTIFY_TITLE\" >> {}']", file.display());
    harness.configure(&format!("[notify]\nonly_detached = true\ncommand = {command}\n"));
    let session = harness.detach(&["--keep", "--name", "tests", "demo", "say first"]);
    let told = || std::fs::read_to_string(&file).unwrap_or_default();
    session.until("the first turn was told", || (told() == "tests has finished its turn\n").then_some(()));
    let mut person = Person::attaches(&harness, session.id());
    person.sees("first");
    harness.run(&["send", session.id(), "say second"]).exits(0);
    person.sees("second");
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    person.types(b"\x1c");
    person.is_left_with(0);
    // The keeper has noticed that the person is gone when it answers the next client.
    harness.run(&["send", session.id(), "fail now"]).exits(0);
    session.until("the failure was told, and nothing between", || {
        (told() == "tests has finished its turn\ntests has failed\n").then_some(())
    });
    session.stop();
    session.until("the end was told", || told().ends_with("tests has ended\n").then_some(()));
}
