//! What is listed, in which order, and moving in the list.

use super::{MIDDLE, NARROW, SIZES, WIDE, asking, has_selected, idle, list, opens, selected, working};
use crate::harness;
use crate::person::Person;
use ostler_testkit::{ProcessKind, patience};
use std::time::Duration;

#[test]
fn sessions_are_grouped_by_what_they_need_at_every_size() {
    let harness = harness();
    let _idle = idle(&harness, "resting", "say ready");
    let _works = working(&harness, "busy");
    let ended = harness.detach(&["--name", "over", "--", "true"]);
    harness.run(&["wait", ended.id()]).exits(0);
    let failed = harness.detach(&["--name", "broken", "--", "false"]);
    harness.run(&["wait", failed.id()]).exits(1);
    let _asks = asking(&harness, "deploy", "git push --tags");
    for size in SIZES {
        let mut person = opens(&harness, size);
        let heads = ["needs you 2", "working 1", "idle 1", "… 1 ended"];
        person.sees_that("the groups", |person| {
            let list = list(person);
            let places: Vec<_> = heads.iter().map(|head| list.iter().position(|row| row == head)).collect();
            places.iter().all(Option::is_some) && places.is_sorted()
        });
        let rows = list(&person);
        let at =
            |text: &str| rows.iter().position(|row| row.contains(text)).unwrap_or_else(|| panic!("{text}: {rows:?}"));
        assert!(at("? deploy") < at("✘ broken") && at("✘ broken") < at("● busy") && at("● busy") < at("○ resting"));
        assert!(rows[at("? deploy")].contains("asking"), "{rows:?}");
        let question = if size == NARROW { "Ask" } else { "Ask git push" };
        assert!(rows[at("? deploy")].contains(question), "{rows:?}");
        assert!(!rows.iter().any(|row| row.contains("over")), "what has ended is folded: {rows:?}");
        // The first session that needs an answer or a look is selected.
        has_selected(&mut person, "deploy");
        match size {
            WIDE => {
                assert!(person.screen.text()[1].contains("│ ? deploy  asking"), "{}", person.screen.text().join("\n"))
            }
            MIDDLE => assert!(person.shows("────────") && person.shows("? deploy  asking")),
            _ => assert!(!person.shows("│") && !person.shows("──")),
        }
        assert!(person.shows("2 need you"));
        // The title is written after the update of the screen.
        person.sees_that("the title", |person| person.screen.title() == Some("ostler: 1 asks"));
        person.types(b"q");
        person.is_left_with(0);
    }
}

#[test]
fn keys_and_the_mouse_move_in_the_list() {
    let harness = harness();
    let names = ["a-first", "b-second", "c-third", "d-fourth"];
    let sessions: Vec<_> = names.iter().map(|name| idle(&harness, name, "say x")).collect();
    for size in SIZES {
        let mut person = opens(&harness, size);
        // The newest is on top.
        has_selected(&mut person, "d-fourth");
        for (keys, then) in [
            (&b"j"[..], "c-third"),
            (b"\x1b[B", "b-second"),
            (b"k", "c-third"),
            (b"\x1b[A", "d-fourth"),
            (b"G", "a-first"),
            (b"g", "d-fourth"),
            (b"\x1b[6~", "a-first"),
            (b"\x1b[5~", "d-fourth"),
            (b"\x1b[F", "a-first"),
            (b"\x1b[H", "d-fourth"),
            // A click on the second session, and the wheel over it.
            (b"\x1b[<0;5;4M", "c-third"),
            (b"\x1b[<65;5;4M", "a-first"),
            (b"\x1b[<64;5;4M", "d-fourth"),
        ] {
            person.types(keys);
            has_selected(&mut person, then);
        }
        person.types(b"\t");
        person.sees("nothing needs you");
        person.types(b"?");
        person.sees("next that needs you");
        if size != WIDE {
            person.sees("any key shows more");
            person.types(b"x");
        }
        // What does not fit into a narrow window is wrapped, and takes another page.
        person.sees("deny what it asks");
        if size == NARROW {
            person.sees("any key shows more");
            person.types(b"x");
        }
        person.sees("any key goes back");
        person.sees("sessions keep running");
        person.types(b"x");
        person.sees("q quit");
        person.types(b"\x03");
        person.is_left_with(0);
    }
    assert!(sessions.iter().all(|session| session.look().alive));
}

#[test]
fn a_filter_finds_by_name_state_and_last_line_as_it_is_typed() {
    let harness = harness();
    let _one = idle(&harness, "parser", "say the grammar is done");
    let _two = idle(&harness, "server", "say listening");
    let ended = harness.detach(&["--name", "lint", "--", "echo", "all clean"]);
    harness.run(&["wait", ended.id()]).exits(0);
    let mut person = opens(&harness, WIDE);
    let shows_only = |person: &mut Person, name: &str| {
        person.sees_that(name, |person| {
            let rows = list(person);
            rows.len() == 2 && rows[1].contains(name)
        });
    };
    person.types(b"/pars");
    shows_only(&mut person, "parser");
    person.types(b"\x15listen");
    shows_only(&mut person, "server");
    // Ended sessions are found as well.
    person.types(b"\x15CLEAN");
    shows_only(&mut person, "lint");
    person.types(b"\x15idle gramm");
    shows_only(&mut person, "parser");
    person.types(b"\r");
    person.sees("filter: idle gramm");
    person.types(b"\x1b");
    person.sees("… 1 ended");
    person.types(b"/nothing like it");
    person.sees("No session matches.");
    person.types(b"\x1b");
    person.sees("… 1 ended");
    person.types(b"G ");
    person.sees("▾ 1 ended");
    person.sees("✔ lint");
}

#[test]
fn what_happens_to_sessions_is_seen_at_once() {
    let harness = harness();
    let first = idle(&harness, "first", "say x");
    let mut person = opens(&harness, MIDDLE);
    person.sees("○ first");
    let second = asking(&harness, "second", "rm -r build");
    person.sees("? second");
    person.sees_that("the title", |person| person.screen.title() == Some("ostler: 1 asks"));
    harness.run(&["answer", second.id(), "--allow"]).exits(0);
    person.sees("○ second");
    person.sees_that("the title", |person| person.screen.title() == Some("ostler"));
    harness.run(&["rename", first.id(), "renamed"]).exits(0);
    person.sees("○ renamed");
    harness.run(&["stop", first.id()]).exits(0);
    person.sees("… 1 ended");
    harness.run(&["archive", first.id()]).exits(0);
    person.sees_that("it is gone", |person| !person.shows("ended"));
    // A keeper that is killed and replaced makes no difference.
    let before = second.kill(ProcessKind::Keeper);
    second.replaced(ProcessKind::Keeper, &before);
    harness.run(&["send", second.id(), "say after that"]).exits(0);
    person.sees("after that");
    person.sees("○ second");
}

#[test]
fn what_happens_to_sessions_that_had_ended_before_is_seen_as_well() {
    let harness = harness();
    let names = ["one-a", "two-b", "three-c", "four-d"];
    let ended: Vec<_> = names.iter().map(|name| harness.detach(&["--name", name, "--", "true"])).collect();
    ended.iter().for_each(|session| drop(harness.run(&["wait", session.id()]).exits(0)));
    let failed = harness.detach(&["--name", "broken", "--", "false"]);
    harness.run(&["wait", failed.id()]).exits(1);
    let mut person = opens(&harness, WIDE);
    person.sees("… 4 ended");
    person.types(b"G ");
    person.sees("▾ 4 ended");
    names.iter().for_each(|name| person.sees(name));
    harness.run(&["rename", "two-b", "other-name"]).exits(0);
    person.sees("✔ other-name");
    harness.run(&["archive", "one-a"]).exits(0);
    person.sees_that("one less", |person| person.shows("▾ 3 ended") && !person.shows("one-a"));
    harness.run(&["purge", "three-c"]).exits(0);
    person.sees_that("one less", |person| person.shows("▾ 2 ended") && !person.shows("three-c"));
    harness.run(&["archive", "broken"]).exits(0);
    person.sees_that("nothing needs a look", |person| !person.shows("broken") && !person.shows("needs you"));
    // The same with the key of the dashboard. The oldest is last.
    person.types(b"G");
    has_selected(&mut person, "other-name");
    person.types(b"Ay");
    let is_gone = |person: &Person| !list(person).iter().any(|row| row.contains("other-name"));
    person.sees_that("one less", |person| person.shows("▾ 1 ended") && is_gone(person));
}

#[test]
fn three_hundred_sessions_are_listed_and_any_is_reached() {
    let harness = harness();
    let old = harness.detach(&["--name", "over", "--", "true"]);
    harness.run(&["wait", old.id()]).exits(0);
    // Folders as a killed launch leaves them: nothing was started, so that 300 sessions need no processes.
    let record = std::fs::read_to_string(old.path().join("session.json")).unwrap();
    for number in 0..300 {
        let id = format!("9{number:07}");
        let folder = harness.home().join("sessions").join(&id);
        std::fs::create_dir(&folder).unwrap();
        let copy = record.replace(old.id(), &id).replace("\"over\"", &format!("\"job {number}\""));
        std::fs::write(folder.join("session.json"), copy).unwrap();
    }
    for size in SIZES {
        let mut person = opens(&harness, size);
        let first = selected(&person).unwrap();
        person.types(b"G");
        has_selected(&mut person, "… 1 ended");
        person.types(b"g");
        has_selected(&mut person, first.split_whitespace().nth(2).unwrap());
        person.types(b"/job 277\r");
        has_selected(&mut person, "job 277");
        person.types(b"q");
        person.is_left_with(0);
    }
}

#[test]
fn an_empty_list_says_so_and_how_to_start_a_session() {
    let harness = harness();
    for size in SIZES {
        let mut person = opens(&harness, size);
        person.sees("No sessions yet.");
        person.sees("ostler run demo \"fix the failing test\"");
        person.types(b"s");
        person.sees("no session is selected");
        person.types(b"q");
        person.is_left_with(0);
    }
}

#[test]
fn a_dashboard_of_idle_sessions_does_not_wake_up() {
    const WATCHED: Duration = Duration::from_secs(5);
    let harness = harness();
    // A copy of a transcript that is made later would wake the process.
    harness.configure("autosave = \"off\"\n");
    let _one = idle(&harness, "one", "say x");
    let _two = idle(&harness, "two", "say x");
    let mut person = opens(&harness, WIDE);
    person.sees("○ one");
    let mut before = person.sleeps();
    patience::until("it has come to rest", &[], || {
        let silent = !person.looks(Duration::from_secs(1));
        let last = std::mem::replace(&mut before, person.sleeps());
        (silent && last == before).then_some(())
    });
    assert!(!patience::ends_within(person.process(), WATCHED));
    assert_eq!(person.sleeps(), before);
}
