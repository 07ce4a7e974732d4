//! A driver that is killed at any moment starts each member exactly once.

use crate::repo::Repo;
use crate::starting::members;
use ostler_sys::process::Pidfd;
use rustix::process::Signal;

/// The driver's process, as `show` tells.
fn driver(repo: &Repo, job: &str) -> Option<i32> {
    let shown = repo.ostler(&["show", "--json", job]).exits(0).json();
    if shown["ended"] == true {
        return None;
    }
    i32::try_from(shown["pid"].as_i64()?).ok()
}

#[test]
fn a_killed_driver_starts_every_member_exactly_once() {
    for round in 0..6 {
        let repo = Repo::new();
        let name = format!("g{round}");
        let job = repo.ostler(&["run", "-d", "--on", "demo:4", "say hello", "--name", &name]).exits(0).stdout;
        let job = job.trim();
        // At the moment when so many have begun.
        let mut kills = 0;
        for begun in 0..4 {
            ostler_testkit::patience::until("so many have begun", &[], || {
                (members(&repo, &name).len() >= begun || driver(&repo, job).is_none()).then_some(())
            });
            let Some(pid) = driver(&repo, job) else { break };
            if (begun + round) % 2 == 0
                && let Some(process) = ostler_sys::process::Identity::of(pid).ok().flatten()
                && let Some(pidfd) = Pidfd::open(&process).unwrap()
            {
                pidfd.signal(Signal::KILL).unwrap();
                kills += 1;
            }
        }
        repo.ostler(&["wait", job]).exits(0);
        let found = members(&repo, &name);
        let names: Vec<&str> = found.iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(names, (1..=4).map(|number| format!("{name}-demo-{number}")).collect::<Vec<_>>(), "{kills} kills");
        for one in &found {
            assert_eq!((&one["status"], &one["turns"], &one["run"]), (&"succeeded".into(), &1.into(), &1.into()));
        }
        repo.git(&["fsck", "--no-dangling"]);
    }
}
