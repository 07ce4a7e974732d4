//! A launch that is killed at any point leaves a session that is listed and can be stopped, or nothing at all.

use crate::harness;
use ostler_sys::pause_points::{self, Point, Role};
use ostler_sys::process::{Identity, Pidfd};
use ostler_sys::tree::Processes;
use ostler_testkit::{alone, patience};
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// In each round a process is killed at this many moments, which are spread evenly over the time of a launch.
const MOMENTS: u32 = 14;
/// How many processes must have been killed, and within how many rounds.
const KILLS: u32 = 7;
const ROUNDS: u32 = 10;

/// `kill` kills a process this long after the start of a launch, and returns whether the process was alive. How long a
/// launch takes depends on the machine, so it is measured before each round.
fn kill_at_moments(harness: &ostler_testkit::Harness, kill: impl Fn(Duration) -> bool) {
    let mut killed = 0;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        harness.run(&["run", "-d", "--", "sleep", "600"]).exits(0);
        let span = started.elapsed();
        stop_everything(harness);
        for moment in 0..MOMENTS {
            killed += u32::from(kill(span * moment / MOMENTS));
            stop_everything(harness);
        }
        if killed >= KILLS {
            return;
        }
    }
    assert!(killed >= KILLS, "only {killed} processes were killed");
}

/// Stops every session and checks that nothing is left. A holder that had started already continues without its
/// launcher, so first wait until every process belongs to a listed session.
fn stop_everything(harness: &ostler_testkit::Harness) {
    let listed = patience::until("everything that runs is listed", &[], || {
        let alive: Vec<i32> = harness.alive().iter().map(Identity::pid).collect();
        let listed = harness.ls();
        let known =
            |pid: &i32| listed.iter().any(|one| [one.pid, one.holder_pid, one.keeper_pid].contains(&Some(*pid)));
        alive.iter().all(known).then_some(listed)
    });
    for shown in &listed {
        assert_ne!(shown.state, "damaged", "{shown:?}");
        harness.run(&["stop", "--kill", &shown.id]).exits(0);
    }
    harness.nothing_is_left();
    for shown in listed {
        std::fs::remove_dir_all(harness.session(&shown.id).path()).unwrap();
    }
}

#[test]
fn a_launcher_killed_at_any_moment_leaves_nothing_unlisted() {
    let _alone = alone();
    let harness = harness();
    kill_at_moments(&harness, |moment| {
        let launcher = harness.start(&["run", "-d", "--", "sleep", "600"]);
        let ended = patience::ends_within(launcher.process(), moment);
        launcher.kill();
        !ended
    });
}

#[test]
fn a_holder_killed_at_any_moment_of_its_launch_leaves_nothing_unlisted() {
    let _alone = alone();
    let harness = harness();
    kill_at_moments(&harness, |moment| {
        let launcher = harness.start(&["run", "-d", "--", "sleep", "600"]);
        patience::ends_within(launcher.process(), moment);
        let children = Processes::look().unwrap().below(&[launcher.process().pid()], |_| false);
        let pidfds: Vec<Pidfd> = children.iter().filter_map(|child| Pidfd::open(child).unwrap()).collect();
        // The first child is the holder, if it has been started and still is a child of the launcher.
        let killed = pidfds.first().is_some_and(|holder| {
            let lived = !holder.has_exited().unwrap();
            holder.signal(Signal::KILL).unwrap() && lived
        });
        let output = launcher.finish();
        if output.code != Some(0) {
            output.complaint();
            assert_eq!(output.stdout, "");
        }
        killed
    });
}

#[test]
fn what_a_killed_launcher_left_is_gone_after_the_next_run() {
    let mut harness = harness();
    let pauses = harness.root().join("pauses");
    std::fs::create_dir(&pauses).unwrap();
    harness.set(pause_points::VARIABLE, &pauses);
    harness.has_own_clock();
    let hidden = |harness: &ostler_testkit::Harness| {
        let names = std::fs::read_dir(harness.home().join("sessions")).unwrap().flatten();
        names.filter(|entry| entry.file_name().to_string_lossy().starts_with(".new-")).count()
    };
    for point in [Point::FolderMade, Point::SessionWritten] {
        std::fs::write(pauses.join(format!("{}.kill", pause_points::token(Role::Client, point))), "1").unwrap();
        let launched = harness.run(&["run", "-d", "--", "sleep", "600"]);
        assert_eq!((launched.code, hidden(&harness)), (None, 1), "{point:?}: {launched:?}");
        // Such a new folder may belong to a launch in progress, so it is not removed.
        let session = harness.detach(&["--", "sleep", "600"]);
        session.until_look("a keeper", |view| view.kept);
        assert_eq!(hidden(&harness), 1, "{point:?}");
        harness.run(&["stop", "--kill", session.id()]).exits(0);

        harness.shift_clock(3600);
        let session = harness.detach(&["--", "sleep", "600"]);
        patience::until("it is gone", &[&harness.home().join("sessions")], || (hidden(&harness) == 0).then_some(()));
        harness.run(&["stop", "--kill", session.id()]).exits(0);
        harness.shift_clock(0);
    }
}
