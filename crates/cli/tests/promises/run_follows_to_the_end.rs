//! `run` without `-d`: prints the output, ends with the session, and its exit code is the outcome.

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
    for word in ["succeeded", "1 turn", "· saved ·", "try next", "ostler logs"] {
        assert!(text.contains(word), "{word:?} is missing in {text}");
    }
    assert!(!text.contains('\u{1b}'), "colours on a pipe");
    assert_eq!(harness.ls()[0].outcome().saved, "verified");
}

#[test]
fn a_pipe_gets_the_final_answer_and_nothing_else() {
    let harness = harness();
    let output = harness.run(&["run", "demo", "fix the failing test"]).exits(0);
    let answer = harness.session(&harness.ls()[0].id).show().outcome().text.clone().unwrap();
    assert_eq!(output.stdout, format!("{}\n", answer.trim_end()));
    assert!(!output.stderr.contains(answer.trim_end()), "once is enough: {output:?}");
    let progress: Vec<&str> = output.stderr.lines().collect();
    assert!(progress.iter().any(|line| line.starts_with("I am the demo agent")), "{output:?}");
    assert!(progress.contains(&"● Bash sh test.sh"), "a line of its own: {output:?}");
    // In a shell's `$(…)` the answer has no further text around it.
    let mut shell = harness.command("sh");
    shell.args(["-c", "x=$(\"$0\" run demo 'say one' 2>/dev/null); printf '<%s>' \"$x\""]).arg(harness.program());
    assert_eq!(ostler_testkit::Started::new(shell, None).finish().exits(0).stdout, "<one>");
    // A turn that failed has no answer.
    let output = harness.run(&["run", "demo", "fail for a reason"]).exits(1);
    assert_eq!(output.stdout, "", "{output:?}");
    // The same after resuming and forking; the output of commands is printed unchanged.
    assert_eq!(harness.run(&["resume", "@last", "say two"]).exits(0).stdout, "two\n");
    assert_eq!(harness.run(&["fork", "@last", "say three"]).exits(0).stdout, "three\n");
    assert_eq!(harness.run(&["run", "--", "printf", "four"]).exits(0).stdout, "four");
}

#[test]
fn output_json_is_one_object_and_stream_json_one_per_line() {
    let harness = harness();
    let output = harness.run(&["run", "--output", "json", "demo", "say yes"]).exits(0);
    let object = output.json();
    assert_eq!((&object["answer"], &object["state"], &object["schema"]), (&"yes".into(), &"ended".into(), &1.into()));
    let shown = harness.run(&["show", "--json", object["id"].as_str().unwrap()]).exits(0).json();
    for key in shown.as_object().unwrap().keys() {
        assert!(object.get(key).is_some(), "{key} of show --json is missing");
    }
    let output = harness.run(&["run", "--output", "stream-json", "demo", "fail for a reason"]).exits(1);
    let lines: Vec<serde_json::Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
    assert_eq!((kinds[0], kinds[kinds.len() - 1]), ("session", "result"), "{kinds:?}");
    assert!(kinds.contains(&"told") && kinds.contains(&"turn_ended"), "{kinds:?}");
    let result = &lines[lines.len() - 1];
    assert_eq!((&result["id"], &result["outcome"]["kind"]), (&lines[0]["id"], &"failed".into()), "{result}");
    // A question is a result as well.
    let output = harness.run(&["run", "--output", "json", "demo", "ask May I?"]).exits(4);
    assert_eq!((&output.json()["state"], &output.json()["answer"]), (&"asking".into(), &serde_json::Value::Null));
    let output = harness.run(&["run", "--output", "text", "--", "true"]).exits(2);
    assert!(output.complaint().contains("--output is only for agents"), "{output:?}");
    harness.run(&["run", "-d", "--output", "json", "demo", "x"]).exits(2).complaint();
}

#[test]
fn a_question_ends_a_followed_run_with_4_and_the_session_waits() {
    let harness = harness();
    let output = harness.run(&["run", "demo", "ask May I?"]).exits(4);
    assert!(output.stderr.contains("ostler answer"), "{output:?}");
    assert!(output.stderr.contains("● Ask May I?\n"), "{output:?}");
    let session = harness.session(&harness.ls()[0].id);
    assert_eq!(session.show().state, "asking");
    harness.run(&["answer", session.id(), "--deny", "--text", "no"]).exits(0);
    harness.run(&["wait", session.id()]).exits(0);
    assert!(session.show().outcome().text.as_deref().is_some_and(|text| text.starts_with("denied: May I?")));
}

#[test]
fn interrupt_sends_sigint_to_a_command() {
    let harness = harness();
    let session = harness.detach(&["--", "sleep", "600"]);
    harness.run(&["interrupt", session.id()]).exits(0);
    harness.run(&["wait", session.id()]).exits(6);
    let shown = session.show();
    assert_eq!((shown.outcome().kind.as_str(), shown.outcome().signal), ("interrupted", Some(2)));
}

#[test]
fn a_new_home_shows_how_to_start_and_an_empty_list_is_a_list() {
    let harness = harness();
    let output = harness.run(&[]).exits(0);
    assert!(output.stdout.contains("ostler run demo"), "{output:?}");
    assert_eq!(harness.ls(), []);
    assert!(!harness.home().exists(), "`ls` creates nothing");
}
