//! `rename`: every command prints and finds the new name, while the session runs and when it has ended. The record from
//! its start is not changed.

use crate::harness;
use ostler_testkit::{Harness, Session};

fn is_called(harness: &Harness, session: &Session<'_>, name: &str, not: &str) {
    let listed = harness.run(&["ls", "--json"]).exits(0).json();
    let names: Vec<&str> = listed.as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert!(names.contains(&name) && !names.contains(&not), "{names:?}");
    let table = harness.run(&["ls"]).exits(0).stdout;
    assert!(table.contains(name), "{table}");
    let shown = harness.run(&["show", "--json", name]).exits(0).json();
    assert_eq!((shown["id"].as_str(), shown["name"].as_str()), (Some(session.id()), Some(name)));
    harness.run(&["show", not]).exits(3);
}

#[test]
fn the_new_name_counts_everywhere_and_the_first_record_stays() {
    let harness = harness();
    let session = harness.detach(&["--keep", "--name", "before", "demo", "say one"]);
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    let written = std::fs::read(session.path().join("session.json")).unwrap();
    harness.run(&["rename", "before", "after"]).exits(0);
    is_called(&harness, &session, "after", "before");

    // The keeper was started with the first name; the record of the end must have the new one.
    harness.run(&["stop", "after"]).exits(0);
    is_called(&harness, &session, "after", "before");
    harness.run(&["rename", session.id(), "at last"]).exits(0);
    is_called(&harness, &session, "at last", "after");
    harness.run(&["resume", "at last", "say two"]).exits(0);
    is_called(&harness, &session, "at last", "before");
    assert_eq!(std::fs::read(session.path().join("session.json")).unwrap(), written, "written once");

    harness.run(&["archive", "at last"]).exits(0);
    harness.run(&["rename", session.id(), "other"]).exits(2).complaint();
    assert_eq!(harness.run(&["show", "--json", "at last"]).exits(0).json()["archived"], true);
}

#[test]
fn an_ended_session_is_listed_by_its_new_name_at_once() {
    let harness = harness();
    let session = harness.detach(&["--name", "before", "--", "true"]);
    harness.run(&["wait", session.id()]).exits(0);
    harness.run(&["rename", "before", "after"]).exits(0);
    is_called(&harness, &session, "after", "before");
}

#[test]
fn a_name_that_is_taken_or_invalid_is_refused() {
    let harness = harness();
    let first = harness.detach(&["--name", "first", "--", "sleep", "600"]);
    let second = harness.detach(&["--name", "second", "--", "sleep", "600"]);
    assert!(harness.run(&["rename", "second", "first"]).exits(2).complaint().contains(first.id()));
    harness.run(&["rename", "second", first.id()]).exits(2).complaint();
    harness.run(&["rename", "second", "a/b"]).exits(2).complaint();
    harness.run(&["rename", "second", "second"]).exits(0);
    harness.run(&["rename", "nobody", "third"]).exits(3).complaint();
    first.stop();
    second.stop();
}

#[test]
fn a_word_of_eight_letters_is_a_name() {
    let harness = harness();
    let session = harness.detach(&["--name", "research", "--", "true"]);
    harness.run(&["wait", "research"]).exits(0);
    harness.run(&["rename", "research", "rehearse"]).exits(0);
    is_called(&harness, &session, "rehearse", "research");
}
