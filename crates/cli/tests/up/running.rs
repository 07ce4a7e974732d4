//! Jobs run in the order of their needs, a failure stops only what needs it, and what has succeeded is not run again.

use crate::{named, repo, sessions};

#[test]
fn a_failure_stops_what_needs_it_and_nothing_else() {
    let repo = repo();
    repo.write(
        "ostler.toml",
        r#"
[defaults]
agent = "demo"
[job.good]
run = "echo good >> log"
[job.bad]
prompt = "fail on purpose"
[job.after-bad]
needs = ["bad", "good"]
run = "echo wrong >> log"
[job.last]
needs = ["after-bad"]
run = "echo wrong >> log"
[job.after-good]
needs = ["good"]
run = "echo after $OSTLER_JOB_GOOD >> log"
"#,
    );
    let plan = repo.ostler(&["up", "--dry-run"]).exits(0).stdout;
    let order: Vec<&str> = plan.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(order, ["bad", "good", "after-bad", "after-good", "last"], "{plan}");
    assert!(sessions(&repo).is_empty(), "a plan starts nothing");

    let ended = repo.ostler(&["up"]).exits(1);
    assert!(ended.stdout.contains("after-bad: not run, because bad did not succeed"), "{ended:?}");
    assert!(ended.stdout.contains("last: not run, because after-bad did not succeed"), "{ended:?}");
    assert!(ended.stdout.ends_with("1 of 5 jobs failed, 2 not run\n"), "{ended:?}");
    let good = named(&repo, "good")[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(std::fs::read_to_string(repo.folder.join("log")).unwrap(), format!("good\nafter {good}\n"));
}

#[test]
fn a_job_that_succeeded_runs_again_only_when_it_or_a_job_that_it_needs_was_changed() {
    let repo = repo();
    let write = |middle: &str| {
        repo.write(
            "ostler.toml",
            &format!(
                "[job.first]\nrun = \"echo first >> log\"\n[job.middle]\nneeds = [\"first\"]\nrun = \"{middle}\"\n\
                 [job.last]\nneeds = [\"middle\"]\nrun = \"echo last >> log\"\n[job.other]\nrun = \"echo other >> log; test -e ok\"\n"
            ),
        );
    };
    let log = || {
        let mut lines: Vec<String> =
            std::fs::read_to_string(repo.folder.join("log")).unwrap_or_default().lines().map(str::to_owned).collect();
        let _ = std::fs::remove_file(repo.folder.join("log"));
        lines.sort();
        lines.join(" ")
    };
    write("echo middle >> log");
    repo.ostler(&["up"]).exits(1);
    assert_eq!(log(), "first last middle other");
    // Only the job that failed runs again.
    repo.write("ok", "");
    let second = repo.ostler(&["up"]).exits(0);
    assert!(second.stdout.contains("first: done before"), "{second:?}");
    assert_eq!(log(), "other");
    repo.ostler(&["up"]).exits(0);
    assert_eq!(log(), "");
    // The changed job, and the jobs that need it.
    write("echo changed >> log");
    repo.ostler(&["up"]).exits(0);
    assert_eq!(log(), "changed last");
    repo.ostler(&["up", "--fresh", "--only", "middle"]).exits(0);
    assert_eq!(log(), "changed first");
    repo.ostler(&["up", "--fresh"]).exits(0);
    assert_eq!(log(), "changed first last other");
}

#[test]
fn a_run_of_some_jobs_makes_no_other_job_run_again() {
    let repo = repo();
    let mut text = String::new();
    for name in ["a", "b", "c", "d"] {
        text.push_str(&format!("[job.{name}]\nrun = \"echo {name} >> log\"\n"));
    }
    repo.write("ostler.toml", &text);
    let log = || std::fs::read_to_string(repo.folder.join("log")).unwrap().lines().count();
    let first = repo.ostler(&["up", "-d"]).exits(0).stdout.trim().to_owned();
    repo.ostler(&["wait", &first]).exits(0);
    for only in ["d", "a"] {
        assert!(repo.ostler(&["up", "--only", only]).exits(0).stdout.contains(&format!("{only}: done before")));
    }
    // Also when the session that ran them is deleted.
    repo.ostler(&["archive", &first]).exits(0);
    repo.ostler(&["purge", &first]).exits(0);
    let last = repo.ostler(&["up"]).exits(0);
    assert_eq!(last.stdout.matches("done before").count(), 4, "{last:?}");
    assert_eq!(log(), 4);
}

#[test]
fn a_file_that_is_run_already_is_followed_and_not_run_twice() {
    let repo = repo();
    repo.write(
        "ostler.toml",
        "[job.slow]\nrun = \"mkfifo gate; cat gate\"\n[job.then]\nneeds=[\"slow\"]\nrun = \"true\"\n",
    );
    let id = repo.ostler(&["up", "-d"]).exits(0).stdout.trim().to_owned();
    ostler_testkit::patience::until("the gate is there", &[&repo.folder], || {
        repo.folder.join("gate").exists().then_some(())
    });
    assert_eq!(repo.ostler(&["up", "-d"]).exits(0).stdout.trim(), id);
    let text = std::fs::read_to_string(repo.folder.join("ostler.toml")).unwrap();
    repo.write("ostler.toml", &text.replace("\"true\"", "\"false\""));
    let refused = repo.ostler(&["up"]).exits(7);
    assert!(refused.complaint().contains(&id) && refused.complaint().contains("other jobs"), "{refused:?}");
    repo.write("ostler.toml", &text);
    let following = repo.start_in(&repo.folder, &["up"]);
    std::fs::write(repo.folder.join("gate"), "go").unwrap();
    following.finish().exits(0);
    repo.ostler(&["wait", &id]).exits(0);
    assert_eq!((named(&repo, "slow").len(), named(&repo, "then").len()), (1, 1));
}

#[test]
fn stopping_the_driver_stops_its_jobs() {
    let repo = repo();
    repo.write("ostler.toml", "[job.a]\nrun = \"sleep 1000\"\n[job.b]\nprompt = \"sleep\"\nagent = \"demo\"\n");
    let id = repo.ostler(&["up", "-d"]).exits(0).stdout.trim().to_owned();
    ostler_testkit::patience::until("both run", &[repo.harness.root()], || {
        (!named(&repo, "a").is_empty() && !named(&repo, "b").is_empty()).then_some(())
    });
    repo.ostler(&["stop", &id]).exits(0);
    for name in ["a", "b"] {
        assert_eq!(named(&repo, name)[0]["ended"], true, "{name}");
    }
    repo.ostler(&["wait", &id]).exits(6);
}

#[test]
fn jobs_wait_in_their_queue_for_a_free_slot() {
    let repo = repo();
    repo.harness.configure("[queues.one]\nslots = 1\n");
    let mut text = "[defaults]\nqueue = \"one\"\n".to_owned();
    for name in ["a", "b", "c"] {
        // Fails when another job does the same at this moment.
        text.push_str(&format!("[job.{name}]\nrun = \"mkdir alone && echo {name} >> log && rmdir alone\"\n"));
    }
    repo.write("ostler.toml", &text);
    repo.ostler(&["up", "--watch"]).exits(0);
    assert_eq!(std::fs::read_to_string(repo.folder.join("log")).unwrap().lines().count(), 3);
    repo.write("ostler.toml", &text.replace("\"one\"", "\"two\""));
    let refused = repo.ostler(&["up"]).exits(2);
    assert!(refused.complaint().contains("ostler.toml:2:1: ") && refused.complaint().contains("two"), "{refused:?}");
}

#[test]
fn of_several_simultaneous_starts_one_drives_and_the_others_follow() {
    let repo = repo();
    repo.write("ostler.toml", "[job.one]\nrun = \"echo one >> log\"\n[job.two]\nrun = \"mkfifo gate; cat gate\"\n");
    let all: Vec<_> = (0..5).map(|_| repo.start_in(&repo.folder, &["up", "-d"])).collect();
    let mut ids: Vec<String> = all.into_iter().map(|one| one.finish().exits(0).stdout.trim().to_owned()).collect();
    ids.dedup();
    assert_eq!(ids.len(), 1, "{ids:?}");
    ostler_testkit::patience::until("the gate is there", &[&repo.folder], || {
        repo.folder.join("gate").exists().then_some(())
    });
    std::fs::write(repo.folder.join("gate"), "go").unwrap();
    repo.ostler(&["wait", &ids[0]]).exits(0);
    assert_eq!((named(&repo, "one").len(), named(&repo, "two").len()), (1, 1));
    assert_eq!(std::fs::read_to_string(repo.folder.join("log")).unwrap(), "one\n");
}

#[test]
fn two_files_with_the_same_names_run_at_the_same_time() {
    let repo = repo();
    let text = "[job.fix]\nrun = \"mkfifo gate; cat gate\"\n[job.then]\nneeds = [\"fix\"]\nrun = \"echo $OSTLER_JOB_FIX > log\"\n";
    let mut ids = Vec::new();
    for folder in ["one", "two"] {
        std::fs::create_dir(repo.folder.join(folder)).unwrap();
        repo.write(&format!("{folder}/ostler.toml"), text);
        ids.push(repo.ostler(&["up", "-d", &format!("{folder}/ostler.toml")]).exits(0).stdout.trim().to_owned());
        let gate = repo.folder.join(folder).join("gate");
        ostler_testkit::patience::until("the gate is there", &[&repo.folder.join(folder)], || {
            gate.exists().then_some(())
        });
    }
    for folder in ["one", "two"] {
        std::fs::write(repo.folder.join(folder).join("gate"), "go").unwrap();
    }
    for ((folder, name), id) in [("one", "fix"), ("two", "fix-2")].iter().zip(&ids) {
        repo.ostler(&["wait", id]).exits(0);
        let known = std::fs::read_to_string(repo.folder.join(folder).join("log")).unwrap();
        assert_eq!(named(&repo, name)[0]["id"], known.trim(), "{folder}");
    }
}

/// A file with a job `fix` that waits until something is written to its pipe, then writes this word.
fn fixing(repo: &crate::repo::Repo, word: &str) -> String {
    let gate = repo.harness.root().join(word);
    assert!(repo.harness.command("mkfifo").arg(&gate).status().unwrap().success());
    format!(
        "[defaults]\nagent = \"demo\"\nworktree = true\n[job.fix]\nprompt = \"run-command cat {}; echo {word} > fixed.txt\"\n",
        gate.display()
    )
}

#[test]
fn in_a_job_the_name_of_another_job_means_that_of_the_same_run() {
    let repo = repo();
    let other = repo.folder.parent().unwrap().join("other");
    repo.git(&["clone", "--quiet", ".", other.to_str().unwrap()]);
    let release = |gate: &str| std::fs::write(repo.harness.root().join(gate), "go\n").unwrap();
    let gated = "[job.gate]\nneeds = [\"fix\"]\nrun = \"mkfifo gate; cat gate; false\"\n";
    let land = "[job.land]\nneeds = [\"fix\"]\nrun = \"ostler land fix\"\n";
    let lookup = "[job.look]\nneeds = [\"fix\"]\nrun = \"ostler show later || ostler show gate --json > gate.json\"\n[job.later]\nneeds = [\"look\", \"fix\"]\nrun = \"true\"\n";
    repo.write("ostler.toml", &format!("{}{gated}{}", fixing(&repo, "BAD"), land.replace("\"fix\"", "\"gate\"")));
    repo.write(".git/info/exclude", "ostler.toml\ngate\n");
    std::fs::write(other.join("ostler.toml"), format!("{}{land}{lookup}", fixing(&repo, "GOOD"))).unwrap();
    std::fs::write(other.join(".git/info/exclude"), "ostler.toml\ngate.json\n").unwrap();

    let failing = repo.ostler(&["up", "-d"]).exits(0).stdout.trim().to_owned();
    ostler_testkit::patience::until("the first one runs", &[repo.harness.root()], || {
        (!named(&repo, "fix").is_empty()).then_some(())
    });
    let good = repo.start_in(&other, &["up"]);
    ostler_testkit::patience::until("both run", &[repo.harness.root()], || {
        (!named(&repo, "fix-2").is_empty()).then_some(())
    });
    release("BAD");
    ostler_testkit::patience::until("the gate is there", &[&repo.folder], || {
        repo.folder.join("gate").exists().then_some(())
    });
    release("GOOD");
    good.finish().exits(0);
    assert_eq!(repo.git_in(&other, &["show", "main:fixed.txt"]), "GOOD");
    // A name that is not a job of the run is looked up as usual. A job that has not begun is not looked up elsewhere.
    assert!(std::fs::read_to_string(other.join("gate.json")).unwrap().contains(&failing));
    std::fs::write(repo.folder.join("gate"), "go").unwrap();
    repo.ostler(&["wait", &failing]).exits(1);
    assert!(!repo.git(&["ls-tree", "--name-only", "main"]).contains("fixed.txt"), "its gate has failed");
}
