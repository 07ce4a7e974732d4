//! `answer` at a terminal, and commands that do not name a session: if only one fits, it is taken; of several the
//! person picks one.

use crate::harness;
use crate::person::{Person, SIZE};
use ostler_core::view::Phase;
use ostler_testkit::{Harness, Session};

fn asking<'a>(harness: &'a Harness, name: &str) -> Session<'a> {
    let session = harness.detach(&["--keep", "--name", name, "demo", "ask May I?"]);
    session.until_look("it asks", |view| view.state == Phase::Asking);
    session
}

#[test]
fn answer_shows_the_question_and_takes_yes_or_no_with_a_reason() {
    let harness = harness();
    let session = asking(&harness, "first");
    // If only one session asks, it needs no name.
    let mut person = Person::runs(&harness, SIZE, &["answer"]);
    person.sees("? asks Ask May I?");
    person.sees("allow? [y/n, n REASON to say why]");
    person.types(b"perhaps\r");
    person.sees_that("the prompt again", |person| String::from_utf8_lossy(&person.bytes).matches("[y/n,").count() == 2);
    person.types(b"n not on a Friday\r");
    person.is_left_with(0);
    assert!(person.shows(&format!("first ({}): denied: Ask May I?", session.id())));
    session.until_look("the turn is over", |view| view.turns == 1);
    assert!(session.look().last.unwrap().contains("not on a Friday"));

    harness.run(&["send", session.id(), "ask And now?"]).exits(0);
    session.until_look("it asks again", |view| view.state == Phase::Asking);
    let mut person = Person::runs(&harness, SIZE, &["answer", "first"]);
    person.sees("? asks Ask And now?");
    person.sees("allow? [y/n, n REASON to say why]");
    person.types(b"\x03");
    person.is_left_with(4);
    let mut person = Person::runs(&harness, SIZE, &["answer", "first"]);
    person.sees("allow? [y/n, n REASON to say why]");
    person.types(b"y\r");
    person.is_left_with(0);
    session.until_look("the turn is over", |view| view.turns == 2);
    harness.run(&["answer"]).exits(3).complaint();
}

#[test]
fn a_script_gets_the_question_and_how_to_answer_it() {
    let harness = harness();
    let session = asking(&harness, "first");
    let complaint = harness.run(&["answer"]).exits(2);
    let words = format!("first ({0}) asks: Ask May I?; answer: ostler answer {0} --allow | --deny", session.id());
    assert!(complaint.complaint().contains(&words), "{complaint:?}");
    let second = asking(&harness, "second");
    let complaint = harness.run(&["answer", "--allow"]).exits(2);
    let complaint = complaint.complaint();
    assert!(
        complaint.contains(session.id()) && complaint.contains(&format!("second ({})", second.id())),
        "{complaint}"
    );
    let allowed = harness.run(&["answer", "second", "--allow"]).exits(0).stdout;
    assert_eq!(allowed, format!("second ({}): allowed: Ask May I?\n", second.id()));
}

#[test]
fn of_several_sessions_one_is_picked_with_arrows_or_by_typing() {
    let harness = harness();
    let [red, green] = ["red", "green"].map(|name| harness.detach(&["--keep", "--name", name, "demo"]));
    for session in [&red, &green] {
        session.until_look("it is idle", |view| view.state == Phase::Idle);
    }
    harness.run(&["attach"]).exits(2).complaint();
    // The newest is first.
    for (keys, name) in [(&b"\x1b[B\r"[..], "red"), (b"\x1b[B\x1b[A\r", "green"), (b"RED\r", "red")] {
        let mut person = Person::runs(&harness, SIZE, &["attach"]);
        person.sees("attach which one?");
        assert!(person.shows("red") && person.shows("green"));
        person.types(keys);
        person.sees(&format!("{name} idle"));
        person.types(b"\x04");
        person.is_left_with(0);
        assert!(person.has_an_ordinary_terminal());
    }
    let mut person = Person::runs(&harness, SIZE, &["logs"]);
    person.sees("logs which one?");
    person.types(b"\x1b");
    person.is_left_with(2);
    assert!(person.has_an_ordinary_terminal() && person.shows("nothing was done"));
    red.stop();
    // Only one session still runs, so `attach` does not ask.
    let mut person = Person::runs(&harness, SIZE, &["attach"]);
    person.sees("green idle");
    person.types(b"\x04");
    person.is_left_with(0);
    green.stop();
    harness.run(&["attach"]).exits(3).complaint();
}
