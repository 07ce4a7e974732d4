//! Agents that run one process per turn: when a process cannot be started, or exits before it has read its message, the
//! turn has failed with a reason, and the message waits. A program that an update has moved is found again.

use crate::fixture::{Fixture, for_every_agent};
use ostler_mock_llm::agents::Agent;
use ostler_testkit::Harness;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A package as npm installs it. Its programs start the installed agent.
fn install(harness: &Harness, folder: &Path, agent: Agent) -> PathBuf {
    let program = agent.program().unwrap();
    let words: Vec<String> = program.iter().map(|word| format!("'{}'", word.display())).collect();
    let package = folder.join(agent.name());
    let launcher = package.join("bin").join(agent.name());
    let beside = ostler_agents::find(agent.name()).unwrap().beside_its_launcher();
    let real = beside.iter().map(|relative| normal(&package.join(relative)));
    for file in [launcher.clone()].into_iter().chain(real) {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        harness.write_program(&file, &format!("#!/bin/sh\nexec {} \"$@\"\n", words.join(" ")));
    }
    launcher
}

/// Without `..`, which would need the folders before it to exist.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => drop(normal.pop()),
            other => normal.push(other),
        }
    }
    normal
}

fn fails_with_a_reason_and_keeps_the_message(agent: Agent) {
    let Some(mut fixture) = Fixture::new(agent) else { return };
    let root = fixture.harness.root().to_owned();
    let bin = root.join("bin");
    std::fs::create_dir(&bin).unwrap();
    let command = bin.join(agent.name());
    symlink(install(&fixture.harness, &root.join("v1"), agent), &command).unwrap();
    let path = fixture.harness.variable("PATH").unwrap().into_string().unwrap();
    fixture.harness.set("PATH", format!("{}:{path}", bin.display()));

    let session = fixture.detach(&["--keep"], Some("say one"));
    let waited = fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    assert_eq!(waited.stdout, format!("{} state=idle turn=succeeded\n", session.id()));

    // An update: the old folder is gone, and the command points to the new one.
    std::fs::remove_dir_all(root.join("v1")).unwrap();
    std::fs::remove_file(&command).unwrap();
    symlink(install(&fixture.harness, &root.join("v2"), agent), &command).unwrap();
    fixture.harness.run(&["send", session.id(), "say two"]).exits(0);
    fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(0);
    let shown = session.show();
    assert_eq!((shown.state.as_str(), shown.last.as_deref()), ("idle", Some("two")), "{shown:?}");

    // The working folder is gone.
    let elsewhere = root.join("elsewhere");
    std::fs::rename(fixture.work(), &elsewhere).unwrap();
    fixture.harness.run(&["send", session.id(), "say three"]).exits(0);
    let waited = fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(1);
    assert!(waited.stdout.contains("status=failed"), "{waited:?}");
    let shown = session.show();
    let outcome = shown.outcome();
    assert_eq!((outcome.kind.as_str(), outcome.source.as_str()), ("failed", "ostler"), "{outcome:?}");
    assert!(outcome.cause.contains(fixture.work().to_str().unwrap()), "no reason: {outcome:?}");
    assert_eq!((shown.queued, shown.turns, shown.run), (1, 2, 3), "{shown:?}");
    let listed = fixture.harness.run(&["ls"]).exits(0).stdout;
    assert!(listed.contains("failed") && listed.contains("cannot start"), "{listed}");

    // The cause is removed: the waiting message is delivered, once.
    std::fs::rename(&elsewhere, fixture.work()).unwrap();
    let resumed = fixture.harness.run(&["resume", session.id()]).exits(0);
    assert_eq!(resumed.stdout, "three\n", "{resumed:?}");
    assert_eq!((session.show().queued, session.show().outcome().saved.as_str()), (0, "verified"));
    fixture.saw_once(&["say one", "say two", "say three"]);
    fixture.proves("a further process that cannot start: failed turn, the message waits");
    fixture.proves("an update that moves the program");
}

for_every_agent!(fails_with_a_reason_and_keeps_the_message:
    codex_that_cannot_start_again_fails_its_turn Codex,
    gemini_that_cannot_start_again_fails_its_turn Gemini,
    opencode_that_cannot_start_again_fails_its_turn Opencode,
);

fn exits_at_once(agent: Agent, reason: &str) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let work = fixture.work();
    let words =
        ["run", "-d", "--keep", "--cwd", work.to_str().unwrap(), agent.name(), "say one", "--", "--no-such-flag"];
    let session = fixture.harness.run(&words).exits(0).stdout;
    let session = fixture.harness.session(session.trim_end());
    let waited = fixture.harness.run(&["wait", session.id(), "--until", "turn"]).exits(1);
    let shown = session.show();
    assert!(shown.outcome().cause.contains(reason), "{shown:?}");
    assert!(waited.stdout.contains(reason), "{waited:?}");
    assert_eq!((shown.outcome().kind.as_str(), shown.queued), ("failed", 1), "{shown:?}");
    fixture.proves("a process that exits at once: the reason, and the message waits");
}

#[test]
fn codex_that_exits_at_once_says_why() {
    exits_at_once(Agent::Codex, "unexpected argument '--no-such-flag'");
}

#[test]
fn gemini_that_exits_at_once_says_why() {
    exits_at_once(Agent::Gemini, "Unknown arguments: such-flag");
}

/// Opencode prints its help and does not name the unknown argument.
#[test]
fn opencode_that_exits_at_once_says_why() {
    exits_at_once(Agent::Opencode, "it printed its help");
}
