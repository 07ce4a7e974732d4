//! An agent behind the Agent Client Protocol is killed: a message that it has read is not repeated, and a message that
//! it has not read is not lost, in its first run and in a later one.

use crate::acp::command;
use crate::fixture::{Fixture, for_every_agent};
use ostler_mock_llm::agents::Agent;
use ostler_testkit::{ProcessKind, Session};
use rustix::process::Signal;

/// A session whose tool runs: it is allowed by an option, or the question is answered here.
fn start<'a>(fixture: &'a Fixture, prompt: &str) -> Session<'a> {
    let work = fixture.work();
    let mut words = vec!["--cwd", work.to_str().unwrap(), "acp", prompt, "--"];
    words.extend(command(fixture.agent));
    if fixture.agent == Agent::Gemini {
        words.push("--yolo");
    }
    let session = fixture.harness.detach(&words);
    if fixture.agent == Agent::ClaudeAcp {
        fixture.harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
        fixture.harness.run(&["answer", session.id(), "--allow"]).exits(0);
    }
    session
}

fn a_killed_agent_repeats_and_loses_nothing(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let tool = fixture.tool("echo ran >> proof; mkfifo gate; cat gate");
    let prompt = format!("{tool} ; say never");
    let session = start(&fixture, &prompt);
    fixture.process("cat gate");
    session.kill(ProcessKind::Agent);
    fixture.harness.run(&["wait", session.id()]).exits(1);
    let killed = session.look();
    assert_eq!((killed.queued, &killed.maybe_delivered[..]), (0, &[][..]), "the agent has read it");
    let cause = killed.outcome.unwrap().cause;
    assert_eq!(cause, "the agent was killed by SIGKILL");

    fixture.harness.run(&["resume", "-d", "--keep", session.id(), "say more"]).exits(0);
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let shown = session.show();
    assert_eq!(shown.last.as_deref(), Some("more"), "without notices of the program");
    assert_eq!(fixture.written("proof"), "ran\n", "the tool ran once");
    assert_eq!(fixture.seen(), [prompt.as_str(), "say more"]);

    // Of codex-acp the signal stops only the launcher, and the program behind it keeps reading.
    if agent != Agent::CodexAcp {
        session.signal(ProcessKind::Agent, Signal::STOP);
        fixture.harness.run(&["send", session.id(), "say later"]).exits(0);
        session.until_look("it is in the pipe", |view| view.queued == 0);
        session.kill(ProcessKind::Agent);
        fixture.harness.run(&["wait", session.id()]).exits(1);
        let killed = session.look();
        assert_eq!(killed.queued, 1, "it was not read");
        assert_eq!(killed.outcome.unwrap().cause, "the agent was killed by SIGKILL", "its output is not the cause");
        let output = fixture.harness.run(&["resume", session.id()]).exits(0);
        assert!(output.stdout.ends_with("later\n"), "{output:?}");
        assert_eq!(fixture.seen(), [prompt.as_str(), "say more", "say later"]);
        assert_eq!(fixture.written("proof"), "ran\n");
        fixture.proves("acp: killed before it had read a message: it waits for the resume");
    }
    session.stop();
    fixture.proves("acp: killed in the middle of a tool: neither tool nor message is repeated");
}

for_every_agent!(a_killed_agent_repeats_and_loses_nothing:
    a_killed_gemini_repeats_and_loses_nothing Gemini,
    a_killed_opencode_repeats_and_loses_nothing Opencode,
    the_killed_adapter_of_claude_repeats_and_loses_nothing ClaudeAcp,
    the_killed_adapter_of_codex_repeats_and_loses_nothing CodexAcp,
);
