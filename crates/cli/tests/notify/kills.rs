//! Keeper or sender is killed at each point between a moment and the note that it was sent: the notification still
//! arrives, once by its id.

use crate::server::{Answer, Server, arrived};
use crate::{is_sender, notifying, until_senders_are_gone, until_turn};
use ostler_sys::pause_points::{self, Point, Role};
use ostler_sys::process::{Life, Pidfd};
use ostler_testkit::{Harness, patience};
use rustix::process::Signal;
use std::path::PathBuf;

/// The `nth` process that passes this point will be killed there, once.
fn arm(harness: &mut Harness, role: Role, point: Point, nth: usize) -> PathBuf {
    arm_with(harness, "kill", role, point, nth)
}

/// `how`: `kill` or `stop`.
fn arm_with(harness: &mut Harness, how: &str, role: Role, point: Point, nth: usize) -> PathBuf {
    let folder = harness.root().join("pause");
    std::fs::create_dir_all(&folder).unwrap();
    harness.set(pause_points::VARIABLE, folder.clone());
    let file = folder.join(format!("{}.{how}", pause_points::token(role, point)));
    std::fs::write(&file, "x".repeat(nth)).unwrap();
    file
}

/// Runs a session in which the `nth` process that passes this point is killed, and checks that each moment arrives.
fn dies_at(role: Role, point: Point, nth: usize) {
    let server = Server::new();
    let mut harness = notifying(&server, "moments = ['asking', 'turn', 'ended']");
    server.fails_first_with(&[Answer::HangUp, Answer::Status(500)]);
    let armed = arm(&mut harness, role, point, nth);
    let session = harness.detach(&["--keep", "demo", "ask me"]);
    harness.run(&["wait", "--until", "asking", session.id()]).exits(4);
    harness.run(&["answer", session.id(), "--allow"]).exits(0);
    until_turn(&harness, &session, 0);
    server.until_arrived(&["asking", "turn"]);
    patience::until("a process has passed the point", &[], || (!armed.exists()).then_some(()));
    session.stop();
    server.until_arrived(&["asking", "turn", "ended"]);
    until_senders_are_gone(&harness);
    let outcome = session.show().outcome().clone();
    assert_eq!((outcome.kind.as_str(), outcome.left.len()), ("succeeded", 0), "{outcome:?}");
    let mut ids: Vec<String> = server.requests().iter().map(|request| request.id().to_owned()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3, "once by id: {ids:?}");
}

#[test]
fn a_keeper_that_dies_between_the_note_and_the_sender_is_replaced_by_one_that_sends() {
    dies_at(Role::Keeper, Point::MomentNoted, 1);
    dies_at(Role::Keeper, Point::MomentNoted, 2);
}

#[test]
fn a_keeper_that_dies_when_it_has_started_the_sender_sends_nothing_twice() {
    dies_at(Role::Keeper, Point::SenderStarted, 1);
    dies_at(Role::Keeper, Point::SenderStarted, 2);
}

#[test]
fn a_sender_that_dies_before_it_sends_is_started_again() {
    dies_at(Role::Sender, Point::SenderEntered, 1);
    dies_at(Role::Sender, Point::MomentSpooled, 1);
    dies_at(Role::Sender, Point::PublicationLinked, 1);
}

#[test]
fn a_sender_that_dies_when_it_has_sent_sends_again_with_the_same_id() {
    dies_at(Role::Sender, Point::MomentSent, 1);
    dies_at(Role::Sender, Point::ReplacementWritten, 1);
}

#[test]
fn nothing_is_lost_when_a_sender_dies_after_noting_that_it_has_sent() {
    dies_at(Role::Sender, Point::MomentSettled, 1);
    dies_at(Role::Sender, Point::SenderUnlocked, 1);
}

/// A sender that a command starts has no keeper that starts it again. So a command starts none while the sender of a
/// keeper is between its first file in the spool and its first attempt.
#[test]
fn a_command_starts_no_sender_while_that_of_the_keeper_begins() {
    for point in [Point::PublicationLinked, Point::MomentSpooled] {
        let server = Server::new();
        let mut harness = notifying(&server, "moments = ['turn']");
        let armed = arm_with(&mut harness, "stop", Role::Sender, point, 1);
        let session = harness.detach(&["--keep", "demo", "say hello"]);
        patience::until("the sender is stopped", &[], || (!armed.exists()).then_some(()));
        let senders = || harness.alive().into_iter().filter(is_sender).collect::<Vec<_>>();
        let before = senders();
        assert_eq!(before.len(), 1);
        harness.run(&["ls"]).exits(0);
        assert_eq!(senders(), before, "{}", point.name());
        assert!(server.requests().is_empty());
        Pidfd::open(&before[0]).unwrap().unwrap().signal(Signal::CONT).unwrap();
        server.until_arrived(&["turn"]);
        session.stop();
        until_senders_are_gone(&harness);
    }
}

/// At the end of a session only the replacement of the killed keeper can still start the sender.
#[test]
fn a_keeper_that_dies_at_the_end_of_its_session_is_replaced_by_one_that_sends() {
    for point in [Point::MomentNoted, Point::SenderStarted, Point::SocketRemoved] {
        let server = Server::new();
        let mut harness = notifying(&server, "moments = ['ended']");
        let armed = arm(&mut harness, Role::Keeper, point, 1);
        let session = harness.detach(&["demo", "say hello"]);
        harness.run(&["wait", session.id()]).exits(0);
        let arrived = server.until_arrived(&["ended"]);
        assert_eq!(arrived[0].json()["text"], "hello");
        // The notification may arrive before the keeper reaches the last of these points.
        let what = format!("a keeper has passed {}", point.name());
        patience::until(&what, &[], || (!armed.exists()).then_some(()));
        until_senders_are_gone(&harness);
        let ids: Vec<String> = server.requests().iter().map(|request| request.id().to_owned()).collect();
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    }
}

/// When the sender is killed after the end of its session, no keeper is left to start another.
#[test]
fn a_sender_that_is_killed_after_the_end_of_its_session_is_started_by_the_next_command() {
    for command in [&["ls"][..], &["show", "ID"], &["wait", "ID"], &["recover"], &["doctor", "--fix"]] {
        let server = Server::new();
        let harness = notifying(&server, "moments = ['ended']");
        server.always(Some(Answer::Status(500)));
        let session = harness.detach(&["--", "true"]);
        server.until("it was tried", |requests| !requests.is_empty());
        let sender = patience::until("only the sender is left", &[], || {
            let alive = harness.alive();
            alive.first().filter(|process| alive.len() == 1 && is_sender(process)).cloned()
        });
        Pidfd::open(&sender).unwrap().unwrap().signal(Signal::KILL).unwrap();
        // Its lock is free only when the process is gone.
        patience::until("it is dead", &[], || (sender.look().unwrap() == Life::Gone).then_some(()));
        server.always(None);
        assert!(arrived(&server.requests()).is_empty());
        let words: Vec<&str> = command.iter().map(|&word| if word == "ID" { session.id() } else { word }).collect();
        let output = harness.run(&words);
        assert!(
            !command.contains(&"--fix") || output.stdout.contains("+ sending 1 notification that waits"),
            "{output:?}"
        );
        server.until_arrived(&["ended"]);
        until_senders_are_gone(&harness);
        assert_eq!(std::fs::metadata(harness.home().join("notify/sender.lock")).unwrap().len(), 0, "nothing waits");
    }
}
