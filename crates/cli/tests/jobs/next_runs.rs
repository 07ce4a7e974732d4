//! The driver is killed, and then one more process while the next driver is being started. The processes that are left
//! start the next driver. No command follows these jobs or continues them.

use crate::{children, count, file, harness, passes_at, start};
use ostler_sys::pause_points::{self, Point, Role};
use ostler_sys::process::Life;
use ostler_testkit::{Harness, ProcessKind, Session, patience};
use rustix::process::Signal;
use std::path::{Path, PathBuf};

/// A loop of two turns whose driver will be killed, and the folder of the files that stop or kill its processes
/// ([`pause`]).
struct Job {
    harness: Harness,
    pauses: PathBuf,
    id: String,
}

impl Job {
    /// The first turn lasts until there is a file called `gate`.
    fn new() -> Job {
        let mut harness = harness();
        let pauses = harness.root().join("pause");
        std::fs::create_dir(&pauses).unwrap();
        harness.set(pause_points::VARIABLE, &pauses);
        let (log, gate) = (file(&harness, "checks"), file(&harness, "gate"));
        // `exit 0`: what a loop adds to its prompt is not run.
        let prompt = format!("run-command while ! test -e {}; do sleep 0.05; done; exit 0", gate.display());
        let id = start(&harness, &["demo", &prompt, "--until", &passes_at(&log, 2)]);
        let job = Job { harness, pauses, id };
        patience::until("its first turn has begun", &[&job.session().path()], || {
            (children(&job.harness, &job.id, "turn").len() == 1).then_some(())
        });
        job
    }

    fn session(&self) -> Session<'_> {
        self.harness.session(&self.id)
    }

    fn trap(&self, role: Role, point: Point, how: &str) -> PathBuf {
        let trap = self.pauses.join(format!("{}.{how}", pause_points::token(role, point)));
        std::fs::write(&trap, "1").unwrap();
        trap
    }

    /// Waits until the keeper has reached this trap and is stopped.
    fn keeper_stopped_at(&self, trap: &Path) {
        patience::until("the keeper is stopped", &[&self.pauses], || (!trap.exists()).then_some(()));
        let session = self.session();
        let is_stopped = || (session.recorded(ProcessKind::Keeper)?.look().unwrap() == Life::Stopped).then_some(());
        patience::until("the keeper is stopped", &[], is_stopped);
    }

    /// Fails unless the loop continues to its end with this many drivers and takes no step twice.
    #[track_caller]
    fn ends_well(self, drivers: u32) {
        let session = self.session();
        // A session that has ended does not continue by itself.
        let runs = session.until("the next driver runs, or none will", || {
            let view = session.look();
            (view.ended || (view.run == drivers && session.recorded(ProcessKind::Agent).is_some()))
                .then_some(!view.ended)
        });
        assert!(runs, "{:?}", session.show());
        std::fs::write(file(&self.harness, "gate"), "").unwrap();
        self.harness.run(&["wait", &self.id]).exits(0);
        assert_eq!(children(&self.harness, &self.id, "turn").len(), 2);
        assert_eq!(count(&file(&self.harness, "checks")), 2);
        assert_eq!(session.look().run, drivers, "{:?}", session.show());
        self.harness.nothing_is_left();
    }
}

#[test]
fn the_holder_is_killed_before_it_carries_out_its_order() {
    let job = Job::new();
    let session = job.session();
    let made = job.trap(Role::Keeper, Point::NextRunMade, "stop");
    let ordered = job.trap(Role::Keeper, Point::NextRunOrdered, "stop");
    session.kill(ProcessKind::Agent);
    job.keeper_stopped_at(&made);
    // The holder is stopped, so it gets the order and does not carry it out.
    session.signal(ProcessKind::Holder, Signal::STOP);
    session.signal(ProcessKind::Keeper, Signal::CONT);
    job.keeper_stopped_at(&ordered);
    session.kill(ProcessKind::Holder);
    session.signal(ProcessKind::Keeper, Signal::CONT);
    job.ends_well(2);
}

#[test]
fn the_holder_is_killed_before_it_gets_its_order() {
    let job = Job::new();
    let session = job.session();
    let made = job.trap(Role::Keeper, Point::NextRunMade, "stop");
    session.kill(ProcessKind::Agent);
    job.keeper_stopped_at(&made);
    session.kill(ProcessKind::Holder);
    session.signal(ProcessKind::Keeper, Signal::CONT);
    job.ends_well(2);
}

#[test]
fn the_holder_is_killed_after_it_has_started_the_next_keeper() {
    killed_at(Role::Holder, Point::NextKeeperStarted);
}

#[test]
fn the_holder_is_killed_after_it_has_started_the_next_driver() {
    killed_at(Role::Holder, Point::RunStarted);
}

#[test]
fn the_next_driver_is_killed_before_it_runs_its_program() {
    killed_at(Role::Holder, Point::AgentNoted);
}

#[test]
fn the_keeper_is_killed_after_it_has_given_its_order() {
    killed_at(Role::Keeper, Point::NextRunOrdered);
}

fn killed_at(role: Role, point: Point) {
    let job = Job::new();
    let trap = job.trap(role, point, "kill");
    job.session().kill(ProcessKind::Agent);
    patience::until("one more is killed", &[&job.pauses], || (!trap.exists()).then_some(()));
    job.ends_well(2);
}

#[test]
fn the_holder_is_killed_before_the_next_driver_runs_its_program() {
    let job = Job::new();
    let session = job.session();
    let before = session.living(ProcessKind::Agent);
    let trap = job.trap(Role::Holder, Point::AgentNoted, "stop");
    session.kill(ProcessKind::Agent);
    patience::until("the next process is stopped", &[&job.pauses], || (!trap.exists()).then_some(()));
    let next = session.replaced(ProcessKind::Agent, &before);
    patience::until("the next process is stopped", &[], || (next.look().unwrap() == Life::Stopped).then_some(()));
    session.kill(ProcessKind::Holder);
    // The next process finds that its holder is gone, restores the record of the run and exits.
    ostler_sys::process::Pidfd::open(&next).unwrap().unwrap().signal(Signal::CONT).unwrap();
    patience::ended(&next);
    job.ends_well(2);
}

/// A driver starts helpers for its own session. They must not count as processes that the driver has left behind.
#[test]
fn helpers_that_a_driver_has_started_outlive_it() {
    let job = Job::new();
    let session = job.session();
    let before = [ProcessKind::Holder, ProcessKind::Keeper].map(|who| (who, session.living(who)));
    session.orphan();
    for (who, before) in before {
        session.replaced(who, &before);
    }
    session.kill(ProcessKind::Agent);
    job.ends_well(2);
}

/// Both helpers of a turn are killed at once, and with them the agent loses its input and output. The agent may exit as
/// if nothing were wrong; the turn has not failed.
#[test]
fn a_turn_that_loses_both_helpers_is_interrupted_and_taken_again() {
    let job = Job::new();
    let turn = children(&job.harness, &job.id, "turn")[0].clone();
    let session = job.harness.session(&turn);
    patience::until("the turn is at work", &[&job.harness.home().join("sessions")], || {
        job.harness.ls().iter().any(|one| one.id == turn && one.state == "working").then_some(())
    });
    let before = session.living(ProcessKind::Keeper);
    session.orphan();
    // The agent notices this as well. It may have exited before there is a new keeper, and then it needs none.
    session.until("it has a keeper, or has ended", || {
        let replaced = session.recorded(ProcessKind::Keeper).is_some_and(|now| now != before && now.may_live());
        (replaced || session.look().ended).then_some(())
    });
    std::fs::write(file(&job.harness, "gate"), "").unwrap();
    job.harness.run(&["wait", &job.id]).exits(0);
    let said = crate::lines(&job.harness, &job.id);
    assert!(said.iter().any(|line| line == "turn 1 was interrupted and is not counted"), "{said:?}");
    assert!(said.iter().all(|line| !line.contains("failed:")), "{said:?}");
    assert_eq!(children(&job.harness, &job.id, "turn").len(), 3, "{said:?}");
    job.harness.nothing_is_left();
}
