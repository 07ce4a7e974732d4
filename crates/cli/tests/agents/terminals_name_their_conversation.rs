//! An agent in a terminal of its own only draws, and its conversation is known all the same: while it runs, when it
//! quits by itself, and when another command resumes it, copies it, or tries to write to it.

use crate::fixture::{Fixture, for_every_agent};
use crate::person::Person;
use crate::terminals_show_their_screen::ready;
use ostler_mock_llm::agents::Agent;
use ostler_testkit::{ProcessKind, Session};
use std::time::Duration;

/// Its first answer.
const FIRST: &str = "word1 word2 word3";

fn a_terminal_has_a_conversation(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    agent.trust(&fixture.harness.root().join("home"), &fixture.work()).unwrap();
    let session = fixture.detach(&["-t"], None);
    let mut person = sends_and_sees(&fixture, &session, ready(agent), "stream 3 1", FIRST);
    let native_id = session.until("its conversation is known", || session.look().native_id);
    session.until("and where it is written", || session.look().transcript);
    // A list shows what the agent said, not the help at the bottom of its screen.
    if matches!(agent, Agent::Claude | Agent::Codex) {
        let last = || session.show().last.filter(|last| last == FIRST);
        session.until("what it said last is in the list", last);
        fixture.proves("terminal: `ls` shows what it said last");
    }

    // The next keeper knows the conversation as well, and no other process may write to it.
    session.kill(ProcessKind::Keeper);
    assert_eq!(session.look().native_id.as_ref(), Some(&native_id));
    let other =
        fixture.harness.run(&[&["run", "-d", agent.name(), "say no", "--"], resuming(agent), &[&native_id]].concat());
    let refused = other.exits(7);
    let writer = session.living(ProcessKind::Agent).pid();
    assert!(refused.complaint().contains(&format!("process {writer} ")), "{refused:?}");
    // Another terminal is refused as well, and is not even started.
    let sessions = || fixture.harness.run(&["ls", "-a", "--json"]).exits(0).json().as_array().unwrap().len();
    let before = sessions();
    fixture.harness.run(&[&["run", "-d", "-t", agent.name(), "--"], resuming(agent), &[&native_id]].concat()).exits(7);
    assert_eq!(sessions(), before);

    quits_by_itself(agent, &session, &mut person);
    fixture.harness.run(&["wait", session.id()]).exits(0);
    let shown = session.show();
    assert_eq!((shown.native_id.as_ref(), shown.outcome().saved.as_str()), (Some(&native_id), "verified"), "{shown:?}");

    fixture.harness.run(&["resume", "-d", session.id()]).exits(0);
    sends_and_sees(&fixture, &session, FIRST, "stream 5 1", "word4 word5");
    assert!(fixture.last_request().contains("stream 3 1"), "it continues the conversation");
    fixture.harness.run(&["stop", session.id()]).exits(0);
    let shown = session.show();
    assert_eq!((shown.native_id.as_ref(), shown.outcome().saved.as_str()), (Some(&native_id), "verified"), "{shown:?}");
    // Gemini does not report the id of the copy that it makes.
    if agent != Agent::Gemini {
        is_copied(&fixture, &session, &native_id);
    }
    fixture.proves("terminal: its conversation can be resumed");
    fixture.proves("terminal: its conversation is known, and no other process's");
}

/// A copy contains what was said, and has its own id.
fn is_copied(fixture: &Fixture, session: &Session<'_>, native_id: &str) {
    let fork = fixture.harness.run(&["fork", "-d", session.id()]).exits(0);
    let fork = fixture.harness.session(fork.stdout.trim_end());
    let mut person = Person::runs(&fixture.harness, (40, 120), &["attach", fork.id()]);
    person.sees(FIRST);
    assert_ne!(fork.look().native_id.as_deref(), Some(native_id), "the copy is not the original");
    sends_and_sees(fixture, &fork, FIRST, "stream 7 1", "word6 word7");
    assert!(fixture.last_request().contains("stream 3 1"), "the copy knows what was said");
    let copied = fork.until("the copy's conversation is known", || fork.look().native_id);
    assert_ne!(copied, native_id);
    fixture.harness.run(&["stop", fork.id()]).exits(0);
    assert_eq!(fork.show().outcome().saved, "verified");
}

/// Attaches, waits for `before` on the screen, sends the message and waits for the answer.
fn sends_and_sees(fixture: &Fixture, session: &Session<'_>, before: &str, message: &str, answer: &str) -> Person {
    let mut person = Person::runs(&fixture.harness, (40, 120), &["attach", session.id()]);
    person.sees(before);
    // Opencode shows this text only before the first message.
    if fixture.agent != Agent::Opencode {
        person.sees(ready(fixture.agent));
    }
    fixture.harness.run(&["send", session.id(), message]).exits(0);
    person.sees(answer);
    person
}

/// The arguments with which a headless agent continues a conversation.
fn resuming(agent: Agent) -> &'static [&'static str] {
    match agent {
        Agent::Claude | Agent::ClaudeAcp | Agent::Gemini | Agent::Qwen => &["--resume"],
        Agent::Codex | Agent::CodexAcp => &["resume"],
        Agent::Opencode => &["--session"],
    }
}

fn quits_by_itself(agent: Agent, session: &Session<'_>, person: &mut Person) {
    person.types(b"\x03");
    match agent {
        Agent::Claude | Agent::ClaudeAcp | Agent::Gemini | Agent::Qwen => {
            person.sees("again to exit");
            // A second press counts only for a moment, and on a busy machine it may come too late.
            session.until("it exits", || {
                person.types(b"\x03");
                // Reads what it draws meanwhile, so that it does not block on a full terminal.
                person.looks(Duration::ZERO);
                (!session.show().alive).then_some(())
            });
        }
        Agent::Codex | Agent::CodexAcp | Agent::Opencode => {}
    }
}

for_every_agent!(a_terminal_has_a_conversation:
    claude_has_a_conversation_in_a_terminal Claude,
    codex_has_a_conversation_in_a_terminal Codex,
    gemini_has_a_conversation_in_a_terminal Gemini,
    opencode_has_a_conversation_in_a_terminal Opencode,
);
