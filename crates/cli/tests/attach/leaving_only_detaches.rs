//! However a person leaves, the session keeps running, and the terminal is restored.

use crate::harness;
use crate::person::Person;
use ostler_testkit::{Harness, Session};
use rustix::process::Signal;

const ALTERNATE: &str =
    r"printf '\033[?1049h\033[?1000h\033[?2004hfull screen'; while read -r line; do echo got $line; done";

fn full_screen(harness: &Harness) -> Session<'_> {
    harness.detach(&["-t", "--", "sh", "-c", ALTERNATE])
}

/// The session is alive, and takes keys from the next client.
fn keeps_running(harness: &Harness, session: &Session<'_>) {
    assert!(session.look().alive);
    let mut next = Person::attaches(harness, session.id());
    next.sees("full screen");
    next.types(b"word\r");
    next.sees("got word");
}

fn is_restored(person: &Person) {
    assert!(person.has_an_ordinary_terminal());
    assert!(!person.screen.is_alternate());
    let text = String::from_utf8_lossy(&person.bytes).into_owned();
    let last = |on: &str, off: &str| text.rfind(off) > text.rfind(on);
    assert!(last("\u{1b}[?1000h", "\u{1b}[?1000l") && last("\u{1b}[?2004h", "\u{1b}[?2004l"), "{text:?}");
}

#[test]
fn the_detach_key_leaves_it_running_and_says_how_to_come_back() {
    let harness = harness();
    for key in [b"\x1c".as_slice(), b"\x1b[92;5u", b"\x1b[27;5;92~"] {
        let session = full_screen(&harness);
        let mut person = Person::attaches(&harness, session.id());
        person.sees("full screen");
        assert!(!person.has_an_ordinary_terminal());
        person.types(key);
        person.is_left_with(0);
        is_restored(&person);
        let id = session.id();
        assert!(person.shows(&format!("[detached; still running; reattach: ostler attach {id}]")));
        keeps_running(&harness, &session);
    }
}

#[test]
fn pressed_twice_the_detach_key_goes_to_the_program_inside() {
    let harness = harness();
    let inner = full_screen(&harness);
    // A terminal in which a client is attached to another session.
    let script = format!("{} attach {}; echo back; exec cat", harness.program().display(), inner.id());
    let outer = harness.detach(&["-t", "--", "sh", "-c", &script]);
    let mut person = Person::attaches(&harness, outer.id());
    person.sees("full screen");
    person.types(b"\x1c\x1c");
    person.sees("back");
    assert!(person.shows(&format!("reattach: ostler attach {}]", inner.id())));
    assert!(outer.look().alive && inner.look().alive);
    person.types(b"typed\r");
    person.sees_that("what is typed goes to the outer one", |person| {
        person.screen.text().iter().filter(|row| *row == "typed").count() == 2
    });
    person.types(b"\x1c");
    person.is_left_with(0);
    assert!(person.shows(&format!("reattach: ostler attach {}]", outer.id())));
    keeps_running(&harness, &inner);
}

#[test]
fn another_detach_key_may_be_set() {
    let harness = harness();
    harness.configure("detach_key = \"ctrl-a\"\n");
    let session = full_screen(&harness);
    let mut person = Person::attaches(&harness, session.id());
    person.sees("full screen");
    person.types(b"\x01");
    person.is_left_with(0);
}

#[test]
fn a_closed_terminal_only_detaches() {
    let harness = harness();
    let session = full_screen(&harness);
    let mut person = Person::attaches(&harness, session.id());
    person.sees("full screen");
    person.closes_the_terminal();
    person.is_left_with(0);
    keeps_running(&harness, &session);
}

#[test]
fn a_signal_only_detaches_and_restores_the_terminal() {
    let harness = harness();
    let session = full_screen(&harness);
    for signal in [Signal::HUP, Signal::TERM] {
        let mut person = Person::attaches(&harness, session.id());
        person.sees("full screen");
        person.signals(signal);
        person.is_left_with(0);
        is_restored(&person);
    }
    keeps_running(&harness, &session);
}

#[test]
fn a_killed_client_disturbs_neither_the_session_nor_the_terminal() {
    let harness = harness();
    let session = full_screen(&harness);
    let chat = harness.detach(&["--keep", "demo", "say hello"]);
    for (session, shown) in [(&session, "full screen"), (&chat, "Enter sends")] {
        let mut person = Person::attaches(&harness, session.id());
        person.sees(shown);
        person.signals(Signal::KILL);
        person.waits();
        person.sees_that("the screen that was there", |person| !person.screen.is_alternate());
        person.sees_that("an ordinary terminal", Person::has_an_ordinary_terminal);
        assert!(session.look().alive);
    }
    keeps_running(&harness, &session);
}

#[test]
fn a_terminal_that_takes_nothing_can_still_be_left() {
    let harness = harness();
    for leave in [|person: &mut Person| person.types(b"\x1c"), |person: &mut Person| person.signals(Signal::TERM)] {
        let session = harness.detach(&["-t", "--", "sh", "-c", "echo ready; read -r line; seq 1 50000; exec cat"]);
        let mut person = Person::attaches(&harness, session.id());
        person.sees("ready");
        person.types(b"\r");
        // The test does not read the terminal from here on, and the terminal holds only a few kilobytes.
        session.until_printed("\n50000\r\n");
        leave(&mut person);
        person.ends_unseen();
        assert!(session.look().alive);
    }
}

#[test]
fn the_end_of_the_session_is_shown_and_sets_the_exit_code() {
    let harness = harness();
    for (status, code, words) in [(0, 0, "has ended: succeeded"), (3, 1, "has ended: failed")] {
        let script =
            format!("printf '\\033[?1049hfull'; read -r line; printf '\\033[?1049l'; echo last words; exit {status}");
        let session = harness.detach(&["-t", "--", "sh", "-c", &script]);
        let mut person = Person::attaches(&harness, session.id());
        person.sees("full");
        person.types(b"\r");
        person.is_left_with(code);
        assert!(person.shows("last words") && person.shows(words), "{:#?}", person.screen.text());
        assert!(person.has_an_ordinary_terminal());
    }
}

#[test]
fn run_in_a_terminal_shows_the_program_to_its_end() {
    let harness = harness();
    let mut person =
        Person::runs(&harness, (24, 80), &["run", "-t", "--", "sh", "-c", "stty size; read -r line; exit 7"]);
    person.sees("24 80");
    person.types(b"\r");
    person.is_left_with(1);
}
