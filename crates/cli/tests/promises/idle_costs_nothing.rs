//! An idle session costs no wake-up at all.

use crate::harness;
use ostler_sys::process::Identity;
use ostler_testkit::{ProcessKind, patience};
use std::time::Duration;

/// Long enough that a timer that fires every few seconds is noticed.
const WATCHED: Duration = Duration::from_secs(20);
const MOMENT: Duration = Duration::from_secs(2);

/// How often the process has gone to sleep since its start.
fn sleeps(process: &Identity) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
    line.trim().parse().unwrap()
}

#[test]
fn holder_and_keeper_of_an_idle_session_do_not_wake_up_once() {
    let harness = harness();
    let sessions = [
        harness.detach(&["--", "sleep", "600"]),
        harness.detach(&["--keep", "demo", "say now idle"]),
        harness.detach(&["-t", "--", "sleep", "600"]),
    ];
    harness.run(&["wait", "--until", "turn", sessions[1].id()]).exits(0);
    let helpers: Vec<(Identity, &str)> = sessions
        .iter()
        .flat_map(|session| {
            [(session.living(ProcessKind::Holder), "holder"), (session.living(ProcessKind::Keeper), "keeper")]
        })
        .collect();
    // A client that disconnects wakes a keeper, and shortly after the turn the transcript is copied once more. Wait
    // until that is over.
    let all = || helpers.iter().map(|(process, _)| sleeps(process)).collect::<Vec<u64>>();
    let mut before = all();
    patience::until("the helpers are idle", &[], || {
        let ended = patience::ends_within(&helpers[0].0, MOMENT);
        assert!(!ended);
        let last = std::mem::replace(&mut before, all());
        (last == before).then_some(())
    });
    let ended = patience::ends_within(&helpers[0].0, WATCHED);
    assert!(!ended);
    for ((process, name), before) in helpers.iter().zip(before) {
        assert_eq!(sleeps(process), before, "the {name} woke up ({})", process.pid());
    }
}
