//! What the tests of agents behind the Agent Client Protocol share: how each of the four is started.

use crate::fixture::Fixture;
use ostler_mock_llm::agents::Agent;
use ostler_testkit::{Output, Session};

/// The command that speaks the protocol.
pub fn command(agent: Agent) -> &'static [&'static str] {
    match agent {
        Agent::Gemini => &["gemini", "--acp"],
        Agent::Opencode => &["opencode", "acp"],
        Agent::ClaudeAcp => &["claude-code-acp"],
        // The package contains no bubblewrap, and the sandbox runs nothing without it.
        Agent::CodexAcp => &["codex-acp", "-c", "sandbox_mode=danger-full-access"],
        Agent::Claude | Agent::Codex | Agent::Qwen => panic!("{agent:?} does not speak it"),
    }
}

fn words<'a>(fixture: &'a Fixture, work: &'a str, flags: &[&'a str], prompt: &[&'a str]) -> Vec<&'a str> {
    [&["--cwd", work], flags, &["acp"], prompt, &["--"], command(fixture.agent)].concat()
}

/// Runs the agent and follows it to its end.
#[track_caller]
pub fn follow(fixture: &Fixture, prompt: &str) -> Output {
    let work = fixture.work();
    fixture.harness.run(&[&["run"], &words(fixture, work.to_str().unwrap(), &[], &[prompt])[..]].concat())
}

/// A session in the background.
#[track_caller]
pub fn detach<'a>(fixture: &'a Fixture, flags: &[&str], prompt: Option<&str>) -> Session<'a> {
    let work = fixture.work();
    let prompt: Vec<&str> = prompt.into_iter().collect();
    fixture.harness.detach(&words(fixture, work.to_str().unwrap(), flags, &prompt))
}

/// A session of gemini in the background that is kept and does not ask before it uses a tool.
#[track_caller]
pub fn detach_fearless<'a>(fixture: &'a Fixture, prompt: &str) -> Session<'a> {
    let work = fixture.work();
    let words = words(fixture, work.to_str().unwrap(), &["--keep"], &[prompt]);
    fixture.harness.detach(&[&words[..], &["--yolo"]].concat())
}
