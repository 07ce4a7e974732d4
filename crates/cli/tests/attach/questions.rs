//! What an agent asks is put to the person who follows it, wherever the answer then comes from.

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
    // Room for all that comes: what is said after the answer must not push it out of the window.
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
fn an_answer_from_elsewhere_settles_the_question() {
    let harness = harness();
    let mut person = Person::runs(&harness, SIZE, &["run", "demo", "fix the failing test"]);
    person.sees("allow? [y/n, n REASON to say why]");
    harness.run(&["answer", only_session(&harness).id(), "--allow"]).exits(0);
    person.is_left_with(0);
}

#[test]
fn ctrl_c_is_heard_while_a_question_waits() {
    let harness = harness();
    let mut person = Person::runs(&harness, SIZE, &["run", "demo", "fix the failing test"]);
    person.sees("allow? [y/n, n REASON to say why]");
    person.types(b"\x03");
    person.is_left_with(6);
}

#[test]
fn leaving_while_a_question_waits_leaves_it_waiting() {
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
fn what_was_typed_for_a_question_that_is_gone_is_neither_sent_nor_lost() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo", "fix the failing test", "--", "--ask"]);
    session.until_look("it asks", |view| view.state == Phase::Asking);
    let mut person = Person::attaches(&harness, session.id());
    person.sees("asks:");
    // Meant as an answer, though a permission takes no words.
    person.types(b"y please");
    person.sees_that("the line", |person| person.screen.text().iter().any(|row| row == "› y please"));
    harness.run(&["answer", session.id(), "--allow"]).exits(0);
    session.until_look("a turn is over", |view| view.turns == 1 && view.state == Phase::Idle);
    person.sees("idle");
    person.types(b"\r");
    person.sees("already answered by");
    assert!(person.screen.text().iter().any(|row| row == "› y please"), "{:?}", person.screen.text());
    assert_eq!(session.look().queued, 0);
    // The second Enter means it.
    person.types(b"\r");
    session.until_look("another turn", |view| view.turns == 2 || view.state != Phase::Idle);
}
