//! A machine shuts down: every process gets SIGTERM at once, agents, their tools, helpers and clients, in any order, as
//! an init system signals all processes of a service. Every session then ends by itself, saved, and its outcome names
//! the cause.

use crate::fixture::Fixture;
use ostler_chaos::random::Random;
use ostler_sys::process::{Identity, Pidfd};
use ostler_testkit::{Harness, ProcessKind, Session, alone, held, patience, times};
use rustix::process::Signal;
use std::time::Instant;

/// Sends SIGTERM to every process of this test, in an order that the seed decides. A process that starts meanwhile gets
/// the signal in the next round, as with an init system.
fn signal_all(harness: &Harness, seed: u64) -> Vec<Identity> {
    let mut random = Random::new(seed);
    let mut told: Vec<Identity> = Vec::new();
    loop {
        let mut fresh = harness.alive();
        fresh.retain(|process| !told.contains(process));
        if fresh.is_empty() {
            return told;
        }
        for last in (1..fresh.len()).rev() {
            fresh.swap(last, random.below(last + 1));
        }
        let pidfds: Vec<Pidfd> = fresh.iter().filter_map(|process| Pidfd::open(process).unwrap()).collect();
        for pidfd in pidfds {
            pidfd.signal(Signal::TERM).unwrap();
        }
        told.extend(fresh);
    }
}

#[track_caller]
fn ended(session: &Session<'_>, kind: &str, saved: &str) {
    let shown = session.show();
    let outcome = shown.outcome();
    assert_eq!((outcome.kind.as_str(), outcome.saved.as_str()), (kind, saved), "{outcome:?}");
    assert!(outcome.cause.starts_with("stopped by the system: SIGTERM to the "), "{outcome:?}");
}

/// A machine with a session in each state.
fn shut_down(seed: u64) {
    let Some(fixture) = Fixture::of_trusting_claude() else { return };
    let keep = |prompt: &str| fixture.detach(&["--keep"], Some(prompt));
    let (tool, tool_words) = fixture.endless_tool();
    let (idle, streaming, in_tool) =
        (keep("say idle"), keep("stream 100000 20"), keep(&format!("{tool} ; stream 100000 20")));
    let (terminal, command) = (fixture.detach(&["-t"], None), fixture.harness.detach(&["--", "sleep", "600"]));
    let shell = fixture.harness.detach(&["-t", "--", "bash", "--norc"]);
    fixture.harness.run(&["send", terminal.id(), "say on-screen"]).exits(0);
    fixture.harness.run(&["send", streaming.id(), "say waited"]).exits(0);
    for turn in [&idle, &terminal] {
        fixture.harness.run(&["wait", turn.id(), "--until", "turn"]).exits(0);
    }
    streaming.until_printed("word5");
    fixture.process(tool_words);
    let clients = [["wait", idle.id()], ["attach", streaming.id()]].map(|words| fixture.harness.start(&words));
    let fresh = keep("say fresh");
    // `wait` returns when the keeper has read the end of the turn, which is before claude has written it down.
    fixture.harness.run(&["wait", fresh.id(), "--until", "turn"]).exits(0);

    let begun = Instant::now();
    let told = signal_all(&fixture.harness, seed);
    // Every process exits by itself. (An init system would send SIGKILL after 90 s.)
    told.iter().for_each(patience::ended);
    fixture.harness.nothing_is_left();
    eprintln!("{} processes were gone after {} ms", told.len(), begun.elapsed().as_millis());
    drop(clients);

    for (session, kind, saved) in [
        (&idle, "succeeded", "verified"),
        (&fresh, "succeeded", "verified"),
        (&terminal, "succeeded", "verified"),
        (&streaming, "stopped", "verified"),
        (&in_tool, "stopped", "verified"),
        (&command, "stopped", "not_applicable"),
        (&shell, "stopped", "not_applicable"),
    ] {
        ended(session, kind, saved);
    }
    assert_eq!(streaming.show().queued, 1, "the waiting message still waits");
    fixture.harness.run(&["resume", streaming.id()]).exits(0);
    assert_eq!(streaming.show().last.as_deref(), Some("waited"));
    fixture.harness.run(&["resume", fresh.id(), "say after"]).exits(0);
    assert!(fixture.last_request().contains(r#""text":"fresh""#), "the answer that was not written down yet is saved");
    fixture.harness.run(&["resume", in_tool.id(), "say after"]).exits(0);
    assert!(fixture.last_request().contains("gate"), "the model gets the tool call that was cut off");
    fixture.proves("everything is told to end at once: all of it saved");
}

#[test]
fn everything_is_saved_when_all_processes_get_sigterm_at_once() {
    let _alone = alone();
    shut_down(1);
}

#[test]
fn everything_is_saved_in_other_orders_of_the_signals() {
    let _alone = alone();
    let rounds = times(1, 20);
    (0..rounds).for_each(|round| shut_down(2 + round as u64));
    held(
        "SIGTERM to everything at once, tools included",
        rounds,
        "each of seven sessions saved, and stopped by the system",
    );
}

#[test]
fn a_helper_that_gets_sigterm_ends_its_session_properly() {
    for who in [ProcessKind::Keeper, ProcessKind::Holder] {
        let Some(fixture) = Fixture::of_trusting_claude() else { return };
        let session = fixture.detach(&["--keep"], Some("stream 100000 20"));
        session.until_printed("word5");
        fixture.harness.run(&["send", session.id(), "say waited"]).exits(0);
        session.signal(who, Signal::TERM);
        fixture.harness.run(&["wait", session.id()]).exits(6);
        ended(&session, "stopped", "verified");
        fixture.harness.nothing_is_left();
        let output = fixture.harness.run(&["resume", session.id()]).exits(0);
        assert_eq!(output.stdout, "waited\n", "what waited is delivered: {output:?}");
    }
}
