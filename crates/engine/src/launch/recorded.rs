//! A recording of a real agent as a session: it contains everything that a person would say.

use super::refusal::LaunchRefusal;
use crate::error::Result;
use ostler_agents::replay::PREFIX;
use ostler_replay::Recording;
use std::path::Path;

/// What a recording contributes to a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The agent that plays it, for [`super::Launch::agent`].
    pub agent: String,
    /// What is said in it, for [`super::Launch::prompt`] and [`super::Launch::further`].
    pub messages: Vec<String>,
    /// For [`super::Launch::arguments`].
    pub arguments: Vec<String>,
    /// A turn is interrupted in the recording, so the user or the caller has to interrupt it when it is played.
    pub interrupted: bool,
}

/// The file of a recording that a word names: `replay:FILE`.
#[must_use]
pub fn file_of(word: &str) -> Option<&str> {
    word.strip_prefix(PREFIX)
}

/// Whether this agent plays recordings.
#[must_use]
pub fn is_player(agent: &str) -> bool {
    agent.starts_with(PREFIX)
}

/// Reads a recording. `arguments`: those of the player, such as `--speed 10`.
pub fn read(file: &Path, arguments: &[String]) -> Result<Recorded> {
    ostler_replay::check_arguments(arguments).map_err(LaunchRefusal::PlayerArgument)?;
    let shown = file.to_string_lossy().into_owned();
    let wrong =
        |why: &dyn std::fmt::Display| LaunchRefusal::NotARecording { file: shown.clone(), why: why.to_string() };
    let path = std::fs::canonicalize(file).map_err(|error| wrong(&error))?;
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(&error))?;
    let recording = Recording::read(&text).map_err(|error| wrong(&error))?;
    let agent = ostler_agents::find(&format!("{PREFIX}{}", recording.agent))
        .ok_or_else(|| wrong(&format!("this version of ostler does not know the agent {:?}", recording.agent)))?;
    let path = path.into_os_string().into_string().map_err(|_| wrong(&"its path is not UTF-8"))?;
    Ok(Recorded {
        agent: agent.name().to_owned(),
        messages: recording.messages(),
        arguments: std::iter::once(path).chain(arguments.iter().cloned()).collect(),
        interrupted: recording.is_interrupted(),
    })
}
