//! `ostler ls` on a terminal: one line for each session at any width, marks that show the state without colour, and a
//! line for what is hidden. On a pipe the columns are always the same.

use crate::harness;
use crate::person::Person;
use ostler_core::view::Phase;
use ostler_testkit::Harness;

/// Replaces the ids, which differ from run to run.
fn steady(screen: &[String], ids: &[&str]) -> String {
    let mut text = screen.join("\n");
    for (place, id) in ids.iter().enumerate() {
        text = text.replace(id, &format!("id{place:06}"));
    }
    text.trim_end().to_owned()
}

/// The list in a window of this width.
fn list(harness: &Harness, columns: u16, ids: &[&str]) -> String {
    let mut person = Person::runs(harness, (24, columns), &["ls"]);
    person.is_left_with(0);
    for row in person.screen.text() {
        assert!(row.chars().count() <= usize::from(columns), "{row:?}");
    }
    steady(&person.screen.text(), ids)
}

#[test]
fn one_line_for_each_session_at_any_width() {
    let mut harness = harness();
    harness.has_own_clock();
    let folder = harness.root().join("home/src/shop");
    std::fs::create_dir_all(folder.join(".git")).unwrap();
    std::fs::write(folder.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    harness.set("HOME", harness.root().join("home"));
    let cwd = ["--cwd", folder.to_str().unwrap()];
    let idle = harness.detach(&[&cwd[..], &["--name", "fix login", "--keep", "demo", "say ready"]].concat());
    harness.run(&["wait", "--until", "turn", idle.id()]).exits(0);
    let over =
        harness.detach(&[&cwd[..], &["demo", "say everything is done, and here is a sentence that goes on"]].concat());
    harness.run(&["wait", over.id()]).exits(0);
    let stopped = harness.detach(&["--cwd", "/", "--name", "a name of many words that is cut", "--", "sleep", "600"]);
    stopped.stop();
    let ids = [idle.id(), over.id(), stopped.id()];
    // The clock is set an hour and a half ahead, so that every age is 1h, however long the test takes.
    harness.shift_clock(5400);
    let seen = [40, 60, 80, 120].map(|columns| format!("{columns}:\n{}\n", list(&harness, columns, &ids)));
    insta::assert_snapshot!(seen.join("\n"));
    idle.stop();
}

#[test]
fn what_was_said_last_stays_while_nothing_else_is_said() {
    let harness = harness();
    let session = harness.detach(&["demo", "say the last words"]);
    harness.run(&["wait", session.id()]).exits(0);
    harness.run(&["resume", "-d", "--keep", session.id()]).exits(0);
    session.until_look("it is there", |view| view.state == Phase::Idle);
    assert_eq!(session.show().last.as_deref(), Some("the last words"));
    session.stop();
    assert_eq!(session.show().last.as_deref(), Some("the last words"));
}

#[test]
fn a_long_question_is_seen_with_its_length_at_any_width() {
    let harness = harness();
    let session = harness.detach(&["--name", "fix login", "demo", &format!("ask {}", "rm -rf x; ".repeat(100))]);
    session.until_look("it asks", |view| view.asking.is_some());
    for columns in [40, 60, 80, 120] {
        let seen = list(&harness, columns, &[session.id()]);
        assert!(seen.contains(" rm -") && seen.contains("…["), "{columns}:\n{seen}");
        assert_eq!(seen.lines().count(), if columns == 40 { 3 } else { 2 }, "{seen}");
    }
    session.stop();
}

#[test]
fn a_first_list_says_how_to_begin_and_a_filtered_one_what_it_hides() {
    let harness = harness();
    let first = harness.run(&["ls"]).exits(0);
    assert_eq!(first.stdout, "No sessions yet. Start one: ostler run demo \"fix the failing test\"\n");
    let one = harness.detach(&["--name", "one", "--label", "task=42", "--", "true"]);
    let two = harness.detach(&["--label", "task=43", "--", "false"]);
    harness.run(&["wait", one.id()]).exits(0);
    harness.run(&["wait", two.id()]).exits(1);
    let listed = |words: &[&str]| {
        let text = harness.run(&[&["ls", "--json"], words].concat()).exits(0).json();
        let ids: Vec<String> =
            text.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
        ids
    };
    assert_eq!(listed(&["--state", "failed"]), [two.id()]);
    assert_eq!(listed(&["--label", "task=42"]), [one.id()]);
    assert_eq!(listed(&["--label", "task"]).len(), 2);
    assert_eq!(listed(&["--agent", "demo"]), Vec::<String>::new());
    assert_eq!(listed(&["-n", "1", "--sort", "created"]), [two.id()]);
    assert_eq!(listed(&["--state", "succeeded,failed", "--sort", "name"]).len(), 2);
    assert!(harness.run(&["ls", "--state", "tired"]).exits(2).complaint().contains("asking"));
    assert_eq!(harness.run(&["ls", "--state", "idle"]).exits(0).stdout, "No session matches.\n");
    // At the root `--here` lists all sessions, in another folder none.
    let elsewhere = harness.command(harness.program()).args(["ls", "--here"]).current_dir("/").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&elsewhere.stdout).lines().count(), 3, "everything is below the root");
    let empty = harness.root().join("ostler");
    let elsewhere = harness.command(harness.program()).args(["ls", "--here"]).current_dir(empty).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&elsewhere.stdout), "No session matches.\n");
    harness.run(&["archive", one.id(), two.id()]).exits(0);
    let mut person = Person::runs(&harness, (24, 80), &["ls"]);
    person.is_left_with(0);
    person.sees("2 archived: ostler ls -a");
}

#[test]
fn a_watched_list_shows_what_changes_and_restores_the_screen() {
    let harness = harness();
    let session = harness.detach(&["--name", "watched", "--keep", "demo"]);
    let mut person = Person::runs(&harness, (24, 80), &["ls", "--watch"]);
    person.sees("watched");
    harness.run(&["send", "watched", "say something new"]).exits(0);
    person.sees("something new");
    // The text is seen before the turn is over, and a turn that is cut off is not a success.
    session.until_look("the turn is over", |view| view.turns == 1 && view.state == Phase::Idle);
    session.stop();
    person.sees("succeeded");
    person.types(b"\x03");
    person.is_left_with(0);
    assert!(person.bytes.ends_with(b"\x1b[?25h\x1b[?1049l"), "the cursor and the screen are as before");
}

#[test]
fn a_list_that_is_cut_says_how_many_are_left_out() {
    let harness = harness();
    for _ in 0..6 {
        harness.run(&["run", "--", "true"]).exits(0);
    }
    let mut person = Person::runs(&harness, (24, 80), &["ls", "-n", "2"]);
    person.sees("4 more match; to see them, leave out -n");
    person.is_left_with(0);
    let mut person = Person::runs(&harness, (6, 80), &["ls", "--watch"]);
    person.sees("… 3 more sessions; enlarge the window, or list all: ostler ls");
    assert_eq!(person.screen.text().iter().filter(|row| row.contains("succeeded")).count(), 3);
    person.types(b"\x03");
    person.is_left_with(0);
}

#[test]
fn names_may_have_spaces_and_be_cut_short() {
    let harness = harness();
    let login = harness.detach(&["--name", "fix login", "--", "sleep", "600"]);
    let logout = harness.detach(&["--name", "fix logout", "--", "sleep", "600"]);
    let meant = |word: &str| harness.run(&["show", "--json", word]).exits(0).json()["id"].as_str().unwrap().to_owned();
    assert_eq!(meant("fix login"), login.id());
    assert_eq!(meant("fix logo"), logout.id());
    let unclear = harness.run(&["show", "fix"]).exits(2);
    assert!(unclear.complaint().contains("fix login") && unclear.complaint().contains(logout.id()), "{unclear:?}");
    login.stop();
    logout.stop();
}
