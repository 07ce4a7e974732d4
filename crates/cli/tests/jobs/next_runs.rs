//! The driver was killed, and then one more process in the very moment in which the next driver is being started: it is started all the
//! same, by the processes that are left. Nobody follows these jobs and no command looks after them.

use crate::{children, count, file, harness, passes_at, start};
use ostler_sys::pause::{self, Point, Role};
use ostler_sys::process::Life;
use ostler_testkit::{Harness, Session, Who, patience};
use rustix::process::Signal;
use std::path::{Path, PathBuf};

/// A loop of two turns whose driver is to be killed, and the folder in which its processes are told where to stop.
struct Job {
    harness: Harness,
    pauses: PathBuf,
    id: String,
}

impl Job {
    /// The first turn takes until there is a file called `gate`.
    fn new() -> Job {
        let mut harness = harness();
        let pauses = harness.root().join("pause");
        std::fs::create_dir(&pauses).unwrap();
        harness.set(pause::VARIABLE, &pauses);
        let (log, gate) = (file(&harness, "checks"), file(&harness, "gate"));
        // Nothing of what a loop adds to its prompt is run.
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
        let trap = self.pauses.join(format!("{}.{how}", pause::token(role, point)));
        std::fs::write(&trap, "1").unwrap();
        trap
    }

    /// Waits until the keeper has come to this trap, and stands still.
    fn keeper_stands_at(&self, trap: &Path) {
        patience::until("the keeper stands still", &[&self.pauses], || (!trap.exists()).then_some(()));
        let session = self.session();
        let stands = || (session.recorded(Who::Keeper)?.look().unwrap() == Life::Stopped).then_some(());
        patience::until("the keeper stands still", &[], stands);
    }

    /// The loop goes on to its end, with a second driver, and takes no step twice.
    #[track_caller]
    fn ends_well(self, drivers: u32) {
        let session = self.session();
        // A session that has ended does not go on by itself.
        let runs = session.until("the next driver runs, or none will", || {
            let view = session.look();
            (view.ended || (view.run == drivers && session.recorded(Who::Agent).is_some())).then_some(!view.ended)
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
fn the_holder_dies_with_the_order_in_its_hands() {
    let job = Job::new();
    let session = job.session();
    let made = job.trap(Role::Keeper, Point::NextRunMade, "stop");
    let ordered = job.trap(Role::Keeper, Point::NextRunOrdered, "stop");
    session.kill(Who::Agent);
    job.keeper_stands_at(&made);
    // It is given the order, and does nothing about it.
    session.signal(Who::Holder, Signal::STOP);
    session.signal(Who::Keeper, Signal::CONT);
    job.keeper_stands_at(&ordered);
    session.kill(Who::Holder);
    session.signal(Who::Keeper, Signal::CONT);
    job.ends_well(2);
}

#[test]
fn the_holder_dies_before_its_order_is_given() {
    let job = Job::new();
    let session = job.session();
    let made = job.trap(Role::Keeper, Point::NextRunMade, "stop");
    session.kill(Who::Agent);
    job.keeper_stands_at(&made);
    session.kill(Who::Holder);
    session.signal(Who::Keeper, Signal::CONT);
    job.ends_well(2);
}

#[test]
fn the_holder_dies_when_it_has_started_the_next_keeper() {
    dies_at(Role::Holder, Point::NextKeeperStarted);
}

#[test]
fn the_holder_dies_when_it_has_started_the_next_driver() {
    dies_at(Role::Holder, Point::RunStarted);
}

#[test]
fn the_next_driver_dies_before_it_is_one() {
    dies_at(Role::Holder, Point::AgentNoted);
}

#[test]
fn the_keeper_dies_when_it_has_ordered() {
    dies_at(Role::Keeper, Point::NextRunOrdered);
}

fn dies_at(role: Role, point: Point) {
    let job = Job::new();
    let trap = job.trap(role, point, "kill");
    job.session().kill(Who::Agent);
    patience::until("one more is dead", &[&job.pauses], || (!trap.exists()).then_some(()));
    job.ends_well(2);
}

#[test]
fn the_holder_dies_while_the_next_driver_has_not_become_one() {
    let job = Job::new();
    let session = job.session();
    let before = session.living(Who::Agent);
    let trap = job.trap(Role::Holder, Point::AgentNoted, "stop");
    session.kill(Who::Agent);
    patience::until("the next process stands still", &[&job.pauses], || (!trap.exists()).then_some(()));
    let next = session.replaced(Who::Agent, &before);
    patience::until("the next process stands still", &[], || (next.look().unwrap() == Life::Stopped).then_some(()));
    session.kill(Who::Holder);
    // It finds that nobody is left who wanted it, takes its name back and leaves.
    ostler_sys::process::Pidfd::open(&next).unwrap().unwrap().signal(Signal::CONT).unwrap();
    patience::ended(&next);
    job.ends_well(2);
}

/// Who starts helpers of a session from within it must not have them counted among what its process leaves behind.
#[test]
fn helpers_that_a_driver_has_started_outlive_it() {
    let job = Job::new();
    let session = job.session();
    let before = [Who::Holder, Who::Keeper].map(|who| (who, session.living(who)));
    session.orphan();
    for (who, before) in before {
        session.replaced(who, &before);
    }
    session.kill(Who::Agent);
    job.ends_well(2);
}

/// Both helpers of a turn die at once, and the agent's input and output with them. It may end as if nothing were wrong; that is no failure of
/// the turn.
#[test]
fn a_turn_that_loses_both_helpers_is_interrupted_and_taken_again() {
    let job = Job::new();
    let turn = children(&job.harness, &job.id, "turn")[0].clone();
    let session = job.harness.session(&turn);
    patience::until("the turn is at work", &[&job.harness.home().join("sessions")], || {
        job.harness.ls().iter().any(|one| one.id == turn && one.state == "working").then_some(())
    });
    let before = session.living(Who::Keeper);
    session.orphan();
    // The agent notices, too: it may have ended before a keeper was there for it again, and then needs none.
    session.until("it has a keeper, or has ended", || {
        let replaced = session.recorded(Who::Keeper).is_some_and(|now| now != before && now.may_live());
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
