//! The command that an agent runs when something happens to it ("hook"). It puts what it is given on a line of the run's
//! `hooks` file and wakes the keeper, which understands it.
//!
//! The agent waits for it, so it is quick, says nothing, and never fails: an agent must not suffer from being kept. The
//! line is in the file before anyone is woken, so it is found no matter which process dies meanwhile.

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
        // What cannot be told is missed by us alone.
        let _ = tell(folder);
    }
    0
}

fn tell(run: &str) -> Result<(), StoreError> {
    // Compared with times that the agent notes itself, so by the clock that the agent reads.
    let at_ms = u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0);
    let mut payload = Vec::new();
    std::io::stdin().lock().read_to_end(&mut payload).map_err(StoreError::io("standard input"))?;
    let open = |path: &Path| Dir::open(path).map_err(StoreError::io(run));
    let run = Path::new(run);
    let (run, session) = (open(run)?, open(&run.join("../.."))?);
    let session = Folder::new(session);
    session.even_when_full(|| journal::append_line(&run, "hooks", &line(at_ms, &payload), Sync::No))?;
    // The keeper looks at the file whenever it is woken; knocking wakes it.
    drop(socket::reach(session.dir()).map_err(StoreError::io("sock"))?);
    Ok(())
}
