//! Claude in a terminal reports its turns, questions and conversations through hooks. Nothing is read from its screen,
//! and the state of the session is as exact as that of a headless session.

use crate::fixture::Fixture;
use crate::person::Person;
use ostler_mock_llm::agents::Agent;
use ostler_testkit::{ProcessKind, Session, patience};
use serde_json::json;

/// A session in a terminal whose tools need permission.
fn in_a_terminal<'a>(fixture: &'a Fixture, arguments: &[&str]) -> Session<'a> {
    let work = fixture.work();
    let words = [&["-t", "--cwd", work.to_str().unwrap(), "claude"], arguments].concat();
    fixture.harness.detach(&words)
}

impl Fixture {
    fn sends(&self, session: &Session<'_>, message: &str) {
        self.harness.run(&["send", session.id(), message]).exits(0);
    }

    fn waits(&self, session: &Session<'_>, until: &str, code: i32) {
        self.harness.run(&["wait", session.id(), "--until", until]).exits(code);
    }
}

#[test]
fn turns_are_seen_counted_and_saved_and_the_next_run_continues() {
    let Some(fixture) = Fixture::of_trusting_claude() else { return };
    let session = in_a_terminal(&fixture, &[]);
    fixture.sends(&session, "say one");
    fixture.waits(&session, "turn", 0);
    let shown = session.show();
    assert_eq!((shown.state.as_str(), shown.turns, shown.last.as_deref()), ("idle", 1, Some("one")));

    fixture.sends(&session, "stream 100000 20");
    // Interrupted before the first word, claude would put the prompt back into its input line.
    session.until_printed("word7");
    assert_eq!(session.show().state, "working");
    fixture.harness.run(&["interrupt", session.id()]).exits(0);
    fixture.waits(&session, "turn", 6);

    fixture.sends(&session, "say three");
    fixture.waits(&session, "turn", 0);
    fixture.harness.run(&["stop", session.id()]).exits(0);
    let shown = session.show();
    let outcome = shown.outcome();
    assert_eq!((outcome.kind.as_str(), outcome.saved.as_str(), outcome.turns), ("succeeded", "verified", 3));
    assert_eq!((outcome.source.as_str(), outcome.text.as_deref()), ("agent", Some("three")));
    let transcript = std::fs::read_to_string(shown.transcript.as_deref().unwrap()).unwrap();
    assert!(transcript.contains("say three"), "{transcript}");

    fixture.harness.run(&["resume", "-d", session.id()]).exits(0);
    fixture.sends(&session, "say four");
    fixture.waits(&session, "turn", 0);
    let again = session.show();
    assert_eq!((again.native_id, again.turns, again.last.as_deref()), (shown.native_id, 4, Some("four")));
    session.stop();
    fixture.saw_once(&["say one", "stream 100000 20", "say three", "say four"]);
}

#[test]
fn a_question_shows_until_it_is_answered_on_the_screen() {
    let Some(fixture) = Fixture::of_trusting_claude() else { return };
    let session = in_a_terminal(&fixture, &[]);
    // Once allowed, the tool runs until the test writes into the pipe, so the question is over long before the tool.
    fixture.sends(&session, &format!("{} ; say asked", fixture.tool("mkfifo gate; cat gate")));
    fixture.waits(&session, "asking", 4);
    let ask = session.show().asking.unwrap();
    assert_eq!((&ask["tool"], &ask["input"]["command"]), (&json!("Bash"), &json!("mkfifo gate; cat gate")));
    let refused = fixture.harness.run(&["answer", session.id(), "--allow"]).exits(1);
    assert!(refused.complaint().contains(&format!("ostler attach {}", session.id())), "{refused:?}");

    let mut person = Person::runs(&fixture.harness, (40, 120), &["attach", session.id()]);
    person.sees("Do you want to proceed?");
    person.types(b"1");
    session.until_look("the question is answered", |view| view.state.word() == "working" && view.asking.is_none());
    fixture.process("cat gate");
    std::fs::write(fixture.work().join("gate"), "").unwrap();
    fixture.waits(&session, "turn", 0);
    assert_eq!(session.show().last.as_deref(), Some("asked"));

    fixture.sends(&session, &format!("{} ; say never", fixture.tool("touch never")));
    fixture.waits(&session, "asking", 4);
    person.sees("touch never");
    person.sees("Do you want to proceed?");
    person.types(b"\x1b");
    session.until_look("the turn is interrupted", |view| view.state.word() == "idle" && view.turns == 2);
    assert!(!fixture.work().join("never").exists());
    person.types(b"\x1c");
    person.is_left_with(0);
    session.stop();
    assert_eq!(session.show().outcome().kind, "interrupted");
    fixture.proves("terminal: permission: shown in `ls`, answered on the screen");
    fixture.proves_impossible(
        "terminal: permission: answered with `ostler answer`",
        "What a key means depends on the dialog that is open; `answer` is refused and names `ostler attach`.",
    );
}

#[test]
fn an_api_error_is_a_failed_turn() {
    let Some(fixture) = Fixture::of_trusting_claude() else { return };
    let session = in_a_terminal(&fixture, &[]);
    fixture.sends(&session, "fail 400 always");
    fixture.waits(&session, "turn", 1);
    fixture.harness.run(&["stop", session.id()]).exits(0);
    let outcome = session.show().outcome().clone();
    assert_eq!((outcome.kind.as_str(), outcome.saved.as_str()), ("failed", "verified"), "{outcome:?}");
}

#[test]
fn a_prompt_taken_back_before_the_first_word_ends_the_turn() {
    let Some(fixture) = Fixture::of_trusting_claude() else { return };
    let session = in_a_terminal(&fixture, &[]);
    fixture.sends(&session, "hang");
    fixture.asked_for(1);
    session.until_look("it works", |view| view.state.word() == "working");
    // Claude records nothing about a turn that is interrupted before the first word, and puts the prompt back into its
    // input line.
    fixture.harness.run(&["send", session.id(), "say instead", "--now"]).exits(0);
    session.until_look("both turns are over", |view| view.turns == 2 && view.queued == 0);
    assert_eq!(session.show().last.as_deref(), Some("instead"));
    session.stop();
    assert_eq!(fixture.seen().last().map(String::as_str), Some("say instead"));
}

#[test]
fn after_clear_and_resume_inside_claude_the_session_has_the_new_conversation() {
    let Some(fixture) = Fixture::of_trusting_claude() else { return };
    let session = in_a_terminal(&fixture, &[]);
    fixture.sends(&session, "say one");
    fixture.waits(&session, "turn", 0);
    let first = session.show();
    fixture.sends(&session, "/clear");
    let second = session.until_look("another conversation", |view| view.native_id != first.native_id);
    assert_ne!(second.transcript, first.transcript);
    session.until_look("no turn is running", |view| view.state.word() == "idle");
    assert_eq!(session.show().turns, 1, "a command of claude's own is not a turn");
    // The turn before `/clear` is saved in the transcript of its own conversation.
    fixture.harness.run(&["stop", session.id()]).exits(0);
    let shown = session.show();
    assert_eq!((shown.outcome().saved.as_str(), &shown.native_id), ("verified", &second.native_id));

    fixture.harness.run(&["resume", "-d", session.id()]).exits(0);
    fixture.sends(&session, "say two");
    fixture.waits(&session, "turn", 0);
    assert_eq!(session.show().transcript, shown.transcript);
    fixture.sends(&session, &format!("/resume {}", first.native_id.as_deref().unwrap()));
    session.until_look("the first conversation", |view| view.native_id == first.native_id);
    session.until_look("no turn is running", |view| view.state.word() == "idle");
    fixture.sends(&session, "say three");
    fixture.waits(&session, "turn", 0);
    session.stop();
    let shown = session.show();
    assert_eq!((&shown.native_id, &shown.transcript), (&first.native_id, &first.transcript));
    assert_eq!((shown.outcome().saved.as_str(), shown.turns), ("verified", 3));
}

#[test]
fn hooks_of_the_user_run_as_well_as_ours_from_the_settings_and_from_arguments() {
    let Some(fixture) = Fixture::of_trusting_claude() else { return };
    let claude = fixture.harness.root().join("home/.claude");
    let hook = |word: &str| {
        let command = format!("echo {word} >> theirs");
        json!({ "hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": command }] }] } }).to_string()
    };
    std::fs::create_dir_all(&claude).unwrap();
    std::fs::write(claude.join("settings.json"), hook("own")).unwrap();
    std::fs::write(fixture.work().join("given.json"), hook("given")).unwrap();
    for (round, settings) in ["given.json".to_owned(), hook("given")].iter().enumerate() {
        let session = in_a_terminal(&fixture, &["--", "--settings", settings]);
        fixture.sends(&session, "say one");
        fixture.waits(&session, "turn", 0);
        // Claude runs all hooks at once, and ours may be the first that reports.
        let work = fixture.work();
        patience::until("all hooks have run", &[&work], || {
            (fixture.written("theirs").lines().count() >= 2 * (round + 1)).then_some(())
        });
        session.stop();
        let mut ran: Vec<String> = fixture.written("theirs").lines().map(str::to_owned).collect();
        ran.sort();
        assert_eq!(ran, [vec!["given"; round + 1], vec!["own"; round + 1]].concat());
    }
    assert_eq!(std::fs::read_to_string(claude.join("settings.json")).unwrap(), hook("own"), "it was not changed");
    assert_eq!(std::fs::read_to_string(fixture.work().join("given.json")).unwrap(), hook("given"));
}

#[test]
fn what_happens_while_no_keeper_runs_is_known_at_once_and_counted_once() {
    let Some(fixture) = Fixture::of_trusting_claude() else { return };
    let session = in_a_terminal(&fixture, &[&["--"], fixture.agent.allowing()].concat());
    fixture.sends(&session, "say one");
    fixture.waits(&session, "turn", 0);
    let mut person = Person::runs(&fixture.harness, (40, 120), &["attach", session.id()]);
    person.sees("for shortcuts");
    // The tool of this turn ends when the test writes into the pipe, which is after the keepers were killed.
    let (tool, words) = fixture.endless_tool();
    person.types(format!("{tool} ; stream 30 1").as_bytes());
    person.sees("stream 30 1");
    person.types(b"\r");
    fixture.process(words);
    for _ in 0..3 {
        let before = session.kill(ProcessKind::Keeper);
        assert_eq!(session.look().state.word(), "working");
        session.replaced(ProcessKind::Keeper, &before);
    }
    std::fs::write(fixture.work().join("gate"), "").unwrap();
    session.until_look("it is done", |view| view.state.word() == "idle");
    let shown = session.show();
    assert_eq!(shown.turns, 2);
    assert!(shown.last.unwrap().ends_with("word30"));
    person.types(b"\x1c");
    person.is_left_with(0);
    session.stop();
    assert_eq!(session.show().outcome().saved, "verified");
}

#[test]
fn the_answer_of_a_subagent_is_not_the_answer_of_the_turn() {
    let Some(fixture) = Fixture::of_trusting_claude() else { return };
    let session = in_a_terminal(&fixture, &[]);
    let task = json!({ "description": "d", "prompt": "say from below", "subagent_type": "general-purpose" });
    fixture.sends(&session, &format!("tool Agent {task} ; say above"));
    fixture.waits(&session, "turn", 0);
    session.stop();
    let shown = session.show();
    assert_eq!((shown.outcome().text.as_deref(), shown.turns), (Some("above"), 1));
}

#[test]
fn a_message_waits_for_the_prompt_and_never_answers_a_dialog() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    let home = fixture.harness.root().join("home");
    Agent::Claude.trust(&home, &home.join("elsewhere")).unwrap();
    let session = in_a_terminal(&fixture, &[]);
    fixture.sends(&session, "say hello");
    let mut person = Person::runs(&fixture.harness, (40, 120), &["attach", session.id()]);
    person.sees("Yes, I trust this folder");
    assert_eq!(std::fs::read(session.run_file("in")).unwrap(), b"", "nothing was typed");
    person.types(b"\r");
    session.until_look("the message has had its turn", |view| view.turns == 1);
    person.sees("● hello");
    person.types(b"\x1c");
    person.is_left_with(0);
    session.stop();
    fixture.saw_once(&["say hello"]);
}
