//! The proof that a turn is saved: its messages, by their ids, in whole lines of the agent's own transcript.

use crate::folder::Folder;
use crate::{RunRecord, StoreError, inbox};
use ostler_agents::Agent;
use ostler_core::life::State;
use ostler_core::record::Session;
use std::io;
use std::path::Path;

/// What must be in the transcript: the prompt of the newest turn, and what the agent said in it. `so_far`: what it has
/// said in a turn that is not over.
pub fn messages(folder: &Folder, state: &State, so_far: Vec<String>) -> Result<Vec<String>, StoreError> {
    let mut messages = match &state.last_turn {
        Some(turn) if !state.turn_running() => turn.messages.clone(),
        Some(_) | None => so_far,
    };
    if let Some(prompt) = state.last_fed {
        messages.extend(inbox::read_one(folder.dir(), prompt.at)?.map(|wish| wish.id));
    }
    Ok(messages)
}

/// Whether the transcript holds all of them now. One that does not exist holds nothing.
pub fn holds(agent: &dyn Agent, transcript: &Path, messages: &[String]) -> io::Result<bool> {
    match std::fs::read(transcript) {
        Ok(bytes) => Ok(agent.transcript_holds(&bytes, messages)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(messages.is_empty()),
        Err(error) => Err(error),
    }
}

/// The same for a finished turn of an agent that is gone: whatever will be in the transcript is in it.
pub fn finished_turn_is_saved(
    folder: &Folder,
    session: &Session,
    record: &RunRecord,
    state: &State,
) -> Result<bool, StoreError> {
    let (Some(agent), Some(transcript)) = (ostler_agents::find(&session.agent), &record.transcript) else {
        return Ok(false);
    };
    let messages = messages(folder, state, Vec::new())?;
    holds(agent, Path::new(transcript), &messages).map_err(StoreError::io(transcript.as_str()))
}
