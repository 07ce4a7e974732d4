//! A foreign process uses the conversation of a session. Before a start it is named and nothing is started, or it is
//! ended with its turn saved. While the session's own agent runs, the foreign process is reported and not ended.

use crate::one_home::{Foreign, OneHome};
use ostler_mock_llm::agents::Agent;
use ostler_testkit::Session;
use serde_json::json;

const HEADLESS: [&str; 6] = ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];

/// A foreign claude that continues a conversation.
fn claude_at(home: &OneHome, native_id: &str, prompt: &str) -> Foreign {
    let message = json!({"type": "user", "message": {"role": "user", "content": prompt}});
    let arguments: Vec<&str> = HEADLESS.into_iter().chain(["--resume", native_id]).collect();
    let foreign = home.start(&arguments, &format!("{message}\n"));
    home.until_at(&foreign, native_id);
    foreign
}

/// A session of claude that has finished one turn.
fn session<'a>(home: &'a OneHome, flags: &[&str]) -> Session<'a> {
    let work = home.work();
    let place = ["--cwd", work.to_str().unwrap()];
    let session = home.harness.detach(&[&place, flags, &["claude", "say one"]].concat());
    home.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    session
}

/// A session that has ended, and the id of its conversation.
fn ended<'a>(home: &'a OneHome) -> (Session<'a>, String) {
    let session = session(home, &[]);
    home.harness.run(&["wait", session.id()]).exits(0);
    let native_id = session.show().native_id.unwrap();
    (session, native_id)
}

#[test]
fn a_foreign_claude_is_named_and_nothing_is_started_beside_it() {
    let Some(home) = OneHome::new(Agent::Claude) else { return };
    let (session, native_id) = ended(&home);
    let mut foreign = claude_at(&home, &native_id, "say two");
    home.asked_for(2);
    let work = home.work();
    let resume = vec!["resume", session.id(), "say three"];
    let run = vec!["run", "--cwd", work.to_str().unwrap(), "claude", "say three", "--", "--resume", &native_id];
    for words in [resume.clone(), run] {
        let refused = home.harness.run(&words).exits(7);
        let complaint = refused.complaint();
        assert!(complaint.contains(&format!("process {} (since ", foreign.pid())), "{complaint}");
    }
    foreign.leave();
    assert_eq!(home.harness.run(&resume).exits(0).stdout, "three\n");
    let told = home.last_request();
    assert!(told.contains("say one") && told.contains("say two"), "{told}");
}

#[test]
fn takeover_ends_a_foreign_claude_with_its_turn_saved_and_continues() {
    let Some(home) = OneHome::new(Agent::Claude) else { return };
    let (session, native_id) = ended(&home);
    let foreign = claude_at(&home, &native_id, "say the foreign process said this");
    home.asked_for(2);
    home.until_answered(&session.show().transcript.unwrap(), "the foreign process said this");
    let output = home.harness.run(&["resume", "--takeover", session.id(), "say three"]).exits(0);
    assert!(!foreign.identity.may_live());
    assert!(output.stderr.contains(&format!("ended process {} (", foreign.pid())), "{output:?}");
    assert!(output.stderr.contains("its last turn is in the transcript"), "{output:?}");
    let told = home.last_request();
    assert!(told.contains("\"text\":\"the foreign process said this\""), "{told}");
}

#[test]
fn takeover_in_the_middle_of_a_foreign_turn_keeps_its_prompt() {
    let Some(home) = OneHome::new(Agent::Claude) else { return };
    let (session, native_id) = ended(&home);
    let foreign = claude_at(&home, &native_id, "hang");
    home.asked_for(2);
    home.harness.run(&["resume", "--takeover", session.id(), "say three"]).exits(0);
    assert!(!foreign.identity.may_live());
    assert!(home.last_request().contains("hang"), "the prompt of the turn that was cut off is not forgotten");
}

#[test]
fn a_foreign_process_that_joins_is_reported_everywhere_and_not_ended() {
    let Some(home) = OneHome::new(Agent::Claude) else { return };
    let session = session(&home, &["--keep"]);
    let native_id = session.show().native_id.unwrap();
    assert_eq!(session.show().alarm, None);
    let foreign = claude_at(&home, &native_id, "hang");
    home.harness.run(&["send", session.id(), "say two"]).exits(0);
    home.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let name = format!("process {} (", foreign.pid());
    let alarm = session.show().alarm.unwrap();
    assert!(alarm.contains(&name) && alarm.contains("is using this conversation too"), "{alarm}");
    let listed = home.harness.run(&["ls"]).exits(0).stdout;
    assert!(listed.contains(&name), "{listed}");
    let events = home.harness.run(&["events"]).exits(0).stdout;
    assert_eq!(events.matches("is using this conversation too").count(), 1, "it is reported once: {events}");
    assert!(foreign.identity.may_live());
}

#[test]
fn a_foreign_codex_is_named_by_its_lock_and_takeover_ends_it() {
    let Some(home) = OneHome::new(Agent::Codex) else { return };
    let work = home.work();
    home.harness.run(&["run", "--cwd", work.to_str().unwrap(), "codex", "say one"]).exits(0);
    let session = home.harness.session(&home.harness.ls()[0].id);
    let native_id = session.show().native_id.unwrap();
    let mut foreign = home.start(&["exec", "resume", "--json", "--skip-git-repo-check", &native_id, "-"], "hang");
    foreign.end_prompt();
    home.asked_for(2);
    let refused = home.harness.run(&["resume", session.id(), "say three"]).exits(7);
    assert!(refused.complaint().contains(&format!("process {} (since ", foreign.pid())), "{refused:?}");
    let output = home.harness.run(&["resume", "--takeover", session.id(), "say three"]).exits(0);
    assert!(!foreign.identity.may_live());
    assert_eq!(output.stdout, "three\n");
    assert!(home.last_request().contains("hang"), "the prompt of the foreign process is not forgotten");
}
