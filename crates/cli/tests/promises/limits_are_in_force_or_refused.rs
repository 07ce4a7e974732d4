//! A limit applies to everything that a session starts, and the outcome says when it was hit. Where no limit can be
//! enforced nothing is started.

use crate::{harness, root_for};
use ostler_testkit::{Harness, Session, Started};
use serde_json::Value;
use std::path::Path;

/// Whether such a limit can be set on this machine. In CI, where tests must be complete, it has to be.
fn can_limit(harness: &Harness, flag: &str) -> bool {
    let doctor = harness.run(&["doctor", "--json"]).json();
    let names_it = |finding: &Value| finding["what"].as_str().is_some_and(|what| what.contains(flag));
    let in_force = |finding: &Value| finding["check"] == "session_limits" && finding["level"] == "fine";
    let can = doctor.as_array().unwrap().iter().any(|finding| in_force(finding) && names_it(finding));
    if !can {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{flag} does not work here:\n{doctor}");
        eprintln!("left out: {flag} does not work here");
    }
    can
}

/// The content of this cgroup file, in whichever of the run's cgroups it exists.
fn setting(session: &Session<'_>, run: u32, file: &str) -> Option<String> {
    let record = std::fs::read(session.path().join(format!("runs/{run}/run.json"))).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    let bounds = record["bounds"].as_array().cloned().unwrap_or_default();
    let folders = [record["cgroup"].clone()].into_iter().chain(bounds);
    folders.filter_map(|folder| std::fs::read_to_string(Path::new(folder.as_str()?).join(file)).ok()).next()
}

#[test]
fn a_process_that_takes_too_much_memory_is_killed_and_the_outcome_says_why() {
    let harness = harness();
    if !can_limit(&harness, "--memory") {
        return;
    }
    let hog = "head -c 300000000 /dev/zero | tail -c 299999999 | wc -c";
    let session = harness.detach(&["--memory", "50M", "--", "sh", "-c", hog]);
    harness.run(&["wait", session.id()]);
    let shown = session.show();
    assert!(shown.outcome().cause.ends_with("; it hit its memory limit (50.0 MiB)"), "{shown:?}");
    assert!(shown.alarm.unwrap().contains("memory limit"), "a list shows it as well");
}

#[test]
fn no_more_processes_start_than_were_allowed_and_the_outcome_says_so() {
    let harness = harness();
    if !can_limit(&harness, "--processes") {
        return;
    }
    harness.configure("linger = \"100ms\"\n");
    let many = "for i in 1 2 3 4 5 6 7 8 9; do sleep 600 & done; wait";
    let session = harness.detach(&["--processes", "5", "--", "sh", "-c", many]);
    harness.run(&["wait", session.id()]).exits(1);
    let shown = session.show();
    assert_eq!(shown.outcome().left.len(), 4, "{shown:?}");
    assert!(shown.outcome().cause.ends_with("; it hit its process limit (5 processes)"), "{shown:?}");
    harness.nothing_is_left();
}

#[test]
fn limits_are_recorded_shown_and_in_force_again_after_a_resume() {
    let harness = harness();
    if !can_limit(&harness, "--processes") || !can_limit(&harness, "--memory") {
        return;
    }
    harness.configure("[limits]\nprocesses = 77\n");
    let session = harness.detach(&["--keep", "--memory", "512M", "demo", "say one"]);
    harness.run(&["wait", "--until", "turn", session.id()]).exits(0);
    assert_eq!(setting(&session, 1, "pids.max").as_deref(), Some("77\n"), "the default of config.toml");
    let shown = harness.run(&["show", "--json", session.id()]).exits(0).json();
    assert_eq!((&shown["limits"]["memory"], &shown["limits"]["processes"]), (&(512 << 20).into(), &77.into()));
    assert!(shown["usage"]["memory"].as_u64().unwrap() > 0, "{shown}");
    session.stop();
    session.until("its groups go with it", || setting(&session, 1, "pids.max").is_none().then_some(()));

    // A higher limit that was configured since does not replace the recorded one.
    harness.configure("[limits]\nprocesses = 1000\n");
    harness.run(&["resume", "-d", "--keep", session.id()]).exits(0);
    assert_eq!(setting(&session, 2, "pids.max").as_deref(), Some("77\n"));
    session.stop();
}

#[test]
fn a_session_inside_another_gets_no_more_than_the_outer_one() {
    let harness = harness();
    if !can_limit(&harness, "--processes") {
        return;
    }
    let program = harness.program().to_str().unwrap();
    let inner = ["--processes", "90", "--", program, "run", "-d", "--processes", "900", "--", "sleep", "600"];
    let outer = harness.detach(&inner);
    harness.run(&["wait", outer.id()]).exits(0);
    let inner = harness.run(&["logs", outer.id()]).exits(0).stdout;
    let inner = harness.session(inner.trim());
    assert_eq!(setting(&inner, 1, "pids.max").as_deref(), Some("90\n"));
    inner.stop();
}

#[test]
fn where_no_limit_can_be_enforced_nothing_is_started_and_one_line_says_why() {
    if !root_for("a mount namespace without cgroups") {
        return;
    }
    let harness = harness();
    let mut command = harness.command("unshare");
    command.args(["--mount", "sh", "-c", "umount -R /sys/fs/cgroup 2>/dev/null; exec \"$@\"", "sh"]);
    command.arg(harness.program()).args(["run", "--memory", "1G", "--", "touch", "started"]);
    let output = Started::new(command, None).finish().exits(2);
    assert!(output.complaint().contains("a limit cannot be enforced"), "{output:?}");
    assert!(!harness.root().join("home/started").exists());
    assert!(harness.ls().is_empty());
    assert!(std::fs::read_dir(harness.home().join("sessions")).unwrap().next().is_none(), "nothing is left of it");
}

#[test]
fn a_limit_that_makes_no_sense_is_refused_before_anything_happens() {
    let harness = harness();
    for limit in [["--memory", "lots"], ["--memory", "10"], ["--cpus", "0"], ["--processes", "-3"]] {
        let output = harness.run(&[&["run"], &limit[..], &["--", "true"]].concat()).exits(2);
        assert!(!output.complaint().is_empty());
    }
    harness.configure("[limits]\nmemory = \"lots\"\n");
    let output = harness.run(&["run", "--", "true"]).exits(2);
    assert!(output.complaint().contains("[limits]"), "{output:?}");
    assert!(harness.ls().is_empty());
}
