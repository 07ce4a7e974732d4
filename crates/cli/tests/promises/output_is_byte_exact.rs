//! What the program printed is what is on disk, byte for byte, however often the keeper is killed in the middle of it.

use crate::harness;
use ostler_sys::process::{Identity, Pidfd};
use ostler_testkit::{Harness, Session, Who, alone, patience};
use std::time::Duration;

/// Above the age below which a keeper counts as having died young: those are restarted after growing pauses.
const BETWEEN_KILLS: Duration = Duration::from_millis(100);

/// `seq 1 N`, as it would print.
fn numbers(last: u64, line_end: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in 1..=last {
        bytes.extend(number.to_string().into_bytes());
        bytes.extend(line_end.as_bytes());
    }
    bytes
}

/// How far `seq` counts; the full count of the promise takes a release build.
fn last() -> u64 {
    std::env::var("OSTLER_TEST_COUNT").ok().map_or(3_000_000, |count| count.parse().unwrap())
}

/// Kills the keeper by the clock until the program has ended. Returns how many.
fn kill_keepers(session: &Session<'_>) -> u32 {
    let agent = session.recorded(Who::Agent).unwrap();
    let mut kills = 0;
    loop {
        // A keeper that saw the program end leaves, and there is no next one.
        let keeper = session.until("a keeper lives or the program has ended", || {
            let keeper = session.recorded(Who::Keeper).filter(Identity::may_live).map(Some);
            keeper.or_else(|| (!agent.may_live()).then_some(None))
        });
        let Some(keeper) = keeper else { return kills };
        if patience::ends_within(&agent, BETWEEN_KILLS) {
            return kills;
        }
        // The program may end, and the keeper with it, while we look for it.
        if let Ok(Some(pidfd)) = Pidfd::open(&keeper) {
            pidfd.signal(rustix::process::Signal::KILL).unwrap();
            patience::ended(&keeper);
            kills += 1;
        }
    }
}

#[track_caller]
fn same(found: &[u8], wanted: &[u8]) {
    let place = found.iter().zip(wanted).position(|(a, b)| a != b).unwrap_or(found.len().min(wanted.len()));
    let sizes = (found.len(), wanted.len());
    assert!(found == wanted, "{} bytes instead of {}, different from byte {place} on", sizes.0, sizes.1);
}

fn seq(harness: &Harness, terminal: &[&str]) -> (Vec<u8>, u32) {
    // The reader is slower than `seq` only because it is killed; a slow writer makes sure that it is killed often.
    let script = format!("seq 1 {0} && sleep 0.3 && seq 1 {0}", last());
    let session = harness.detach(&[terminal, &["--", "sh", "-c", &script]].concat());
    let kills = kill_keepers(&session);
    harness.run(&["wait", session.id()]).exits(0);
    (std::fs::read(session.run_file("out")).unwrap(), kills)
}

#[test]
fn headless_output_survives_a_keeper_killed_every_100_ms() {
    let _alone = alone();
    let harness = harness();
    let (found, kills) = seq(&harness, &[]);
    same(&found, &numbers(last(), "\n").repeat(2));
    assert!(kills >= 2, "only {kills} kills");
}

#[test]
fn terminal_output_survives_a_keeper_killed_every_100_ms() {
    let _alone = alone();
    let harness = harness();
    harness.configure("terminal_output_limit = \"2GiB\"\n");
    let (found, kills) = seq(&harness, &["-t"]);
    same(&found, &numbers(last(), "\r\n").repeat(2));
    assert!(kills >= 2, "only {kills} kills");
}

#[test]
fn output_survives_a_holder_killed_in_the_middle_of_it() {
    let _alone = alone();
    let harness = harness();
    let misbehave = harness.misbehave();
    let flag = harness.root().join("flag");
    let session =
        harness.detach(&["--", &misbehave, "print=3000000", &format!("until={}", flag.display()), "print=3000000"]);
    let before = session.kill(Who::Holder);
    session.replaced(Who::Holder, &before);
    std::fs::write(&flag, "").unwrap();
    let before = session.kill(Who::Keeper);
    session.replaced(Who::Keeper, &before);
    // The kernel tells how it ended from 6.15 on; before that nobody can.
    let code = harness.run(&["wait", session.id()]).code.unwrap();
    assert!(code == 0 || code == 5, "{code}");
    same(&std::fs::read(session.run_file("out")).unwrap(), &ostler_testkit::misbehave::pattern(3_000_000).repeat(2));
}

#[test]
fn standard_error_is_kept_apart_and_whole() {
    let harness = harness();
    let session = harness.detach(&["--", "sh", "-c", "echo out; echo err >&2; echo more; printf last >&2"]);
    harness.run(&["wait", session.id()]).exits(0);
    assert_eq!(std::fs::read_to_string(session.run_file("out")).unwrap(), "out\nmore\n");
    assert_eq!(std::fs::read_to_string(session.run_file("err")).unwrap(), "err\nlast");
    let output = harness.run(&["logs", "--raw", session.id()]).exits(0);
    assert!(output.stdout.starts_with("out\nmore\n"), "{output:?}");
}
