//! Names, prompts and output of agents cannot control the terminal.

use super::emulators::agree;
use super::{SIZES, asking, has_selected, idle, opens};
use crate::harness;

const HARMFUL: &str = "x\u{1b}[2J\u{1b}]0;owned\u{7}y\u{202e}z\u{1b}[?1049l\u{9b}2J 表e\u{301}👍";

#[test]
fn escape_sequences_of_sessions_do_not_reach_the_terminal() {
    let harness = harness();
    let talk = harness.detach(&["--keep", "demo", &format!("say {HARMFUL}")]);
    talk.until_look("a turn is over", |view| view.turns == 1);
    let _asks = asking(&harness, "asks", HARMFUL);
    let long =
        format!("printf '%0100000d\\n' 7; printf '\\033[2Jb\\033]0;owned\\007c\\302\\2338m{HARMFUL}\\n'; sleep 1000");
    let prints = harness.detach(&["--name", "prints", "--", "sh", "-c", &long]);
    prints.until_printed("表");
    let draws = harness.detach(&["-t", "--name", "draws", "--", "sh", "-c", &long]);
    draws.until_printed("表");
    for size in SIZES {
        let mut person = opens(&harness, size);
        for name in ["asks", "prints", "draws", "say"] {
            person.types(format!("/{name}\r").as_bytes());
            has_selected(&mut person, name);
            agree(&person);
            person.types(b" ");
            person.sees("Space back");
            person.sees("表");
            agree(&person);
            person.types(b"kk");
            person.types(b" ");
            person.sees("filter:");
            agree(&person);
            person.types(b"\x1b");
            person.sees_that("no filter", |person| !person.shows("filter:"));
            agree(&person);
        }
        // The whole question, a reply with unusual characters, and a form.
        person.types(b"/asks\ra");
        person.sees("y allows exactly this");
        agree(&person);
        person.types(b"\x1b");
        person.sees("q quit");
        person.types("r表e\u{301}👍🏽👩\u{200d}💻 ｗｉｄｅ ".as_bytes());
        person.sees("ｗｉｄｅ");
        agree(&person);
        person.types(b"\x7f\x7f\x7f\x15\x1b");
        person.sees("q quit");
        person.types(b"n");
        person.sees("new session");
        agree(&person);
        person.types(b"\x1b");
        person.sees("q quit");
        person.types(b"?");
        person.sees("next, previous session");
        agree(&person);
        person.types(b"\x1b");
        person.sees("q quit");
        assert!(person.screen.is_alternate(), "nothing has left our screen");
        assert_eq!(person.screen.title(), Some("ostler: 1 asks"));
        let bytes = String::from_utf8_lossy(&person.bytes).into_owned();
        for harmful in ["\u{202e}", "\u{9b}", "\u{1b}]0;", "\u{7}", "owned\u{1b}"] {
            assert!(!bytes.contains(harmful), "{harmful:?}");
        }
        person.types(b"q");
        person.is_left_with(0);
        agree(&person);
    }
}

#[test]
fn every_frame_is_one_synchronised_update() {
    let harness = harness();
    let session = idle(&harness, "one", "say x");
    let mut person = opens(&harness, SIZES[0]);
    person.types(b"jk?x / \x1b");
    harness.run(&["send", session.id(), "count 50"]).exits(0);
    session.until_look("the turn is over", |view| view.turns == 2);
    person.sees_that("the last number", |person| person.screen.text().iter().any(|row| row == "50"));
    let text = String::from_utf8_lossy(&person.bytes).into_owned();
    let first = text.find("\u{1b}[?2026h").unwrap();
    // Outside of updates only the title of the window is written.
    for outside in text[first..].split("\u{1b}[?2026h").skip(1).filter_map(|frame| frame.split_once("\u{1b}[?2026l")) {
        let rest = outside.1;
        assert!(rest.is_empty() || rest.starts_with("\u{1b}]2;ostler"), "{rest:?}");
    }
}
