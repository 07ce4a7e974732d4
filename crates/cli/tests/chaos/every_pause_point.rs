//! A process is killed at each pause point: no message is lost or doubled, no status is wrong, nothing is left behind.
//! A point that no process passes is a failure as well.

use crate::{at_once, program};
use ostler_chaos::agents::Agents;
use ostler_chaos::fixture::Fixture;
use ostler_chaos::inject::kill_at_once;
use ostler_chaos::{attempt, points};
use ostler_core::view::Phase;
use ostler_sys::pause_points::{Point, Role, token};
use ostler_sys::process::{Life, Pidfd};
use ostler_testkit::{ProcessKind, patience};
use rustix::process::Signal;

#[test]
fn a_kill_at_any_pause_point_loses_nothing() {
    at_once(points::all(), |(role, point)| {
        let lived = attempt(|| points::kill_at(program(), role, point));
        lived.map_err(|why| format!("{}: {why}", token(role, point)))
    });
}

/// The message is noted and not yet given to the agent. The keeper is stopped there while its holder is killed.
#[test]
fn a_keeper_that_is_stopped_at_a_pause_point_continues_from_there() {
    let fixture = Fixture::new(program(), Agents::Demo).unwrap();
    fixture.hold(Role::Keeper, Point::FeedingNoted);
    fixture.launch(None);
    let session = fixture.session();
    let witness = fixture.look_on();
    session.until("the keeper is stopped", || {
        (session.living(ProcessKind::Keeper).look().unwrap() == Life::Stopped).then_some(())
    });
    session.kill(ProcessKind::Holder);
    session.signal(ProcessKind::Keeper, Signal::CONT);
    fixture.settle();
    fixture.judge(witness, &["succeeded"]);
}

/// The next process is killed before it runs the program, and the holder has not noticed it yet. The session does not
/// end: the holder starts the process again.
#[test]
fn a_session_whose_next_process_is_killed_before_it_runs_is_shown_as_starting() {
    let fixture = Fixture::new(program(), Agents::Turns).unwrap();
    fixture.hold(Role::Holder, Point::AgentNoted);
    fixture.launch(None);
    let session = fixture.session();
    let witness = fixture.look_on();
    let (text, client) = fixture.start_sending();
    let agent = fixture.next_agent_stopped_at(Point::AgentNoted);
    session.signal(ProcessKind::Holder, Signal::STOP);
    Pidfd::open(&agent).unwrap().unwrap().signal(Signal::KILL).unwrap();
    let view = session.until_look("the process is gone", |view| !view.alive);
    assert_eq!(view.state, Phase::Starting, "{view:?}");
    session.signal(ProcessKind::Holder, Signal::CONT);
    assert!(fixture.sent(text, &client.finish()), "accepted");
    fixture.settle();
    fixture.judge(witness, &["succeeded"]);
}

/// The next process was ordered, and the holder is killed before it starts the process.
#[test]
fn the_replacement_of_a_killed_holder_starts_the_process_that_was_ordered() {
    let fixture = Fixture::new(program(), Agents::Turns).unwrap();
    fixture.hold(Role::Keeper, Point::NextRunMade);
    fixture.hold(Role::Keeper, Point::NextRunOrdered);
    fixture.launch(None);
    let session = fixture.session();
    let witness = fixture.look_on();
    let (text, client) = fixture.start_sending();
    fixture.keeper_stopped_at(Point::NextRunMade);
    session.signal(ProcessKind::Holder, Signal::STOP);
    session.signal(ProcessKind::Keeper, Signal::CONT);
    fixture.keeper_stopped_at(Point::NextRunOrdered);
    session.kill(ProcessKind::Holder);
    session.signal(ProcessKind::Keeper, Signal::CONT);
    assert!(fixture.sent(text, &client.finish()), "accepted");
    fixture.settle();
    fixture.judge(witness, &["succeeded"]);
}

/// A client has found the session alive and is about to write the message down when all processes of the session are
/// killed.
#[test]
fn a_message_to_a_session_that_is_killed_meanwhile_waits_for_the_next_run() {
    let fixture = Fixture::new(program(), Agents::Demo).unwrap();
    fixture.launch(None);
    let session = fixture.session();
    session.until_look("a first answer", |view| view.turns == 1);
    fixture.until_saved();
    fixture.truth.may_be_lost();
    let witness = fixture.look_on();
    fixture.hold(Role::Client, Point::RequestWritten);
    let (text, client) = fixture.start_sending();
    patience::until("the client process is stopped", &[], || {
        (client.process().look().unwrap() == Life::Stopped).then_some(())
    });
    kill_at_once(&fixture, &[ProcessKind::Agent, ProcessKind::Keeper, ProcessKind::Holder]);
    Pidfd::open(client.process()).unwrap().unwrap().signal(Signal::CONT).unwrap();
    assert!(fixture.sent(text, &client.finish()), "accepted");
    fixture.settle();
    fixture.judge(witness, &["succeeded"]);
}
