//! A turn behind the Agent Client Protocol ends as the agent reports it: an error of the model's server is a failure
//! with its reason, and a hang lasts until it is interrupted.

use crate::acp::{detach, follow};
use crate::fixture::{Fixture, for_every_agent};
use ostler_mock_llm::agents::Agent;

fn fails_on_a_bad_request(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let output = follow(&fixture, "fail 400 always").exits(1);
    let session = fixture.last();
    let outcome = session.show().outcome().clone();
    assert_eq!((outcome.kind.as_str(), outcome.source.as_str()), ("failed", "agent"), "{outcome:?}");
    assert!(outcome.cause.contains("scripted failure 400"), "{outcome:?}");
    assert!(output.stderr.contains(&outcome.cause), "{output:?}");
    fixture.harness.run(&["wait", session.id()]).exits(1);
    fixture.proves("acp: HTTP 400: failed, with the reason");
}

for_every_agent!(fails_on_a_bad_request:
    gemini_fails_on_a_bad_request Gemini,
    opencode_fails_on_a_bad_request Opencode,
    the_adapter_of_claude_fails_on_a_bad_request ClaudeAcp,
    the_adapter_of_codex_fails_on_a_bad_request CodexAcp,
);

#[test]
fn a_hang_can_be_interrupted_and_the_same_process_takes_the_next_message() {
    let Some(fixture) = Fixture::new(Agent::Gemini) else { return };
    let session = detach(&fixture, &["--keep"], Some("hang"));
    fixture.asked_for(1);
    let quiet = session.until_look("it is quiet", |view| view.quiet_s >= 1);
    assert_eq!((quiet.state.word(), quiet.alive), ("working", true), "{quiet:?}");
    fixture.harness.run(&["interrupt", session.id()]).exits(0);
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(6);
    fixture.harness.run(&["send", session.id(), "say again"]).exits(0);
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let shown = session.show();
    assert_eq!((shown.turns, shown.pid, shown.last.as_deref()), (2, quiet.pid, Some("again")), "{shown:?}");
    session.stop();
    fixture.harness.nothing_is_left();
    fixture.proves("acp: hang: working and quiet, until interrupted");
}

#[test]
fn a_stop_in_the_middle_of_a_turn_ends_it_and_leaves_nothing_running() {
    let Some(fixture) = Fixture::new(Agent::Gemini) else { return };
    let session = detach(&fixture, &[], Some("hang"));
    fixture.asked_for(1);
    fixture.harness.run(&["stop", session.id()]).exits(0);
    assert_eq!(session.show().outcome().kind, "stopped");
    fixture.harness.nothing_is_left();
    fixture.proves("acp: stop in the middle of a turn: stopped, nothing left running");
}

/// Agents report such a turn as ended. A turn in which the model said nothing is not a success.
fn no_answer_is_no_success(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    follow(&fixture, "empty").exits(1);
    let outcome = fixture.last().show().outcome().clone();
    assert_eq!((outcome.kind.as_str(), outcome.text), ("failed", None));
    assert!(outcome.cause.contains("without an answer"), "{}", outcome.cause);
    fixture.proves("acp: an empty answer is a failure");
}

for_every_agent!(no_answer_is_no_success:
    an_empty_answer_of_gemini_is_a_failure Gemini,
    an_empty_answer_of_opencode_is_a_failure Opencode,
    an_empty_answer_through_the_adapter_of_claude_is_a_failure ClaudeAcp,
    an_empty_answer_through_the_adapter_of_codex_is_a_failure CodexAcp,
);

#[test]
fn a_failed_command_is_a_failed_tool_although_opencode_reports_it_as_completed() {
    let Some(fixture) = Fixture::new(Agent::Opencode) else { return };
    follow(&fixture, &format!("{} ; say after", fixture.tool("false"))).exits(0);
    let logs = fixture.harness.run(&["logs", "--json", "@last"]).exits(0).stdout;
    let items = logs.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let returned: Vec<_> = items.filter(|item| item["kind"] == "tool_returned").collect();
    assert!(returned.iter().any(|item| item["failed"] == true), "{returned:?}");
    fixture.proves("acp: a failed tool is marked failed");
}
