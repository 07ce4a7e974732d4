//! The proof that a turn is saved: its messages, by their ids, in whole lines of the agent's own transcript.
//!
//! Agents write late (claude: up to about 100 ms after it has announced the end of the turn), so the file is watched
//! until the proof is there or the time is up. It is watched with inotify where an instance is to be had, else looked at
//! again and again.

use ostler_agents::Agent;
use ostler_sys::notify::Watcher;
use std::io;
use std::path::Path;

/// Without inotify.
pub const LOOK_AGAIN_MS: u64 = 20;

pub struct Proof {
    pub watcher: Option<Watcher>,
}

impl Proof {
    /// Starts to watch the folder of the transcript: the file itself may not exist yet.
    pub fn watch(transcript: &Path) -> Proof {
        let watcher = transcript.parent().and_then(|folder| {
            let watcher = Watcher::new().ok()?;
            watcher.watch(folder).ok()?;
            Some(watcher)
        });
        Proof { watcher }
    }
}

/// Whether the transcript holds all these messages now. One that does not exist holds nothing.
pub fn holds(agent: &dyn Agent, transcript: &Path, messages: &[String]) -> io::Result<bool> {
    match std::fs::read(transcript) {
        Ok(bytes) => Ok(agent.transcript_holds(&bytes, messages)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(messages.is_empty()),
        Err(error) => Err(error),
    }
}
