//! After a reboot, queued sessions are queued again in the places that they had, and sessions that waited for a time
//! still wait for it.

use crate::{file, harness};
use ostler_core::view::Phase;
use ostler_testkit::{Harness, ProcessKind, Session};
use rustix::process::Signal;
use serde_json::Value;

/// Ends a session as a power cut does, so that none of its processes notices the exit of another, and makes its records
/// those of another boot.
fn cut_power(session: &Session<'_>) {
    for who in [ProcessKind::Keeper, ProcessKind::Holder] {
        session.signal(who, Signal::STOP);
    }
    for who in [ProcessKind::Agent, ProcessKind::Holder, ProcessKind::Keeper] {
        session.kill_if_alive(who);
    }
    let run = session.run_file("run.json");
    for path in [run, session.path().join("holder.json"), session.path().join("keeper.json")] {
        let mut record: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let process = if record.get("agent").is_some() { &mut record["agent"] } else { &mut record };
        process["boot"] = "00000000-0000-4000-8000-000000000000".into();
        std::fs::write(&path, record.to_string()).unwrap();
    }
}

fn with_queue() -> Harness {
    let harness = harness();
    harness.configure("[queues.q]\nslots = 1\n");
    assert!(harness.command("mkfifo").arg(file(&harness, "gate")).status().unwrap().success());
    harness
}

/// Takes the only slot until the gate is written to.
fn block(harness: &Harness) -> Session<'_> {
    let gate = file(harness, "gate");
    let script = "read -r _ < \"$1\"";
    let blocker = harness.detach(&["--queue=q", "--", "sh", "-c", script, "sh", gate.to_str().unwrap()]);
    blocker.until_look("the blocker runs", |view| view.state == Phase::Running);
    blocker
}

fn queue_word<'a>(harness: &'a Harness, options: &[&str], word: &str) -> Session<'a> {
    let script = format!("echo {word} >> {}", file(harness, "log").display());
    harness.detach(&[options, &["--", "sh", "-c", &script]].concat())
}

fn said(harness: &Harness) -> String {
    std::fs::read_to_string(file(harness, "log")).unwrap_or_default()
}

#[test]
fn queued_sessions_are_queued_again_in_their_places_and_run_once() {
    let harness = with_queue();
    let before = block(&harness);
    let queued = [
        queue_word(&harness, &["--queue=q"], "a"),
        queue_word(&harness, &["--queue=q", "--priority=5"], "b"),
        queue_word(&harness, &["--queue=q", "--restart", "on-failure"], "c"),
        harness.detach(&["--queue=q", "demo", &format!("run-command echo d >> {}", file(&harness, "log").display())]),
    ];
    let withdrawn = queue_word(&harness, &["--queue=q"], "withdrawn");
    withdrawn.stop();
    let at = queue_word(&harness, &["--at", "+2h"], "at");
    let planned = at.look().waits.unwrap().when.at.unwrap();
    for session in queued.iter().chain([&before, &at]) {
        cut_power(session);
    }
    // Two sessions start after the reboot, before `recover`. The one that is queued is placed behind those that had
    // waited before.
    let blocker = block(&harness);
    let newcomer = queue_word(&harness, &["--queue=q"], "e");
    let recovered = harness.run(&["recover"]).exits(0).stdout;
    assert_eq!(recovered.lines().count(), 5, "{recovered}");
    assert!(!recovered.contains(withdrawn.id()) && !recovered.contains(before.id()), "{recovered}");
    let [a, b, c, d] = &queued;
    let place = |session: &Session<'_>| {
        let view = harness.run(&["show", "--json", session.id()]).exits(0).json();
        assert_eq!(view["state"], "queued", "{view}");
        view["waits"]["place"].as_u64()
    };
    assert_eq!([b, a, c, d, &newcomer].map(place), [1, 2, 3, 4, 5].map(Some));
    let waits = at.look().waits.unwrap().when;
    assert_eq!((waits.at, waits.queue, place(&at)), (Some(planned), None, None));
    assert!(harness.run(&["recover"]).exits(0).stdout.is_empty());
    assert!(said(&harness).is_empty());
    // A second reboot does not change the places.
    cut_power(c);
    harness.run(&["recover"]).exits(0);
    assert_eq!(place(c), Some(3));
    std::fs::write(file(&harness, "gate"), "go\n").unwrap();
    harness.run(&["wait", a.id(), b.id(), c.id(), d.id(), newcomer.id(), blocker.id()]).exits(0);
    assert_eq!(said(&harness), "b\na\nc\nd\ne\n");
    assert!(harness.run(&["recover"]).exits(0).stdout.is_empty());
    at.stop();
}

#[test]
fn sessions_that_a_shutdown_withdrew_are_queued_again_unless_their_condition_has_failed() {
    let harness = with_queue();
    let first = block(&harness);
    let told = queue_word(&harness, &["--queue=q"], "keeper");
    let waiter = queue_word(&harness, &["--queue=q"], "waiter");
    let after = queue_word(&harness, &["--after", first.id()], "after");
    told.signal(ProcessKind::Keeper, Signal::TERM);
    waiter.signal(ProcessKind::Agent, Signal::TERM);
    // Before the slot is free: a session that has not handled its signal yet would take the slot.
    harness.run(&["wait", told.id(), waiter.id()]);
    first.stop();
    harness.run(&["wait", after.id()]);
    assert!([&told, &waiter, &after].iter().all(|session| session.look().ended) && said(&harness).is_empty());
    let recovered = harness.run(&["recover"]).exits(0).stdout;
    assert!(recovered.contains(told.id()) && recovered.contains(waiter.id()), "{recovered}");
    assert_eq!(recovered.lines().count(), 2, "{recovered}");
    harness.run(&["wait", told.id(), waiter.id()]).exits(0);
    assert_eq!(said(&harness), "keeper\nwaiter\n");
}

#[test]
fn a_session_that_waited_for_a_usage_limit_still_waits_for_it() {
    let mut harness = harness();
    let limits = harness.root().join("limits");
    std::fs::write(&limits, "4000\n12\n").unwrap();
    harness.set("OSTLER_DEMO_LIMITS", limits);
    let far = harness.detach(&["demo", "say far"]);
    let resumes_at = far.until_look("it waits", |view| view.state == Phase::Waiting).resumes_at.unwrap();
    let near = harness.detach(&["demo", "say near"]);
    let soon = near.until_look("it waits", |view| view.state == Phase::Waiting).resumes_at.unwrap();
    // The near one first, because its wait must not be over.
    cut_power(&near);
    cut_power(&far);
    harness.run(&["recover"]).exits(0);
    let view = far.look();
    assert_eq!((view.state, view.resumes_at, view.ended), (Phase::Waiting, Some(resumes_at), false));
    far.living(ProcessKind::Keeper);
    harness.run(&["wait", near.id()]).exits(0);
    assert!(ostler_sys::clock::now() >= soon);
    assert_eq!(near.look().turns, 2);
    // A shutdown asks the session to end. Afterwards it still waits, without having been started.
    far.signal(ProcessKind::Keeper, Signal::TERM);
    harness.run(&["wait", far.id()]);
    let recovered = harness.run(&["recover"]).exits(0).stdout;
    assert_eq!(recovered, format!("{}: continued (it was waiting)\n", far.id()));
    let view = far.look();
    assert_eq!((view.state, view.waits.unwrap().when.at), (Phase::Queued, Some(resumes_at)));
    far.stop();
    assert_eq!(far.look().turns, 1, "it was never started again");
}
