//! `answer --allow --always`: what claude proposes is allowed until its process ends, and not longer.

use crate::fixture::Fixture;
use crate::person::Person;
use ostler_mock_llm::agents::Agent;

const TWO_WRITES: &str =
    r#"tool Write {"file_path":"one","content":"1"} ; tool Write {"file_path":"two","content":"2"} ; say written"#;

/// Every settings file of claude, with its text.
fn settings(fixture: &Fixture) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in [fixture.harness.root().join("home/.claude"), fixture.work().join(".claude")] {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.path().to_string_lossy().into_owned();
            if name.contains("settings") {
                found.push((name, std::fs::read_to_string(entry.path()).unwrap()));
            }
        }
    }
    found
}

#[test]
fn allow_always_lasts_until_the_process_ends_and_writes_no_settings() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    let session = fixture.detach_strict(&["--keep"], TWO_WRITES);
    fixture.harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    let shown = fixture.harness.run(&["show", session.id()]).exits(0);
    assert!(shown.stdout.contains("for the rest of the run: every edit in the working directory"), "{shown:?}");
    fixture.harness.run(&["answer", session.id(), "--deny", "--always"]).exits(2);
    fixture.harness.run(&["answer", session.id(), "--allow", "--always"]).exits(0);
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    assert_eq!((fixture.written("one"), fixture.written("two")), ("1".to_owned(), "2".to_owned()));
    let journal = std::fs::read_to_string(session.path().join("journal.jsonl")).unwrap();
    let answers: Vec<&str> = journal.lines().filter(|line| line.contains(r#""what":"answered""#)).collect();
    assert_eq!(answers.len(), 1, "asked once: {answers:?}");
    assert!(answers[0].contains(r#""always":"every edit in the working directory""#), "{answers:?}");
    assert!(answers[0].contains(r#""by":""#), "{answers:?}");
    assert_eq!(settings(&fixture), [], "no settings were written");
    session.stop();

    fixture.harness.run(&["resume", "-d", "--keep", session.id(), &TWO_WRITES.replace("say", "say again")]).exits(0);
    fixture.harness.run(&["wait", session.id(), "--until", "asking"]).exits(4);
    session.stop();
}

#[test]
fn a_person_who_follows_a_run_can_allow_always_with_one_letter() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    let work = fixture.work();
    let mut person =
        Person::runs(&fixture.harness, (24, 120), &["run", "--cwd", work.to_str().unwrap(), "claude", TWO_WRITES]);
    person.sees("a: always every edit in the working directory");
    person.types(b"a\r");
    person.sees("written");
    person.is_left_with(0);
    assert_eq!(fixture.written("two"), "2");
}
