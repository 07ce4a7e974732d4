//! A conversation is copied into a worktree, or continues in one, if the agent allows another folder.

use crate::fixture::{Fixture, for_every_agent};
use ostler_mock_llm::agents::Agent;

/// A fixture whose working directory is a repository with one commit.
fn in_a_repository(agent: Agent) -> Option<Fixture> {
    let fixture = Fixture::new(agent)?;
    let work = fixture.work();
    std::fs::write(work.join("a.txt"), "one\n").unwrap();
    for words in [
        &["config", "--global", "user.name", "A Person"][..],
        &["config", "--global", "user.email", "person@example.com"],
        &["init", "--quiet", "--initial-branch", "main"],
        &["add", "--all"],
        &["commit", "--quiet", "--message", "first"],
    ] {
        let output = fixture.harness.command("git").current_dir(&work).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
    }
    Some(fixture)
}

fn is_copied_into_a_worktree(agent: Agent) {
    let Some(fixture) = in_a_repository(agent) else { return };
    fixture.follow("say one").exits(0);
    let original = fixture.last();
    let there = format!("{} ; say two", fixture.tool("pwd > where"));
    fixture.harness.run(&["fork", "--worktree=copy", original.id(), &there]).exits(0);
    let tree = fixture.work().join(".worktrees/copy");
    assert_eq!(std::fs::read_to_string(tree.join("where")).unwrap(), format!("{}\n", tree.display()));
    let told = fixture.last_request();
    assert!(told.contains("say one") && told.contains("say two"), "{told}");
    let shown = fixture.last().show();
    assert_eq!(shown.outcome().kind, "succeeded", "{shown:?}");
    assert_ne!(shown.outcome().saved, "unverified");
    // The copy continues in the worktree, and the original in its own folder.
    fixture.harness.run(&["resume", "copy", "say three"]).exits(0);
    let told = fixture.last_request();
    assert!(told.contains("say one") && told.contains("say two") && told.contains("say three"), "{told}");
    let here = format!("{} ; say four", fixture.tool("pwd > where"));
    fixture.harness.run(&["resume", original.id(), &here]).exits(0);
    assert_eq!(fixture.written("where"), format!("{}\n", fixture.work().display()));
    assert!(!fixture.last_request().contains("say three"));
    fixture.proves("a conversation is copied into a worktree (fork --worktree)");
}

for_every_agent!(is_copied_into_a_worktree:
    claude_is_copied_into_a_worktree Claude,
    codex_is_copied_into_a_worktree Codex,
    gemini_is_copied_into_a_worktree Gemini,
);

fn continues_in_a_worktree(agent: Agent) {
    let Some(fixture) = in_a_repository(agent) else { return };
    fixture.follow("say one").exits(0);
    let id = fixture.last().id().to_owned();
    let there = format!("{} ; say two", fixture.tool("pwd > where"));
    fixture.harness.run(&["resume", "--worktree=next", &id, &there]).exits(0);
    let tree = fixture.work().join(".worktrees/next");
    assert_eq!(std::fs::read_to_string(tree.join("where")).unwrap(), format!("{}\n", tree.display()));
    let told = fixture.last_request();
    assert!(told.contains("say one") && told.contains("say two"), "{told}");
    let shown = fixture.last().show();
    assert_eq!(shown.outcome().kind, "succeeded", "{shown:?}");
    assert_ne!(shown.outcome().saved, "unverified");
    let again = format!("{} ; say three", fixture.tool("pwd > again"));
    fixture.harness.run(&["resume", &id, &again]).exits(0);
    assert_eq!(std::fs::read_to_string(tree.join("again")).unwrap(), format!("{}\n", tree.display()));
    let told = fixture.last_request();
    assert!(told.contains("say one") && told.contains("say two") && told.contains("say three"), "{told}");
    fixture.proves("a conversation goes on in a worktree (resume --worktree)");
}

for_every_agent!(continues_in_a_worktree:
    codex_continues_in_a_worktree Codex,
);

fn does_not_continue_in_a_worktree(agent: Agent) {
    let Some(fixture) = in_a_repository(agent) else { return };
    fixture.follow("say one").exits(0);
    let refused = fixture.harness.run(&["resume", "-w", fixture.last().id(), "say two"]).exits(2);
    assert!(refused.complaint().contains("only in the folder in which it began"), "{refused:?}");
    assert!(!fixture.work().join(".worktrees").exists());
    fixture.proves_impossible(
        "a conversation goes on in a worktree (resume --worktree)",
        "it finds a conversation only from the folder in which that began",
    );
}

for_every_agent!(does_not_continue_in_a_worktree:
    claude_does_not_continue_in_a_worktree Claude,
    gemini_does_not_continue_in_a_worktree Gemini,
    opencode_does_not_continue_in_a_worktree Opencode,
    qwen_does_not_continue_in_a_worktree Qwen,
);

/// Measured with opencode 1.18: with a conversation of another folder, copied or not, it waits for ever and never asks
/// its model.
#[test]
fn opencode_is_not_copied_into_a_worktree() {
    let Some(fixture) = in_a_repository(Agent::Opencode) else { return };
    fixture.follow("say one").exits(0);
    let refused = fixture.harness.run(&["fork", "-w", fixture.last().id(), "say two"]).exits(2);
    assert!(refused.complaint().contains("only in the folder in which it began"), "{refused:?}");
    assert!(!fixture.work().join(".worktrees").exists());
    fixture.proves_impossible(
        "a conversation is copied into a worktree (fork --worktree)",
        "with a conversation of another folder it waits for ever",
    );
}
