//! What cannot work is refused in one line, and an ended session is shown as it was.

use crate::harness;
use crate::person::Person;

#[test]
fn attach_needs_a_terminal() {
    let harness = harness();
    let session = harness.detach(&["-t", "--", "cat"]);
    for arguments in [&["attach", session.id()][..], &["attach", "--read-only", session.id()]] {
        let output = harness.run(arguments).exits(2);
        assert!(output.complaint().contains("attach needs a terminal; without one use: ostler logs -f"), "{output:?}");
    }
}

#[test]
fn a_program_that_cannot_be_shown_is_not_started() {
    let harness = harness();
    let output = harness.run(&["run", "-t", "--", "cat"]).exits(2);
    assert!(output.complaint().contains("add -d"), "{output:?}");
    assert!(harness.ls().is_empty());
}

#[test]
fn a_session_is_not_shown_inside_itself() {
    let harness = harness();
    let program = harness.program().to_str().unwrap();
    let script = format!("{program} attach $OSTLER_SESSION; echo code $?; exec cat");
    let session = harness.detach(&["-t", "--", "sh", "-c", &script]);
    session.until_printed("cannot be shown inside itself");
    session.until_printed("code 2");
}

#[test]
fn an_ended_session_shows_its_last_screen_as_text() {
    let harness = harness();
    let session = harness.detach(&["-t", "--", "printf", r"\033[31mred\033[0m\033]2;title\007 words\n"]);
    session.until_look("it has ended", |view| view.ended);
    let output = harness.run(&["attach", session.id()]).exits(0);
    assert_eq!(output.stdout, "red words\n");
    assert!(output.stderr.contains("has ended: succeeded"), "{output:?}");
    let mut person = Person::attaches(&harness, session.id());
    person.is_left_with(0);
    assert!(person.shows("red words"));
}

#[test]
fn an_unknown_session_is_not_found() {
    harness().run(&["attach", "nobody"]).exits(3);
}
