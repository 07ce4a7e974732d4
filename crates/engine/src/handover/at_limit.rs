//! The process `__handover`: lets another agent continue a session that has reached a usage limit. The keeper has
//! reserved the id of the new session, so only one session is made however often this process is started.

use super::Handover;
use crate::error::Result;
use crate::resume::by_itself::of_folder;
use ostler_core::id::SessionId;
use ostler_keeper::keeper::handing_over::Answer;
use ostler_keeper::keeper::helper_process::Given;
use ostler_sys::lock;
use ostler_sys::pause_points::{self, Point, Role};
use rustix::fs::OFlags;

/// Runs this process and returns its exit code. The arguments: the agent, the id, and the descriptors.
#[must_use]
pub fn main(arguments: &[String]) -> i32 {
    pause_points::act_as(Role::Preparer);
    let [agent, id, rest @ ..] = arguments else { return 2 };
    let (Some(id), Ok(given)) = (SessionId::parse(id), Given::of(rest)) else { return 2 };
    let answer = match hand_over(&given, agent, id) {
        Ok(()) => Answer { refused: None },
        Err(error) => Answer { refused: Some(error.to_string()) },
    };
    i32::from(given.answer(&answer).is_err())
}

fn hand_over(given: &Given, agent: &str, id: SessionId) -> Result<()> {
    let (engine, place) = of_folder(&given.folder_path()?)?;
    let folder = place.open()?;
    // A process that a killed keeper has started may still be making the handover.
    let run = folder.run(folder.newest_run()?)?;
    let _one_at_a_time = lock::exclusive(run.dir().file(".", OFlags::RDONLY | OFlags::DIRECTORY)?)?;
    let session = folder.session()?;
    let keep = run.record()?.plan.keep;
    let request =
        Handover { to: agent.to_owned(), id: Some(id), keep, attended: session.attended, ..Handover::default() };
    engine.handover(&place, request, &mut |_| {})?;
    pause_points::at(Point::HandoverMade);
    Ok(())
}
