//! What an agent asks is shown to the person who follows it, and the answer may come from there or from another
//! command.

use crate::harness;
use crate::person::{Person, SIZE};
use ostler_core::view::Phase;
use ostler_testkit::{Harness, Session};

fn only_session(harness: &Harness) -> Session<'_> {
    harness.session(&harness.ls()[0].id)
}

#[test]
fn a_following_run_asks_and_passes_the_answer_on() {
    let harness = harness();
    // The window has room for everything, so that what is said after the answer does not scroll it out.
    let mut person = Person::runs(&harness, (60, 80), &["run", "demo", "fix the failing test"]);
    person.sees("allow? [y/n, n REASON to say why]");
    person.types(b"what?\r");
    person
        .sees_that("the question again", |person| String::from_utf8_lossy(&person.bytes).matches("[y/n,").count() == 2);
    person.types(b"y\r");
    person.sees("allowed by");
    person.is_left_with(0);
}

#[test]
fn an_answer_from_another_command_closes_the_question() {
    let harness = harness();
    let mut person = Person::runs(&harness, SIZE, &["run", "demo", "fix the failing test"]);
    person.sees("allow? [y/n, n REASON to say why]");
    harness.run(&["answer", only_session(&harness).id(), "--allow"]).exits(0);
    person.is_left_with(0);
}

#[test]
fn ctrl_c_works_while_a_question_waits() {
    let harness = harness();
    let mut person = Person::runs(&harness, SIZE, &["run", "demo", "fix the failing test"]);
    person.sees("allow? [y/n, n REASON to say why]");
    person.types(b"\x03");
    person.is_left_with(6);
}

#[test]
fn a_question_stays_open_when_the_terminal_is_closed() {
    let harness = harness();
    let mut person = Person::runs(&harness, SIZE, &["run", "demo", "fix the failing test"]);
    person.sees("allow? [y/n, n REASON to say why]");
    person.closes_the_terminal();
    person.is_left_with(124);
    assert_eq!(only_session(&harness).look().state, Phase::Asking);
}

#[test]
fn a_question_in_the_chat_is_answered_by_a_line() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo", "fix the failing test", "--", "--ask"]);
    session.until_look("it asks", |view| view.state == Phase::Asking);
    let mut person = Person::attaches(&harness, session.id());
    person.sees("asks:");
    person.types(b"you should know\r");
    person.sees("it waits for an answer: y, n, or n and why not");
    person.types(b"\x15n not now\r");
    person.sees("denied by");
    session.until_look("a turn is over", |view| view.turns == 1);
}

#[test]
fn text_typed_for_a_question_that_is_closed_is_neither_sent_nor_lost() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo", "fix the failing test", "--", "--ask"]);
    session.until_look("it asks", |view| view.state == Phase::Asking);
    let mut person = Person::attaches(&harness, session.id());
    person.sees("asks:");
    // Typed as an answer, although a permission takes no text.
    person.types(b"y please");
    person.sees_that("the line", |person| person.screen.text().iter().any(|row| row == "› y please"));
    harness.run(&["answer", session.id(), "--allow"]).exits(0);
    session.until_look("a turn is over", |view| view.turns == 1 && view.state == Phase::Idle);
    person.sees("idle");
    person.types(b"\r");
    person.sees("already answered by");
    assert!(person.screen.text().iter().any(|row| row == "› y please"), "{:?}", person.screen.text());
    assert_eq!(session.look().queued, 0);
    // The second Enter sends it.
    person.types(b"\r");
    session.until_look("another turn", |view| view.turns == 2 || view.state != Phase::Idle);
}
