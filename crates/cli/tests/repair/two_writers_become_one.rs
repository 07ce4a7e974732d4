//! Two claudes that were started by hand on one conversation, at the same time. Neither takes account of the other, and
//! without a repair the finished turns of one of them are lost.

use crate::conversation::is_well_formed;
use crate::fixture::Fixture;
use ostler_mock_llm::agents::Agent;
use ostler_testkit::Output;
use std::process::{Child, Stdio};

const ID: &str = "3f8e7a52-9d5b-4c1e-8a37-2b6d90e1c4f5";

/// A claude that was not started by ostler.
fn claude(fixture: &Fixture, prompt: &str, id: [&str; 2]) -> Child {
    let words = Agent::Claude.program().unwrap();
    let mut command = fixture.harness.command(&words[0]);
    command.args(["-p", prompt]).args(id).args(["--allowedTools", "Bash"]).current_dir(fixture.work());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[track_caller]
fn to_its_end(fixture: &Fixture, prompt: &str, id: [&str; 2]) {
    assert!(claude(fixture, prompt, id).wait().unwrap().success(), "{prompt}");
}

/// Runs two claudes; each is in the middle of a tool when the other one writes.
fn two_at_once(fixture: &Fixture, id: &str) {
    let prompt = |name: &str| format!("{} ; say end-{name}", fixture.tool(&format!("mkfifo {name}; cat {name}")));
    let mut both = ["one", "two"].map(|name| claude(fixture, &prompt(name), ["--resume", id]));
    for name in ["one", "two"] {
        fixture.process(&format!("cat {name}"));
    }
    let refused = fixture.harness.run(&["repair", id]).exits(7);
    let named = both.iter().any(|child| refused.complaint().contains(&format!("process {}", child.id())));
    assert!(named, "one of them is named: {refused:?}");
    for name in ["one", "two"] {
        std::fs::write(fixture.work().join(name), "released\n").unwrap();
    }
    for child in &mut both {
        assert!(child.wait().unwrap().success());
    }
}

#[track_caller]
fn repair(fixture: &Fixture, flags: &[&str]) -> Output {
    fixture.harness.run(&[&["repair"], flags, &[ID]].concat())
}

#[test]
fn after_repair_the_model_sees_both_in_one_conversation() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    to_its_end(&fixture, "say beginning", ["--session-id", ID]);
    two_at_once(&fixture, ID);
    let told = repair(&fixture, &["--dry-run"]).exits(1);
    assert!(told.stdout.contains("two processes wrote at once"), "{told:?}");
    let repaired = repair(&fixture, &[]).exits(0);
    assert!(repaired.stdout.contains("two processes wrote at once"), "{repaired:?}");
    assert!(repair(&fixture, &[]).exits(0).stdout.starts_with("nothing to repair"));
    to_its_end(&fixture, "say after", ["--resume", ID]);
    let seen = is_well_formed(&fixture);
    for text in ["beginning", "end-one", "end-two", "say after"] {
        assert!(seen.contains(text), "{text:?} is not in {seen}");
    }
}

/// The transcript that both have written.
fn written(fixture: &Fixture) -> String {
    let projects = fixture.harness.root().join("home/.claude/projects");
    let project = std::fs::read_dir(projects).unwrap().next().unwrap().unwrap().path();
    std::fs::read_to_string(project.join(ID).with_extension("jsonl")).unwrap()
}

#[test]
fn with_split_there_are_two_conversations_that_both_continue() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    to_its_end(&fixture, "say beginning", ["--session-id", ID]);
    two_at_once(&fixture, ID);
    let before = written(&fixture);
    let output = repair(&fixture, &["--split"]).exits(0);
    let other = output.stdout.split("--resume ").nth(1).and_then(|rest| rest.split(' ').next());
    let other = other.unwrap_or_else(|| panic!("not split: {output:?}\n{before}")).to_owned();
    assert!(repair(&fixture, &[]).exits(0).stdout.starts_with("nothing to repair"));
    let mut ends = Vec::new();
    for id in [ID, &other] {
        to_its_end(&fixture, "say after", ["--resume", id]);
        let seen = is_well_formed(&fixture);
        assert!(seen.contains("beginning"), "{seen}");
        ends.push(["one", "two"].map(|name| seen.contains(&format!(r#""text":"end-{name}""#))));
    }
    ends.sort_unstable();
    assert_eq!(ends, [[false, true], [true, false]], "each has one of the two");
}

#[test]
fn with_split_a_session_becomes_two_that_both_continue() {
    let Some(fixture) = Fixture::new(Agent::Claude) else { return };
    fixture.follow("say beginning").exits(0);
    let session = fixture.last();
    two_at_once(&fixture, &session.show().native_id.unwrap());
    let output = fixture.harness.run(&["repair", "--split", session.id()]).exits(0);
    let listed = fixture.harness.run(&["ls", "-a", "--json"]).exits(0).json();
    let other = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["parent"] == session.id())
        .unwrap_or_else(|| panic!("{output:?}"));
    assert_eq!((&other["state"], &other["agent"]), (&"ended".into(), &"claude".into()), "{other}");
    let other = other["id"].as_str().unwrap();
    assert!(output.stdout.contains(&format!("continue it with: ostler resume {other}")), "{output:?}");
    fixture.harness.run(&["logs", other]).exits(0);
    let family = fixture.harness.run(&["show", session.id()]).exits(0);
    assert!(family.stdout.contains(other), "{family:?}");
    let mut ends = Vec::new();
    for id in [session.id(), other] {
        let resumed = fixture.harness.run(&["resume", id, "say after"]).exits(0);
        assert!(!resumed.stderr.contains("repaired"), "{resumed:?}");
        let seen = is_well_formed(&fixture);
        assert!(seen.contains("beginning"), "{seen}");
        ends.push(["one", "two"].map(|name| seen.contains(&format!(r#""text":"end-{name}""#))));
    }
    ends.sort_unstable();
    assert_eq!(ends, [[false, true], [true, false]], "each has one of the two");
}
