//! The terminal is restored, whatever ends the dashboard, and the sessions keep running.

use super::emulators::agree;
use super::{MIDDLE, NARROW, WIDE, has_group, has_selected, idle, opens, working};
use crate::harness;
use crate::person::Person;
use ostler_testkit::patience;
use rustix::process::Signal;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

#[track_caller]
fn has_restored_the_terminal(person: &Person) {
    assert!(person.has_an_ordinary_terminal() && !person.screen.is_alternate());
    let text = String::from_utf8_lossy(&person.bytes).into_owned();
    for (on, off) in [("\u{1b}[?1000h", "\u{1b}[?1000l"), ("\u{1b}[?2004h", "\u{1b}[?2004l")] {
        assert!(text.rfind(off) > text.rfind(on), "{on:?}");
    }
    assert!(text.rfind("\u{1b}[?25h") > text.rfind("\u{1b}[?25l"), "the cursor is seen");
}

#[test]
fn every_way_out_restores_the_terminal() {
    let harness = harness();
    let session = idle(&harness, "one", "say x");
    for signal in [None, Some(Signal::TERM), Some(Signal::HUP), Some(Signal::INT), Some(Signal::QUIT)] {
        let mut person = opens(&harness, MIDDLE);
        assert!(person.screen.is_alternate() && !person.has_an_ordinary_terminal());
        match signal {
            None => person.types(b"q"),
            Some(signal) => person.signals(signal),
        }
        person.is_left_with(0);
        has_restored_the_terminal(&person);
    }
    let mut person = opens(&harness, MIDDLE);
    person.closes_the_terminal();
    person.ends_unseen();
    assert!(session.look().alive);
}

#[test]
fn ctrl_z_stops_it_and_fg_resumes_it() {
    let harness = harness();
    let _session = idle(&harness, "one", "say x");
    let mut person = Person::runs_program(&harness, MIDDLE, &["bash", "--norc", "--noprofile", "-i"]);
    person.types(format!("PS1='ready> '; {} ui\r", harness.program().display()).as_bytes());
    person.sees("q quit");
    person.types(b"\x1a");
    person.sees("Stopped");
    person.sees_that("the shell", |person| person.shows("ready>") && !person.screen.is_alternate());
    person.types(b"fg\r");
    person.sees_that("the dashboard", |person| person.screen.is_alternate() && person.shows("○ one"));
    person.types(b"q");
    person.sees_that("the shell", |person| !person.screen.is_alternate());
    person.types(b"exit\r");
    person.is_left_with(0);
}

#[test]
fn after_a_resize_everything_is_drawn_again() {
    let harness = harness();
    let _session = idle(&harness, "one", "say hello there");
    let mut person = opens(&harness, WIDE);
    person.sees("│ › say hello there");
    for size in [NARROW, MIDDLE, (5, 20), (1, 1), (2, 200), WIDE] {
        let before = person.bytes.len();
        person.resizes(size);
        if size.1 >= NARROW.1 && size.0 >= NARROW.0 {
            // Everything is drawn again; the old drawing does not count.
            person.sees_that("all of it", |person| {
                let drawn_again = person.bytes[before..].windows(4).any(|window| window == b"\x1b[2J");
                drawn_again && person.shows("○ one") && person.shows("q quit")
            });
            agree(&person);
        }
    }
    person.sees("│ › say hello there");
    person.types(b"q");
    person.is_left_with(0);
}

#[test]
fn after_a_stop_and_many_resizes_the_screen_is_complete() {
    let harness = harness();
    let session = idle(&harness, "one", "say hello there");
    let mut person = opens(&harness, MIDDLE);
    person.sees("› say hello there");
    // Another program may have drawn over the screen meanwhile, in a window of another size.
    person.signals(Signal::STOP);
    let stat = format!("/proc/{}/stat", person.process().pid());
    let is_stopped = || std::fs::read_to_string(&stat).unwrap().contains(") T ").then_some(());
    patience::until("it is stopped", &[], is_stopped);
    person.resizes(WIDE);
    person.screen.feed(b"\x1b[2J\x1b[Hnot ours");
    person.signals(Signal::CONT);
    let is_whole = |person: &Person| person.shows("│ › say hello there") && person.shows("q quit");
    person.sees_that("all of it", is_whole);
    assert!(!person.shows("not ours") && person.shows("○ one"));
    agree(&person);
    // Resizes while the dashboard draws.
    harness.run(&["send", session.id(), "count 300"]).exits(0);
    for round in 0..200 {
        person.resizes((3 + round * 7 % 50, 10 + round * 13 % 85));
        if round % 10 == 0 {
            person.looks(Duration::ZERO);
        }
    }
    session.until_look("the turn is over", |view| view.turns == 2);
    person.resizes(WIDE);
    person.sees_that("all of it", |person| {
        let rows = person.screen.text();
        rows.iter().any(|row| row.ends_with("│ 300")) && person.shows("○ one") && person.shows("q quit")
    });
    agree(&person);
    person.types(b"q");
    person.is_left_with(0);
}

#[test]
fn attaching_comes_back_to_the_dashboard_and_to_the_same_session() {
    let harness = harness();
    let talk = idle(&harness, "talk", "say x");
    let screen = harness.detach(&["-t", "--name", "screen", "--", "sh", "-c", "echo on its screen; cat"]);
    screen.until_printed("on its screen");
    let prints = harness.detach(&["--name", "prints", "--", "sh", "-c", "echo printed; sleep 1000"]);
    prints.until_printed("printed");
    let mut person = opens(&harness, MIDDLE);
    for (name, inside) in [("talk", "Enter sends"), ("screen", "on its screen"), ("prints", "printed")] {
        person.types(format!("/{name}\r").as_bytes());
        has_selected(&mut person, name);
        person.types(b"\r");
        person.sees_that(inside, |person| person.shows(inside) && !person.shows("q quit"));
        person.types(b"\x1c");
        person.sees("q quit");
        has_selected(&mut person, name);
        person.types(b"\x1b");
        has_group(&mut person, "working 2");
    }
    assert!(talk.look().alive && screen.look().alive && prints.look().alive);
    person.types(b"q");
    person.is_left_with(0);
    has_restored_the_terminal(&person);
    assert!(!person.shows("detached"), "nothing is left behind");
}

#[test]
fn a_signal_while_attached_ends_it_and_restores_the_terminal() {
    let harness = harness();
    let talk = idle(&harness, "talk", "say x");
    let screen = harness.detach(&["-t", "--name", "screen", "--", "sh", "-c", "echo on its screen; cat"]);
    screen.until_printed("on its screen");
    let prints = harness.detach(&["--name", "prints", "--", "sh", "-c", "echo printed; sleep 1000"]);
    prints.until_printed("printed");
    for (name, inside) in [("talk", "Enter sends"), ("screen", "on its screen"), ("prints", "printed")] {
        let mut person = opens(&harness, MIDDLE);
        person.types(format!("/{name}\r").as_bytes());
        has_selected(&mut person, name);
        person.types(b"\r");
        person.sees_that(inside, |person| person.shows(inside) && !person.shows("q quit"));
        person.signals(Signal::TERM);
        person.is_left_with(0);
        has_restored_the_terminal(&person);
    }
    assert!(talk.look().alive && screen.look().alive && prints.look().alive);
}

#[test]
fn a_terminal_that_supports_progress_shows_it_only_while_a_session_works() {
    const WORKS: &str = "\u{1b}]9;4;3;0\u{1b}\\";
    const RESTS: &str = "\u{1b}]9;4;0;0\u{1b}\\";
    let mut harness = harness();
    let id = working(&harness, "busy").id().to_owned();
    // This terminal does not support it.
    let mut person = opens(&harness, MIDDLE);
    person.types(b"q");
    person.is_left_with(0);
    assert!(!String::from_utf8_lossy(&person.bytes).contains("]9;4"));
    harness.set("TERM_PROGRAM", "ghostty");
    harness.set("TERM_PROGRAM_VERSION", "1.2.3");
    let session = harness.session(&id);
    let last = |person: &Person| {
        let text = String::from_utf8_lossy(&person.bytes).into_owned();
        (text.rfind(WORKS), text.rfind(RESTS))
    };
    let mut person = opens(&harness, MIDDLE);
    person.sees_that("that it works", |person| last(person).0 > last(person).1);
    // While another program has the terminal, the dashboard shows no progress there.
    person.types(b"\r");
    person.sees("detaches");
    assert!(last(&person).1 > last(&person).0);
    person.types(b"\x1c");
    person.sees_that("that it works", |person| person.shows("q quit") && last(person).0 > last(person).1);
    harness.run(&["interrupt", session.id()]).exits(0);
    person.sees_that("that nothing works", |person| last(person).1 > last(person).0);
    harness.run(&["send", session.id(), "sleep"]).exits(0);
    person.sees_that("that it works", |person| last(person).0 > last(person).1);
    person.signals(Signal::TERM);
    person.is_left_with(0);
    assert!(last(&person).1 > last(&person).0);
}

#[test]
fn the_terminal_is_restored_after_a_kill_also_while_a_session_is_attached() {
    let harness = harness();
    let talk = idle(&harness, "talk", "say x");
    let draws = "printf '\\033[?1049h\\033[?1003h\\033[?25lon its screen'; cat";
    let screen = harness.detach(&["-t", "--name", "screen", "--", "sh", "-c", draws]);
    screen.until_printed("on its screen");
    for inside in [None, Some(("talk", "Enter sends")), Some(("screen", "on its screen"))] {
        let mut person = opens(&harness, MIDDLE);
        if let Some((name, inside)) = inside {
            person.types(format!("/{name}\r").as_bytes());
            has_selected(&mut person, name);
            person.types(b"\r");
            person.sees_that(inside, |person| person.shows(inside) && !person.shows("q quit"));
        }
        assert!(person.screen.is_alternate() && !person.has_an_ordinary_terminal());
        person.signals(Signal::KILL);
        assert_eq!(person.waits().signal(), Some(9));
        person.sees_that("the screen that was there", |person| !person.screen.is_alternate());
        person.sees_that("the title", |person| person.bytes.ends_with(b"\x1b[23;2t"));
        has_restored_the_terminal(&person);
        let text = String::from_utf8_lossy(&person.bytes).into_owned();
        assert!(text.rfind("\u{1b}[?1003l") >= text.rfind("\u{1b}[?1003h"), "the mouse is not reported");
    }
    assert!(talk.look().alive && screen.look().alive);
}

#[test]
fn without_a_terminal_it_says_what_to_do() {
    let harness = harness();
    let refused = harness.run(&["ui"]).exits(2);
    assert_eq!(refused.stderr, "ostler: ui needs a terminal; list the sessions with: ostler ls\n");
}

#[test]
fn ostler_without_arguments_opens_it_if_configured_and_there_is_a_session() {
    let harness = harness();
    harness.configure("ui = \"default\"\n");
    let mut person = Person::runs(&harness, MIDDLE, &[]);
    person.is_left_with(0);
    assert!(person.shows("ostler run demo"));
    let _session = idle(&harness, "one", "say x");
    let mut person = Person::runs(&harness, MIDDLE, &[]);
    person.sees("q quit");
    person.types(b"q");
    person.is_left_with(0);
    assert!(harness.run(&[]).exits(0).stdout.contains("one"), "a script gets the list");
    harness.configure("");
    let mut person = Person::runs(&harness, MIDDLE, &[]);
    person.is_left_with(0);
    assert!(person.shows("one") && person.shows("see them live: ostler ui"));
}
