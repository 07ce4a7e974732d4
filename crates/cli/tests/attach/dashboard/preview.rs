//! The selected session, live, without attaching.

use super::{MIDDLE, NARROW, SIZES, WIDE, asking, has_group, has_selected, idle, list, opens};
use crate::harness;
use ostler_core::view::Phase;

#[test]
fn a_conversation_is_shown_as_it_grows() {
    let harness = harness();
    let session = idle(&harness, "talk", "say first words");
    for size in [WIDE, MIDDLE] {
        let mut person = opens(&harness, size);
        person.sees("› say first words");
        let before = session.look().turns;
        harness.run(&["send", session.id(), "say more words"]).exits(0);
        person.sees("› say more words");
        session.until_look("the turn is over", |view| view.turns > before && view.state == Phase::Idle);
        person.sees_that("the answer", |person| {
            person.screen.text().iter().any(|row| row.trim_start_matches(|c| c != 'm').starts_with("more words"))
        });
    }
}

#[test]
fn space_gives_the_preview_the_whole_window_and_it_scrolls() {
    let harness = harness();
    let lines: Vec<String> = (1..=60).map(|number| format!("line-{number}.")).collect();
    let _session = idle(&harness, "long", &format!("say {}", lines.join("\n\n")));
    for size in SIZES {
        let mut person = opens(&harness, size);
        has_selected(&mut person, "long");
        person.types(b" ");
        person.sees("Space back");
        person.sees("line-60.");
        assert!(!list(&person).contains(&"idle 1".to_owned()), "the list is behind it");
        person.types(b"k");
        person.sees("↓ more below");
        person.types(b"\x1b[5~");
        person.sees_that("a page further up", |person| !person.shows("line-60."));
        person.types(b"g");
        person.sees("line-1.");
        person.types(b"G");
        person.sees("line-60.");
        person.types(b"\x1b[<64;3;5M");
        person.sees("↓ more below");
        person.types(b" ");
        has_group(&mut person, "idle 1");
        if size != NARROW {
            person.types(b"KKK");
            person.sees("↓ more below");
        }
        person.types(b"q");
        person.is_left_with(0);
    }
}

#[test]
fn a_terminal_is_shown_with_its_screen_and_a_command_with_what_it_prints() {
    let harness = harness();
    let script = "printf '\\033[31mred text\\033[0m\\r\\n'; read line; printf \"got $line\\r\\n\"; sleep 1000";
    let terminal = harness.detach(&["-t", "--name", "screen", "--", "sh", "-c", script]);
    terminal.until_printed("red text");
    let mut person = opens(&harness, WIDE);
    person.sees("red text");
    harness.run(&["send", terminal.id(), "a line"]).exits(0);
    person.sees("got a line");
    let command = harness.detach(&["--name", "printer", "--", "sh", "-c", "seq 500; echo the end; sleep 1000"]);
    command.until_printed("the end");
    person.sees("● printer");
    person.types(b"/printer\r");
    person.sees("the end");
    assert!(!person.shows("│ 100"), "only its end is in view");
    person.types(b" g");
    person.sees_that("its beginning", |person| person.screen.text()[3] == "1");
}

#[test]
fn a_question_is_in_the_preview_in_full() {
    let harness = harness();
    let _session = asking(&harness, "deploy", "git push --force origin main");
    let mut person = opens(&harness, WIDE);
    person.sees("│ ? asks Ask git push --force origin main");
}
