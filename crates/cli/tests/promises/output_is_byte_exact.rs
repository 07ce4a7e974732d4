//! What the program printed is what is on disk, byte for byte, however often the keeper is killed in the middle of it.

use crate::harness;
use ostler_testkit::{Harness, ProcessKind, alone};

/// Each keeper is killed after it has written this many bytes.
const BETWEEN_KILLS: u64 = 2 << 20;

/// What `seq 1 N` prints.
fn numbers(last: u64, line_end: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in 1..=last {
        bytes.extend(number.to_string().into_bytes());
        bytes.extend(line_end.as_bytes());
    }
    bytes
}

/// How many keepers are killed.
fn kills() -> u64 {
    std::env::var("OSTLER_TEST_COUNT").ok().map_or(8, |count| count.parse().unwrap())
}

#[track_caller]
fn same(found: &[u8], wanted: &[u8]) {
    let place = || found.iter().zip(wanted).position(|(a, b)| a != b).unwrap_or(found.len().min(wanted.len()));
    let sizes = (found.len(), wanted.len());
    assert!(found == wanted, "{} bytes instead of {}, different from byte {} on", sizes.0, sizes.1, place());
}

/// The program counts without a pause until the flag is there, so every keeper is killed in the middle of its output.
/// Its last line says how far it has counted.
fn counts_while_keepers_are_killed(harness: &Harness, terminal: &[&str], line_end: &str) {
    let flag = harness.root().join("flag");
    let script = format!(
        "last=0; until [ -e {} ]; do seq $((last + 1)) $((last + 10000)); last=$((last + 10000)); done; echo end $last",
        flag.display()
    );
    let session = harness.detach(&[terminal, &["--", "sh", "-c", &script]].concat());
    let out = session.run_file("out");
    let length = || std::fs::metadata(&out).map_or(0, |file| file.len());
    let mut before = 0;
    for _ in 0..kills() {
        session.until("the keeper has written more", || (length() >= before + BETWEEN_KILLS).then_some(()));
        session.kill_the_next(ProcessKind::Keeper);
        before = length();
    }
    std::fs::write(&flag, "").unwrap();
    harness.run(&["wait", session.id()]).exits(0);
    let found = std::fs::read(&out).unwrap();
    let end = String::from_utf8_lossy(&found[found.len() - 20..]).into_owned();
    let (_, last) = end.trim_end().rsplit_once("end ").unwrap();
    let mut wanted = numbers(last.parse().unwrap(), line_end);
    wanted.extend(format!("end {last}{line_end}").into_bytes());
    same(&found, &wanted);
}

#[test]
fn headless_output_survives_keepers_that_are_killed_in_the_middle_of_it() {
    let _alone = alone();
    let harness = harness();
    counts_while_keepers_are_killed(&harness, &[], "\n");
}

#[test]
fn terminal_output_survives_keepers_that_are_killed_in_the_middle_of_it() {
    let _alone = alone();
    let harness = harness();
    harness.configure("terminal_output_limit = \"2GiB\"\n");
    counts_while_keepers_are_killed(&harness, &["-t"], "\r\n");
}

#[test]
fn output_survives_a_holder_killed_in_the_middle_of_it() {
    let _alone = alone();
    let harness = harness();
    let misbehave = harness.misbehave();
    let flag = harness.root().join("flag");
    let session =
        harness.detach(&["--", &misbehave, "print=3000000", &format!("until={}", flag.display()), "print=3000000"]);
    let before = session.kill(ProcessKind::Holder);
    session.replaced(ProcessKind::Holder, &before);
    std::fs::write(&flag, "").unwrap();
    let before = session.kill(ProcessKind::Keeper);
    session.replaced(ProcessKind::Keeper, &before);
    // The kernel reports how it ended since 6.15; before that it cannot be known.
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
