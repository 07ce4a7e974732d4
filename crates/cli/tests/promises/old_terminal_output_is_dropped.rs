//! Terminal output past a configurable size drops its oldest part and says so; the limit of headless output is another one.

use crate::harness;
use ostler_testkit::misbehave::pattern;
use std::os::unix::fs::MetadataExt;

#[test]
fn the_oldest_part_goes_back_to_the_disk_and_the_session_says_so() {
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
    // What is left is right, in its place.
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
    let shown = harness.run(&["show", session.id()]).exits(0);
    let logs = harness.run(&["logs", session.id()]).exits(0);
    let says = |text: &str| text.contains("dropped");
    assert!(says(&shown.stdout) || says(&logs.stdout) || says(&logs.stderr), "nobody says so: {shown:?}");
    std::fs::write(flag, "").unwrap();
    harness.run(&["wait", session.id()]).exits(0);
}

#[test]
fn the_limit_of_a_terminal_is_not_that_of_headless_output() {
    let harness = harness();
    harness.configure("terminal_output_limit = \"64KiB\"\n");
    let misbehave = harness.misbehave();
    let session = harness.detach(&["--", &misbehave, "print=3000000"]);
    harness.run(&["wait", session.id()]).exits(0);
    assert!(std::fs::read(session.run_file("out")).unwrap() == pattern(3_000_000));
}
