//! Attaching shows the same screen, cursor, title and modes as a terminal in which the program ran alone from the
//! beginning, and from then on the same bytes.

use crate::harness;
use crate::person::{Person, SIZE};
use ostler_testkit::{Harness, ProcessKind, alone};

/// More than a screen of text in colours, then every mode that a program may have on.
const COLOURS_AND_MODES: &str = r"
    i=0; while [ $i -lt 60 ]; do printf '\033[3%dmline %d\033[0m\n' $((i % 8)) $i; i=$((i + 1)); done
    printf '\033]2;a title\007\033[?2004h\033[?1002h\033[?1006h\033[?1004h\033[?1h\033[4;20r\033[10;7Hhere\033[1m'
";

/// A full-screen program in front of a shell.
const ALTERNATE: &str = r"
    printf 'behind\n'; printf '\033[?1049h\033[2J\033[5;5Hin front\033[?25l\033[>1u\033[3 q'
";

/// Redraws itself for every size that it gets, and prints the size last.
const REDRAWS: &str = r#"
    draw() { printf '\033[2J\033[Hwide wide wide wide wide wide wide wide wide wide wide wide %s.' "$(stty size)"; }
    trap draw WINCH; draw
"#;

/// The script, which then waits for a line, prints `more` and waits again.
fn words(script: &str) -> Vec<String> {
    let wait = "wait_for_a_line() { until read -r line; do :; done; }";
    let rest = "wait_for_a_line; printf 'more'; wait_for_a_line";
    let script = format!("stty -echo; {wait}\n{script}\nprintf '\\033]2;ready\\007'; {rest}");
    ["sh", "-c", &script].map(str::to_owned).to_vec()
}

/// What the program shows on a terminal of its own.
fn undisturbed(harness: &Harness, size: (u16, u16), script: &str) -> Person {
    let words = words(script);
    let mut person = Person::runs_program(harness, size, &words.iter().map(String::as_str).collect::<Vec<_>>());
    person.sees_that("the title", |person| person.screen.title() == Some("ready"));
    person
}

fn kept<'a>(harness: &'a Harness, script: &str) -> ostler_testkit::Session<'a> {
    let words = words(script);
    let mut arguments = vec!["-t", "--"];
    arguments.extend(words.iter().map(String::as_str));
    let session = harness.detach(&arguments);
    session.until_printed("\u{1b}]2;ready\u{7}");
    session
}

/// Compares everything that a terminal can be restored to: text, colours, cursor, margins, modes, title, the screen
/// behind.
fn same(one: &Person, other: &Person) -> bool {
    one.screen.redraw() == other.screen.redraw()
}

fn same_screen_at_attach_and_afterwards(script: &str) {
    let harness = harness();
    let mut alone = undisturbed(&harness, SIZE, script);
    let session = kept(&harness, script);
    let mut attached = Person::attaches(&harness, session.id());
    attached.sees_that("the same screen", |person| same(person, &alone));
    for person in [&mut alone, &mut attached] {
        person.types(b"\n");
        person.sees("more");
    }
    assert!(same(&attached, &alone), "{:#?}\n{:#?}", attached.screen.text(), alone.screen.text());
}

#[test]
fn colours_title_margins_and_modes_are_those_of_an_undisturbed_run() {
    same_screen_at_attach_and_afterwards(COLOURS_AND_MODES);
}

#[test]
fn the_alternate_screen_is_that_of_an_undisturbed_run() {
    same_screen_at_attach_and_afterwards(ALTERNATE);
}

#[test]
fn a_client_of_another_size_sees_what_a_resized_terminal_would() {
    let harness = harness();
    let mut alone = undisturbed(&harness, SIZE, REDRAWS);
    alone.resizes((30, 50));
    alone.sees("30 50.");
    let session = kept(&harness, REDRAWS);
    let mut attached = Person::runs(&harness, (30, 50), &["attach", session.id()]);
    attached.sees_that("the same screen", |person| same(person, &alone));
}

#[test]
fn after_a_resize_the_next_client_sees_the_screen_of_the_new_size() {
    let harness = harness();
    let mut alone = undisturbed(&harness, SIZE, REDRAWS);
    alone.resizes((20, 70));
    alone.sees("20 70.");
    let session = kept(&harness, REDRAWS);
    let mut first = Person::attaches(&harness, session.id());
    first.sees("24 80.");
    first.resizes((20, 70));
    first.sees("20 70.");
    first.types(b"\x1c");
    first.is_left_with(0);
    let mut second = Person::runs(&harness, (20, 70), &["attach", session.id()]);
    second.sees_that("the same screen", |person| same(person, &alone));
}

#[test]
fn a_keeper_killed_in_between_changes_nothing_on_the_screen() {
    let harness = harness();
    let alone = undisturbed(&harness, SIZE, COLOURS_AND_MODES);
    let session = kept(&harness, COLOURS_AND_MODES);
    let killed = session.kill(ProcessKind::Keeper);
    session.replaced(ProcessKind::Keeper, &killed);
    let mut attached = Person::attaches(&harness, session.id());
    attached.sees_that("the same screen", |person| same(person, &alone));
}

#[test]
fn keepers_killed_while_it_draws_change_nothing_on_the_screen() {
    let _machine = alone();
    let harness = harness();
    // Lines that wrap at the edge, colours, and at the end the alternate screen.
    let script = format!("seq -f 'line %.0f of a long \\e[31mtext\\e[m' -s ' ' 1 40000 | sed 's/.*/&/'\n{ALTERNATE}");
    let alone = undisturbed(&harness, SIZE, &script);
    let words = words(&script);
    let mut arguments = vec!["-t", "--"];
    arguments.extend(words.iter().map(String::as_str));
    let session = harness.detach(&arguments);
    for _ in 0..8 {
        let killed = session.kill(ProcessKind::Keeper);
        session.replaced(ProcessKind::Keeper, &killed);
    }
    session.until_printed("\u{1b}]2;ready\u{7}");
    let mut attached = Person::attaches(&harness, session.id());
    attached.sees_that("the same screen", |person| same(person, &alone));
}

#[test]
fn a_terminal_so_slow_that_output_was_dropped_meanwhile_gets_the_screen() {
    let _machine = alone();
    let harness = harness();
    harness.configure("terminal_output_limit = \"1MiB\"\n");
    let count = "until read -r line; do :; done; seq 1 700000";
    let mut alone = Person::runs_program(&harness, SIZE, &["sh", "-c", &format!("stty -echo; {count}; exec cat")]);
    alone.types(b"\n");
    let session = harness.detach(&["-t", "--", "sh", "-c", &format!("stty -echo; echo ready; {count}; exec cat")]);
    let mut slow = Person::attaches(&harness, session.id());
    slow.sees("ready");
    slow.types(b"\r");
    session.until("output was dropped and all of it is there", || {
        let size = std::fs::metadata(session.run_file("out")).unwrap().len();
        let journal = std::fs::read_to_string(session.path().join("journal.jsonl")).unwrap();
        (size > 5_000_000 && journal.contains("\"trimmed\"")).then_some(())
    });
    for person in [&mut alone, &mut slow] {
        person.sees("700000");
        person.types(b"end\r");
        // Waits for the end of the line as well: it arrives separately and scrolls the whole screen.
        person.sees_that("end", |person| person.screen.text()[usize::from(SIZE.0) - 2] == "end");
    }
    assert_eq!(slow.screen.text(), alone.screen.text());
    assert!(!slow.bytes.contains(&0) && slow.bytes.len() < 5_000_000, "{} bytes", slow.bytes.len());
}

#[test]
fn long_output_is_on_the_screen_at_once_and_ends_right() {
    let harness = harness();
    let script = "seq 1 300000";
    let alone = undisturbed(&harness, SIZE, script);
    let session = kept(&harness, script);
    let mut attached = Person::attaches(&harness, session.id());
    attached.sees_that("the same screen", |person| same(person, &alone));
    assert!(attached.bytes.len() < 100_000, "{} bytes to show one screen", attached.bytes.len());
}

#[test]
fn what_has_scrolled_off_is_in_the_terminals_own_scrollback() {
    let harness = harness();
    let session = harness.detach(&["-t", "--", "sh", "-c", "seq 1 3000 | sed 's/^/\\o033[32mline /'; exec cat"]);
    session.until_printed("line 3000");
    for (rows, columns) in [(24, 80), (10, 40)] {
        let mut person = Person::runs(&harness, (rows, columns), &["attach", session.id()]);
        person.sees("line 3000");
        person.types(b"later\r");
        person.sees("later");
        let mut terminal = ostler_screen::Scrollback::new(ostler_screen::Size { rows, columns }, 10_000);
        terminal.feed(&person.bytes);
        let lines: Vec<String> =
            terminal.lines().iter().map(|line| String::from_utf8(line.to_vec()).unwrap()).collect();
        let plain: Vec<String> = lines.iter().map(|line| ostler_screen::printable(line).into_owned()).collect();
        let first = plain.iter().position(|line| line.starts_with("line ")).unwrap();
        assert!(plain[first - 1].contains("Ctrl-\\ detaches"), "the detach key is above it: {}", plain[first - 1]);
        let number: usize = plain[first][5..].parse().unwrap();
        assert!(number < 1100, "two thousand lines, not {number} to 3000");
        // Every line once and in order, up to what is on the screen.
        let shown = person.screen.text();
        let all: Vec<&String> = plain[first..].iter().chain(&shown).filter(|line| line.starts_with("line ")).collect();
        let wanted: Vec<String> = (number..=3000).map(|number| format!("line {number}")).collect();
        assert!(all.iter().copied().eq(&wanted), "{all:?}");
        assert!(lines[first].contains("\u{1b}["), "with its colours");
        person.types(b"\x1c");
        person.is_left_with(0);
    }
}
