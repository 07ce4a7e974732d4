//! What the tests of agents behind the Agent Client Protocol share: how each of the four is started.

use crate::bed::Bed;
use ostler_mock_llm::agents::Agent;
use ostler_testkit::{Output, Session};

/// The command that speaks it, tools allowed as far as the program lets us.
pub fn command(agent: Agent) -> &'static [&'static str] {
    match agent {
        Agent::Gemini => &["gemini", "--acp"],
        Agent::Opencode => &["opencode", "acp"],
        Agent::ClaudeAcp => &["claude-code-acp"],
        // Its package brings no bubblewrap, without which its sandbox runs nothing.
        Agent::CodexAcp => &["codex-acp", "-c", "sandbox_mode=danger-full-access"],
        Agent::Claude | Agent::Codex | Agent::Qwen => panic!("{agent:?} does not speak it"),
    }
}

fn words<'a>(bed: &'a Bed, work: &'a str, flags: &[&'a str], prompt: &[&'a str]) -> Vec<&'a str> {
    [&["--cwd", work], flags, &["acp"], prompt, &["--"], command(bed.agent)].concat()
}

/// Runs the agent and follows it to its end.
#[track_caller]
pub fn follow(bed: &Bed, prompt: &str) -> Output {
    let work = bed.work();
    bed.harness.run(&[&["run"], &words(bed, work.to_str().unwrap(), &[], &[prompt])[..]].concat())
}

/// A session in the background.
#[track_caller]
pub fn detach<'a>(bed: &'a Bed, flags: &[&str], prompt: Option<&str>) -> Session<'a> {
    let work = bed.work();
    let prompt: Vec<&str> = prompt.into_iter().collect();
    bed.harness.detach(&words(bed, work.to_str().unwrap(), flags, &prompt))
}

/// A session of gemini in the background that stays, and asks nobody before it uses a tool.
#[track_caller]
pub fn detach_fearless<'a>(bed: &'a Bed, prompt: &str) -> Session<'a> {
    let work = bed.work();
    let words = words(bed, work.to_str().unwrap(), &["--keep"], &[prompt]);
    bed.harness.detach(&[&words[..], &["--yolo"]].concat())
}
