//! `//words` in the dashboard: every conversation on the machine is searched, and a hit leads to its session.

use super::emulators::agree;
use super::{MIDDLE, SIZES, WIDE, has_selected, idle, opens};
use crate::harness;
use ostler_core::view::Phase;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;

const FOREIGN: &str = "11111111-408d-4262-88d9-97e7e2d532f0";

#[test]
fn a_hit_leads_to_its_session_and_shows_its_command_first() {
    let harness = harness();
    let talk = idle(&harness, "stripes", "say the zebra is here");
    let ended = harness.detach(&["--name", "over", "demo", "say the giraffe was here"]);
    harness.run(&["wait", ended.id()]).exits(0);
    let archived = harness.detach(&["--name", "old", "demo", "say the okapi was here"]);
    harness.run(&["wait", archived.id()]).exits(0);
    harness.run(&["archive", archived.id()]).exits(0);
    for size in SIZES {
        let mut person = opens(&harness, size);
        person.types(b"//");
        person.sees("words to find");
        // The word is not finished yet.
        person.types(b"zebr");
        has_selected(&mut person, "zebra is here");
        person.sees("messages · ↓");
        if size.0 > 12 {
            person.sees(&format!("ostler attach {}", talk.id()));
        }
        person.types(b"\r");
        person.sees("Enter sends");
        person.types(b"\x1c");
        has_selected(&mut person, "zebra is here");
        person.types(b"\x1b");
        person.sees("q quit");
        person.types(b"q");
        person.is_left_with(0);
    }
    let mut person = opens(&harness, WIDE);
    person.types(b"//giraffe");
    has_selected(&mut person, "giraffe");
    person.types(b"\r");
    person.sees(&format!("run: ostler resume {}? y / n", ended.id()));
    person.types(b"n");
    person.sees("search › giraffe");
    assert_eq!(ended.look().run, 1);
    person.types(b"\ry");
    ended.until_look("it is idle", |view| view.run == 2 && view.state == Phase::Idle);
    has_selected(&mut person, "over");
    person.types(b"//okapi");
    has_selected(&mut person, "okapi");
    person.types(b"\r");
    person.sees(&format!("run: ostler restore {}? y / n", archived.id()));
    person.types(b"y");
    person.sees("restored");
    archived.until("it is back", || archived.path().exists().then_some(()));
}

#[test]
fn conversations_outside_ostler_are_found_and_their_escape_sequences_are_removed() {
    let harness = harness();
    let _talk = idle(&harness, "one", "say x");
    let folder = harness.root().join("home/.claude/projects/-work-app");
    std::fs::create_dir_all(&folder).unwrap();
    let harmful = "\u{1b}]0;owned\u{7}the zebra \u{202e}表e\u{301}👍 \u{1b}[2J".repeat(20);
    let line = serde_json::json!({
        "type": "user", "cwd": "/work/app", "timestamp": "2026-11-10T08:00:00Z",
        "message": { "role": "user", "content": harmful },
    });
    std::fs::write(folder.join(format!("{FOREIGN}.jsonl")), format!("{line}\n")).unwrap();
    for size in SIZES {
        let mut person = opens(&harness, size);
        person.types(b"//zebra");
        has_selected(&mut person, "zebra");
        agree(&person);
        person.types(b"\r");
        person.sees("run: ostler adopt 11111111");
        agree(&person);
        // A folder that does not exist is refused, with the words of the command.
        person.types(b"y");
        person.sees("/work/app");
        assert_eq!(person.screen.title(), Some("ostler"));
        let bytes = String::from_utf8_lossy(&person.bytes).into_owned();
        for harmful in ["\u{202e}", "\u{1b}]0;", "\u{7}", "owned\u{1b}"] {
            assert!(!bytes.contains(harmful), "{harmful:?}");
        }
        person.types(b"q");
        person.is_left_with(0);
    }
}

#[test]
fn keys_do_not_wait_for_a_search() {
    let harness = harness();
    let _one = idle(&harness, "a-first", "say the zebra is here");
    let _two = idle(&harness, "b-second", "say x");
    // An index that has to be made again, while another process holds its lock: the search waits for seconds.
    let index = harness.home().join("search");
    std::fs::create_dir(&index).unwrap();
    std::fs::write(index.join("index.sqlite"), "not a database ".repeat(1000)).unwrap();
    let lock = File::create(index.join("lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let mut person = opens(&harness, MIDDLE);
    person.types(b"//zebra");
    person.sees("searching…");
    person.types(b"x");
    person.sees_that("what is typed", |person| person.shows("search › zebrax") && person.shows("searching…"));
    person.types(b"\x1b");
    has_selected(&mut person, "b-second");
    person.types(b"j");
    has_selected(&mut person, "a-first");
    drop(lock);
    person.types(b"//zebra");
    has_selected(&mut person, "zebra is here");
    person.types(b"nothing-like-it");
    person.sees("nothing found");
    // Ctrl-U empties the line, and a backspace in the empty line leaves the search.
    person.types(b"\x15\x7f");
    person.sees("q quit");
    person.types(b"q");
    person.is_left_with(0);
}
