//! Whoever is killed at whichever named point: no message lost or doubled, no wrong status, nothing left behind. A point
//! that nobody passes fails as well.

use crate::{at_once, program};
use ostler_chaos::cast::Cast;
use ostler_chaos::stage::Stage;
use ostler_chaos::{attempt, points};
use ostler_sys::pause::{Point, Role, token};
use ostler_sys::process::Life;
use ostler_testkit::Who;
use rustix::process::Signal;

#[test]
fn a_death_at_any_pause_point_loses_nothing() {
    at_once(points::all(), |(role, point)| {
        let lived = attempt(|| points::kill_at(program(), role, point));
        lived.map_err(|why| format!("{}: {why}", token(role, point)))
    });
}

/// The message is noted and not yet given; the keeper stands still there while its holder dies.
#[test]
fn a_keeper_that_stands_still_at_a_point_goes_on_where_it_stood() {
    let stage = Stage::new(program(), Cast::Demo).unwrap();
    stage.hold(Role::Keeper, Point::FeedingNoted);
    stage.launch(None);
    let session = stage.session();
    let witness = stage.look_on();
    session.until("the keeper stands still", || {
        (session.living(Who::Keeper).look().unwrap() == Life::Stopped).then_some(())
    });
    session.kill(Who::Holder);
    session.signal(Who::Keeper, Signal::CONT);
    stage.settle();
    stage.judge(witness, &["succeeded"]);
}
