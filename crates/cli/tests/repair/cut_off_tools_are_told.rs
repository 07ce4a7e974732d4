//! An agent that is killed in the middle of a tool: when it is resumed, the model is told that the tool may have run.

use crate::conversation::is_well_formed;
use crate::fixture::{Fixture, for_every_agent};
use ostler_mock_llm::agents::Agent;
use ostler_sys::process::Identity;
use ostler_testkit::{ProcessKind, Session, patience};
use rustix::process::Signal;
use std::io::Write;
use std::path::Path;

/// A session in the middle of a tool whose call is in the agent's transcript, and the tool's process.
fn in_a_tool<'a>(fixture: &'a Fixture, flags: &[&str]) -> (Session<'a>, Identity) {
    let (tool, words) = fixture.endless_tool();
    let session = fixture.detach(flags, Some(&format!("{tool} ; say never")));
    let tool = fixture.process(words);
    // Claude writes the call to its transcript only after it has started the tool, on a busy machine much later.
    if fixture.agent == Agent::Claude {
        let transcript = session.until("its transcript is named", || session.look().transcript);
        let folder = Path::new(&transcript).parent().unwrap();
        patience::until("the call is in the transcript", &[folder], || {
            let lines = std::fs::read_to_string(&transcript).unwrap_or_default();
            lines.contains(r#""type":"tool_use""#).then_some(())
        });
    }
    (session, tool)
}

fn killed_in_the_middle_of_a_tool(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let (session, _) = in_a_tool(&fixture, &[]);
    session.kill(ProcessKind::Agent);
    fixture.harness.run(&["wait", session.id()]);
    let output = fixture.harness.run(&["resume", session.id(), "say next"]).exits(0);
    let seen = is_well_formed(&fixture);
    assert!(seen.contains("mkfifo gate"), "the prompt is there: {seen}");
    assert!(seen.contains("may have run in part or in full"), "{seen}");
    assert!(output.stderr.contains("ostler: repaired: "), "{output:?}");
    let journal = std::fs::read_to_string(session.path().join("journal.jsonl")).unwrap();
    // Files keep the first name of this event.
    assert!(journal.contains(r#""what":"mended""#), "{journal}");
    let again = fixture.harness.run(&["repair", session.id()]).exits(0);
    assert!(again.stdout.contains("nothing to repair"), "{again:?}");
}

/// A session whose agent and helpers are killed; only the command that the agent had started still runs.
fn only_the_tool_is_left(fixture: &Fixture) -> (Session<'_>, Identity) {
    let (session, left) = in_a_tool(fixture, &[]);
    session.orphan();
    session.kill_if_alive(ProcessKind::Agent);
    (session, left)
}

fn killed_together_with_both_helpers(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let (session, left) = only_the_tool_is_left(&fixture);
    let native_id = session.show().native_id;
    let output = fixture.harness.run(&["resume", session.id(), "say next"]).exits(0);
    assert_eq!((output.stdout.as_str(), session.show().native_id), ("next\n", native_id), "the same conversation");
    let seen = is_well_formed(&fixture);
    assert!(seen.contains("mkfifo gate"), "the prompt is there: {seen}");
    assert!(seen.contains("may have run in part or in full"), "{seen}");
    // The commands of codex end with it, a moment later.
    let ended = output.stderr.contains("ended a process that its last run left running: ");
    assert!(ended || agent == Agent::Codex, "{output:?}");
    assert!(!left.may_live(), "the orphaned command still runs");
}

for_every_agent!(killed_together_with_both_helpers:
    claude_killed_together_with_both_helpers_is_told Claude,
    codex_killed_together_with_both_helpers_is_told Codex,
    gemini_killed_together_with_both_helpers_is_told Gemini,
);

#[test]
fn the_tool_of_a_killed_claude_is_found_by_its_output_without_a_cgroup() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    let (session, left) = only_the_tool_is_left(&fixture);
    let file = session.run_file("run.json");
    let mut record: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let group = std::mem::take(&mut record["cgroup"]);
    std::fs::write(&file, record.to_string()).unwrap();
    let output = fixture.harness.run(&["resume", session.id(), "say next"]).exits(0);
    assert!(output.stderr.contains("ended a process that its last run left running: "), "{output:?}");
    assert!(!left.may_live(), "the orphaned command still runs");
    if let Some(group) = group.as_str() {
        std::fs::remove_dir(group).unwrap();
    }
}

for_every_agent!(killed_in_the_middle_of_a_tool:
    claude_killed_in_the_middle_of_a_tool_is_told Claude,
    codex_killed_in_the_middle_of_a_tool_is_told Codex,
    gemini_killed_in_the_middle_of_a_tool_is_told Gemini,
);

/// The session is not resumed by a user: its rule `--restart` starts it again. Before that the last line of its
/// transcript was torn.
fn started_again_by_its_rule(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let (session, _) = in_a_tool(&fixture, &["--restart", "on-failure"]);
    session.signal(ProcessKind::Keeper, Signal::STOP);
    let transcript = session.show().transcript;
    assert!(transcript.is_some() || agent != Agent::Claude, "only other agents name it later");
    session.kill(ProcessKind::Agent);
    if let Some(transcript) = transcript {
        std::fs::File::options().append(true).open(transcript).unwrap().write_all(br#"{"type":"to"#).unwrap();
    }
    session.signal(ProcessKind::Keeper, Signal::CONT);
    fixture.harness.run(&["wait", session.id()]).exits(0);
    assert_eq!(session.show().run, 2);
    let seen = is_well_formed(&fixture);
    assert!(seen.contains("mkfifo gate"), "the prompt is there: {seen}");
    assert!(seen.contains("may have run in part or in full"), "{seen}");
    let journal = std::fs::read_to_string(session.path().join("journal.jsonl")).unwrap();
    assert!(journal.contains(r#""what":"mended""#), "{journal}");
    let again = fixture.harness.run(&["repair", session.id()]).exits(0);
    assert!(again.stdout.contains("nothing to repair"), "{again:?}");
}

for_every_agent!(started_again_by_its_rule:
    claude_started_again_by_its_rule_is_told Claude,
    codex_started_again_by_its_rule_is_told Codex,
    gemini_started_again_by_its_rule_is_told Gemini,
);
