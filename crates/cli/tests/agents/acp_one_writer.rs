//! A conversation has one writer, no matter whether it is used through the Agent Client Protocol or by the agent
//! itself.

use crate::acp::detach;
use crate::fixture::{Fixture, for_every_agent};
use ostler_mock_llm::agents::Agent;
use ostler_testkit::ProcessKind;

/// The agent behind the program, and its own argument that continues a conversation.
fn own_command(agent: Agent) -> (&'static str, &'static str) {
    match agent {
        Agent::Gemini => ("gemini", "--resume"),
        Agent::Opencode => ("opencode", "--session"),
        Agent::ClaudeAcp => ("claude", "--resume"),
        Agent::CodexAcp => ("codex", "resume"),
        Agent::Claude | Agent::Codex | Agent::Qwen => panic!("{agent:?} does not speak the protocol"),
    }
}

fn a_conversation_has_one_writer_with_and_without_the_protocol(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let (name, goes_on) = own_command(agent);
    let session = detach(&fixture, &["--keep"], Some("say one"));
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let native_id = session.show().native_id.unwrap();
    let work = fixture.work();
    let own = |flags: &[&str], message: &str| {
        let place = ["run", "--cwd", work.to_str().unwrap()];
        fixture.harness.run(&[&place, flags, &[name, message, "--", goes_on, &native_id]].concat())
    };
    let refused = own(&[], "say two").exits(7);
    assert!(refused.complaint().contains(&format!("session {} in ", session.id())), "{refused:?}");

    // Processes that the program has started belong to the session.
    let foreign = fixture.harness.run(&["ls", "--foreign", "--json"]).exits(0).json();
    assert_eq!(foreign.as_array().map(Vec::len), Some(0), "{foreign:#}");
    let holders = fixture.harness.run(&["who", "--json", &native_id]).exits(0).json()["holders"].clone();
    let holders = holders.as_array().unwrap();
    assert!(!holders.is_empty() && holders.iter().all(|holder| holder["session"] == session.id()), "{holders:#?}");
    let doctor = fixture.harness.run(&["doctor"]);
    assert!(!doctor.stdout.contains(&native_id), "{doctor:?}");
    session.stop();

    let id = own(&["-d", "--keep"], "say two").exits(0).stdout.trim_end().to_owned();
    let itself = fixture.harness.session(&id);
    fixture.harness.run(&["wait", itself.id(), "--until", "turn"]).exits(0);
    let refused = fixture.harness.run(&["resume", session.id(), "say three"]).exits(7);
    assert!(refused.complaint().contains(&format!("session {} in ", itself.id())), "{refused:?}");
    itself.stop();
    // For gemini the resume would first wait until the minute is over in which the conversation began.
    if agent != Agent::Gemini {
        fixture.harness.run(&["resume", session.id(), "say three"]).exits(0);
        let told = fixture.last_request();
        assert!(["say one", "say two", "say three"].iter().all(|said| told.contains(said)), "{told}");
    }
    fixture.harness.nothing_is_left();
    fixture.proves("acp: a conversation has one writer, whichever way it is reached");
}

for_every_agent!(a_conversation_has_one_writer_with_and_without_the_protocol:
    one_writer_through_gemini_and_its_protocol Gemini,
    one_writer_through_opencode_and_its_protocol Opencode,
    one_writer_through_claude_and_its_adapter ClaudeAcp,
    one_writer_through_codex_and_its_adapter CodexAcp,
);

/// The command in the settings does not name the agent. The program itself reports which agent it is.
#[test]
fn a_program_behind_a_script_reports_which_agent_it_is() {
    let Some(fixture) = Fixture::new(Agent::Gemini) else { return };
    let script = fixture.harness.root().join("mine");
    std::fs::write(&script, "exec gemini --acp\n").unwrap();
    let config = fixture.harness.root().join("home/.config/ostler");
    std::fs::create_dir_all(&config).unwrap();
    let mine = format!("[agents.mine]\ncommand = ['sh', {script:?}]\nprotocol = 'acp'\n");
    std::fs::write(config.join("config.toml"), mine).unwrap();
    let work = fixture.work();
    let session = fixture.harness.detach(&["--cwd", work.to_str().unwrap(), "--keep", "mine", "say one"]);
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let native_id = session.show().native_id.unwrap();
    let words = ["run", "--cwd", work.to_str().unwrap(), "gemini", "say two", "--", "--resume", &native_id];
    fixture.harness.run(&words).exits(7);
    let before = session.kill(ProcessKind::Keeper);
    session.replaced(ProcessKind::Keeper, &before);
    fixture.harness.run(&words).exits(7);
    session.stop();
    fixture.harness.nothing_is_left();
}
