//! `terminal = true` below `[notify]`: the terminal of an attached person shows the notification itself.

use crate::harness;
use crate::person::Person;
use ostler_testkit::Harness;

fn has(person: &Person, bytes: &str) -> bool {
    person.bytes.windows(bytes.len()).any(|window| window == bytes.as_bytes())
}

fn notifying_terminals() -> Harness {
    let harness = harness();
    harness.configure("[notify]\nterminal = true\n");
    harness
}

#[test]
fn a_chat_notifies_of_questions_and_turns_and_untrusted_text_ends_no_sequence() {
    let harness = notifying_terminals();
    let session = harness.detach(&["--keep", "--name", "tests", "demo", "say first"]);
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    let mut person = Person::attaches(&harness, session.id());
    person.sees("first");
    harness.run(&["send", session.id(), "say second\u{1b}]0;owned\u{7};third"]).exits(0);
    person.sees_that("the notification of the turn", |person| {
        has(person, "\u{1b}]777;notify;tests has finished its turn;second,third\u{1b}\\\u{7}")
    });
    harness.run(&["send", session.id(), "ask me"]).exits(0);
    person.sees_that("the notification of the question", |person| has(person, "\u{1b}]777;notify;tests asks;"));
    assert!(!has(&person, "\u{1b}]0;owned"), "words of an agent reach no terminal as a sequence");
    // Nothing else is configured, so no other notification is sent.
    assert!(!harness.home().join("notify").exists());
    person.types(b"\x1c");
    person.is_left_with(0);
}

#[test]
fn a_terminal_session_notifies_of_its_end_besides_what_the_program_draws() {
    let harness = notifying_terminals();
    let session = harness.detach(&["--name", "build", "-t", "--", "sh", "-c", "echo ready; read line; exit 3"]);
    let mut person = Person::attaches(&harness, session.id());
    person.sees("ready");
    person.types(b"\r");
    person.sees_that("the notification of the end", |person| {
        has(person, "\u{1b}]777;notify;build has failed;") && has(person, "\u{1b}\\\u{7}")
    });
    person.is_left_with(1);
}

#[test]
fn with_only_detached_an_attached_person_gets_no_other_notification() {
    let harness = harness();
    let file = harness.root().join("told");
    let command = format!("['sh', '-c', 'echo \"$OSTLER_NOTIFY_TITLE\" >> {}']", file.display());
    harness.configure(&format!("[notify]\nonly_detached = true\ncommand = {command}\n"));
    let session = harness.detach(&["--keep", "--name", "tests", "demo", "say first"]);
    let told = || std::fs::read_to_string(&file).unwrap_or_default();
    session.until("the first turn was notified", || (told() == "tests has finished its turn\n").then_some(()));
    let mut person = Person::attaches(&harness, session.id());
    person.sees("first");
    harness.run(&["send", session.id(), "say second"]).exits(0);
    person.sees("second");
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    person.types(b"\x1c");
    person.is_left_with(0);
    // When the keeper answers the next client, it has noticed that the person has detached.
    harness.run(&["send", session.id(), "fail now"]).exits(0);
    session.until("the failure was notified, and nothing in between", || {
        (told() == "tests has finished its turn\ntests has failed\n").then_some(())
    });
    session.stop();
    session.until("the end was notified", || told().ends_with("tests has ended\n").then_some(()));
}
