//! The process that launched a session exits or is killed, and the session continues.

use crate::harness;
use ostler_testkit::Started;
use rustix::process::Signal;
use std::io::BufRead;

#[test]
fn a_following_run_that_is_killed_or_loses_its_terminal_leaves_the_session_running() {
    let harness = harness();
    for (signal, code) in [(Signal::KILL, None), (Signal::HUP, Some(124)), (Signal::TERM, Some(124))] {
        let misbehave = harness.misbehave();
        let mut command = harness.command(harness.program());
        command.args(["run", "--", &misbehave, "say=ready", "forever"]);
        let (launcher, mut lines) = Started::with_lines(command);
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let pidfd = ostler_sys::process::Pidfd::open(launcher.process()).unwrap().unwrap();
        pidfd.signal(signal).unwrap();
        assert_eq!(launcher.finish().code, code, "a script must not take {signal:?} for the end of the session");
        let listed = harness.ls();
        let alive: Vec<_> = listed.iter().filter(|shown| !shown.ended).collect();
        assert_eq!(alive.len(), 1, "{signal:?}");
        assert_eq!(
            (alive[0].alive, alive[0].state.as_str(), alive[0].last.as_deref()),
            (true, "running", Some("ready"))
        );
        harness.run(&["stop", "--kill", &alive[0].id]).exits(0);
    }
}

#[test]
fn a_pipeline_gives_its_input_to_the_command_and_may_end() {
    let harness = harness();
    let misbehave = harness.misbehave();
    let input = ostler_testkit::misbehave::pattern(300_000);
    let output = harness.run_with_input(&["run", "--", &misbehave, "read"], &input).exits(0);
    let sum = ostler_testkit::misbehave::checksum(&input);
    assert_eq!(output.stdout, format!("read 300000 {sum:016x}\n"));
}

#[test]
fn a_launcher_without_any_standard_descriptor_still_starts_a_session() {
    let harness = harness();
    let mut shell = harness.command("/bin/sh");
    shell.args(["-c", r#"exec "$0" "$@" <&- >&- 2>&-"#]).arg(harness.program());
    shell.args(["run", "-d", "--name", "bare", "--", "sh", "-c", "cat; echo said"]);
    assert!(shell.status().unwrap().success());
    harness.run(&["wait", "bare"]).exits(0);
    let logs = harness.run(&["logs", "bare"]).exits(0);
    assert_eq!(logs.stdout, "said\n", "files that were opened later are not used as its standard descriptors");
}

#[test]
fn a_detached_run_whose_standard_output_is_closed_starts_nothing() {
    let harness = harness();
    let started = harness.root().join("started");
    // A closed descriptor, and a pipe whose reader has exited.
    for closed in [r#"exec "$0" "$@" >&-"#, r#"exec 3> >(true); wait $!; exec "$0" "$@" >&3"#] {
        let mut shell = harness.command("/bin/bash");
        shell.args(["-c", closed]).arg(harness.program());
        shell.args(["run", "-d", "--", "touch"]).arg(&started);
        let output = shell.output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(complaint.contains("standard output is closed"), "{closed}: {complaint}");
        assert_eq!(output.status.code(), Some(2), "{closed}: {output:?}");
    }
    assert!(harness.ls().is_empty() && !started.exists());
}
