//! A driver that is killed at any moment starts each member exactly once.

use crate::repo::Repo;
use crate::starting::members;
use ostler_testkit::{ProcessKind, patience};

#[test]
fn a_killed_driver_starts_every_member_exactly_once() {
    for round in 0..6 {
        let repo = Repo::new();
        let name = format!("g{round}");
        // The members work until the file `gate` exists, so the job does not end before its driver is killed.
        let gate = repo.harness.root().join("gate");
        let prompt = format!("run-line until test -e {}; do sleep 0.05; done\nhello", gate.display());
        let job = repo.ostler(&["run", "-d", "--on", "demo:4", &prompt, "--name", &name]).exits(0).stdout;
        let driver = repo.harness.session(job.trim());
        // The driver is killed twice, each time when this many members have begun.
        for begun in (0..4).filter(|begun| (begun + round) % 2 == 0) {
            patience::until("this many have begun", &[&driver.path()], || {
                (members(&repo, &name).len() >= begun).then_some(())
            });
            driver.kill_the_next(ProcessKind::Agent);
        }
        std::fs::write(&gate, "").unwrap();
        repo.ostler(&["wait", driver.id()]).exits(0);
        let found = members(&repo, &name);
        let names: Vec<&str> = found.iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(names, (1..=4).map(|number| format!("{name}-demo-{number}")).collect::<Vec<_>>());
        for one in &found {
            assert_eq!((&one["status"], &one["turns"], &one["run"]), (&"succeeded".into(), &1.into(), &1.into()));
        }
        repo.git(&["fsck", "--no-dangling"]);
    }
}
