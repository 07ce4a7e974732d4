//! `run` without `-d`: prints what comes, ends with the session, and its exit code is the outcome.

use crate::harness;

#[test]
fn a_commands_output_and_code_come_through() {
    let harness = harness();
    let output = harness.run(&["run", "--", "sh", "-c", "echo out; echo err >&2"]).exits(0);
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("out\n", "err\n"));
    harness.run(&["run", "--", "false"]).exits(1);
    harness.run(&["run", "--", "sh", "-c", "kill -9 $$"]).exits(1);
}

#[test]
fn the_demo_ends_with_what_was_kept_and_what_to_try_next() {
    let harness = harness();
    let output = harness.run(&["run", "demo", "fix the failing test"]).exits(0);
    let text = format!("{}{}", output.stdout, output.stderr);
    for word in ["succeeded", "1 turn", "saved: verified", "try next", "ostler logs"] {
        assert!(text.contains(word), "{word:?} is missing in {text}");
    }
    assert!(!text.contains('\u{1b}'), "colours on a pipe");
    assert_eq!(harness.ls()[0].outcome().saved, "verified");
}

#[test]
fn a_question_that_nobody_can_answer_is_4_and_the_session_waits() {
    let harness = harness();
    let output = harness.run(&["run", "demo", "ask May I?"]).exits(4);
    assert!(output.stderr.contains("ostler answer"), "{output:?}");
    let session = harness.session(&harness.ls()[0].id);
    assert_eq!(session.show().state, "asking");
    harness.run(&["answer", session.id(), "--deny", "--text", "no"]).exits(0);
    harness.run(&["wait", session.id()]).exits(0);
    assert!(session.show().outcome().text.as_deref().is_some_and(|text| text.starts_with("denied: May I?")));
}

#[test]
fn interrupting_a_command_is_a_sigint_to_it() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    harness.run(&["interrupt", session.id()]).exits(0);
    harness.run(&["wait", session.id()]).exits(6);
    let shown = session.show();
    assert_eq!((shown.outcome().kind.as_str(), shown.outcome().signal), ("interrupted", Some(2)));
}

#[test]
fn a_fresh_machine_is_told_how_to_start_and_an_empty_list_is_a_list() {
    let harness = harness();
    let output = harness.run(&[]).exits(0);
    assert!(output.stdout.contains("ostler run demo"), "{output:?}");
    assert_eq!(harness.ls(), []);
    assert!(!harness.home().exists(), "looking makes nothing");
}
