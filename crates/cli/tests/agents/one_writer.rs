//! Many commands resume one conversation of a real agent: one gets it, the others are refused and the message names the
//! owner.

use crate::fixture::{Fixture, for_every_agent};
use ostler_mock_llm::agents::Agent;
use ostler_testkit::{Output, Started};

#[test]
fn of_fifty_resumes_at_once_one_runs_and_the_others_name_its_process() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    fixture.follow("say one").exits(0);
    let session = fixture.last();
    let resume = ["resume", "-d", session.id(), "hang"];
    let started: Vec<Started> = (0..50).map(|_| fixture.harness.start(&resume)).collect();
    let outputs: Vec<_> = started.into_iter().map(Started::finish).collect();
    let ran = outputs.iter().filter(|output| output.code == Some(0)).count();
    let refused: Vec<_> = outputs.iter().filter(|output| output.code == Some(7)).collect();
    assert_eq!((ran, refused.len()), (1, 49), "{outputs:#?}");
    for output in refused {
        assert!(output.complaint().contains("is using the conversation"), "{output:?}");
        assert!(output.complaint().contains("process ") && output.complaint().contains("since "), "{output:?}");
    }
    fixture.asked_for(2);
    fixture.saw_once(&["say one", "hang"]);
    let shown = session.show();
    assert_eq!((shown.run, shown.queued), (2, 0), "{shown:?}");
    fixture.proves("one writer: of fifty who resume, one does");
}

/// `ostler` in another home of the same user.
fn elsewhere(fixture: &Fixture, words: &[&str]) -> Output {
    let mut command = fixture.harness.command(fixture.harness.program());
    command.args(words).env("OSTLER_HOME", fixture.harness.root().join("copy"));
    Started::new(command, None).finish()
}

/// Also for agents that report the id of the conversation only after the start, and between two processes of the
/// session, when no agent process runs.
fn a_kept_session_owns_its_conversation_between_turns(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let session = fixture.detach(&["--keep"], Some("say one"));
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    fixture.harness.run(&["stop", session.id()]).exits(0);
    fixture.harness.nothing_is_left();
    fixture.harness.copy(&fixture.harness.home(), &fixture.harness.root().join("copy"));
    fixture.harness.run(&["resume", "-d", "--keep", session.id(), "say two"]).exits(0);
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let refused = elsewhere(&fixture, &["resume", session.id(), "say three"]).exits(7);
    assert!(refused.complaint().contains(&format!("session {} in ", session.id())), "{refused:?}");
    fixture.harness.run(&["send", session.id(), "say four"]).exits(0);
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    elsewhere(&fixture, &["resume", session.id(), "say three"]).exits(7);
    assert_eq!(session.show().alarm, None);
    fixture.harness.run(&["stop", session.id()]).exits(0);
    elsewhere(&fixture, &["resume", session.id(), "say three"]).exits(0);
    let told = fixture.last_request();
    assert!(["say one", "say two", "say four", "say three"].iter().all(|said| told.contains(said)), "{told}");
}

for_every_agent!(a_kept_session_owns_its_conversation_between_turns:
    a_kept_claude_owns_its_conversation_between_turns Claude,
    a_kept_codex_owns_its_conversation_between_turns Codex,
    a_kept_gemini_owns_its_conversation_between_turns Gemini,
    a_kept_opencode_owns_its_conversation_between_turns Opencode,
);

#[test]
fn a_codex_that_reports_its_conversation_late_owns_it_from_then_on() {
    let Some(fixture) = Fixture::new(Agent::Codex) else { return };
    let session = fixture.detach(&[], Some("hang"));
    fixture.asked_for(1);
    let native_id = session.until_look("it has told its name", |view| view.native_id.is_some()).native_id.unwrap();
    let locks = fixture.harness.root().join("state/ostler/writers");
    let lock = session.until("the keeper has the lock", || {
        std::fs::read_dir(&locks).ok()?.find_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok())
    });
    let agent = session.living(ostler_testkit::ProcessKind::Agent).pid();
    assert!(lock.contains(&native_id) && lock.contains(&format!("\"pid\":{agent},")), "{lock}");
    session.stop();
    assert_eq!(std::fs::read_dir(&locks).unwrap().count(), 0);
}
