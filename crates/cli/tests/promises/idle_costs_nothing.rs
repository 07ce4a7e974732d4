//! An idle session costs no wake-up at all.

use crate::harness;
use ostler_sys::process::Identity;
use ostler_testkit::{Who, patience};
use std::time::Duration;

/// The promise is twenty seconds; `OSTLER_TEST_IDLE=20` waits as long.
fn watched() -> Duration {
    Duration::from_secs(std::env::var("OSTLER_TEST_IDLE").ok().map_or(3, |seconds| seconds.parse().unwrap()))
}

/// How often the process has gone to sleep so far.
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
        .flat_map(|session| [(session.living(Who::Holder), "holder"), (session.living(Who::Keeper), "keeper")])
        .collect();
    // A client that has just left is the last thing to wake a keeper; let them come to rest.
    let mut before: Vec<u64> = Vec::new();
    patience::until("they have come to rest", &[], || {
        let now: Vec<u64> = helpers.iter().map(|(process, _)| sleeps(process)).collect();
        let rest = now == before;
        before = now;
        rest.then_some(())
    });
    let ended = patience::ends_within(&helpers[0].0, watched());
    assert!(!ended);
    for ((process, name), before) in helpers.iter().zip(before) {
        assert_eq!(sleeps(process), before, "the {name} woke up");
    }
}
