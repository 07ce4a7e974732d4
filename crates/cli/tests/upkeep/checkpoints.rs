//! A transcript that is lost or rewritten can be restored from a copy.

use crate::harness;
use ostler_testkit::{Harness, Session};
use serde_json::Value;

fn listed(harness: &Harness, session: &Session<'_>) -> Vec<Value> {
    let lines = harness.run(&["checkpoints", session.id(), "--json"]).exits(0).stdout;
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// When the newest copy was taken. An earlier copy may have only half a turn, because a slow agent had not written the
/// rest by then.
fn newest(harness: &Harness, session: &Session<'_>) -> String {
    listed(harness, session).last().unwrap()["at"].as_str().unwrap().to_owned()
}

#[test]
fn the_transcript_is_copied_while_a_turn_runs_and_at_its_end() {
    let harness = harness();
    harness.configure("autosave = \"50ms\"\n");
    let session = harness.detach(&["--keep", "demo", "say one"]);
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    let transcript = session.show().transcript.unwrap();
    // The agent writes late, so another copy is taken after the turn.
    session.until("a copy of all of it", || {
        let whole = std::fs::metadata(&transcript).ok()?.len();
        (listed(&harness, &session).last()?["length"] == whole).then_some(())
    });
    session.stop();
    let copy = std::fs::read(session.path().join("checkpoints/1.copy")).unwrap();
    assert!(copy == std::fs::read(&transcript).unwrap());
}

/// An ended session, the path of its transcript, and its content.
fn ended(harness: &Harness) -> (Session<'_>, String, Vec<u8>) {
    let session = harness.detach(&["demo", "say one"]);
    harness.run(&["wait", session.id()]).exits(0);
    let transcript = session.show().transcript.unwrap();
    let whole = std::fs::read(&transcript).unwrap();
    (session, transcript, whole)
}

#[test]
fn a_transcript_that_was_cut_is_put_back_at_the_resume() {
    let harness = harness();
    let (session, transcript, whole) = ended(&harness);
    std::fs::write(&transcript, &whole[..whole.len() / 2]).unwrap();

    let resumed = harness.run(&["resume", session.id(), "say two"]).exits(0);
    assert!(resumed.stderr.contains("repaired: the transcript was cut from"), "{}", resumed.stderr);
    assert!(resumed.stderr.contains("; backup: "), "{}", resumed.stderr);
    assert!(std::fs::read(&transcript).unwrap().starts_with(&whole));
    let again = harness.run(&["resume", session.id(), "say three"]).exits(0);
    assert!(!again.stderr.contains("the transcript"), "{}", again.stderr);
}

#[test]
fn a_replaced_transcript_is_reported_once_with_the_command_that_puts_the_copy_back() {
    let harness = harness();
    let (session, transcript, whole) = ended(&harness);
    let text = String::from_utf8(whole.clone()).unwrap();
    std::fs::write(&transcript, text.replace("say one", "say ten")).unwrap();

    let resumed = harness.run(&["resume", session.id(), "say two"]).exits(0);
    let command = resumed.stderr.split("ostler checkpoints restore ").nth(1).unwrap_or_else(|| panic!("{resumed:?}"));
    let time = command.split_whitespace().nth(1).unwrap();
    let again = harness.run(&["resume", session.id(), "say three"]).exits(0);
    assert!(!again.stderr.contains("checkpoints restore"), "{}", again.stderr);

    let restored = harness.run(&["checkpoints", "restore", session.id(), time]).exits(0);
    assert!(restored.stdout.contains("before-restore"), "{}", restored.stdout);
    assert!(std::fs::read(&transcript).unwrap() == whole);
}

#[test]
fn what_was_put_back_on_purpose_stays() {
    let harness = harness();
    let (session, transcript, _) = ended(&harness);
    let first = newest(&harness, &session);
    harness.run(&["resume", session.id(), "say two"]).exits(0);
    harness.run(&["checkpoints", "restore", session.id(), &first]).exits(0);
    let resumed = harness.run(&["resume", session.id(), "say three"]).exits(0);
    assert!(!resumed.stderr.contains("the transcript"), "{}", resumed.stderr);
    assert!(!std::fs::read_to_string(&transcript).unwrap().contains("say two"));
}

#[test]
fn a_time_that_means_several_copies_or_none_is_refused_and_they_are_named() {
    let harness = harness();
    let (session, transcript, whole) = ended(&harness);
    harness.run(&["resume", session.id(), "say two"]).exits(0);
    let grown = std::fs::read(&transcript).unwrap();
    assert!(grown.len() > whole.len());
    let shown = harness.run(&["checkpoints", session.id()]).exits(0).stdout;
    let times: Vec<&str> = shown.lines().skip(1).filter_map(|row| row.split_whitespace().next()).collect();
    assert!(times.len() > 1, "{shown}");
    for time in ["", &times[0][..5], "yesterday"] {
        let refused = harness.run(&["checkpoints", "restore", session.id(), time]).exits(2);
        assert!(refused.complaint().contains(times[times.len() - 1]), "{refused:?}");
    }
    assert!(std::fs::read(&transcript).unwrap() == grown);
    harness.run(&["checkpoints", "restore", session.id(), times[0]]).exits(0);
}

#[test]
fn a_transcript_that_is_being_written_is_not_replaced() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo", "say one"]);
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    session.until("a checkpoint", || (!listed(&harness, &session).is_empty()).then_some(()));
    let refused = harness.run(&["checkpoints", "restore", session.id(), "last"]).exits(7);
    assert!(refused.complaint().contains("is still running"));
    session.stop();
}

#[test]
fn the_copies_of_an_archived_session_are_listed_and_put_back_and_it_stays_archived() {
    let harness = harness();
    let (session, transcript, whole) = ended(&harness);
    let first = newest(&harness, &session);
    harness.run(&["resume", session.id(), "say two"]).exits(0);
    let shown = harness.run(&["checkpoints", session.id()]).exits(0).stdout;
    harness.run(&["archive", session.id()]).exits(0);
    assert_eq!(harness.run(&["checkpoints", session.id()]).exits(0).stdout.lines().count(), shown.lines().count());
    let messages = |session| -> Vec<String> {
        listed(&harness, session).iter().map(|one| one["last"]["text"].as_str().unwrap_or("-").to_owned()).collect()
    };
    assert!(messages(&session).iter().any(|text| text.contains("two")), "{:?}", messages(&session));

    std::fs::remove_file(&transcript).unwrap();
    let show = || harness.run(&["show", session.id()]).exits(0).stdout;
    assert!(show().contains("is gone since it was archived"), "{}", show());
    harness.run(&["checkpoints", "restore", session.id(), &first]).exits(0);
    assert!(std::fs::read(&transcript).unwrap() == whole);
    assert!(!show().contains("since it was archived"), "{}", show());
    assert!(!session.path().exists(), "it is still archived");
    let months = std::fs::read_dir(harness.home().join("archive")).unwrap().map(|entry| entry.unwrap().path());
    assert!(months.map(|month| month.join(session.id())).any(|packed| packed.is_file()), "and packed");

    harness.run(&["restore", session.id()]).exits(0);
    let resumed = harness.run(&["resume", session.id(), "say three"]).exits(0);
    assert!(!resumed.stderr.contains("the transcript"), "{}", resumed.stderr);
    assert!(!std::fs::read_to_string(&transcript).unwrap().contains("say two"));
}

#[test]
fn no_copy_is_taken_when_autosave_is_off() {
    let harness = harness();
    harness.configure("autosave = \"off\"\n");
    let session = harness.detach(&["demo", "say one"]);
    harness.run(&["wait", session.id()]).exits(0);
    assert!(listed(&harness, &session).is_empty());
    assert!(!session.path().join("checkpoints").exists());
    std::fs::remove_file(session.show().transcript.unwrap()).unwrap();
    let resumed = harness.run(&["resume", session.id(), "say two"]).exits(0);
    assert!(resumed.stderr.contains("its transcript is gone and there is no copy"), "{}", resumed.stderr);
}
