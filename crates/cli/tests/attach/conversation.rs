//! How a conversation is drawn, and moving in it: Markdown, tool calls, diffs, scrolling, the status line, in windows
//! of three widths.

use crate::harness;
use crate::person::Person;
use ostler_core::view::Phase;
use ostler_testkit::{Harness, Session, patience};
use std::time::Duration;

const MARKDOWN: &str = "say # Findings

The **parser** is fine; `lex()` is *not*. Look at [the notes](https://example.org/notes).

1. first point
2. second point, which is long enough to be broken into two rows in a narrow window
   - below it

> quoted words

```rust
fn main() { // entry
    println!(\"{}\", 42);
}
```

| File | Lines | What is wrong |
|---|---:|---|
| lexer.rs | 120 | it eats the last character of a line |
| parser.rs | 7 | nothing |";

fn idle<'a>(harness: &'a Harness, folder: &str, prompts: &[&str]) -> Session<'a> {
    let session = harness.detach(&["--cwd", folder, "--keep", "--name", "talk", "demo", prompts[0]]);
    for prompt in &prompts[1..] {
        harness.run(&["send", session.id(), prompt]).exits(0);
    }
    let turns = u32::try_from(prompts.len()).unwrap();
    session.until_look("every turn is over", |view| view.turns == turns && view.state == Phase::Idle);
    session
}

fn folder(harness: &Harness) -> String {
    let folder = harness.root().join("work");
    std::fs::create_dir_all(folder.join("src")).unwrap();
    std::fs::write(folder.join("src/greet.sh"), "one\ntwo\n$nmae\nfour\n").unwrap();
    folder.to_str().unwrap().to_owned()
}

/// The text of the screen, without what differs from run to run.
fn screen(person: &Person) -> String {
    let rows = person.screen.text();
    let begin = rows.iter().position(|row| !row.is_empty()).unwrap_or(0);
    let rows = rows[begin..].iter().map(|row| match row.split_once(" since ") {
        Some((before, after)) => format!("{before} since HH:MM{}", after.get(5..).unwrap_or_default()),
        None => row.clone(),
    });
    rows.collect::<Vec<_>>().join("\n")
}

/// Whether the program has set a colour.
fn has_colour(person: &Person) -> bool {
    let text = String::from_utf8_lossy(&person.bytes).into_owned();
    let styles = text.split("\u{1b}[").filter_map(|part| part.split_once('m')).map(|(numbers, _)| numbers);
    let mut styles = styles.filter(|numbers| numbers.chars().all(|c| c.is_ascii_digit() || c == ';'));
    styles.any(|numbers| numbers.split(';').any(|number| number.len() == 2 && number.starts_with(['3', '4'])))
}

#[test]
fn markdown_tool_calls_and_diffs_at_every_width() {
    let mut harness = harness();
    harness.set("NO_COLOR", "1");
    let folder = folder(&harness);
    let prompts = ["run-command seq 1 30", "edit-file src/greet.sh $nmae $name", "run-command false", MARKDOWN];
    let session = idle(&harness, &folder, &prompts);
    let mut all = String::new();
    for columns in [40, 80, 120] {
        let mut person = Person::runs(&harness, (76, columns), &["attach", session.id()]);
        person.sees("idle");
        person.sees("detaches");
        all.push_str(&format!("--- {columns} columns\n{}\n", screen(&person)));
        assert!(!has_colour(&person), "NO_COLOR is set");
        person.types(b"\x1c");
        person.is_left_with(0);
    }
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("conversation", all);
    });
}

#[test]
fn a_tool_call_is_unfolded_by_a_key_or_a_click_and_all_of_them_by_another() {
    let harness = harness();
    let session = idle(&harness, &folder(&harness), &["run-command echo alpha; echo beta", "run-command echo gamma"]);
    let mut person = Person::attaches(&harness, session.id());
    person.sees("● Bash echo alpha; echo beta ▸ 2 lines");
    assert!(!person.shows("│ beta"));
    // The last tool call.
    person.types(b"\x0f");
    person.sees("│ gamma");
    assert!(!person.shows("│ beta"));
    person.types(b"\x0f");
    person.sees("gamma ▸ 1 line");
    // Another tool call is chosen.
    person.types(b"\x1b[1;3A\x1b[1;3A\x0f");
    person.sees("│ beta");
    assert!(!person.shows("│ gamma"));
    person.types(b"\x1bo");
    person.sees("│ gamma");
    assert!(person.shows("│ beta"));
    person.types(b"\x1bo");
    person.sees_that("all folded", |person| !person.shows("│ gamma") && !person.shows("│ beta"));
    let row = person.screen.text().iter().position(|row| row.contains("echo gamma ▸")).unwrap() + 1;
    person.types(format!("\x1b[<0;5;{row}M\x1b[<0;5;{row}m").as_bytes());
    person.sees("│ gamma");
}

#[test]
fn the_conversation_scrolls_and_new_text_below_is_announced() {
    let harness = harness();
    let session = idle(&harness, &folder(&harness), &["count 200"]);
    let mut person = Person::attaches(&harness, session.id());
    let row = |person: &Person, text: &str| person.screen.text().iter().any(|row| row == text);
    person.sees_that("the end", |person| row(person, "200"));
    person.types(b"\x1b[5~");
    person.sees("more below");
    assert!(!row(&person, "200"));
    person.types(b"\x1b[6~");
    person.sees_that("the end again", |person| row(person, "200") && !person.shows("more below"));
    person.types(b"\x1b[<64;5;5M");
    person.sees("more below");
    person.types(b"\x1b[<65;5;5M\x1b[<65;5;5M");
    person.sees_that("the end by the wheel", |person| row(person, "200"));
    // Home goes to the beginning if the input line is empty. Ctrl-Home always does.
    person.types(b"\x1b[H");
    person.sees("› count 200");
    person.types(b"some words\x1b[H");
    person.sees("› some words");
    assert!(person.shows("› count 200"));
    harness.run(&["send", session.id(), "say newcomer"]).exits(0);
    session.until_look("the turn is over", |view| view.turns == 2 && view.state == Phase::Idle);
    // A queued message is shown below the conversation until it is delivered.
    person.sees_that("that there is more", |person| {
        person.shows("new text below") && person.shows("idle since") && !person.shows("queued ›")
    });
    assert!(!person.shows("newcomer"));
    person.types(b"\x1b[1;5F");
    person.sees_that("the news", |person| row(person, "newcomer"));
    person.types(b"\x1b[1;5H");
    person.sees("› count 200");
}

#[test]
fn a_resize_and_ctrl_l_draw_the_screen_again() {
    let harness = harness();
    let session = idle(&harness, &folder(&harness), &["say one two three four five six seven eight nine ten eleven"]);
    let mut person = Person::attaches(&harness, session.id());
    person.sees("nine ten eleven");
    person.resizes((20, 40));
    person.sees_that("the answer in two rows", |person| {
        let rows = person.screen.text();
        let place = rows.iter().position(|row| row == "one two three four five six seven eight");
        place.is_some_and(|place| rows[place + 1] == "nine ten eleven") && rows[19].starts_with("Ctrl-\\ detaches")
    });
    // Another program has written over the screen.
    person.screen.feed(b"\x1b[2Jrubbish");
    person.types(b"\x0c");
    person.sees_that("all of it", |person| person.shows("nine ten eleven") && !person.shows("rubbish"));
    person.types(b"\x1c");
    person.is_left_with(0);
    assert!(!person.screen.is_alternate());
    assert!(person.shows("nine ten eleven"), "what was said last can still be read");
}

#[test]
fn the_status_line_shows_state_agent_model_tokens_and_the_detach_key() {
    let mut harness = harness();
    harness.set("OSTLER_DEMO_PACE", "300");
    harness.configure("detach_key = \"ctrl-g\"\n");
    // No process writes into the pipe, so the turn does not end by itself.
    let pipe = harness.root().join("home/pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, pipe, rustix::fs::Mode::RWXU).unwrap();
    let session = harness.detach(&["--keep", "--name", "talk", "demo", "run-command read -r x < pipe"]);
    let mut person = Person::runs(&harness, (24, 120), &["attach", session.id()]);
    person.sees("talk working ");
    assert!(person.shows("Ctrl-G detaches · Ctrl-C interrupts"));
    // The time advances, although nothing else happens.
    let seconds = |person: &Person| {
        person
            .screen
            .text()
            .iter()
            .find_map(|row| row.strip_prefix("talk working ")?.split('s').next()?.parse::<u32>().ok())
    };
    person.sees_that("a second", |person| seconds(person).is_some_and(|time| time >= 1));
    harness.run(&["interrupt", session.id()]).exits(0);
    person.sees("talk idle since ");
    person.sees("· demo · demo-1 · ");
    assert!(person.shows(" in, ") && person.shows(" out"));
    person.types(b"\x07");
    person.is_left_with(0);
}

#[test]
fn an_idle_chat_does_not_wake_up() {
    const WATCHED: Duration = Duration::from_secs(5);
    let harness = harness();
    // A copy of the transcript that is made later would wake the process.
    harness.configure("autosave = \"off\"\n");
    let session = idle(&harness, &folder(&harness), &["say now idle"]);
    let mut person = Person::attaches(&harness, session.id());
    person.sees("idle since");
    let mut before = person.sleeps();
    patience::until("it has come to rest", &[], || {
        // Output that was just written is read first.
        let silent = !person.looks(Duration::from_secs(1));
        let last = std::mem::replace(&mut before, person.sleeps());
        (silent && last == before).then_some(())
    });
    assert!(!patience::ends_within(person.process(), WATCHED));
    assert_eq!(person.sleeps(), before);
}

#[test]
fn escape_sequences_of_the_agent_do_not_reach_the_terminal() {
    let harness = harness();
    let untrusted = "run-command printf 'a\\033[2Jb\\033]0;title\\007c\\302\\2338md\\342\\200\\256e\\n\\033[?1049lf'";
    let said = "say x\u{1b}[2J\u{1b}]0;owned\u{7}y\u{202e}z \u{1b}[?1049l**bold\u{1b}[31m** 表e\u{301}👍";
    let session = idle(&harness, &folder(&harness), &[untrusted, said]);
    let mut person = Person::attaches(&harness, session.id());
    person.sees("bold");
    person.types(b"\x1bo");
    person.sees("│ abcd");
    person.sees("表e\u{301}👍");
    assert!(person.screen.is_alternate(), "nothing has left our screen");
    assert_eq!(person.screen.title(), None);
    let bytes = String::from_utf8_lossy(&person.bytes).into_owned();
    for harmful in ["\u{202e}", "\u{9b}", "\u{1b}]0;", "\u{7}"] {
        assert!(!bytes.contains(harmful), "{harmful:?}");
    }
    assert!(has_colour(&person), "a terminal gets colours");
}
