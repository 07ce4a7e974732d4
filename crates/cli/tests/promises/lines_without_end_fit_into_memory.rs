//! A line of a hundred megabytes costs time and disk space, but no memory, neither in the keeper nor in a reader.

use crate::harness;
use ostler_testkit::{Harness, Output, ProcessKind, Session, Started};

const LINE: u64 = 100_000_000;

/// The highest memory use that one of our processes may reach.
const LIMIT_KIB: u64 = 64 * 1024;

/// Installs a fake Claude Code that runs `misbehave` with these words.
fn fake_claude(harness: &mut Harness, words: &[String]) {
    let folder = harness.root().join("bin");
    std::fs::create_dir(&folder).unwrap();
    let words: String = words.iter().map(|word| format!(" '{word}'")).collect();
    let script = format!("#!/bin/sh\nexec '{}'{words}\n", harness.misbehave());
    harness.write_program(&folder.join("claude"), &script);
    harness.set("PATH", format!("{}:{}", folder.display(), std::env::var("PATH").unwrap()));
}

/// Runs a command of ours with this limit of its data segment.
#[track_caller]
fn within_the_limit(harness: &Harness, arguments: &[&str]) -> Output {
    let mut command = harness.command("sh");
    command.args(["-c", &format!("ulimit -d {LIMIT_KIB}; exec \"$@\""), "sh"]).arg(harness.program()).args(arguments);
    Started::new(command, None).finish()
}

/// The peak memory use of a process so far.
fn peak_kib(session: &Session<'_>, who: ProcessKind) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", session.living(who).pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

#[test]
fn a_line_of_a_hundred_megabytes_is_skipped_and_the_turn_is_still_decoded() {
    let mut harness = harness();
    let flag = harness.root().join("flag");
    let end =
        r#"{"type":"result","subtype":"success","is_error":false,"result":"after all","usage":{"output_tokens":1}}"#;
    let said = |text: &str| {
        format!(r#"say={{"type":"assistant","uuid":"u","message":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#)
    };
    let words = [
        "line".to_owned(),
        said("before"),
        format!("long={LINE}"),
        said("behind"),
        format!("until={}", flag.display()),
        format!("say={end}"),
        "read".to_owned(),
    ];
    fake_claude(&mut harness, &words);
    let session = harness.detach(&["--keep", "claude", "go"]);
    let id = session.id();
    session.until_look("the long line is over", |view| view.last.as_deref() == Some("behind") && view.alarm.is_some());
    // The line is in the file as it was printed, and in the memory of no process.
    assert!(std::fs::metadata(session.run_file("out")).unwrap().len() > LINE);
    let shown = within_the_limit(&harness, &["show", "--json", id]).exits(0).json();
    assert_eq!(shown["alarm"], "a line of 100 MB in its output was too long to read");
    assert_eq!(shown["state"], "working");
    for who in [ProcessKind::Keeper, ProcessKind::Holder] {
        let peak = peak_kib(&session, who);
        assert!(peak < LIMIT_KIB, "the {who:?} took {peak} KiB");
    }
    // A new keeper has to read all of it again, and needs no more memory.
    let before = session.kill(ProcessKind::Keeper);
    session.replaced(ProcessKind::Keeper, &before);
    std::fs::write(&flag, "").unwrap();
    within_the_limit(&harness, &["wait", "--until", "turn", id]).exits(0);
    within_the_limit(&harness, &["ls"]).exits(0);
    let logs = within_the_limit(&harness, &["logs", id]).exits(0).stdout;
    assert!(logs.contains("before\n  a line of 95.4 MiB is too long to show"), "{logs}");
    assert!(logs.contains("\nbehind\n"), "{logs}");
    // The fake agent writes no transcript, so its turn cannot be proven: exit code 8.
    within_the_limit(&harness, &["stop", "--grace", "1s", id]).exits(8);
    assert_eq!(session.look().outcome.unwrap().text.as_deref(), Some("after all"));
}

#[test]
fn a_long_line_of_a_command_is_shown_within_the_memory_limit() {
    let harness = harness();
    let session = harness.detach(&["--", &harness.misbehave(), &format!("long={LINE}")]);
    within_the_limit(&harness, &["wait", session.id()]).exits(0);
    let shown = within_the_limit(&harness, &["logs", session.id()]).exits(0).stdout;
    assert!(shown.len() as u64 > LINE && shown.ends_with("x\"}]}}\n"), "{} bytes", shown.len());
}

#[test]
fn an_answer_that_is_too_long_to_read_still_ends_its_turn() {
    let harness = harness();
    let session = harness.detach(&["--keep", "demo"]);
    let message = format!("say {}", "x".repeat(9 << 20));
    harness.run_with_input(&["send", session.id(), "-"], message.as_bytes()).exits(0);
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    let shown = session.show();
    assert_eq!((shown.turns, shown.queued), (1, 0));
    assert!(shown.alarm.is_some_and(|alarm| alarm.contains("too long to read")));
    session.stop();
}
