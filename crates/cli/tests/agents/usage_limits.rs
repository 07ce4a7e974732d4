//! A usage limit of a real agent's account: the session waits, and continues once, as the model's record shows.

use crate::fixture::Fixture;
use ostler_core::view::{Phase, View};
use ostler_mock_llm::agents::Agent;
use ostler_testkit::{ProcessKind, Session};

/// Claude reports usage limits only with a subscription.
fn subscribed() -> Option<Fixture> {
    let mut fixture = Fixture::new(Agent::Claude)?;
    fixture.harness.set("ANTHROPIC_API_KEY", "");
    fixture.harness.set("CLAUDE_CODE_OAUTH_TOKEN", "scripted");
    Some(fixture)
}

fn until_waiting(session: &Session<'_>, turns: u32) -> View {
    session.until_look("it waits", |view| view.state == Phase::Waiting && view.turns == turns)
}

fn kill_both(session: &Session<'_>) {
    for who in [ProcessKind::Keeper, ProcessKind::Holder] {
        let before = session.kill(who);
        session.replaced(who, &before);
    }
}

#[test]
fn claude_continues_when_the_limit_is_reset_and_queued_messages_follow() {
    let Some(fixture) = subscribed() else { return };
    let session = fixture.detach(&[], Some("limit 20"));
    let view = until_waiting(&session, 1);
    assert_eq!(view.waits_for.as_deref(), Some("usage limit"));
    let resumes_at = view.resumes_at.unwrap();
    fixture.harness.run(&["send", session.id(), "say later"]).exits(0);
    kill_both(&session);
    fixture.harness.run(&["wait", session.id()]).exits(0);
    assert!(jiff::Timestamp::now() >= resumes_at, "not before");
    assert_eq!(fixture.seen(), ["limit 20", "continue", "say later"]);
    assert_eq!(session.show().outcome().text.as_deref(), Some("later"));
    fixture.proves("usage limit: waits for the reset and continues once, whichever helper is killed");
}

#[test]
fn claude_continues_after_a_limit_in_the_middle_of_a_turn_and_after_a_second_one() {
    let Some(fixture) = subscribed() else { return };
    let begun = format!("{} ; limit 8", fixture.tool("echo done >> done"));
    let session = fixture.detach(&["--keep"], Some(&begun));
    until_waiting(&session, 1);
    assert_eq!(fixture.written("done"), "done\n");
    fixture.harness.run(&["send", session.id(), "limit 9"]).exits(0);
    until_waiting(&session, 3);
    session.until_look("it has continued again", |view| view.turns == 4 && view.state == Phase::Idle);
    session.stop();
    assert_eq!(fixture.seen(), [begun.as_str(), "continue", "limit 9", "continue"]);
    assert_eq!(fixture.written("done"), "done\n", "the tool ran once");
}

#[test]
fn codex_waits_until_the_minute_that_it_names() {
    let Some(fixture) = Fixture::new(Agent::Codex) else { return };
    let session = fixture.detach(&[], Some("limit 600"));
    let view = until_waiting(&session, 1);
    assert_eq!(view.waits_for.as_deref(), Some("usage limit"));
    let ahead = view.resumes_at.unwrap().duration_since(jiff::Timestamp::now()).as_secs();
    assert!((500..=660).contains(&ahead), "{ahead} s");
    kill_both(&session);
    fixture.harness.run(&["resume", session.id(), "--now"]).exits(0);
    fixture.harness.run(&["wait", session.id()]).exits(0);
    assert_eq!(fixture.seen(), ["limit 600", "continue"]);
    fixture.proves("usage limit: waits for the reset and continues once, whichever helper is killed");
}

#[test]
fn gemini_waits_although_it_does_not_say_until_when() {
    let Some(fixture) = Fixture::new(Agent::Gemini) else { return };
    let session = fixture.detach(&[], Some("limit 600 once ; say after all"));
    let view = until_waiting(&session, 1);
    assert_eq!(view.waits_for.as_deref(), Some("usage limit"));
    kill_both(&session);
    fixture.harness.run(&["resume", session.id(), "--now"]).exits(0);
    fixture.harness.run(&["wait", session.id()]).exits(0);
    // Gemini has removed the refused prompt from its conversation, so it gets the same prompt again.
    assert_eq!(fixture.seen(), ["limit 600 once ; say after all"]);
    assert_eq!(session.show().outcome().text.as_deref(), Some("after all"));
    fixture.proves("usage limit: waits for the reset and continues once, whichever helper is killed");
}

/// Opencode asks again by itself, in the same process, at the time that the server names: there is nothing to continue.
#[test]
fn opencode_waits_by_itself() {
    let Some(fixture) = Fixture::new(Agent::Opencode) else { return };
    let session = fixture.detach(&[], Some("limit 2"));
    fixture.asked_for(3);
    let view = session.look();
    assert_eq!((view.state, view.alive), (Phase::Working, true));
    session.stop();
    assert_eq!(fixture.seen(), ["limit 2"]);
}

#[test]
fn codex_continues_what_claude_cannot_because_of_its_limit() {
    let Some(mut fixture) = subscribed() else { return };
    let home = fixture.harness.root().join("home");
    // The programs of all agents are in the same PATH.
    let codex = Agent::Codex.furnish(&home, &fixture.server.url()).unwrap();
    for (name, value) in codex.into_iter().filter(|(name, _)| *name != "PATH") {
        fixture.harness.set(name, value);
    }
    // The proxy that keeps codex from the network must not keep claude from its model.
    fixture.harness.set("NO_PROXY", "127.0.0.1");
    let begun = format!("{} ; limit 3600", fixture.tool("echo one > made.txt"));
    let session = fixture.detach(&["--on-limit", "codex"], Some(&begun));
    fixture.harness.run(&["wait", session.id()]).exits(1);
    let cause = session.show().outcome().cause.clone();
    let (_, id) = cause.split_once("codex continues in session ").unwrap_or_else(|| panic!("{cause}"));
    fixture.harness.run(&["wait", id]).exits(0);
    let shown = fixture.harness.run(&["show", "--json", id]).exits(0).json();
    assert_eq!((&shown["agent"], &shown["origin"]), (&"codex".into(), &"handover".into()), "{shown}");
    let request = fixture.last_request();
    assert!(request.contains("You continue work that another agent (claude) has begun"), "{request}");
    assert!(request.contains("echo one > made.txt"), "{request}");
    assert_eq!(fixture.written("made.txt"), "one\n");
}
