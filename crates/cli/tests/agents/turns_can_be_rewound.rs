//! Turns that edit through the agent's own tools: the changes of each turn are known, and files and conversation go
//! back to the end of a turn. The model then gets what was said up to that turn, and nothing of the later ones.

use crate::fixture::{Fixture, for_every_agent};
use ostler_mock_llm::agents::Agent;

fn in_a_repository(fixture: &Fixture) {
    let work = fixture.work();
    let git = |arguments: &[&str]| {
        let mut command = fixture.harness.command("git");
        let output = command.current_dir(&work).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    };
    git(&["config", "--global", "user.name", "A Person"]);
    git(&["config", "--global", "user.email", "person@example.com"]);
    git(&["init", "--quiet", "--initial-branch", "main"]);
    std::fs::write(work.join("a.txt"), "one\n").unwrap();
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "--message", "first"]);
}

fn goes_back_to_a_turn(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    in_a_repository(&fixture);
    let edit = |word: &str| format!("{} ; say {word} is done", fixture.tool(&format!("echo {word} >> a.txt")));
    fixture.follow(&edit("first")).exits(0);
    let session = fixture.last();
    for word in ["second", "third"] {
        fixture.harness.run(&["resume", session.id(), &edit(word)]).exits(0);
    }
    let before = session.show();
    let transcript = before.transcript.clone().unwrap();
    let written = std::fs::read(&transcript).unwrap();
    for (turn, word) in [("1", "+first"), ("2", "+second"), ("3", "+third")] {
        let diff = fixture.harness.run(&["diff", session.id(), "--turn", turn]).exits(0).stdout;
        let added: Vec<&str> = diff.lines().filter(|line| line.starts_with('+') && !line.starts_with("+++")).collect();
        assert_eq!(added, [word], "{diff}");
    }
    // On a busy machine it adds that turn 3 had begun when the files were kept.
    let found = fixture.harness.run(&["bisect", session.id(), "--check", "! grep -q second a.txt"]).exits(0);
    assert!(found.stdout.contains(": turn 2 ") && found.stdout.contains("+second"), "{found:?}");

    let told = fixture.harness.run(&["rewind", session.id(), "--turn", "2"]).exits(0).stdout;
    assert_eq!(fixture.written("a.txt"), "one\nfirst\nsecond\n");
    let copy = told.lines().last().unwrap().split(':').next().unwrap().to_owned();
    let answer = fixture.harness.run(&["resume", &copy, "say in the copy"]).exits(0);
    assert_eq!(answer.stdout, "in the copy\n", "{answer:?}");
    let request = fixture.last_request();
    assert!(request.contains("first is done") && request.contains("second is done"), "{request}");
    assert!(request.contains("in the copy") && !request.contains("third"), "{request}");
    let shown = fixture.harness.session(&copy).show();
    assert_eq!(shown.outcome().saved, "verified", "{shown:?}");
    assert_ne!(shown.native_id, before.native_id);

    // The session itself continues unchanged.
    assert!(std::fs::read(&transcript).unwrap() == written, "the original's transcript was written to");
    fixture.harness.run(&["resume", session.id(), "say in the original"]).exits(0);
    let request = fixture.last_request();
    assert!(request.contains("third is done") && !request.contains("in the copy"), "{request}");
    fixture.harness.run(&["rewind", session.id(), "--undo"]).exits(0);
    assert_eq!(fixture.written("a.txt"), "one\nfirst\nsecond\nthird\n");
    fixture.proves("what each turn changed; files and conversation go back to the end of a turn");
}

for_every_agent!(goes_back_to_a_turn:
    claude_goes_back_to_a_turn Claude,
    codex_goes_back_to_a_turn Codex,
);

/// The files of these agents can go back. Their conversation cannot be copied, and the refusal comes before anything
/// changes.
fn files_go_back_and_the_conversation_does_not(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    in_a_repository(&fixture);
    fixture.follow(&format!("{} ; say done", fixture.tool("echo first >> a.txt"))).exits(0);
    let session = fixture.last();
    let refused = fixture.harness.run(&["rewind", session.id(), "--turn", "1"]).exits(2);
    assert!(refused.complaint().contains("cannot copy a conversation"), "{refused:?}");
    assert!(fixture.harness.run(&["diff", session.id(), "--turn", "1"]).exits(0).stdout.contains("+first"));
    fixture.harness.run(&["rewind", session.id(), "--turn", "0", "--files"]).exits(0);
    assert_eq!(fixture.written("a.txt"), "one\n");
    fixture.proves("what each turn changed; files go back to the end of a turn");
}

for_every_agent!(files_go_back_and_the_conversation_does_not:
    files_of_gemini_go_back Gemini,
    files_of_opencode_go_back Opencode,
);
