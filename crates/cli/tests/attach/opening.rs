//! A person at a terminal who starts or resumes an agent is attached to it: to the agent's own screen, or to the chat.

use crate::harness;
use crate::person::{Person, SIZE};
use ostler_core::record::Mode;
use ostler_core::view::Phase;
use ostler_testkit::{Harness, Session};

/// The only session.
fn session(harness: &Harness) -> Session<'_> {
    harness.session(&harness.ls()[0].id)
}

/// Detaches with the detach key.
fn leaves(person: &mut Person) {
    person.types(b"\x1c");
    person.is_left_with(0);
}

#[test]
fn an_agent_alone_opens_in_a_terminal_and_one_with_a_prompt_does_not() {
    let harness = harness();
    let mut person = Person::runs(&harness, SIZE, &["run", "demo"]);
    person.sees("demo agent");
    let session = session(&harness);
    assert_eq!(session.look().mode, Mode::Terminal);
    person.types(b"say typed by hand\r");
    person.sees("│ typed by hand ");
    leaves(&mut person);
    session.stop();

    // Without an agent there is nothing to open, and on a pipe there is no terminal to open it in.
    Person::runs(&harness, SIZE, &["run"]).is_left_with(2);
    harness.run(&["run", "demo"]).exits(2).complaint();
    let mut person = Person::runs(&harness, SIZE, &["run", "demo", "say hello"]);
    person.sees("succeeded");
    person.is_left_with(0);
}

#[test]
fn a_prompt_for_a_terminal_is_its_first_message() {
    let harness = harness();
    let mut person = Person::runs(&harness, SIZE, &["run", "-t", "demo", "say delivered"]);
    person.sees("│ delivered ");
    leaves(&mut person);
    let session = session(&harness);
    let stopped = harness.run(&["stop", session.id()]).exits(0);
    assert!(stopped.stdout.ends_with(": stopped; its conversation is saved\n"), "{stopped:?}");
    let mut person = Person::runs(&harness, SIZE, &["resume", session.id(), "say resumed"]);
    person.sees("│ resumed ");
    leaves(&mut person);
    harness.run(&["stop", session.id()]).exits(0);
    let mut person = Person::runs(&harness, SIZE, &["fork", session.id(), "say forked"]);
    person.sees("│ forked ");
    leaves(&mut person);
}

#[test]
fn a_session_that_is_kept_is_a_chat() {
    let harness = harness();
    let mut person = Person::runs(&harness, SIZE, &["run", "--keep", "demo", "say one"]);
    person
        .sees_that("its answer", |person| person.shows("idle") && person.screen.text().iter().any(|row| row == "one"));
    person.types(b"say two\r");
    let session = session(&harness);
    session.until_look("the second turn is over", |view| view.turns == 2 && view.state == Phase::Idle);
    leaves(&mut person);
    assert!(session.look().alive, "it is kept");
    session.stop();
}

#[test]
fn resume_without_a_message_attaches() {
    let harness = harness();
    harness.run(&["run", "demo", "say before"]).exits(0);
    let session = session(&harness);
    // An ended session continues, as a chat.
    let mut person = Person::runs(&harness, SIZE, &["resume", session.id()]);
    person.sees("idle");
    assert!(person.shows("before"), "what was said before");
    person.types(b"say after\r");
    session.until_look("its turn is over", |view| view.turns == 2 && view.state == Phase::Idle);
    leaves(&mut person);
    // A running session is attached to.
    let mut person = Person::runs(&harness, SIZE, &["resume", session.id()]);
    person.sees("after");
    leaves(&mut person);
    assert_eq!(session.look().run, 2);
    // On a pipe it cannot attach: it says that the session still runs.
    harness.run(&["resume", session.id()]).exits(7).complaint();
    session.stop();
    harness.run(&["resume", session.id()]).exits(2).complaint();
}

#[test]
fn a_person_is_asked_before_a_misspelt_agent_becomes_a_prompt() {
    let harness = harness();
    harness.configure("default_agent = 'demo'\n");
    let mut person = Person::runs(&harness, SIZE, &["run", "claud"]);
    person.sees("did you mean claude?");
    person.sees("[y/N]");
    person.types(b"\r");
    person.is_left_with(2);
    assert!(harness.ls().is_empty());
    // The window has room for all that the agent says, so that the first line does not scroll out of it.
    let mut person = Person::runs(&harness, (60, 80), &["run", "claud"]);
    person.sees("[y/N]");
    person.types(b"y\r");
    person.sees("› claud");
    assert_eq!(harness.ls().len(), 1);
}
