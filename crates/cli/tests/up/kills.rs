//! Whichever process is killed, each job runs once, and the result is right.

use crate::repo::Repo;
use crate::{named, repo, sessions};
use ostler_testkit::{Killer, ProcessKind, patience};
use rustix::process::Signal;

/// Twelve jobs in three layers: one, ten, one.
fn diamond(work: &str) -> String {
    let mut text = "[defaults]\nagent = \"demo\"\n[job.top]\nrun = \"echo top >> log\"\n".to_owned();
    let middle: Vec<String> = (0..10).map(|n| format!("middle-{n}")).collect();
    for (n, name) in middle.iter().enumerate() {
        text.push_str(&format!("[job.{name}]\nneeds = [\"top\"]\n{}\n", work.replace("{n}", &n.to_string())));
    }
    text.push_str(&format!("[job.bottom]\nneeds = {middle:?}\nrun = \"echo bottom >> log\"\n"));
    text
}

fn log(repo: &Repo) -> Vec<String> {
    let text = std::fs::read_to_string(repo.folder.join("log")).unwrap_or_default();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// How many processes of the driver's session are killed while its jobs work.
const KILLS: usize = 12;

#[test]
fn a_killed_driver_and_killed_helpers_run_no_job_twice() {
    let repo = repo();
    let gate = repo.harness.root().join("gate");
    let work = format!("until test -e {}; do sleep 0.05; done; echo {{n}} >> log", gate.display());
    repo.write("ostler.toml", &diamond(&format!("prompt = \"run-command {work}\"")));
    let following = repo.start_in(&repo.folder, &["up"]);
    let driver = patience::until("it runs", &[repo.harness.root()], || {
        let all = sessions(&repo);
        all.iter().find(|one| one["job"] == "up").map(|one| one["id"].as_str().unwrap().to_owned())
    });
    let mut killer = Killer::new(0x7570_0000, 150);
    killer.kill_up_to(&repo.harness, KILLS, || !following.runs(), |one| one.id == driver);
    std::fs::write(&gate, "").unwrap();
    // Then one process after the other, at each step that is noted, even when the previous one has no replacement yet.
    let session = repo.harness.session(&driver);
    let record = session.path().join("job.jsonl");
    let (mut kills, mut size) = (0, 0);
    patience::until("the job has ended", &[repo.harness.root(), &session.path()], || {
        let now = std::fs::metadata(&record).map_or(0, |file| file.len());
        if now > size {
            size = now;
            session.kill_if_alive(
                [ProcessKind::Agent, ProcessKind::Keeper, ProcessKind::Agent, ProcessKind::Holder][kills % 4],
            );
            kills += 1;
        }
        (!following.runs()).then_some(())
    });
    assert_eq!(killer.killed().len(), KILLS);
    let ended = following.finish().exits(0);
    assert!(ended.stdout.ends_with("12 jobs succeeded\n"), "{ended:?}");
    let mut expected: Vec<String> =
        (0..10).map(|n| n.to_string()).chain(["top".to_owned(), "bottom".to_owned()]).collect();
    expected.sort();
    assert_eq!(log(&repo), expected);
    assert_eq!(sessions(&repo).len(), 13);
    let mut lines: Vec<&str> = ended.stdout.lines().collect();
    let said = lines.len();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), said, "each line is printed once: {ended:?}");
}

#[test]
fn after_all_its_processes_were_killed_the_same_command_continues() {
    let repo = repo();
    repo.write(
        "ostler.toml",
        "[job.first]\nrun = \"echo first >> log\"\n[job.slow]\nneeds = [\"first\"]\nrun = \"mkfifo gate; cat gate; echo slow >> log\"\n\
         [job.last]\nneeds = [\"slow\"]\nrun = \"echo last >> log\"\n",
    );
    let id = repo.ostler(&["up", "-d"]).exits(0).stdout.trim().to_owned();
    patience::until("the gate is there", &[&repo.folder], || repo.folder.join("gate").exists().then_some(()));
    let session = repo.harness.session(&id);
    // The helpers are stopped first, so that neither of them starts a replacement.
    for who in [ProcessKind::Holder, ProcessKind::Keeper] {
        session.signal(who, Signal::STOP);
    }
    for who in [ProcessKind::Agent, ProcessKind::Holder, ProcessKind::Keeper] {
        session.kill(who);
    }
    let following = repo.start_in(&repo.folder, &["up"]);
    std::fs::write(repo.folder.join("gate"), "go").unwrap();
    let ended = following.finish().exits(0);
    assert!(ended.stdout.ends_with("3 jobs succeeded\n"), "{ended:?}");
    assert_eq!(log(&repo), ["first", "last", "slow"]);
    for name in ["first", "slow", "last"] {
        assert_eq!(named(&repo, name).len(), 1, "{name}");
    }
}

#[test]
fn the_log_of_a_driver_that_was_started_again_begins_with_the_lines_of_the_one_before() {
    let repo = repo();
    repo.write(
        "ostler.toml",
        "[job.first]\nrun = \"true\"\n[job.slow]\nneeds = [\"first\"]\nrun = \"mkfifo gate; cat gate\"\n",
    );
    let id = repo.ostler(&["up", "-d"]).exits(0).stdout.trim().to_owned();
    patience::until("the gate is there", &[&repo.folder], || repo.folder.join("gate").exists().then_some(()));
    let session = repo.harness.session(&id);
    session.until("its progress is noted", || {
        std::fs::read_to_string(session.path().join("job.jsonl")).unwrap().contains("slow: started as").then_some(())
    });
    let before = session.kill(ProcessKind::Agent);
    session.replaced(ProcessKind::Agent, &before);
    std::fs::write(repo.folder.join("gate"), "go").unwrap();
    repo.ostler(&["wait", &id]).exits(0);
    let logs = repo.ostler(&["logs", &id]).exits(0).stdout;
    let said: Vec<&str> = logs.lines().map(|line| line.split(" as ").next().unwrap()).collect();
    assert_eq!(said, ["first: started", "first: succeeded", "slow: started", "slow: succeeded", "2 jobs succeeded"]);
}

#[test]
fn helpers_of_the_driver_that_are_killed_together_are_replaced_and_every_job_runs() {
    let repo = repo();
    repo.write(
        "ostler.toml",
        "[job.first]\nrun = \"mkfifo gate; cat gate; echo first >> log\"\n\
         [job.last]\nneeds = [\"first\"]\nrun = \"echo last >> log\"\n",
    );
    let following = repo.start_in(&repo.folder, &["up"]);
    patience::until("the gate is there", &[&repo.folder], || repo.folder.join("gate").exists().then_some(()));
    let driver = sessions(&repo).into_iter().find(|one| one["job"] == "up").unwrap();
    let session = repo.harness.session(driver["id"].as_str().unwrap());
    let (holder, keeper) = (session.living(ProcessKind::Holder), session.living(ProcessKind::Keeper));
    session.orphan();
    session.replaced(ProcessKind::Holder, &holder);
    session.replaced(ProcessKind::Keeper, &keeper);
    std::fs::write(repo.folder.join("gate"), "go").unwrap();
    let ended = following.finish().exits(0);
    assert!(ended.stdout.ends_with("2 jobs succeeded\n"), "{ended:?}");
    assert_eq!((log(&repo), session.show().run), (vec!["first".to_owned(), "last".to_owned()], 1));
}
