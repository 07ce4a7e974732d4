//! An error of the model's server is a failure with its reason in one line, never a success and never exit code 0,
//! whatever the agent calls it; unless a retry helped.

use crate::fixture::{Fixture, for_every_agent};
use ostler_mock_llm::agents::Agent;
use ostler_testkit::Output;
use std::io::Write;

/// Makes the agent retry less often, if it has a setting for that.
pub fn impatient(fixture: Option<Fixture>) -> Option<Fixture> {
    let mut fixture = fixture?;
    let home = fixture.harness.root().join("home");
    match fixture.agent {
        Agent::Claude | Agent::ClaudeAcp => fixture.harness.set("CLAUDE_CODE_MAX_RETRIES", "1"),
        Agent::Codex | Agent::CodexAcp => {
            // The provider's table is the last one in the file.
            let mut config = std::fs::OpenOptions::new().append(true).open(home.join(".codex/config.toml")).unwrap();
            config.write_all(b"request_max_retries = 1\nstream_max_retries = 1\n").unwrap();
        }
        Agent::Gemini => {
            let file = home.join(".gemini/settings.json");
            let mut settings: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
            settings["general"]["maxAttempts"] = 2.into();
            settings["general"]["retryFetchErrors"] = false.into();
            std::fs::write(&file, settings.to_string()).unwrap();
        }
        // They have no such setting.
        Agent::Opencode | Agent::Qwen => {}
    }
    Some(fixture)
}

/// How many lines give this cause. Lines that announce a retry for the same reason do not count.
fn said(text: &str, cause: &str) -> usize {
    text.lines().filter(|line| line.contains(cause) && !line.contains("retrying: ")).count()
}

#[track_caller]
pub fn failed(fixture: &Fixture, output: Output, reasons: &[&str]) {
    let output = output.exits(1);
    let session = fixture.last();
    let shown = session.show();
    let outcome = shown.outcome();
    assert_eq!(outcome.kind, "failed", "{outcome:?}");
    assert!(!outcome.cause.contains('\n'), "not one line: {:?}", outcome.cause);
    assert!(reasons.iter().any(|reason| outcome.cause.contains(reason)), "no reason: {outcome:?}");
    assert_eq!(said(&output.stderr, &outcome.cause), 1, "said once: {output:?}");
    assert_eq!(output.stdout, "", "an error is not an answer");
    assert_eq!(shown.last.as_deref(), Some(outcome.cause.as_str()));
    let logs = fixture.harness.run(&["logs", session.id()]).exits(0).stdout;
    assert_eq!(said(&logs, &outcome.cause), 1, "{logs}");
    fixture.harness.run(&["wait", session.id()]).exits(1);
}

fn fails_on_a_bad_request(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    failed(&fixture, fixture.follow("fail 400 always"), &["400", "scripted failure"]);
    fixture.proves("HTTP 400: failed, with the reason");
}

for_every_agent!(fails_on_a_bad_request:
    claude_fails_on_a_bad_request Claude,
    codex_fails_on_a_bad_request Codex,
    gemini_fails_on_a_bad_request Gemini,
    opencode_fails_on_a_bad_request Opencode,
    qwen_fails_on_a_bad_request Qwen,
);

fn fails_on_a_rate_limit_for_ever(agent: Agent) {
    let Some(fixture) = impatient(Fixture::new(agent)) else { return };
    failed(&fixture, fixture.follow("fail 429 always"), &["429", "scripted failure"]);
    fixture.proves("HTTP 429 for ever: failed, with the reason");
}

// opencode retries for ever, and so does codex without a server: see hangs_can_be_interrupted.
for_every_agent!(fails_on_a_rate_limit_for_ever:
    claude_fails_on_a_rate_limit_for_ever Claude,
    codex_fails_on_a_rate_limit_for_ever Codex,
    gemini_fails_on_a_rate_limit_for_ever Gemini,
);

fn fails_on_an_overload_for_ever(agent: Agent) {
    let Some(fixture) = impatient(Fixture::new(agent)) else { return };
    failed(&fixture, fixture.follow("fail 529 always"), &["529", "scripted failure"]);
    fixture.proves("endless HTTP 529: failed, with the reason");
}

for_every_agent!(fails_on_an_overload_for_ever:
    claude_fails_on_an_overload_for_ever Claude,
    codex_fails_on_an_overload_for_ever Codex,
    gemini_fails_on_an_overload_for_ever Gemini,
);

fn succeeds_when_trying_again_helped(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let output = fixture.follow("fail 529 once ; say better").exits(0);
    assert_eq!(output.stdout, "better\n", "{output:?}");
    assert_eq!(fixture.last().show().outcome().kind, "succeeded");
    fixture.proves("HTTP 529 once: succeeded after the retry");
}

for_every_agent!(succeeds_when_trying_again_helped:
    claude_succeeds_when_trying_again_helped Claude,
    codex_succeeds_when_trying_again_helped Codex,
    gemini_succeeds_when_trying_again_helped Gemini,
    opencode_succeeds_when_trying_again_helped Opencode,
    qwen_succeeds_when_trying_again_helped Qwen,
);

fn fails_without_a_server(agent: Agent) {
    let Some(fixture) = impatient(Fixture::with_dead_server(agent)) else { return };
    failed(&fixture, fixture.follow("say hello"), &["Unable to connect", "ConnectionRefused", "fetch failed"]);
    fixture.proves("no server: failed, with the reason");
}

for_every_agent!(fails_without_a_server:
    claude_fails_without_a_server Claude,
    gemini_fails_without_a_server Gemini,
);
