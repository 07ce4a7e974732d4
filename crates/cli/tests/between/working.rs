//! Workers: one round for each move of the branch. Work that passes the check lands, other work is kept.

use crate::repo::Repo;
use crate::shown;
use ostler_testkit::{ProcessKind, patience};
use serde_json::Value;

fn role(repo: &Repo, name: &str, prompt: &str) -> String {
    let file = repo.harness.root().join(format!("{name}.md"));
    std::fs::write(&file, format!("---\nagent: demo\n---\n{prompt}\n")).unwrap();
    file.to_str().unwrap().to_owned()
}

/// The rounds that a worker has finished, as it describes them.
fn rounds(repo: &Repo, id: &str) -> Vec<String> {
    let record = repo.harness.home().join("sessions").join(id).join("job.jsonl");
    let text = std::fs::read_to_string(record).unwrap_or_default();
    let steps = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let words = |step: Value| {
        let key = step["key"].as_str()?;
        let number = key.strip_prefix("round ")?;
        number.parse::<u64>().ok()?;
        Some(step["value"]["words"].as_str()?.to_owned())
    };
    steps.filter_map(words).collect()
}

fn until_rounds(repo: &Repo, workers: &[String], count: usize) {
    let folders: Vec<_> = workers.iter().map(|id| repo.harness.home().join("sessions").join(id)).collect();
    let watched: Vec<_> = folders.iter().map(|folder| folder.as_path()).collect();
    patience::until(&format!("{count} rounds of each"), &watched, || {
        workers.iter().all(|id| rounds(repo, id).len() >= count).then_some(())
    });
}

#[test]
fn three_workers_take_one_round_for_each_of_nine_moves_whatever_is_killed() {
    let repo = Repo::new();
    let file = role(&repo, "note", "run-command echo done > round-$OSTLER_SESSION.txt");
    let started = repo.ostler(&["worker", "-n", "3", "--check", "ls round-*.txt", "--agents", &file]).exits(0);
    let workers: Vec<String> = started.stdout.lines().map(str::to_owned).collect();
    assert_eq!(workers.len(), 3, "{started:?}");
    assert!(!started.stderr.contains("same tree"), "each has a tree of its own: {started:?}");
    // The first round works on the commits that are there.
    until_rounds(&repo, &workers, 1);
    for number in 1..=9 {
        repo.git(&["commit", "--quiet", "--allow-empty", "--message", &format!("move {number}")]);
        for (place, id) in workers.iter().enumerate() {
            let who = [ProcessKind::Agent, ProcessKind::Keeper, ProcessKind::Holder][(number + place) % 3];
            repo.harness.session(id).kill_the_next(who);
        }
        until_rounds(&repo, &workers, number + 1);
    }
    for id in &workers {
        let rounds = rounds(&repo, id);
        assert_eq!(rounds.len(), 10, "{rounds:?}");
        assert!(rounds.iter().all(|words| words.starts_with("landed 1 changed file as")), "{rounds:?}");
    }
    let landed =
        repo.git(&["ls-tree", "--name-only", "main"]).lines().filter(|name| name.starts_with("round-")).count();
    assert_eq!(landed, 30, "each round has landed once");
    assert_eq!(repo.git(&["log", "--format=%s", "main"]).lines().filter(|line| line.starts_with("move ")).count(), 9);
    for id in &workers {
        repo.ostler(&["stop", id]).exits(0);
    }
    repo.git(&["fsck", "--no-dangling"]);
}

#[test]
fn a_worker_that_was_killed_after_landing_finds_that_it_has_landed() {
    let repo = Repo::new();
    let file = role(&repo, "note", "run-command echo done > round-$OSTLER_SESSION.txt");
    let id = repo.ostler(&["worker", "-d", "--agents", &file]).exits(0).stdout.trim().to_owned();
    until_rounds(&repo, std::slice::from_ref(&id), 1);
    let said = rounds(&repo, &id);
    repo.ostler(&["stop", &id]).exits(0);
    // As if the worker had been killed before it noted the end of the round: first with the tree gone, then with the
    // tree there.
    let record = repo.harness.home().join("sessions").join(&id).join("job.jsonl");
    let session = repo.git(&["log", "-1", "--format=%(trailers:key=Ostler-Session,valueonly)", "main"]);
    for tree in [false, true] {
        let text = std::fs::read_to_string(&record).unwrap();
        let kept: Vec<&str> = text.lines().take_while(|line| !line.contains("\"round 1\"")).collect();
        std::fs::write(&record, format!("{}\n", kept.join("\n"))).unwrap();
        if tree {
            let at = shown(&repo, session.trim())["worktree"]["path"].as_str().unwrap().to_owned();
            repo.git(&["worktree", "add", "--quiet", "-B", &format!("ostler/{}", session.trim()), &at, "main"]);
        }
        repo.ostler(&["resume", "-d", &id]).exits(0);
        until_rounds(&repo, std::slice::from_ref(&id), 1);
        assert_eq!(rounds(&repo, &id), said, "tree: {tree}");
        repo.ostler(&["stop", &id]).exits(0);
    }
    assert_eq!(repo.git(&["log", "--format=%s", "main"]).lines().count(), 2, "it has landed once");
}

#[test]
fn a_worker_runs_a_killed_check_again() {
    let repo = Repo::new();
    let file = role(&repo, "note", "run-command echo done > round-$OSTLER_SESSION.txt");
    let began = repo.harness.root().join("began");
    // The check blocks the first two times.
    let check = format!("echo $OSTLER_SESSION >> {0}; [ $(wc -l < {0}) = 3 ] || exec sleep 600", began.display());
    let id = repo.ostler(&["worker", "-d", "--check", &check, "--agents", &file]).exits(0).stdout.trim().to_owned();
    for number in 0..2 {
        let session = patience::until("the check runs", &[repo.harness.root()], || {
            std::fs::read_to_string(&began).ok()?.lines().nth(number).map(str::to_owned)
        });
        repo.harness.session(&session).kill(ProcessKind::Agent);
    }
    until_rounds(&repo, std::slice::from_ref(&id), 1);
    let words = rounds(&repo, &id).remove(0);
    assert!(words.starts_with("landed 1 changed file as"), "{words}");
    repo.ostler(&["stop", &id]).exits(0);
}

#[test]
fn the_next_agent_works_in_the_same_tree_and_work_that_cannot_land_is_kept() {
    let repo = Repo::new();
    let first = role(&repo, "plan", "run-line echo plan > plan.txt\nI am done. <next agent=\"build\"/>");
    let second = role(&repo, "build", "run-line cat plan.txt > built.txt; test -e broken && rm built.txt\ndone");
    let id = repo
        .ostler(&["worker", "-d", "--check", "test -e built.txt", "--agents", &first, &second])
        .exits(0)
        .stdout
        .trim()
        .to_owned();
    until_rounds(&repo, std::slice::from_ref(&id), 1);
    assert_eq!(repo.git(&["show", "main:built.txt"]), "plan");
    repo.has_no_traces();
    repo.write("broken", "");
    repo.write(".worktreeinclude", "");
    repo.git(&["add", "broken"]);
    repo.git(&["commit", "--quiet", "--message", "broken"]);
    until_rounds(&repo, std::slice::from_ref(&id), 2);
    let words = rounds(&repo, &id)[1].clone();
    assert!(words.contains("the check failed") && words.contains("stays in the tree"), "{words}");
    let session = words.rsplit(' ').next().unwrap();
    let tree = shown(&repo, session)["worktree"]["path"].as_str().unwrap().to_owned();
    assert!(std::path::Path::new(&tree).join("plan.txt").exists());
    repo.ostler(&["stop", &id]).exits(0);
}

#[test]
fn bad_input_is_refused_before_anything_starts() {
    let repo = Repo::new();
    let file = role(&repo, "note", "say one");
    for words in [
        &["worker"][..],
        &["worker", "--agents", "gone.md"],
        &["worker", "--branch", "nowhere", "--agents", &file],
        &["worker", "--check", "no-such-program-here", "--agents", &file],
    ] {
        repo.ostler(words).exits(2).complaint();
    }
    std::fs::write(repo.harness.root().join("bad.md"), "---\nagnt: demo\n---\nx\n").unwrap();
    let bad = repo.harness.root().join("bad.md");
    let refused = repo.ostler(&["worker", "--agents", bad.to_str().unwrap()]).exits(2);
    assert!(refused.complaint().contains("bad.md:2: there is no setting \"agnt\"; did you mean agent?"), "{refused:?}");
    assert!(repo.ostler(&["ls", "-a", "--json"]).exits(0).json().as_array().unwrap().is_empty());
}
