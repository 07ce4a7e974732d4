//! Several people at one session: all see the same, each may type unless the client is read-only, and the window has
//! the size of the newest client.

use crate::harness;
use crate::person::Person;

const LINES: &str = "trap 'stty size' WINCH; stty -echo; echo ready; while :; do read -r line && echo got $line; done";

#[test]
fn two_clients_see_the_same_and_both_type() {
    let harness = harness();
    let session = harness.detach(&["-t", "--", "sh", "-c", LINES]);
    let mut first = Person::attaches(&harness, session.id());
    first.sees("ready");
    let mut second = Person::attaches(&harness, session.id());
    second.sees("ready");
    first.types(b"one\r");
    second.sees("got one");
    second.types(b"two\r");
    first.sees("got two");
    second.sees("got two");
    assert_eq!(first.screen.text(), second.screen.text());
}

#[test]
fn the_window_follows_the_newest_client_and_goes_back_when_it_leaves() {
    let harness = harness();
    let session = harness.detach(&["-t", "--", "sh", "-c", LINES]);
    // Before that the program does not print its size.
    session.until_printed("ready");
    let mut first = Person::runs(&harness, (30, 90), &["attach", session.id()]);
    first.sees("30 90");
    let mut second = Person::runs(&harness, (20, 70), &["attach", session.id()]);
    second.sees("20 70");
    first.resizes((31, 91));
    first.sees("31 91");
    second.resizes((21, 71));
    second.sees("21 71");
    second.types(b"\x1c");
    second.is_left_with(0);
    session.until("the window is the first one's again", || {
        let out = std::fs::read(session.run_file("out")).unwrap();
        String::from_utf8_lossy(&out).trim_end().ends_with("31 91").then_some(())
    });
}

#[test]
fn a_read_only_client_types_nothing_and_does_not_set_the_window_size() {
    let harness = harness();
    let session = harness.detach(&["-t", "--", "sh", "-c", LINES]);
    let mut looker = Person::runs(&harness, (30, 90), &["attach", "--read-only", session.id()]);
    looker.sees("ready");
    looker.types(b"never\r");
    looker.resizes((31, 91));
    let mut typist = Person::attaches(&harness, session.id());
    typist.sees("ready");
    typist.types(b"once\r");
    looker.sees("got once");
    looker.types(b"\x1c");
    looker.is_left_with(0);
    let out = String::from_utf8(std::fs::read(session.run_file("out")).unwrap()).unwrap();
    assert!(!out.contains("never") && !out.contains("90") && !out.contains("91"), "{out}");
}
