//! Another agent continues: it gets the conversation and the state of the tree, and the original stays as it is.

use crate::repo::Repo;
use crate::{shown, told};

#[test]
fn the_other_agent_gets_the_conversation_and_the_tree_and_the_original_stays() {
    let repo = Repo::new();
    repo.ostler(&["run", "-w", "--name", "fix", "--label", "task=42", "demo", "run-command echo two >> a.txt"])
        .exits(0);
    repo.ostler(&["resume", "fix", "say I would look at below/b.txt next"]).exits(0);
    let before = shown(&repo, "fix");
    let transcript = std::fs::read(before["transcript"].as_str().unwrap()).unwrap();

    let id = repo.ostler(&["handover", "fix", "--to", "demo", "-d", "and now the rest"]).exits(0).stdout;
    let id = id.trim();
    repo.ostler(&["wait", id]).exits(0);
    let prompts = told(&repo, id);
    let prompt = &prompts[0];
    assert_eq!(prompts.len(), 1, "{prompts:?}");
    for words in [
        "[person]\nrun-command echo two >> a.txt",
        "[tool] Bash: echo two >> a.txt",
        "[agent]\ndone",
        "[person]\nsay I would look at below/b.txt next",
        "[agent]\nI would look at below/b.txt next",
        "## ostler/fix",
        " M a.txt",
        "a.txt | 1 +",
    ] {
        assert!(prompt.contains(words), "{words:?} in {prompt}");
    }
    assert!(prompt.ends_with("and now the rest"), "{prompt}");

    let after = shown(&repo, id);
    assert_eq!(after["parent"], before["id"]);
    assert_eq!(after["origin"], "handover");
    assert_eq!(after["labels"]["task"], "42");
    assert_eq!((&after["cwd"], &after["worktree"]), (&before["cwd"], &before["worktree"]));
    // The original session is unchanged, and its child is listed.
    assert_eq!(std::fs::read(before["transcript"].as_str().unwrap()).unwrap(), transcript);
    let now = shown(&repo, "fix");
    for field in ["turns", "run", "outcome", "updated", "prompt"] {
        assert_eq!(now[field], before[field], "{field}");
    }
    assert_eq!(now["children"][0], id);
    let words = repo.ostler(&["show", "fix"]).exits(0).stdout;
    assert!(words.contains("handover, demo"), "{words}");
    // The other agent's changes are work in the same tree, and land from there.
    repo.ostler(&["resume", id, "run-command echo three >> a.txt"]).exits(0);
    repo.ostler(&["land", id]).exits(0);
    assert_eq!(std::fs::read_to_string(repo.folder.join("a.txt")).unwrap(), "one\ntwo\nthree\n");
}

#[test]
fn a_long_conversation_keeps_its_task_and_its_end() {
    let repo = Repo::new();
    let session = repo.ostler(&["run", "-d", "--keep", "--name", "long", "demo", "say the task"]).exits(0).stdout;
    let session = session.trim();
    for n in 0..6 {
        let text = format!("say part {n} {}", "x".repeat(20_000));
        repo.ostler(&["send", "--wait", session, &text]).exits(0);
    }
    repo.ostler(&["stop", session]).exits(0);
    let id = repo.ostler(&["handover", session, "--to", "demo", "-d"]).exits(0).stdout;
    repo.ostler(&["wait", id.trim()]).exits(0);
    let prompt = &told(&repo, id.trim())[0];
    assert!(prompt.len() < 80_000, "{}", prompt.len());
    assert!(prompt.contains("[person, the first message]\nsay the task"), "{}", &prompt[..400]);
    assert!(prompt.contains("are left out]") && prompt.contains("[agent]\npart 5 "));
    assert!(!prompt.contains("part 0 "));
}

#[test]
fn what_cannot_be_handed_over_is_refused_and_nothing_is_left() {
    let repo = Repo::new();
    repo.ostler(&["run", "--name", "command", "--", "true"]).exits(0);
    repo.ostler(&["run", "-d", "--name", "busy", "demo", "sleep"]).exits(0);
    repo.ostler(&["run", "--name", "done", "demo", "say one"]).exits(0);
    let count = || repo.ostler(&["ls", "-a", "--json"]).exits(0).json().as_array().unwrap().len();
    let before = count();
    let refused = repo.ostler(&["handover", "command", "--to", "demo"]).exits(2);
    let words = refused.complaint();
    assert!(words.contains("commands and jobs have no conversation"), "{words}");
    let refused = repo.ostler(&["handover", "busy", "--to", "demo"]).exits(7);
    let words = refused.complaint();
    assert!(words.contains("still working"), "{words}");
    repo.ostler(&["handover", "done", "--to", "no-such-agent"]).complaint();
    repo.ostler(&["handover", "done", "--to", "command"]).exits(2).complaint();
    repo.ostler(&["handover", "unknown", "--to", "demo"]).exits(3).complaint();
    assert_eq!(count(), before);
    repo.ostler(&["stop", "--kill", "busy"]);
}

#[test]
fn an_agent_that_does_not_exist_is_refused_with_a_suggestion() {
    let repo = Repo::new();
    repo.ostler(&["run", "-w", "--name", "fix", "demo", "run-command echo two >> a.txt"]).exits(0);
    for words in [["handover", "fix", "--to"], ["review", "fix", "--by"]] {
        for (name, hint) in [("demmo", "did you mean demo?"), ("nosuch", "list them with: ostler agents")] {
            let refused = repo.ostler(&[&words[..], &[name]].concat()).exits(2);
            assert_eq!(
                refused.complaint().trim_end(),
                format!("ostler: {name:?} is not an agent; {hint}"),
                "{words:?}"
            );
        }
    }
    assert_eq!(repo.harness.ls().len(), 1);
}
