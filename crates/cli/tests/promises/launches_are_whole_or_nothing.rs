//! A launch that is killed anywhere in the middle leaves a session that is listed and can be stopped, or nothing at all.

use crate::harness;
use ostler_sys::pause::{self, Point, Role};
use ostler_sys::process::{Identity, Pidfd};
use ostler_sys::tree::Processes;
use ostler_testkit::{alone, patience};
use rustix::process::Signal;
use std::time::Duration;

/// Moments of a launch at which somebody is killed, in microseconds.
const MOMENTS: [u64; 14] = [0, 200, 500, 800, 1000, 1300, 1600, 2000, 2500, 3000, 4000, 5000, 7000, 10_000];

/// A holder that was already under way goes on without its launcher; wait until all that runs belongs to a session that
/// is listed.
fn stops_what_there_is(harness: &ostler_testkit::Harness) {
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
    for moment in MOMENTS {
        let launcher = harness.start(&["run", "-d", "--", "sleep", "600"]);
        patience::ends_within(launcher.process(), Duration::from_micros(moment));
        launcher.kill();
        stops_what_there_is(&harness);
    }
}

#[test]
fn a_holder_killed_at_any_moment_of_its_launch_leaves_nothing_unlisted() {
    let _alone = alone();
    let harness = harness();
    for moment in MOMENTS {
        let launcher = harness.start(&["run", "-d", "--", "sleep", "600"]);
        patience::ends_within(launcher.process(), Duration::from_micros(moment));
        let children = Processes::look().unwrap().below(&[launcher.process().pid()], |_| false);
        let pidfds: Vec<Pidfd> = children.iter().filter_map(|child| Pidfd::open(child).unwrap()).collect();
        // The first of them is the holder, if it has come that far and not further.
        if let Some(holder) = pidfds.first() {
            holder.signal(Signal::KILL).unwrap();
        }
        let output = launcher.finish();
        if output.code != Some(0) {
            output.complaint();
            assert_eq!(output.stdout, "");
        }
        stops_what_there_is(&harness);
    }
}

#[test]
fn what_a_killed_launcher_left_is_gone_after_the_next_run() {
    let mut harness = harness();
    let pauses = harness.root().join("pauses");
    std::fs::create_dir(&pauses).unwrap();
    harness.set(pause::VARIABLE, &pauses);
    harness.has_own_clock();
    let hidden = |harness: &ostler_testkit::Harness| {
        let names = std::fs::read_dir(harness.home().join("sessions")).unwrap().flatten();
        names.filter(|entry| entry.file_name().to_string_lossy().starts_with(".new-")).count()
    };
    for point in [Point::FolderMade, Point::SessionWritten] {
        std::fs::write(pauses.join(format!("{}.kill", pause::token(Role::Client, point))), "1").unwrap();
        let launched = harness.run(&["run", "-d", "--", "sleep", "600"]);
        assert_eq!((launched.code, hidden(&harness)), (None, 1), "{point:?}: {launched:?}");
        // A launch of this moment is left alone.
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
