//! A list looks at hundreds and asks as little as it can; what it says is what `show` says, whatever happened to a session.

use crate::harness;
use ostler_testkit::{Harness, Session, Shown, Who};

/// A moment passes between the two looks.
fn without_time(shown: Shown) -> Shown {
    Shown { quiet_s: 0, ..shown }
}

#[track_caller]
fn agree(harness: &Harness, session: &Session<'_>) -> Shown {
    let listed = harness.ls().into_iter().find(|shown| shown.id == session.id()).unwrap();
    let (listed, shown) = (without_time(listed), without_time(session.show()));
    assert_eq!(listed, shown);
    shown
}

fn note(session: &Session<'_>) -> std::path::PathBuf {
    session.path().join("outcome.json")
}

#[test]
fn of_sessions_that_live_and_whose_helpers_were_replaced() {
    let harness = harness();
    let sessions = [
        harness.detach(&["--", "sh", "-c", "echo hello; exec sleep 600"]),
        harness.detach(&["-t", "--", "sh", "-c", "echo hello; exec sleep 600"]),
        harness.detach(&["--keep", "demo", "say hello"]),
    ];
    for session in &sessions {
        session.living(Who::Keeper);
        session.until_look("its word, and nothing more to come", |view| {
            view.kept && view.last.as_deref() == Some("hello") && (view.agent == "command" || view.turns == 1)
        });
        let shown = agree(&harness, session);
        assert!(shown.alive && shown.kept && shown.holder_pid.is_some());
        for who in [Who::Keeper, Who::Holder, Who::Keeper] {
            let before = session.kill(who);
            session.replaced(who, &before);
            session.until_look("both helpers", |view| view.kept && view.holder_pid.is_some());
            let shown = agree(&harness, session);
            assert_eq!(shown.keeper_pid, session.recorded(Who::Keeper).map(|keeper| keeper.pid()));
            assert_eq!(shown.holder_pid, session.recorded(Who::Holder).map(|holder| holder.pid()));
        }
        session.stop();
        agree(&harness, session);
    }
}

#[test]
fn of_one_that_nobody_keeps() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    session.orphan();
    let shown = agree(&harness, &session);
    let alarm = shown.alarm.unwrap_or_default();
    assert!(shown.alive && !shown.kept && alarm.contains("nobody keeps it"), "{alarm}");
    session.stop();
    agree(&harness, &session);
}

#[test]
fn of_one_that_is_at_rest_until_something_happens_to_it() {
    let harness = harness();
    let session = harness.detach(&["demo", "say hello"]);
    harness.run(&["wait", session.id()]).exits(0);
    session.until("it is at rest", || note(&session).exists().then_some(()));
    assert_eq!(agree(&harness, &session).queued, 0);

    harness.run(&["send", session.id(), "say again"]).exits(0);
    assert!(!note(&session).exists(), "one glance does not tell of a message that came later");
    assert_eq!(agree(&harness, &session).queued, 1);

    harness.run(&["resume", session.id(), "--keep", "-d"]).exits(0);
    let listed = &harness.ls()[0];
    assert_eq!((listed.alive, listed.run, listed.ended), (true, 2, false));
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    agree(&harness, &session);
    harness.run(&["stop", session.id()]).exits(0);
    session.until("it is at rest again", || note(&session).exists().then_some(()));
    let shown = agree(&harness, &session);
    assert_eq!((shown.run, shown.turns, shown.queued, shown.last.as_deref()), (2, 2, 0, Some("again")));
}

#[test]
fn of_one_whose_records_were_damaged_after_its_end() {
    let harness = harness();
    for file in ["session.json", "runs/1/outcome.json"] {
        let session = harness.detach(&["--", "true"]);
        harness.run(&["wait", session.id()]).exits(0);
        session.until("it is at rest", || note(&session).exists().then_some(()));
        std::fs::write(session.path().join(file), "garbage").unwrap();
        let listed = harness.run(&["ls", "--json"]).exits(0).json();
        let damaged = listed.as_array().unwrap().iter().find(|one| one["id"] == session.id()).unwrap();
        assert_eq!(damaged["state"], "damaged", "{file}");
        std::fs::remove_dir_all(session.path()).unwrap();
    }
}

#[test]
fn of_one_that_is_sent_to_and_resumed_while_it_ends() {
    let harness = harness();
    for round in 0..8 {
        let session = harness.detach(&["demo", "say hello"]);
        // Whatever comes first: its end, or the message.
        harness.run(&["send", session.id(), &format!("say round {round}")]).exits(0);
        harness.run(&["wait", session.id()]).exits(0);
        agree(&harness, &session);
        harness.run(&["resume", session.id(), "say more"]).exits(0);
        let shown = agree(&harness, &session);
        assert_eq!((shown.turns, shown.queued), (3, 0), "{shown:?}");
    }
}
