//! `--queue`, `--at`, `--after`: when a session starts that does not start at once.

use crate::args::Run;
use crate::context::Context;
use crate::exit::{Failure, Result};
use ostler_core::outcome::Kind;
use ostler_core::start_when::After;
use ostler_engine::installed;
use ostler_engine::process::now;
use ostler_engine::quantities::parse_start_time;
use ostler_engine::queues::{DEFAULT_QUEUE, StartLater};

/// What the options ask for.
pub fn start(context: &Context, args: &mut Run) -> Result<StartLater> {
    let queue = queue(context, args)?;
    let at = args.at.as_deref().map(|text| parse_start_time(text, now()).map_err(Failure::usage)).transpose()?;
    let after = args.after.iter().map(|word| after(context, word)).collect::<Result<_>>()?;
    Ok(StartLater { at, after, queue, priority: args.priority.unwrap_or(0) })
}

/// What `--queue [NAME]` asks for. The word after it may not be a queue: the name of an agent, or text with white
/// space, means the same as without the option, an agent or a prompt.
fn queue(context: &Context, args: &mut Run) -> Result<Option<String>> {
    let Some(name) = args.queue.take() else { return Ok(None) };
    let usual = || Some(DEFAULT_QUEUE.to_owned());
    let Some(word) = name else { return Ok(usual()) };
    let config = &context.engine.config;
    if config.queues.contains_key(&word) {
        return Ok(Some(word));
    }
    if word.contains(char::is_whitespace) {
        args.words.push(word);
    } else if installed::find(&word).is_some() || config.own_agent(&word)?.is_some() {
        args.words.insert(0, word);
    } else {
        return Ok(Some(word));
    }
    Ok(usual())
}

/// `ID[=OUTCOME]`.
fn after(context: &Context, word: &str) -> Result<After> {
    const KINDS: [Kind; 5] = [Kind::Succeeded, Kind::Failed, Kind::Interrupted, Kind::Stopped, Kind::Lost];
    let (session, outcome) = match word.rsplit_once('=') {
        None => (word, Some(Kind::Succeeded)),
        Some((session, "ended")) => (session, None),
        Some((session, outcome)) => match KINDS.into_iter().find(|kind| kind.word() == outcome) {
            Some(kind) => (session, Some(kind)),
            None => {
                return Err(Failure::usage(format!(
                    "{outcome:?} is not an outcome; use succeeded, failed, interrupted, stopped, lost or ended"
                )));
            }
        },
    };
    Ok(After { id: context.engine.select(session)?.id, outcome })
}
