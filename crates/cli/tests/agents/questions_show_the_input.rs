//! A user who is asked to allow a tool sees what it does, not how the model describes it: with every agent that asks,
//! in every command that shows a question.

use crate::acp;
use crate::fixture::Fixture;
use crate::person::Person;
use ostler_mock_llm::agents::Agent;
use ostler_testkit::Session;
use serde_json::{Value, json};

const COMMAND: &str = "echo harmless\nrm -rf precious";
const ON_ONE_LINE: &str = "echo harmless⏎rm -rf precious";
const CALLED: &str = "List the files";

fn prompt(tool: &str) -> String {
    format!("tool {tool} {} ; say asked", json!({ "command": COMMAND, "description": CALLED }))
}

/// The whole real command is shown wherever the question is shown, and its description only after it.
fn shows_it_everywhere(fixture: &Fixture, session: &Session<'_>) -> Value {
    fixture.harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    let listed = fixture.harness.run(&["ls"]).exits(0).stdout;
    assert!(listed.contains(ON_ONE_LINE), "{listed}");
    let shown = fixture.harness.run(&["show", session.id()]).exits(0).stdout;
    let lines: Vec<&str> = shown.lines().map(str::trim).collect();
    let first = lines.iter().position(|line| *line == "│ echo harmless⏎").unwrap_or_else(|| panic!("{shown}"));
    assert_eq!(lines[first + 1], "│ rm -rf precious", "{shown}");
    if let Some(called) = shown.find(CALLED) {
        assert!(called > shown.find("rm -rf precious").unwrap(), "{shown}");
    }
    session.show().asking.unwrap()
}

#[test]
fn claude() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    let work = fixture.work();
    // A run without a terminal, which cannot take an answer.
    let output = fixture.harness.run(&["run", "--cwd", work.to_str().unwrap(), "claude", &prompt("Bash")]).exits(4);
    assert!(output.stderr.contains("│ rm -rf precious"), "{output:?}");
    assert!(output.stderr.contains(&format!("asks: Bash {ON_ONE_LINE}")), "{output:?}");
    let session = fixture.last();
    let ask = shows_it_everywhere(&fixture, &session);
    assert_eq!((&ask["tool"], &ask["input"]["command"]), (&json!("Bash"), &json!(COMMAND)));
    let logged = fixture.harness.run(&["logs", session.id()]).exits(0).stdout;
    assert!(logged.contains("│ rm -rf precious"), "{logged}");

    let mut person = Person::runs(&fixture.harness, (24, 100), &["attach", session.id()]);
    person.sees("│ rm -rf precious");
    person.sees(&format!("(it says: {CALLED})"));
    person.sees(&format!("asks: Bash {ON_ONE_LINE}"));
    person.types(b"y\r");
    person.is_left_with(0);
    fixture.harness.run(&["wait", session.id()]).exits(0);
    fixture.proves("permission: the real command is shown");
}

#[test]
fn claude_in_a_terminal() {
    let Some(fixture) = Fixture::of_trusting_claude() else { return };
    let work = fixture.work();
    let session = fixture.harness.detach(&["-t", "--cwd", work.to_str().unwrap(), "claude"]);
    fixture.harness.run(&["send", session.id(), &prompt("Bash")]).exits(0);
    let ask = shows_it_everywhere(&fixture, &session);
    assert_eq!((&ask["tool"], &ask["input"]["command"]), (&json!("Bash"), &json!(COMMAND)));
    session.stop();
    fixture.proves("terminal: permission: the real command is shown");
}

#[test]
fn claude_over_acp() {
    let Some(fixture) = Fixture::new(Agent::ClaudeAcp) else { return };
    let session = acp::detach(&fixture, &["--keep"], Some(&prompt("Bash")));
    let ask = shows_it_everywhere(&fixture, &session);
    assert_eq!((&ask["tool"], &ask["input"]["command"]), (&json!("Bash"), &json!(COMMAND)));
    session.stop();
    fixture.proves("acp: permission: the real command is shown");
}

#[test]
fn opencode_over_acp() {
    let Some(fixture) = Fixture::new(Agent::Opencode) else { return };
    let permissions = json!({ "permission": { "bash": "ask" } });
    std::fs::write(fixture.work().join("opencode.json"), permissions.to_string()).unwrap();
    let session = acp::detach(&fixture, &["--keep"], Some(&prompt("bash")));
    let ask = shows_it_everywhere(&fixture, &session);
    assert_eq!(ask["input"]["command"], json!(COMMAND));
    session.stop();
    fixture.proves("acp: permission: the real command is shown");
}

/// Gemini does not send the input. For a command the title is the command; for a file it sends the change.
#[test]
fn gemini_over_acp() {
    let Some(fixture) = Fixture::new(Agent::Gemini) else { return };
    let write = json!({ "file_path": "xx", "content": "a\nb\n" });
    let script = format!("tool run_shell_command {}", json!({ "command": COMMAND, "description": CALLED }));
    let session = acp::detach(&fixture, &["--keep"], Some(&format!("{script} ; tool write_file {write} ; say asked")));
    let ask = shows_it_everywhere(&fixture, &session);
    assert_eq!((&ask["input"], &ask["details"]["title"]), (&Value::Null, &json!(COMMAND)));
    let shown = fixture.harness.run(&["show", session.id()]).exits(0).stdout;
    assert!(shown.contains("its input is not known"), "{shown}");

    fixture.harness.run(&["answer", session.id(), "--allow"]).exits(0);
    let second = session.until_look("it asks for the file", |view| {
        view.asking.as_ref().is_some_and(|next| Some(next.request.as_str()) != ask["request"].as_str())
    });
    assert_eq!(second.asking.unwrap().details["content"][0]["newText"], "a\nb\n");
    let shown = fixture.harness.run(&["show", session.id()]).exits(0).stdout;
    assert!(shown.contains("│ + a⏎") && shown.contains("│ + b"), "{shown}");
    session.stop();
    fixture.proves("acp: permission: the real command is shown");
}

/// The adapter of codex sends the words of the command one by one.
#[test]
fn codex_over_acp() {
    let Some(fixture) = Fixture::new(Agent::CodexAcp) else { return };
    let call = json!({ "command": COMMAND, "sandbox_permissions": "require_escalated", "justification": CALLED });
    let session = acp::detach(&fixture, &["--keep"], Some(&format!("tool shell_command {call} ; say asked")));
    fixture.harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    let listed = fixture.harness.run(&["ls"]).exits(0).stdout;
    assert!(listed.contains(r#"-lc "echo harmless\nrm -rf precious""#), "{listed}");
    assert_eq!(session.show().asking.unwrap()["input"]["command"][2], json!(COMMAND));
    session.stop();
    fixture.proves("acp: permission: the real command is shown");
}
