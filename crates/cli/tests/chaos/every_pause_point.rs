//! Any process is killed at any named point: no message lost or doubled, no wrong status, nothing left behind. A point
//! that nobody passes fails as well.

use crate::{at_once, program};
use ostler_chaos::agents::Agents;
use ostler_chaos::fixture::Fixture;
use ostler_chaos::inject::kill_at_once;
use ostler_chaos::{attempt, points};
use ostler_core::view::Phase;
use ostler_sys::pause::{Point, Role, token};
use ostler_sys::process::{Life, Pidfd};
use ostler_testkit::{Who, patience};
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
    let fixture = Fixture::new(program(), Agents::Demo).unwrap();
    fixture.hold(Role::Keeper, Point::FeedingNoted);
    fixture.launch(None);
    let session = fixture.session();
    let witness = fixture.look_on();
    session.until("the keeper stands still", || {
        (session.living(Who::Keeper).look().unwrap() == Life::Stopped).then_some(())
    });
    session.kill(Who::Holder);
    session.signal(Who::Keeper, Signal::CONT);
    fixture.settle();
    fixture.judge(witness, &["succeeded"]);
}

/// The next process is killed before it runs the program, and its holder has not seen that yet. The session does not
/// end: the holder starts the process again.
#[test]
fn a_next_process_that_dies_before_it_runs_is_said_to_be_starting() {
    let fixture = Fixture::new(program(), Agents::Turns).unwrap();
    fixture.hold(Role::Holder, Point::AgentNoted);
    fixture.launch(None);
    let session = fixture.session();
    let witness = fixture.look_on();
    let (text, client) = fixture.start_sending();
    let agent = fixture.next_agent_stands_at(Point::AgentNoted);
    session.signal(Who::Holder, Signal::STOP);
    Pidfd::open(&agent).unwrap().unwrap().signal(Signal::KILL).unwrap();
    let view = session.until_look("the process is gone", |view| !view.alive);
    assert_eq!(view.state, Phase::Starting, "{view:?}");
    session.signal(Who::Holder, Signal::CONT);
    assert!(fixture.sent(text, &client.finish()), "accepted");
    fixture.settle();
    fixture.judge(witness, &["succeeded"]);
}

/// Its next process was ordered, and the holder dies before it has done anything about it.
#[test]
fn a_holder_that_dies_with_an_order_is_replaced_by_one_that_carries_it_out() {
    let fixture = Fixture::new(program(), Agents::Turns).unwrap();
    fixture.hold(Role::Keeper, Point::NextRunMade);
    fixture.hold(Role::Keeper, Point::NextRunOrdered);
    fixture.launch(None);
    let session = fixture.session();
    let witness = fixture.look_on();
    let (text, client) = fixture.start_sending();
    fixture.keeper_stands_at(Point::NextRunMade);
    session.signal(Who::Holder, Signal::STOP);
    session.signal(Who::Keeper, Signal::CONT);
    fixture.keeper_stands_at(Point::NextRunOrdered);
    session.kill(Who::Holder);
    session.signal(Who::Keeper, Signal::CONT);
    assert!(fixture.sent(text, &client.finish()), "accepted");
    fixture.settle();
    fixture.judge(witness, &["succeeded"]);
}

/// Somebody has seen a living session and is about to write the message down when all of it dies.
#[test]
fn a_message_to_a_session_that_dies_meanwhile_waits_for_the_next_run() {
    let fixture = Fixture::new(program(), Agents::Demo).unwrap();
    fixture.launch(None);
    let session = fixture.session();
    session.until_look("a first answer", |view| view.turns == 1);
    fixture.until_saved();
    fixture.truth.may_be_lost();
    let witness = fixture.look_on();
    fixture.hold(Role::Client, Point::RequestWritten);
    let (text, client) = fixture.start_sending();
    patience::until("the client stands still", &[], || {
        (client.process().look().unwrap() == Life::Stopped).then_some(())
    });
    kill_at_once(&fixture, &[Who::Agent, Who::Keeper, Who::Holder]);
    Pidfd::open(client.process()).unwrap().unwrap().signal(Signal::CONT).unwrap();
    assert!(fixture.sent(text, &client.finish()), "accepted");
    fixture.settle();
    fixture.judge(witness, &["succeeded"]);
}
