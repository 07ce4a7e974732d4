//! A prompt without the name of an agent.

use crate::harness_with;

#[test]
fn without_any_agent_the_message_says_what_to_install_and_that_the_demo_works() {
    let (harness, _) = harness_with(&[]);
    let output = harness.run(&["run", "fix the failing test"]).exits(2);
    let complaint = output.complaint();
    assert!(complaint.contains("no agent is installed; install one with npm install -g"), "{complaint}");
    assert!(complaint.contains("@anthropic-ai/claude-code") && complaint.contains("ostler run demo"), "{complaint}");
}

#[test]
fn an_agent_that_is_not_installed_is_refused_with_the_command_that_installs_it() {
    let (harness, _) = harness_with(&[]);
    for words in [&["run", "codex", "x"][..], &["run", "-d", "-t", "codex"]] {
        let output = harness.run(words).exits(2);
        assert_eq!(output.complaint(), "ostler: codex is not installed; install it: npm install -g @openai/codex");
    }
    assert!(harness.ls().is_empty());
}

#[test]
fn the_only_agent_that_is_installed_gets_the_prompt() {
    let (harness, _) = harness_with(&["codex"]);
    let session = harness.detach(&["fix the failing test"]);
    assert_eq!(session.show().agent, "codex");
    harness.run(&["wait", session.id()]).exits(1);
}

#[test]
fn with_several_agents_one_has_to_be_named_or_configured() {
    let (harness, _) = harness_with(&["codex", "gemini"]);
    let output = harness.run(&["run", "fix it"]).exits(2);
    assert!(output.complaint().contains("codex, gemini are installed; name one"), "{}", output.complaint());
    harness.configure("default_agent = 'demo'\n");
    let session = harness.detach(&["say hello"]);
    assert_eq!(session.show().agent, "demo");
    harness.run(&["wait", session.id()]).exits(0);
    harness.configure("default_agent = 'unknown'\n");
    let output = harness.run(&["run", "fix it"]).exits(2);
    assert!(output.complaint().contains("see ostler agents"), "{}", output.complaint());
}
