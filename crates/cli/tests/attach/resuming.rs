//! `ostler resume` at a terminal: the newest conversations are offered, and a person chooses.

use crate::harness;
use crate::person::{Person, SIZE};

#[test]
fn a_person_chooses_among_the_newest_and_is_attached_to_it() {
    let harness = harness();
    for name in ["older", "newer"] {
        harness.run(&["run", "--name", name, "demo", &format!("say from {name}")]).exits(0);
    }
    let mut person = Person::runs(&harness, SIZE, &["resume"]);
    person.sees("Resume which one? [1]");
    assert!(person.shows("newer") && person.shows("older") && person.shows("from newer"));
    person.types(b"2\r");
    person.sees("idle");
    person.types(b"say chosen\r");
    person.sees_that("the answer", |person| person.screen.text().iter().any(|row| row == "chosen"));
    person.sees("idle");
    person.types(b"\x1c");
    person.is_left_with(0);
    let older = harness.run(&["show", "--json", "older"]).exits(0).json();
    assert_eq!((&older["run"], &older["last"]), (&2.into(), &"chosen".into()), "{older}");
}

#[test]
fn return_resumes_the_newest_and_an_unknown_number_resumes_nothing() {
    let harness = harness();
    harness.run(&["run", "demo", "say one"]).exits(0);
    let mut person = Person::runs(&harness, SIZE, &["resume"]);
    person.sees("Resume which one? [1]");
    person.types(b"7\r");
    person.is_left_with(2);
    assert_eq!(harness.ls()[0].run, 1);
    let mut person = Person::runs(&harness, SIZE, &["resume", "--keep", "-d"]);
    person.sees("Resume which one? [1]");
    person.types(b"\r");
    person.is_left_with(0);
    assert_eq!(harness.ls()[0].run, 2);
}
