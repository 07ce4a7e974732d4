//! `ostler run replay:FILE`: a recording brings everything along that a person would say.

use super::asked::Asked;
use crate::args::Run;
use crate::exit::{Failure, Result};
use crate::say::tell;
use ostler_agents::replay::PREFIX;
use ostler_core::record::Mode;
use ostler_replay::Recording;

pub fn check(args: &Run, file: &str) -> Result<Asked> {
    let own = args.words.len() > 1 || args.file.is_some() || args.model.is_some() || args.terminal;
    if own {
        return Err(Failure::usage(
            "a recording contains its own messages; use only: ostler run replay:FILE [-- --speed 10]",
        ));
    }
    ostler_replay::check_arguments(&args.arguments).map_err(Failure::usage)?;
    let wrong = |why: &dyn std::fmt::Display| Failure::usage(format!("{file} is not a recording: {why}"));
    let path = std::fs::canonicalize(file).map_err(|error| wrong(&error))?;
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(&error))?;
    let recording = Recording::read(&text).map_err(|error| wrong(&error))?;
    let agent = ostler_agents::find(&format!("{PREFIX}{}", recording.agent))
        .ok_or_else(|| wrong(&format!("this version of ostler does not know the agent {:?}", recording.agent)))?;
    let path = path.into_os_string().into_string().map_err(|_| wrong(&"its path is not UTF-8"))?;
    let mut messages = recording.messages().into_iter();
    let arguments = std::iter::once(path).chain(args.arguments.iter().cloned()).collect();
    let prompt = messages.next();
    if prompt.is_none() && !args.keep {
        return Err(wrong(&"it contains no messages"));
    }
    if recording.is_interrupted() {
        tell!("ostler: in this recording a turn is interrupted; do that now: Ctrl-C, or ostler interrupt @last");
    }
    Ok(Asked {
        agent: agent.name().to_owned(),
        mode: Mode::Headless,
        prompt,
        further: messages.collect(),
        conversation: None,
        arguments,
    })
}
