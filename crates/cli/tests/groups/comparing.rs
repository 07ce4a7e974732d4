//! The members of a group are compared, get a message together, and the work of one of them is picked.

use crate::repo::{Repo, write};
use crate::starting::members;

/// A group with this name, whose members have each written one of these texts.
fn worked(name: &str, texts: &[&str]) -> Repo {
    let repo = Repo::new();
    let on = format!("demo:{}", texts.len());
    repo.ostler(&["run", "--on", &on, "say done", "--name", name]).exits(0);
    for (number, text) in texts.iter().enumerate() {
        let tree = repo.tree(&format!("{name}-demo-{}", number + 1));
        write(&tree.join("a.txt"), text);
        write(&tree.join(format!("new{number}.txt")), "1\n2\n");
    }
    repo
}

#[test]
fn a_group_is_compared_by_what_its_members_have_done() {
    let repo = worked("fix", &["two\n", "wrong\n", "one\n"]);
    let before = repo.state();
    let table = repo.ostler(&["compare", "fix", "--check", "! grep -q wrong a.txt"]).exits(0).stdout;
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 4, "{table}");
    for word in ["AGENT", "OUTCOME", "TIME", "COST", "TOKENS", "FILES", "LINES", "CHECK", "LAST MESSAGE"] {
        assert!(lines[0].contains(word), "{table}");
    }
    assert!(lines[1].contains("succeeded") && lines[1].contains("passed") && lines[1].contains("+3 -1"), "{table}");
    assert!(lines[2].contains("failed") && lines[2].contains("done"), "{table}");
    assert!(lines[3].contains("+2 -0"), "{table}");
    // The group is selected by its job, and the output is JSON.
    let job = repo.ostler(&["show", "--json", "fix"]).exits(0).json()["id"].as_str().unwrap().to_owned();
    let json = repo.ostler(&["compare", &job, "--json", "--check", "! grep -q wrong a.txt"]).exits(0).json();
    let passed: Vec<bool> =
        json.as_array().unwrap().iter().map(|one| one["check"]["passed"].as_bool().unwrap()).collect();
    assert_eq!(passed, [true, false, true]);
    assert_eq!(json[0]["changes"], serde_json::json!({"files": 2, "added": 3, "deleted": 1}));
    assert!(json[1]["check"]["session"].is_string());
    assert!(repo.ostler(&["compare", "group:fix"]).exits(0).stdout.lines().count() == 4);
    repo.ostler(&["compare", "nobody"]).exits(3);
    // Nothing of the checks is left.
    assert_eq!(repo.state(), before);
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 4);
}

#[test]
fn one_member_is_picked_and_the_others_are_archived() {
    let repo = worked("fix", &["two\n", "wrong\n", "three\n"]);
    let before = repo.state();
    // A member whose check fails changes nothing.
    repo.ostler(&["pick", "fix-demo-2", "--check", "! grep -q wrong a.txt"]).exits(1);
    assert_eq!(repo.state(), before);
    assert!(members(&repo, "fix").iter().all(|one| one["archived"] == false));
    let picked = repo.ostler(&["pick", "fix-demo-1", "--check", "! grep -q wrong a.txt"]).exits(0).stdout;
    assert!(picked.contains("landed on main") && picked.matches("archived").count() == 2, "{picked}");
    assert_eq!(std::fs::read_to_string(repo.folder.join("a.txt")).unwrap(), "two\n");
    let archived: Vec<bool> = members(&repo, "fix").iter().map(|one| one["archived"].as_bool().unwrap()).collect();
    assert_eq!(archived, [false, true, true]);
    // The work of the archived members stays, and picking again lands nothing.
    assert_eq!(std::fs::read_to_string(repo.tree("fix-demo-3").join("a.txt")).unwrap(), "three\n");
    assert!(repo.ostler(&["pick", "fix-demo-1"]).exits(0).stdout.contains("nothing to land"));
    assert_eq!(repo.ostler(&["compare", "fix"]).exits(0).stdout.lines().count(), 4);
    repo.ostler(&["run", "--name", "alone", "demo", "say x"]).exits(0);
    assert!(repo.ostler(&["pick", "alone"]).exits(2).complaint().contains("is in no group"));
}

#[test]
fn a_member_that_changed_nothing_is_not_picked_and_no_other_is_archived() {
    let repo = Repo::new();
    repo.ostler(&["run", "--on", "demo:2", "say done", "--name", "fix"]).exits(0);
    write(&repo.tree("fix-demo-2").join("a.txt"), "two\n");
    let refused = repo.ostler(&["pick", "fix-demo-1", "--check", "true"]).exits(1);
    assert!(refused.complaint().contains("has changed nothing"), "{}", refused.complaint());
    assert!(members(&repo, "fix").iter().all(|one| one["archived"] == false));
    repo.ostler(&["pick", "fix-demo-2", "--check", "true"]).exits(0);
}

#[test]
fn a_message_reaches_every_member_and_stopping_the_group_stops_them() {
    let repo = Repo::new();
    let job = repo.ostler(&["run", "-d", "--keep", "--on", "demo:3", "say hello", "--name", "talk"]).exits(0).stdout;
    ostler_testkit::patience::until("all have begun", &[], || (members(&repo, "talk").len() == 3).then_some(()));
    repo.ostler(&["wait", "--until", "turn", "group:talk"]).exits(0);
    let sent = repo.ostler(&["send", "group:talk", "say all of you"]).exits(0).stdout;
    assert_eq!(sent.matches("accepted").count(), 3, "{sent}");
    ostler_testkit::patience::until("all have answered", &[], || {
        members(&repo, "talk").iter().all(|one| one["last"] == "all of you").then_some(())
    });
    repo.ostler(&["stop", job.trim()]).exits(0);
    assert!(members(&repo, "talk").iter().all(|one| one["ended"] == true));
}
