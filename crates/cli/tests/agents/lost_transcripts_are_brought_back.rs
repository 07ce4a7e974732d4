//! A transcript that was lost is put back before the conversation continues. Gemini deletes conversations when another
//! gemini starts in the same folder, and other programs may empty, cut or replace a file.

use crate::fixture::{Fixture, for_every_agent};
use ostler_mock_llm::agents::Agent;

fn is_brought_back(agent: Agent) {
    continues_whole_after(agent, |transcript| std::fs::remove_file(transcript).unwrap());
}

fn is_brought_back_into_an_empty_file(agent: Agent) {
    continues_whole_after(agent, |transcript| std::fs::write(transcript, "").unwrap());
}

fn continues_whole_after(agent: Agent, loss: fn(&str)) {
    let Some(fixture) = Fixture::new(agent) else { return };
    fixture.follow("say one").exits(0);
    let session = fixture.last();
    let transcript = session.show().transcript.unwrap();
    loss(&transcript);
    let resumed = fixture.harness.run(&["resume", session.id(), "say two"]).exits(0);
    assert!(resumed.stderr.contains("its transcript was missing"), "{}", resumed.stderr);
    let told = fixture.last_request();
    assert!(told.contains("say one") && told.contains("say two"), "{told}");
    assert!(std::fs::read_to_string(&transcript).unwrap().contains("say one"));
    fixture.proves("a lost transcript is brought back at the resume");
}

for_every_agent!(is_brought_back:
    a_transcript_of_claude_is_brought_back Claude,
    a_transcript_of_codex_is_brought_back Codex,
    a_transcript_of_gemini_is_brought_back Gemini,
);

for_every_agent!(is_brought_back_into_an_empty_file:
    an_emptied_transcript_of_claude_is_brought_back Claude,
    an_emptied_transcript_of_codex_is_brought_back Codex,
    an_emptied_transcript_of_gemini_is_brought_back Gemini,
);

#[test]
fn lines_that_a_running_claude_lost_are_put_before_those_that_it_wrote_since() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    let session = fixture.detach(&["--keep"], Some("say one"));
    fixture.harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    let transcript = session.show().transcript.unwrap();
    // Claude writes its answer a moment after it has told it: a copy that was made before does not contain the message
    // that the next one follows.
    session.until("a copy of the first turn with its answer", || {
        std::fs::read_to_string(&transcript).ok()?.contains(r#""role":"assistant""#).then_some(())?;
        let copied = fixture.harness.run(&["checkpoints", session.id(), "--json"]).exits(0).stdout;
        let last: serde_json::Value = serde_json::from_str(copied.lines().last()?).ok()?;
        (last["length"] == std::fs::metadata(&transcript).ok()?.len()).then_some(())
    });
    std::fs::remove_file(&transcript).unwrap();
    fixture.harness.run(&["send", session.id(), "say two"]).exits(0);
    fixture.harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    session.stop();
    assert!(!std::fs::read_to_string(&transcript).unwrap().contains("say one"));

    let resumed = fixture.harness.run(&["resume", session.id(), "say three"]).exits(0);
    assert!(resumed.stderr.contains("missing in the transcript: restored"), "{}", resumed.stderr);
    assert_eq!(fixture.seen(), ["say one", "say two", "say three"]);
    let told = fixture.last_request();
    assert!(["say one", "say two", "say three"].iter().all(|said| told.contains(said)), "{told}");
    let again = fixture.harness.run(&["repair", session.id(), "--dry-run"]).exits(0);
    assert!(again.stdout.contains("nothing to repair"), "{}", again.stdout);
}

fn is_put_back_when_cut(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    fixture.follow("say one").exits(0);
    let session = fixture.last();
    fixture.harness.run(&["resume", session.id(), "say two"]).exits(0);
    let transcript = session.show().transcript.unwrap();
    let whole = std::fs::read(&transcript).unwrap();
    std::fs::write(&transcript, &whole[..whole.len() / 2]).unwrap();
    let looked = fixture.harness.run(&["repair", session.id(), "--dry-run"]).exits(1);
    assert!(looked.stdout.contains("to repair: the transcript was cut"), "{}", looked.stdout);
    assert_eq!(std::fs::read(&transcript).unwrap(), &whole[..whole.len() / 2], "--dry-run changes nothing");
    // `repair` does what `--dry-run` has announced.
    let repaired = fixture.harness.run(&["repair", session.id()]).exits(0);
    let lines = |text: &str, word: &str| -> Vec<String> {
        text.lines().filter_map(|line| line.strip_prefix(word)).map(str::to_owned).collect()
    };
    assert_eq!(lines(&looked.stdout, "to repair: "), lines(&repaired.stdout, "repaired: "), "{looked:?} {repaired:?}");
    assert_eq!(std::fs::read(&transcript).unwrap(), whole);
    std::fs::write(&transcript, &whole[..whole.len() / 2]).unwrap();
    let resumed = fixture.harness.run(&["resume", session.id(), "say three"]).exits(0);
    assert!(resumed.stderr.contains("the transcript was cut"), "{}", resumed.stderr);
    let told = fixture.last_request();
    assert!(["say one", "say two", "say three"].iter().all(|said| told.contains(said)), "{told}");
}

for_every_agent!(is_put_back_when_cut:
    a_cut_transcript_of_claude_is_put_back Claude,
    a_cut_transcript_of_codex_is_put_back Codex,
    a_cut_transcript_of_gemini_is_put_back Gemini,
);

#[test]
fn a_transcript_that_claude_cannot_read_is_reported_and_fails_with_its_message() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    fixture.follow("say one").exits(0);
    let session = fixture.last();
    let transcript = session.show().transcript.unwrap();
    std::fs::write(&transcript, "{\"type\":\"user\"}\n").unwrap();
    let resumed = fixture.harness.run(&["resume", session.id(), "say two"]).exits(1);
    assert!(resumed.stderr.contains("ostler checkpoints restore"), "{}", resumed.stderr);
    let outcome = session.show();
    let outcome = outcome.outcome();
    assert_eq!(outcome.kind, "failed", "{outcome:?}");
    assert!(outcome.cause.contains("No conversation found"), "{outcome:?}");
}
