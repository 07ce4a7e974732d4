//! What each key does to sessions: the same as the command of that name, with the same messages.

use super::{MIDDLE, NARROW, SIZES, WIDE, asking, has_group, has_selected, idle, is_at_work, list, opens, working};
use crate::harness;
use crate::person::Person;
use ostler_core::view::Phase;
use ostler_testkit::Harness;

#[test]
fn a_question_is_answered_after_all_of_it_was_shown() {
    let harness = harness();
    for size in SIZES {
        let session = asking(&harness, "deploy", "git push --tags");
        let mut person = opens(&harness, size);
        has_selected(&mut person, "deploy");
        person.types(b"a");
        person.sees("allow: deploy");
        person.sees("Ask git push --tags");
        person.sees("y allows exactly this");
        // One key alone allows nothing.
        person.types(b"\x1b");
        person.sees("q quit");
        assert!(session.look().asking.is_some());
        person.types(b"ay");
        session.until_look("it was allowed", |view| view.turns == 1 && view.state == Phase::Idle);
        assert_eq!(session.look().last.as_deref(), Some("allowed: git push --tags"));
        person.types(b"q");
        person.is_left_with(0);
        session.stop();
        harness.run(&["archive", session.id()]).exits(0);
    }
    let session = asking(&harness, "deploy", "git push --tags");
    let mut person = opens(&harness, MIDDLE);
    has_selected(&mut person, "deploy");
    person.types(b"x");
    person.sees("deny: deploy");
    person.types(b"not on a Friday\r");
    session.until_look("it was denied", |view| view.turns == 1);
    assert_eq!(session.look().last.as_deref(), Some("denied: git push --tags (not on a Friday)"));
    // Waits for the message and for the list before the next key, which would replace the message, or ask again.
    person.sees("): denied");
    has_group(&mut person, "idle 1");
    person.types(b"a");
    person.sees("it is not asking anything");
}

#[test]
fn a_long_question_is_read_to_its_end_before_it_can_be_allowed() {
    let harness = harness();
    let lines: Vec<String> = (1..=80).map(|number| format!("echo {number}")).collect();
    let session = asking(&harness, "deploy", &lines.join("\n"));
    let mut person = opens(&harness, MIDDLE);
    has_selected(&mut person, "deploy");
    person.types(b"a");
    person.sees("more: PgDn");
    let shows_end = |person: &Person| person.screen.text().iter().any(|row| row.trim() == "│ echo 80");
    assert!(!shows_end(&person));
    person.types(b"y");
    person.sees("read all of it first: PgDn");
    assert!(session.look().asking.is_some());
    for _ in 0..5 {
        person.types(b"\x1b[6~");
    }
    person.sees_that("its end", shows_end);
    person.types(b"y");
    session.until_look("it was allowed", |view| view.turns == 1);
}

#[test]
fn an_answer_never_reaches_another_question() {
    let harness = harness();
    let session = asking(&harness, "deploy", "rm -r build");
    harness.run(&["send", session.id(), "ask rm -r /"]).exits(0);
    let mut person = opens(&harness, MIDDLE);
    has_selected(&mut person, "deploy");
    person.types(b"a");
    person.sees("y allows exactly this");
    assert!(person.shows("Ask rm -r build"));
    harness.run(&["answer", session.id(), "--deny"]).exits(0);
    session.until_look("it asks something else", |view| view.turns == 1 && view.asking.is_some());
    person.sees("no longer asks this; nothing was answered");
    person.types(b"y");
    // The panel stays until it is closed, so that further keys do not reach the list.
    person.types(b"\x1b");
    person.sees("q quit");
    person.types(b"y");
    person.sees("copied");
    assert!(session.look().asking.is_some(), "the other question is still open");
}

#[test]
fn a_reply_is_sent_and_one_that_was_begun_is_kept() {
    let harness = harness();
    let session = idle(&harness, "talk", "say x");
    for (turn, size) in (2..).zip(SIZES) {
        let mut person = opens(&harness, size);
        has_selected(&mut person, "talk");
        person.types(b"rsay half");
        person.sees("reply to talk");
        person.sees("› say half");
        person.types(b"\x1b");
        person.sees("q quit");
        person.types(b"r");
        person.sees("› say half");
        person.types(b" and whole\r");
        session.until_look("a turn is over", |view| view.turns == turn && view.state == Phase::Idle);
        assert_eq!(session.look().last.as_deref(), Some("half and whole"));
        session.until("the draft is gone", || (!session.path().join("draft").exists()).then_some(()));
        person.types(b"q");
        person.is_left_with(0);
    }
    // A reply to an ended session continues it.
    session.stop();
    let mut person = opens(&harness, MIDDLE);
    person.types(b" ");
    // Ended sessions are read after the first screen is drawn.
    person.sees_that("it is listed", |person| list(person).iter().any(|row| row.contains("talk")));
    has_selected(&mut person, "ended");
    person.types(b"j");
    has_selected(&mut person, "talk");
    person.types(b"rsay again\r");
    session.until_look("a turn is over", |view| view.run == 2 && view.last.as_deref() == Some("again"));
    person.sees("resumed with your message");
    // The arrow up brings back what was sent.
    person.types(b"r\x1b[A");
    person.sees("› say again");
}

#[test]
fn a_reply_that_could_not_be_sent_is_not_lost() {
    let harness = harness();
    let session = idle(&harness, "talk", "say x");
    let other = idle(&harness, "other", "say x");
    let mut person = opens(&harness, MIDDLE);
    person.types(b"/talk\r");
    has_selected(&mut person, "talk");
    person.types(b"rsay something long");
    person.sees("› say something long");
    let is_listed = |person: &Person| list(person).iter().any(|row| row.contains(" talk "));
    harness.run(&["archive", session.id()]).exits(0);
    person.sees_that("talk gone from the list", |person| !is_listed(person));
    person.types(b"\r");
    person.sees("restore it first");
    harness.run(&["restore", session.id()]).exits(0);
    person.sees_that("talk in the list again", is_listed);
    person.types(b"\x1b/talk\r");
    person.types(b"\x1b");
    other.stop();
    person.types(b"/talk\r");
    has_selected(&mut person, "talk");
    person.types(b"r");
    person.sees("› say something long");
}

#[test]
fn a_new_session_is_started_from_a_panel_and_selected() {
    let harness = harness();
    let _other = idle(&harness, "other", "say x");
    let mut person = opens(&harness, MIDDLE);
    person.types(b"n");
    person.sees("new session");
    person.types(b"\r");
    person.sees("a prompt is missing");
    person.types(b"say from the panel\t");
    chooses_demo(&mut person);
    person.types(b"\r");
    has_selected(&mut person, "say from the panel");
    person.sees("› say from the panel");
    let started = harness.ls().into_iter().find(|shown| shown.name.is_none()).unwrap();
    harness.session(&started.id).until_look("it is idle", |view| view.turns == 1 && view.state == Phase::Idle);
    // In a terminal, and in another folder.
    let folder = harness.root().join("elsewhere");
    std::fs::create_dir(&folder).unwrap();
    person.types(b"n\t");
    chooses_demo(&mut person);
    person.types(format!("\t\x15{}\t ", folder.display()).as_bytes());
    person.sees("in its own terminal");
    person.types(b"\r");
    person.sees("started");
    let started = harness.ls().into_iter().find(|shown| shown.mode == "terminal").unwrap();
    assert_eq!(started.cwd, folder.to_str().unwrap());
    person.types(b"n\x1b");
    person.sees("q quit");
    // A refusal is shown in the words of the command line.
    person.types(b"nsay x\t");
    chooses_demo(&mut person);
    person.types(b"\t\x15/no/such/folder\r");
    person.sees("cannot use the folder");
    // What was entered is still there.
    person.types(b"n");
    person.sees("new session");
    assert!(person.shows("say x") && person.shows("/no/such/folder"));
}

fn chooses_demo(person: &mut Person) {
    // Looks only at the panel: what is behind it changes by itself.
    let chosen = |person: &Person| {
        let rows = person.screen.text();
        rows.iter().find_map(|row| Some(row.split_once('‹')?.1.split_once('›')?.0.trim().to_owned()))
    };
    person.sees_that("the agent", |person| chosen(person).is_some());
    while chosen(person).as_deref() != Some("demo") {
        let before = chosen(person);
        person.types(b" ");
        person.sees_that("another agent", |person| chosen(person) != before);
    }
}

#[test]
fn verbs_ask_once_and_do_what_their_commands_do() {
    let harness = harness();
    let session = working(&harness, "busy");
    for size in [WIDE, NARROW] {
        let mut person = opens(&harness, size);
        has_selected(&mut person, "busy");
        person.types(b"i");
        person.sees("interrupt busy");
        person.types(b"n");
        person.sees("q quit");
        assert_eq!(session.look().state, Phase::Working);
        person.types(b"iy");
        session.until_look("the turn is over", |view| view.state == Phase::Idle);
        person.sees("interrupted");
        harness.run(&["send", session.id(), "sleep"]).exits(0);
        is_at_work(&session);
    }
    let mut person = opens(&harness, MIDDLE);
    has_selected(&mut person, "busy");
    person.types(b"s");
    person.sees("stop busy");
    person.types(b"\x1b");
    person.sees("q quit");
    person.types(b"sy");
    session.until_look("it has ended", |view| view.ended);
    // Waits for the message before the next key; later it would replace the next message.
    person.sees("): stopped");
    person.sees("… 1 ended");
    person.types(b"\r");
    person.sees("■ busy");
    person.types(b"j");
    has_selected(&mut person, "busy");
    person.types(b"i");
    person.types(b"y");
    person.sees("nothing to interrupt");
    person.types(b"R");
    session.until_look("it is idle", |view| view.run == 2 && view.state == Phase::Idle);
    person.sees("): resumed");
    person.sees("○ busy");
    person.types(b"f");
    person.sees("): forked; the copy is ");
    has_group(&mut person, "idle 2");
    let ids: Vec<String> = harness.ls().into_iter().map(|shown| shown.id).collect();
    assert_eq!(ids.len(), 2);
    person.types(b"A");
    person.sees("archive ");
    person.types(b"y");
    person.sees("ostler restore");
    has_group(&mut person, "idle 1");
}

#[test]
fn verbs_apply_to_all_marked_sessions() {
    let harness = harness();
    let names = ["a", "b", "c"].map(|letter| format!("session-{letter}"));
    let sessions: Vec<_> = names.iter().map(|name| idle(&harness, name, "say x")).collect();
    let mut person = opens(&harness, MIDDLE);
    has_selected(&mut person, "session-c");
    person.types(b"vv");
    person.sees("2 marked");
    person.types(b"y");
    person.sees("copied: ");
    person.types(b"r");
    person.sees("reply to 2 sessions");
    person.types(b"say to both\r");
    for session in &sessions[1..] {
        session.until_look("it has answered", |view| view.turns == 2 && view.state == Phase::Idle);
    }
    assert_eq!(sessions[0].look().turns, 1);
    person.sees("done for 2 sessions");
    person.types(b"gvvs");
    person.sees("stop 2 sessions? y / n");
    person.types(b"y");
    person.sees("… 2 ended");
    assert!(sessions[0].look().alive);
}

#[test]
fn a_shell_opens_in_its_folder_and_an_id_is_copied() {
    let mut harness = harness();
    harness.set("SHELL", "/bin/sh");
    harness.set("PS1", "ready> ");
    let session = idle(&harness, "one", "say x");
    let mut person = opens(&harness, MIDDLE);
    has_selected(&mut person, "one");
    person.types(b"y");
    person.sees(&format!("copied: {}", session.id()));
    let bytes = String::from_utf8_lossy(&person.bytes).into_owned();
    assert!(bytes.contains("\u{1b}]52;c;"), "the clipboard of the terminal is asked");
    person.types(b"o");
    person.sees("exit comes back to the dashboard");
    assert!(person.has_an_ordinary_terminal());
    person.types(b"echo in-$((6*7)); pwd; exit\r");
    person.sees_that("the dashboard", |person| person.screen.is_alternate() && person.shows("q quit"));
    let bytes = String::from_utf8_lossy(&person.bytes).into_owned();
    assert!(bytes.contains("in-42") && bytes.contains(&cwd(&harness, session.id())));
    // A Ctrl-C in the shell does not reach the dashboard.
    person.types(b"o");
    person.sees_that("a shell", |person| !person.screen.is_alternate() && person.has_an_ordinary_terminal());
    let prompt =
        |person: &Person| person.screen.text().iter().rfind(|row| !row.is_empty()).is_some_and(|row| row == "ready>");
    person.sees_that("a prompt", prompt);
    person.types(b"\x03");
    person.sees_that("another prompt", |person| person.shows("^C") && prompt(person));
    person.types(b"exit\r");
    person.sees_that("the dashboard", |person| person.screen.is_alternate() && person.shows("q quit"));
}

#[test]
fn the_diff_of_a_session_is_shown_and_its_work_lands_after_a_question() {
    let harness = harness();
    let repo = harness.root().join("home");
    let git = |words: &[&str]| {
        let output = harness.command("git").args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["config", "--global", "user.name", "A Person"]);
    git(&["config", "--global", "user.email", "person@example.com"]);
    git(&["config", "--global", "core.pager", "less"]);
    git(&["init", "--quiet", "--initial-branch", "main"]);
    std::fs::write(repo.join("a.txt"), "one\n").unwrap();
    git(&["add", "a.txt"]);
    git(&["commit", "--quiet", "--message", "first"]);
    harness.run(&["run", "-w", "fix", "--", "sh", "-c", "echo two > a.txt"]).exits(0);
    let plain = harness.detach(&["--name", "plain", "--", "sleep", "600"]);
    let mut person = opens(&harness, MIDDLE);
    has_selected(&mut person, "plain");
    person.types(b"d");
    person.sees("has no snapshots of its files");
    // Ended sessions are folded, so this one is found with a filter.
    person.types(b"/fix\r");
    has_selected(&mut person, "fix");
    person.types(b"d");
    person.sees("+two");
    person.types(b"q");
    person.sees_that("the dashboard", |person| person.screen.is_alternate() && person.shows("q quit"));
    person.types(b"l");
    person.sees("land fix (");
    person.types(b"y");
    person.sees("landed on main");
    assert_eq!(std::fs::read_to_string(repo.join("a.txt")).unwrap(), "two\n");
    plain.stop();
}

fn cwd(harness: &Harness, id: &str) -> String {
    harness.session(id).look().cwd
}
