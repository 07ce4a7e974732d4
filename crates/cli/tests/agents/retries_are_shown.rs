//! An agent that waits for the model's server and reports it: the session shows that it retries, why and how often. An
//! alarm is raised when it takes too long. Both end when the server answers or the turn is over. (opencode reports
//! nothing: see hangs_can_be_interrupted.)

use crate::fixture::Fixture;
use ostler_mock_llm::agents::Agent;
use ostler_testkit::Session;

/// Raises the alarm after a second, so that a test does not wait for minutes.
fn soon(fixture: Option<Fixture>) -> Option<Fixture> {
    let fixture = fixture?;
    let folder = fixture.harness.root().join("home/.config/ostler");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), "retry_alarm = '1s'\n").unwrap();
    Some(fixture)
}

fn retries_until_interrupted(fixture: &Fixture, session: &Session<'_>, reason: &str) {
    let is_second = |view: &ostler_core::view::View| view.retrying.as_ref().is_some_and(|now| now.attempt >= 2);
    let view = session.until_look("it retries", is_second);
    assert_eq!((view.state.word(), view.alive), ("working", true), "{view:?}");
    assert!(view.retrying.as_ref().unwrap().reason.contains(reason), "{view:?}");
    let view = session.until_look("it is an alarm", |view| view.alarm.is_some());
    let alarm = view.alarm.unwrap();
    assert!(alarm.starts_with("retrying for more than 1 second: ") && alarm.contains(reason), "{alarm}");
    let listed = fixture.harness.run(&["ls"]).exits(0).stdout;
    assert!(listed.contains("working") && listed.contains("retrying") && listed.contains(reason), "{listed}");
    let shown = fixture.harness.run(&["show", session.id()]).exits(0).stdout;
    assert!(shown.contains(", retrying: ") && shown.contains(" time\n"), "{shown}");
    let json = fixture.harness.run(&["show", "--json", session.id()]).exits(0).json();
    assert!(json["retrying"]["attempt"].as_u64().unwrap() >= 2, "{json}");
    fixture.harness.run(&["interrupt", session.id()]).exits(0);
    fixture.harness.run(&["wait", session.id()]).exits(6);
    let json = fixture.harness.run(&["show", "--json", session.id()]).exits(0).json();
    assert!(json["retrying"].is_null() && json["alarm"].is_null(), "{json}");
}

/// The model answers after a failure, with a tool that keeps running: the turn works, and does not retry any more.
fn works_once_it_was_answered(fixture: &Fixture) {
    let (tool, words) = fixture.endless_tool();
    let session = fixture.detach(&[], Some(&format!("fail 529 once ; {tool} ; say never")));
    let process = fixture.process(words);
    let view =
        session.until_look("it is answered", |view| view.last.as_ref().is_some_and(|last| last.contains("gate")));
    assert_eq!((view.state.word(), &view.retrying), ("working", &None), "{view:?}");
    let journal =
        std::fs::read_to_string(fixture.harness.home().join("sessions").join(session.id()).join("journal.jsonl"));
    assert!(journal.unwrap().contains("retry_over"), "it did retry");
    fixture.harness.run(&["stop", session.id()]).exits(0);
    ostler_testkit::patience::ended(&process);
}

#[test]
fn claude_shows_that_it_retries() {
    let Some(fixture) = soon(Fixture::with_dead_server(Agent::Claude)) else { return };
    retries_until_interrupted(&fixture, &fixture.detach(&[], Some("say hello")), "no answer from the server");
    fixture.proves("no server: retrying, with the reason and how often");
    let Some(fixture) = soon(Fixture::new(Agent::Claude)) else { return };
    retries_until_interrupted(&fixture, &fixture.detach(&[], Some("fail 429 always")), "HTTP 429");
    works_once_it_was_answered(&fixture);
    fixture.proves("HTTP 429: retrying, with the reason and how often");
}

#[test]
fn codex_shows_that_it_retries() {
    let Some(fixture) = soon(Fixture::with_dead_server(Agent::Codex)) else { return };
    retries_until_interrupted(&fixture, &fixture.detach(&[], Some("say hello")), "Connection failed");
    fixture.proves("no server: retrying, with the reason and how often");
    let Some(fixture) = soon(Fixture::new(Agent::Codex)) else { return };
    retries_until_interrupted(&fixture, &fixture.detach(&[], Some("fail 529 always")), "529");
}

#[test]
fn gemini_shows_that_it_retries() {
    let Some(fixture) = soon(Fixture::with_dead_server(Agent::Gemini)) else { return };
    retries_until_interrupted(&fixture, &fixture.detach(&[], Some("say hello")), "fetch failed");
    fixture.proves("no server: retrying, with the reason and how often");
    let Some(fixture) = soon(Fixture::new(Agent::Gemini)) else { return };
    retries_until_interrupted(&fixture, &fixture.detach(&[], Some("fail 429 always")), "HTTP 429");
    works_once_it_was_answered(&fixture);
    fixture.proves("HTTP 429: retrying, with the reason and how often");
}
