//! A usage limit of claude in a terminal. Its hooks report it, and claude opens a dialog by itself. The session waits,
//! and what is typed afterwards goes to the prompt and never to that dialog.

use crate::fixture::Fixture;
use crate::person::Person;
use ostler_core::view::{Phase, View};
use ostler_mock_llm::agents::Agent;
use ostler_testkit::{ProcessKind, Session, patience};

const DIALOG: &str = "Stop and wait for limit to reset";

/// Claude reports usage limits only with a subscription.
fn subscribed() -> Option<Fixture> {
    let mut fixture = Fixture::of_trusting_claude()?;
    fixture.harness.set("ANTHROPIC_API_KEY", "");
    fixture.harness.set("CLAUDE_CODE_OAUTH_TOKEN", "scripted");
    Some(fixture)
}

fn in_a_terminal<'a>(fixture: &'a Fixture, flags: &[&str], prompt: &str) -> Session<'a> {
    fixture.detach(&[&["-t"], flags].concat(), Some(prompt))
}

fn until_waiting(session: &Session<'_>) -> View {
    let view = session.until_look("it waits", |view| view.state == Phase::Waiting);
    assert_eq!(view.waits_for.as_deref(), Some("usage limit"));
    view
}

fn until_turns(session: &Session<'_>, turns: u32) {
    session.until_look("it is done", |view| view.state == Phase::Idle && view.turns == turns && view.queued == 0);
}

#[test]
fn it_continues_once_at_the_time_that_claude_names_and_queued_messages_follow() {
    let Some(mut fixture) = subscribed() else { return };
    fixture.harness.has_own_clock();
    let begun = format!("{} ; limit 3600", fixture.tool("echo done >> done"));
    let session = in_a_terminal(&fixture, &[], &begun);
    let resumes_at = until_waiting(&session).resumes_at.unwrap();
    let ahead = resumes_at.duration_since(jiff::Timestamp::now()).as_secs();
    assert!((3480..=3660).contains(&ahead), "claude names the minute, to which one is added: {ahead} s");
    let mut person = Person::runs(&fixture.harness, (40, 120), &["attach", session.id()]);
    person.sees(DIALOG);
    person.types(b"\x1c");
    person.is_left_with(0);
    fixture.harness.run(&["send", session.id(), "say later"]).exits(0);
    for who in [ProcessKind::Keeper, ProcessKind::Holder] {
        let before = session.kill(who);
        session.replaced(who, &before);
    }
    fixture.harness.shift_clock(ahead - 120);
    fixture.harness.run(&["wait", session.id(), "--timeout", "1ms"]).exits(124);
    let view = session.look();
    assert_eq!((view.state, view.queued), (Phase::Waiting, 1), "not yet, and the message waits as well");
    fixture.harness.shift_clock(ahead + 1);
    // This clock is only a file, so that the keeper looks at it when a client wakes it.
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    until_turns(&session, 3);
    session.stop();
    assert_eq!(fixture.seen(), [begun.as_str(), "continue", "say later"]);
    assert_eq!(fixture.written("done"), "done\n", "the tool ran once");
    let shown = session.show();
    assert_eq!((shown.run, shown.outcome().text.as_deref()), (1, Some("later")));
    fixture.proves("terminal: usage limit: waits for the reset and continues once, whichever helper is killed");
}

#[test]
fn resume_now_continues_it_and_it_waits_again_at_a_second_limit() {
    let Some(fixture) = subscribed() else { return };
    let session = in_a_terminal(&fixture, &[], "limit 3600 once ; say hello");
    let ahead = until_waiting(&session).resumes_at.unwrap().duration_since(jiff::Timestamp::now()).as_secs();
    assert!((3480..=3660).contains(&ahead), "{ahead} s");
    // Without a wait: the dialog may not be there yet.
    fixture.harness.run(&["resume", session.id(), "--now"]).exits(0);
    until_turns(&session, 2);
    fixture.harness.run(&["send", session.id(), "limit 200000"]).exits(0);
    let ahead = until_waiting(&session).resumes_at.unwrap().duration_since(jiff::Timestamp::now()).as_secs();
    assert!((199_880..=200_060).contains(&ahead), "more than a day ahead claude names the day: {ahead} s");
    session.stop();
    let shown = session.show();
    assert_eq!(shown.state, "ended");
    assert_eq!(fixture.seen(), ["limit 3600 once ; say hello", "continue", "limit 200000"]);
    fixture.harness.nothing_is_left();
}

#[test]
fn with_on_limit_fail_the_turn_fails_and_the_next_message_does_not_answer_the_dialog() {
    let Some(fixture) = subscribed() else { return };
    let session = in_a_terminal(&fixture, &["--on-limit", "fail"], "limit 3600");
    session.until_look("the turn has failed", |view| view.state == Phase::Idle && view.turns == 1);
    // In the dialog the first character of this message would choose an entry.
    fixture.harness.run(&["send", session.id(), "2 is what is typed ; say two"]).exits(0);
    until_turns(&session, 2);
    fixture.harness.run(&["send", session.id(), "limit 3600"]).exits(0);
    session.until_look("the turn has failed", |view| view.state == Phase::Idle && view.turns == 3);
    session.stop();
    let outcome = session.show().outcome().clone();
    assert_eq!(outcome.kind, "failed");
    assert!(outcome.text.is_some_and(|text| text.starts_with("You've hit your session limit · resets ")));
    assert_eq!(fixture.seen(), ["limit 3600", "2 is what is typed ; say two", "limit 3600"]);
}

#[test]
fn it_does_not_continue_after_a_person_has_continued_or_quit() {
    let Some(fixture) = subscribed() else { return };
    let session = in_a_terminal(&fixture, &[], "limit 3600");
    until_waiting(&session);
    let mut person = Person::runs(&fixture.harness, (40, 120), &["attach", session.id()]);
    person.sees(DIALOG);
    person.types(b"\x1b");
    person.sees("for shortcuts");
    person.types(b"say mine");
    person.sees("say mine");
    person.types(b"\r");
    person.sees("● mine");
    let view = session.until_look("it is idle", |view| view.state == Phase::Idle && view.turns == 2);
    assert_eq!((view.resumes_at, view.waits_for), (None, None), "a person has continued it");
    person.types(b"limit 7200");
    person.sees("limit 7200");
    person.types(b"\r");
    until_waiting(&session);
    person.sees("/upgrade to increase");
    person.types(b"/exit");
    person.sees("/exit");
    person.types(b"\r");
    person.is_left_with(1);
    let view = session.until_look("it has ended", |view| view.ended);
    assert_eq!(view.outcome.unwrap().kind.word(), "failed");
    assert_eq!(fixture.seen(), ["limit 3600", "say mine", "limit 7200"]);
}

#[test]
fn a_dialog_that_a_person_has_opened_is_not_answered_by_a_message() {
    let Some(fixture) = subscribed() else { return };
    let session = in_a_terminal(&fixture, &[], "say hello");
    until_turns(&session, 1);
    let mut person = Person::runs(&fixture.harness, (40, 120), &["attach", session.id()]);
    person.sees("for shortcuts");
    person.types(b"/model");
    person.sees("/model");
    person.types(b"\r");
    person.sees("Esc to cancel");
    fixture.harness.run(&["send", session.id(), "say after it"]).exits(0);
    let view = session.until_look("the reason for the wait is shown", |view| view.message_waits.is_some());
    assert_eq!(view.message_waits, Some(format!("claude shows a dialog; answer it: ostler attach {}", session.id())));
    person.types(b"\x1b");
    until_turns(&session, 2);
    person.types(b"\x1c");
    person.is_left_with(0);
    session.stop();
    let mut seen = fixture.seen();
    seen.retain(|message| !message.starts_with("<command-name>/model"));
    assert_eq!(seen, ["say hello", "say after it"]);
    fixture.proves("terminal: a dialog is not answered by a message, which waits and says why");
}

/// A busy claude writes into its record some time after it has opened a dialog.
#[test]
fn a_message_that_was_typed_into_a_dialog_is_taken_back_and_typed_again() {
    let Some(fixture) = subscribed() else { return };
    let session = in_a_terminal(&fixture, &[], "say hello");
    until_turns(&session, 1);
    let pid = session.recorded(ProcessKind::Agent).unwrap().pid();
    let record = fixture.harness.root().join(format!("home/.claude/sessions/{pid}.json"));
    let written = |words: &str| {
        patience::until(&format!("the record has {words}"), &[record.parent().unwrap()], || {
            std::fs::read_to_string(&record).ok().filter(|text| text.contains(words))
        })
    };
    let typed = || std::fs::read_to_string(session.run_file("in")).unwrap();
    let idle = written("\"idle\"");
    let mut person = Person::runs(&fixture.harness, (40, 120), &["attach", session.id()]);
    person.sees("for shortcuts");
    person.types(b"/model");
    person.sees("/model");
    person.types(b"\r");
    person.sees("Esc to cancel");
    let open = written("dialog open");
    std::fs::write(&record, idle).unwrap();
    fixture.harness.run(&["send", session.id(), "say after it"]).exits(0);
    session.until("the text is typed", || typed().contains("say after it").then_some(()));
    std::fs::write(&record, open).unwrap();
    let view = session.until_look("the reason for the wait is shown", |view| view.message_waits.is_some());
    assert_eq!((view.queued, typed().contains("say after it\u{1b}[201~\r")), (1, false));
    let before = session.kill(ProcessKind::Keeper);
    session.replaced(ProcessKind::Keeper, &before);
    person.types(b"\x1b");
    until_turns(&session, 2);
    person.types(b"\x1c");
    person.is_left_with(0);
    session.stop();
    let mut seen = fixture.seen();
    seen.retain(|message| !message.starts_with("<command-name>/model"));
    assert_eq!(seen, ["say hello", "say after it"]);
}

#[test]
fn another_agent_continues_when_that_was_asked_for() {
    let Some(mut fixture) = subscribed() else { return };
    let home = fixture.harness.root().join("home");
    // The programs of all agents are in the same PATH.
    let codex = Agent::Codex.furnish(&home, &fixture.server.url()).unwrap();
    for (name, value) in codex.into_iter().filter(|(name, _)| *name != "PATH") {
        fixture.harness.set(name, value);
    }
    // The proxy that keeps codex from the network must not keep claude from its model.
    fixture.harness.set("NO_PROXY", "127.0.0.1");
    let session = in_a_terminal(&fixture, &["--on-limit", "codex"], "limit 3600");
    fixture.harness.run(&["wait", session.id()]).exits(1);
    let cause = session.show().outcome().cause.clone();
    let (_, id) = cause.split_once("codex continues in session ").unwrap_or_else(|| panic!("{cause}"));
    let shown = fixture.harness.run(&["show", "--json", id]).exits(0).json();
    assert_eq!((&shown["agent"], &shown["origin"]), (&"codex".into(), &"handover".into()), "{shown}");
    fixture.harness.run(&["stop", id]).exits(0);
}
