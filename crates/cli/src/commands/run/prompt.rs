//! Prompts and messages as they are typed, or from a file or standard input.

use crate::args::Message;
use crate::exit::{Failure, Result};
use ostler_core::MESSAGE_LIMIT;
use ostler_engine::Error;
use ostler_engine::launch::LaunchRefusal;
use std::io::Read;
use std::path::Path;

pub fn too_long() -> Failure {
    Error::from(LaunchRefusal::PromptTooLong).into()
}

/// A prompt from a file.
pub fn read_prompt(path: &Path) -> Result<String> {
    let wrong = |error| Failure::usage(format!("cannot read the prompt from {}: {error}", path.display()));
    match ostler_engine::launch::read_prompt(path) {
        Ok(Some(bytes)) => text(bytes),
        Ok(None) => Err(too_long()),
        Err(error) => Err(wrong(error)),
    }
}

/// A prompt from standard input.
pub fn read_input() -> Result<String> {
    text(read_all(&mut std::io::stdin().lock(), "standard input")?)
}

/// Reads everything, but only one byte more than the limit.
pub fn read_all(from: &mut impl Read, name: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MESSAGE_LIMIT as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::usage(format!("{name}: {error}")))?;
    if bytes.len() > MESSAGE_LIMIT {
        return Err(too_long());
    }
    Ok(bytes)
}

pub fn text(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        Failure::usage(format!(
            "the text is not valid UTF-8 (byte {}); convert it first",
            error.utf8_error().valid_up_to()
        ))
    })
}

/// A message as it was typed, or from standard input.
pub fn message_of(typed: &Message) -> Result<Option<String>> {
    let message = match (typed.word.as_deref(), &typed.option) {
        (Some("-"), _) => Some(read_input()?),
        (word, option) => word.map(str::to_owned).or_else(|| option.clone()),
    };
    if message.as_ref().is_some_and(|message| message.len() > MESSAGE_LIMIT) {
        return Err(Failure::usage(
            "the message is longer than 16 MiB; save it in a file and tell the agent to read that",
        ));
    }
    if message.as_deref().is_some_and(|message| message.trim().is_empty()) {
        return Err(Failure::usage("the message is empty; write one"));
    }
    Ok(message)
}
