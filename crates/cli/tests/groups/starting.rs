//! A group starts one session per agent, each in a tree of its own, or nothing.

use crate::repo::{Repo, write};
use serde_json::Value;

/// The members of a group in `ls --json`, in the order of their names.
pub fn members(repo: &Repo, group: &str) -> Vec<Value> {
    let all = repo.ostler(&["ls", "--all", "--json"]).exits(0).json();
    let mut found: Vec<Value> =
        all.as_array().unwrap().iter().filter(|one| one["group"] == group && one["job"].is_null()).cloned().collect();
    found.sort_by_key(|one| one["name"].as_str().unwrap().to_owned());
    found
}

#[test]
fn every_agent_gets_the_prompt_and_a_tree_of_its_own() {
    let repo = Repo::new();
    let before = repo.state();
    let base = repo.git(&["rev-parse", "HEAD"]);
    let ran = repo.ostler(&["run", "--on", "demo:2,demo", "say hello", "--name", "fix", "--label", "task=4"]).exits(0);
    assert!(ran.stdout.contains("3 of 3 sessions succeeded; compare them: ostler compare fix"), "{ran:?}");
    let found = members(&repo, "fix");
    let names: Vec<&str> = found.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["fix-demo-1", "fix-demo-2", "fix-demo-3"]);
    for one in &found {
        assert_eq!((&one["status"], &one["last"]), (&"succeeded".into(), &"hello".into()));
        assert_eq!((&one["worktree"]["base"], &one["worktree"]["from"]), (&base.as_str().into(), &"main".into()));
        assert_eq!(one["cwd"], repo.tree(one["name"].as_str().unwrap()).to_str().unwrap());
        assert_eq!(one["labels"]["task"], "4");
    }
    assert_eq!(repo.state(), before);
    let job = repo.ostler(&["show", "--json", "fix"]).exits(0).json();
    assert_eq!((&job["job"], &job["status"]), (&"group".into(), &"succeeded".into()));
    repo.ostler(&["wait", "group:fix"]).exits(0);
    // The name belongs to this group until the group is archived.
    assert!(repo.ostler(&["run", "--on", "demo", "say x", "--name", "fix"]).exits(2).complaint().contains("fix"));
}

#[test]
fn a_matrix_is_the_cross_product_and_fills_in_the_prompt() {
    let repo = Repo::new();
    let file = repo.harness.root().join("m.toml");
    write(&file, "agent = \"demo\"\nword = [\"one\", \"two\"]\ntail = [1, 2]\nprompt = \"say {{word}}-{{tail}}\"\n");
    let id = repo.ostler(&["run", "-d", "--matrix", file.to_str().unwrap()]).exits(0).stdout.trim().to_owned();
    repo.ostler(&["wait", &id]).exits(0);
    let said: Vec<String> = members(&repo, &id).iter().map(|one| one["last"].as_str().unwrap().to_owned()).collect();
    assert_eq!(said, ["one-1", "one-2", "two-1", "two-2"]);
    let labels = members(&repo, &id)[3]["labels"].clone();
    assert_eq!((&labels["word"], &labels["tail"]), (&"two".into(), &"2".into()));
    // The prompt may come from the command line.
    write(&file, "agent = [\"demo\", \"demo\"]\nword = \"three\"\n");
    let ran = repo.ostler(&["run", "--matrix", file.to_str().unwrap(), "say {{word}}", "--name", "typed"]).exits(0);
    assert!(ran.stdout.contains("2 of 2 sessions succeeded"), "{ran:?}");
    assert!(members(&repo, "typed").iter().all(|one| one["last"] == "three"));
}

#[test]
fn bad_input_starts_nothing() {
    let repo = Repo::new();
    let file = repo.harness.root().join("m.toml");
    let matrix = file.to_str().unwrap();
    let before = repo.state();
    let refused = |words: &[&str], said: &str| {
        let refused = repo.ostler(&[&["run", "--name", "bad"], words].concat()).exits(2);
        assert!(refused.complaint().contains(said), "{words:?}: {refused:?}");
        assert_eq!(refused.stderr.trim_end().lines().count(), 1, "{refused:?}");
    };
    refused(&["--on", "demo,demmo", "say x"], "did you mean demo?");
    refused(&["--on", "demo:0", "say x"], "is not a number");
    refused(&["--on", "demo,", "say x"], "empty name");
    refused(&["--on", "demo"], "a prompt is missing");
    refused(&["--on", "demo", "demo", "say x"], "one word too many");
    refused(&["--on", "demo", "say x", "--base", "nowhere"], "is not a commit");
    refused(&["--matrix", matrix, "say x"], "cannot read");
    for (text, place) in [
        ("agent = [\"demo\"\n", "m.toml:"),
        ("agent = \"demmo\"\nprompt = \"x\"\n", "m.toml:1:1: \"demmo\" is not an agent"),
        ("agent = \"demo\"\nprompt = \"say {{x}}\"\n", "m.toml:2:1: the prompt has {{x}}"),
        ("agent = \"demo\"\nprompt = \"say\"\n\n  y = 1\n", "m.toml:4:3: no prompt has {{y}}"),
    ] {
        write(&file, text);
        refused(&["--matrix", matrix], place);
    }
    // Not in a repository, or in one without a commit.
    let outside = repo.harness.run(&["run", "--on", "demo", "say x"]).exits(2);
    assert!(outside.complaint().contains("is not in a git repository"), "{outside:?}");
    let empty = Repo::empty("empty");
    assert!(empty.ostler(&["run", "--on", "demo", "say x"]).exits(2).complaint().contains("no commit yet"));
    // The name of a member is taken.
    repo.ostler(&["run", "-d", "--name", "bad-demo", "--", "sleep", "600"]).exits(0);
    refused(&["--on", "demo", "say x"], "in use");
    repo.ostler(&["stop", "bad-demo"]).exits(0);
    assert_eq!(repo.harness.ls().len(), 1);
    assert_eq!(repo.state(), before);
    repo.has_no_traces();
}

#[test]
fn a_member_that_fails_makes_the_group_fail_and_the_others_continue() {
    let repo = Repo::new();
    let file = repo.harness.root().join("m.toml");
    write(&file, "agent = \"demo\"\nprompt = [\"fail it breaks\", \"say fine\"]\n");
    let ran = repo.ostler(&["run", "--matrix", file.to_str().unwrap(), "--name", "half"]).exits(1);
    assert!(ran.stdout.contains("1 of 2 sessions succeeded"), "{ran:?}");
    let states: Vec<Value> = members(&repo, "half").iter().map(|one| one["status"].clone()).collect();
    assert_eq!(states, ["failed", "succeeded"]);
}

#[test]
fn all_members_are_known_when_a_detached_start_returns() {
    let mut repo = Repo::new();
    repo.harness.set("OSTLER_DEMO_PACE", "100000");
    repo.ostler(&["run", "-d", "--on", "demo:6", "say hello", "--name", "gp"]).exits(0);
    assert_eq!(members(&repo, "gp").len(), 6);
    let waiting = repo.start_in(&repo.folder, &["wait", "group:gp"]);
    repo.ostler(&["stop", "group:gp"]).exits(0);
    let waited = waiting.finish();
    assert_eq!(waited.stdout.lines().count(), 7, "the job and its members: {waited:?}");
    assert!(members(&repo, "gp").iter().all(|one| one["ended"] == true));
}

#[test]
fn waiting_for_a_group_waits_for_members_that_are_not_started_yet() {
    let repo = Repo::new();
    // This command follows the group; the other one waits for the group as soon as there is a job.
    let following = repo.start_in(&repo.folder, &["run", "--on", "demo:6", "say hello", "--name", "gp"]);
    let sessions = repo.harness.home().join("sessions");
    ostler_testkit::patience::until("the job is there", &[repo.harness.root(), &sessions], || {
        let all = repo.ostler(&["ls", "-a", "--json"]).exits(0).json();
        all.as_array().unwrap().iter().any(|one| one["name"] == "gp").then_some(())
    });
    let waited = repo.ostler(&["wait", "group:gp"]).exits(0);
    assert_eq!(waited.stdout.lines().count(), 7, "{waited:?}");
    assert!(members(&repo, "gp").iter().all(|one| one["status"] == "succeeded"));
    following.finish().exits(0);
}
