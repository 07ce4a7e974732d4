//! Two sessions change the same file, each in its own worktree. One lands when its check passes, the other conflicts,
//! and nothing of either is lost.

use crate::fixture::{Fixture, for_every_agent};
use ostler_mock_llm::agents::Agent;

fn works_in_a_tree_and_lands(agent: Agent) {
    let Some(fixture) = Fixture::new(agent) else { return };
    let work = fixture.work();
    let git = |arguments: &[&str]| {
        let mut command = fixture.harness.command("git");
        let output = command.current_dir(&work).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    };
    git(&["config", "--global", "user.name", "A Person"]);
    git(&["config", "--global", "user.email", "person@example.com"]);
    git(&["init", "--quiet", "--initial-branch", "main"]);
    std::fs::write(work.join("a.txt"), "one\n").unwrap();
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "--message", "first"]);

    let [left, right] = ["left", "right"].map(|name| {
        let prompt = format!("{} ; say done", fixture.tool(&format!("echo {name} > a.txt")));
        let session = fixture.detach(&["--worktree", name], Some(&prompt));
        fixture.harness.run(&["wait", session.id()]).exits(0);
        session
    });
    assert_eq!(fixture.written("a.txt"), "one\n");
    let diff = fixture.harness.run(&["diff", right.id()]).exits(0).stdout;
    assert!(diff.contains("-one\n+right\n"), "{diff}");

    fixture.harness.run(&["land", left.id(), "--check", "grep -q left a.txt"]).exits(0);
    assert_eq!(fixture.written("a.txt"), "left\n");
    let main = git(&["rev-parse", "main"]);
    let conflict = fixture.harness.run(&["land", right.id(), "--check", "true"]).exits(1);
    assert!(conflict.complaint().contains("in a.txt; nothing has changed"), "{conflict:?}");
    assert_eq!((git(&["rev-parse", "main"]), fixture.written("a.txt")), (main, "left\n".to_owned()));
    assert_eq!(git(&["show", "ostler/right:a.txt"]), "right");

    // As the message says: the session continues in its worktree, and lands then.
    let resolve = fixture.tool("git merge -q main; echo both > a.txt; git commit -qam both");
    fixture.harness.run(&["resume", right.id(), &format!("{resolve} ; say resolved")]).exits(0);
    fixture.harness.run(&["land", right.id(), "--check", "grep -q both a.txt"]).exits(0);
    assert_eq!(fixture.written("a.txt"), "both\n");
    assert_eq!(git(&["rev-list", "--count", "main"]), "3");
    fixture.proves(
        "works in a git worktree of its own; its work lands when a check passes, and a conflict changes nothing",
    );
}

for_every_agent!(works_in_a_tree_and_lands:
    claude_works_in_a_tree_and_lands Claude,
    codex_works_in_a_tree_and_lands Codex,
);
