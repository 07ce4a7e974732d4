//! When terminal output is larger than a configurable size, its oldest part is dropped, and `logs` says so.
//! Headless output has a different limit.

use crate::harness;
use ostler_testkit::misbehave::pattern;
use std::os::unix::fs::MetadataExt;

#[test]
fn the_oldest_part_is_dropped_from_the_disk_and_logs_says_so() {
    let harness = harness();
    harness.configure("terminal_output_limit = \"1MiB\"\n");
    let misbehave = harness.misbehave();
    let flag = harness.root().join("flag");
    let session =
        harness.detach(&["-t", "--", &misbehave, "print=6000000", "say=end", &format!("until={}", flag.display())]);
    session.until_printed("end\r\n");
    let out = session.run_file("out");
    session.until("the oldest part is dropped", || {
        let on_disk = std::fs::metadata(&out).unwrap().blocks() * 512;
        (on_disk < 4 << 20).then_some(())
    });
    // What is left is unchanged, at its offset.
    let found = std::fs::read(&out).unwrap();
    let wanted: Vec<u8> = String::from_utf8(pattern(6_000_000))
        .unwrap()
        .replace('\n', "\r\n")
        .into_bytes()
        .into_iter()
        .chain(*b"end\r\n")
        .collect();
    assert_eq!(found.len(), wanted.len());
    let kept = found.len() - (1 << 20);
    assert!(found[kept..] == wanted[kept..], "the newest part is not what was printed");
    assert_eq!(found[0], 0, "the oldest part is still there");
    // On standard error: standard output is the part that is left.
    for words in [&["logs", session.id()][..], &["logs", "--raw", session.id()]] {
        let logs = harness.run(words).exits(0);
        let said = logs.complaint();
        assert!(said.starts_with("ostler: the oldest ") && said.ends_with(" of output were dropped"), "{said}");
        assert!(!logs.stdout.contains('\0'), "what was dropped is shown as zeros");
    }
    std::fs::write(flag, "").unwrap();
    harness.run(&["wait", session.id()]).exits(0);
}

#[test]
fn the_limit_of_a_terminal_does_not_apply_to_headless_output() {
    let harness = harness();
    harness.configure("terminal_output_limit = \"64KiB\"\n");
    let misbehave = harness.misbehave();
    let session = harness.detach(&["--", &misbehave, "print=3000000"]);
    harness.run(&["wait", session.id()]).exits(0);
    assert!(std::fs::read(session.run_file("out")).unwrap() == pattern(3_000_000));
}
