//! What an agent has saved is reported as saved, in whatever form: with terminal codes in the text, after the agent has
//! shortened a long conversation by itself, and in another file after `/clear`.

use crate::fixture::Fixture;
use ostler_mock_llm::agents::Agent;
use serde_json::{Value, json};

#[test]
fn an_answer_of_gemini_with_terminal_codes_is_verified() {
    let Some(fixture) = Fixture::new(Agent::Gemini) else { return };
    let output = fixture.follow("say \u{1b}[31mred\u{1b}[0m words").exits(0);
    assert_eq!(output.stdout, "red words\n");
    assert_eq!(fixture.last().show().outcome().saved, "verified");
    fixture.proves("an answer with terminal codes: verified");
}

#[test]
fn opencode_that_shortens_its_conversation_is_verified_and_its_own_prompt_is_not_logged() {
    let Some(fixture) = Fixture::new(Agent::Opencode) else { return };
    let file = fixture.harness.root().join("home/.config/opencode/opencode.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    config["provider"]["scripted"]["models"]["large"]["limit"] = json!({"context": 20000, "output": 1000});
    std::fs::write(&file, config.to_string()).unwrap();
    let output = fixture.follow("heavy 30000 first").exits(0);
    let requests = fixture.server.requests();
    assert!(requests.iter().any(|request| request.body.to_string().contains("Continue if you have next steps")));
    let outcome = fixture.last().show().outcome().clone();
    assert_eq!((outcome.kind.as_str(), outcome.saved.as_str()), ("succeeded", "verified"), "{outcome:?}");
    assert!(output.stdout.ends_with(&format!("{}\n", ostler_mock_llm::POLITE)), "{output:?}");
    let logs = fixture.harness.run(&["logs", fixture.last().id()]).exits(0).stdout;
    assert!(!logs.contains("Continue if you have next steps"), "{logs}");
    fixture.proves("the agent shortens its conversation by itself: verified");
}

#[test]
fn claude_after_clear_is_followed_to_its_new_conversation() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    let session = fixture.detach(&["--keep"], Some("say one"));
    let turn_ends = |session: &str| fixture.harness.run(&["wait", session, "--until", "turn"]).exits(0);
    turn_ends(session.id());
    let before = session.show();
    let say = |text: &str| fixture.harness.run(&["send", session.id(), text]).exits(0);
    say("/clear");
    turn_ends(session.id());
    say("say two");
    turn_ends(session.id());
    let after = session.show();
    assert_ne!(before.native_id, after.native_id);
    let transcript = after.transcript.clone().unwrap();
    assert!(transcript.contains(after.native_id.as_deref().unwrap()), "{transcript}");
    // The session is the one writer of the new conversation.
    let resumes = |id: &Option<String>| {
        let work = fixture.work();
        let place = ["run", "--cwd", work.to_str().unwrap(), "claude", "say other", "--", "--resume"];
        fixture.harness.run(&[&place[..], &[id.as_deref().unwrap()]].concat())
    };
    resumes(&after.native_id).exits(7);
    fixture.harness.run(&["stop", session.id()]).exits(0);
    let shown = session.show();
    assert_eq!((shown.outcome().kind.as_str(), shown.outcome().saved.as_str()), ("succeeded", "verified"));
    let copied = std::fs::read_to_string(session.path().join("checkpoints/index.jsonl")).unwrap();
    for file in [before.transcript.unwrap(), transcript] {
        assert!(copied.contains(&file), "{file} was copied: {copied}");
    }
    let output = fixture.harness.run(&["resume", session.id(), "say three"]).exits(0);
    assert_eq!(output.stdout, "three\n");
    let seen = fixture.last_request();
    assert!(seen.contains("say two") && !seen.contains("say one"), "it continues the new conversation: {seen}");
    // Claude carries out this command itself, so there is nothing to prove.
    let output = fixture.harness.run(&["resume", session.id(), "/clear"]);
    assert_eq!(session.show().outcome().saved, "verified", "{output:?}");
    fixture.proves("`/clear`: followed to the new conversation, verified");
}
