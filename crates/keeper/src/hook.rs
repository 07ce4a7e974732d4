//! The command that an agent runs when something happens to it ("hook"). It writes its input to a line of the run's
//! `hooks` file and wakes the keeper, which interprets the line.
//!
//! The agent waits for it, so it is quick, prints nothing, and never fails: an agent must not be disturbed by being
//! kept. The line is in the file before the keeper is woken, so it is found even if a process dies in between.

use jiff::Timestamp;
use ostler_agents::hook::line;
use ostler_store::folder::Folder;
use ostler_store::{StoreError, journal};
use ostler_sys::dir::{Dir, Sync};
use ostler_sys::socket;
use std::io::Read;
use std::path::Path;

/// The process called `__hook`: its only argument is the folder of a run.
#[must_use]
pub fn main(arguments: &[String]) -> i32 {
    if let [folder] = arguments {
        // An error is ignored: only ostler misses the information, not the agent.
        let _ = tell(folder);
    }
    0
}

fn tell(run: &str) -> Result<(), StoreError> {
    // The time is compared with times that the agent writes, so it comes from the clock that the agent reads.
    let at_ms = u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0);
    let mut payload = Vec::new();
    std::io::stdin().lock().read_to_end(&mut payload).map_err(StoreError::io("standard input"))?;
    let open = |path: &Path| Dir::open(path).map_err(StoreError::io(run));
    let run = Path::new(run);
    let (run, session) = (open(run)?, open(&run.join("../.."))?);
    let session = Folder::new(session);
    session.even_when_full(|| journal::append_line(&run, "hooks", &line(at_ms, &payload), Sync::No))?;
    // The keeper looks at the file whenever it is woken; a connection wakes it.
    drop(socket::reach(session.dir()).map_err(StoreError::io("sock"))?);
    Ok(())
}
