//! Kills at every pause point in turn, by every kind of process that passes it: for each a short life of a session in
//! which the point is certainly passed.

use crate::adopting;
use crate::agents::Agents;
use crate::archiving;
use crate::fixture::Fixture;
use ostler_sys::pause_points::{self, Point, Role};
use ostler_sys::process::{Identity, command_line};
use ostler_testkit::ProcessKind;
use std::path::Path;
use std::sync::atomic::Ordering;

/// What happens in a session, so that a process passes the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    /// A message, another one, a stop.
    Talk,
    /// One process per message.
    Turns,
    /// A turn is interrupted.
    Interrupted,
    /// What does not end when asked is signalled.
    Killed,
    /// A tool leaves a process behind.
    Strays,
    KeeperLost,
    HolderLost,
    EveryoneLost,
    /// The session ends and is resumed.
    Resumed,
}

fn life_that_passes(role: Role, point: Point) -> Life {
    match (point, role) {
        (Point::NextRunMade | Point::NextRunPublished | Point::NextRunOrdered, _)
        | (Point::NextKeeperStarted | Point::RunStarted, _)
        | (Point::AgentNoted, Role::Holder)
        | (Point::InputEnded, _) => Life::Turns,
        (Point::InterruptSent, _) => Life::Interrupted,
        (Point::AgentSignalled, _) => Life::Killed,
        (Point::TreeCleared, _) => Life::Strays,
        (Point::KeeperDied | Point::KeeperReplaced, _) => Life::KeeperLost,
        (Point::HolderReplaced | Point::ReplacementEntered, _) => Life::HolderLost,
        (Point::RunBegun, _) | (Point::ReplacementWritten | Point::ReplacementNamed, Role::Beginner) => Life::Resumed,
        (Point::PublicationWritten | Point::PublicationLinked | Point::JournalAppended, Role::Client) => {
            Life::EveryoneLost
        }
        _ => Life::Talk,
    }
}

/// Every point with every role that passes it.
#[must_use]
pub fn all() -> Vec<(Role, Point)> {
    let with_roles = |point: &Point| point.passed_by().iter().map(|&role| (role, *point)).collect::<Vec<_>>();
    Point::ALL.iter().flat_map(with_roles).collect()
}

/// Plays such a life with a kill at this point. Panics when anything that was promised does not hold, or when no
/// process passed the point.
pub fn kill_at(program: &Path, role: Role, point: Point) {
    let (injected, _) = live_through(program, role, point, 1);
    assert!(injected, "no process passed {}", pause_points::token(role, point));
}

/// Kills the `nth` process that passes, if there are that many. Returns whether there were, and how often the session
/// was looked at.
pub fn live_through(program: &Path, role: Role, point: Point, nth: usize) -> (bool, u64) {
    if matches!(point, Point::EndedFilled | Point::EndedShown) {
        return adopting::live_through(program, role, point, nth);
    }
    if archiving::passes(point) {
        return archiving::live_through(program, role, point, nth);
    }
    let life = life_that_passes(role, point);
    let agents = if life == Life::Turns { Agents::Turns } else { Agents::Demo };
    let fixture = Fixture::new(program, agents).expect("built in");
    fixture.arm(role, point, nth);
    fixture.launch(match life {
        Life::Interrupted => Some("sleep"),
        Life::Strays => Some("leave"),
        _ => None,
    });
    // A kill of a process that starts the first one may end the session. That is promised.
    if life != Life::Turns {
        fixture.truth.may_end();
    }
    if point == Point::KeeperDied {
        // The keeper was killed before, and its holder now, before there was a replacement: no process holds the
        // agent's input open.
        fixture.truth.may_be_lost();
        fixture.agent_killed.store(true, Ordering::SeqCst);
    }
    let witness = fixture.look_on();
    let session = fixture.session();
    match life {
        Life::Talk | Life::Turns | Life::Killed | Life::Strays | Life::Resumed => {}
        Life::Interrupted => {
            let tool = |process: &Identity| command_line(process.pid()) == ["sleep", "1000"];
            session.until("the tool runs", || fixture.harness.alive().iter().any(tool).then_some(()));
            fixture.typed_again(&["interrupt", session.id()], &[0]);
        }
        Life::KeeperLost => drop(session.kill(ProcessKind::Keeper)),
        Life::HolderLost => drop(session.kill(ProcessKind::Holder)),
        Life::EveryoneLost => {
            session.until_look("a first answer", |view| view.turns == 1);
            fixture.truth.may_be_lost();
            fixture.agent_killed.store(true, Ordering::SeqCst);
            session.orphan();
            session.kill_if_alive(ProcessKind::Agent);
        }
    }
    fixture.settle();
    match life {
        Life::Resumed | Life::Killed => {
            fixture.until_saved();
            let how: &[&str] = if life == Life::Killed { &["stop", "--kill"] } else { &["stop"] };
            fixture.typed_again(&[how, &[session.id()]].concat(), &[0, 6, 8]);
            fixture.settle();
        }
        Life::Talk | Life::Turns | Life::Strays | Life::Interrupted => {}
        Life::KeeperLost | Life::HolderLost | Life::EveryoneLost => {}
    }
    let looks = fixture.judge(witness, &["succeeded"]);
    (fixture.was_injected(role, point), looks)
}
