//! Which conversation is meant: by the agent's own id of it, the beginning of that, or its transcript.

use crate::commands::ls::tilde;
use crate::context::{Context, variable};
use crate::exit::{Code, Failure, Result};
use crate::ui::called::{called, called_at};
use ostler_core::id::SessionId;
use ostler_core::view::View;
use ostler_engine::foreign::about::{self, About};
use ostler_engine::foreign::stored::{self, Older, Stored};
use ostler_engine::list::{Listed, list};
use ostler_store::look::{Depth, look_to};
use std::path::Path;

/// A conversation, and what is in it.
pub struct Found {
    pub stored: Stored,
    pub about: About,
}

/// Shorter words are no beginning of an id: too much begins with them.
const SHORTEST: usize = 4;
/// So many are named when several begin alike.
const NAMED: usize = 5;

pub fn find(context: &Context, word: &str) -> Result<Found> {
    let all = stored::all(&variable)?;
    let stored = match by_file(word, &all)? {
        Some(stored) => stored,
        None => by_id(context, word, all)?,
    };
    refuse_kept(context, &stored)?;
    let mut found = Found { stored, about: About::default() };
    found.read_again()?;
    Ok(found)
}

impl Found {
    /// Reads what is in it now.
    pub fn read_again(&mut self) -> Result<()> {
        let cannot =
            |error| Failure::ours(format!("{} cannot be read: {error}", tilde(&self.stored.file.to_string_lossy())));
        self.about = about::whole(&self.stored).map_err(cannot)?;
        Ok(())
    }
}

/// The conversation in a file. It has to be where its agent looks for it.
fn by_file(word: &str, all: &[Stored]) -> Result<Option<Stored>> {
    let path = Path::new(word);
    if !(word.contains('/') || word.ends_with(".jsonl") || word.ends_with(".json")) {
        return Ok(None);
    }
    if !path.is_file() {
        return Err(Failure::new(Code::NoSession, format!("there is no file {word}; name a conversation or its file")));
    }
    let path = std::fs::canonicalize(path)?;
    let same =
        |one: &&Stored| one.queries().is_none() && std::fs::canonicalize(&one.file).is_ok_and(|file| file == path);
    match all.iter().find(same) {
        Some(stored) => Ok(Some(stored.clone())),
        None if let Some(older) = older(|one| one.file == path) => Err(to_convert(&older)),
        None => Err(Failure::usage(format!(
            "{} is not where an agent keeps a conversation; searched {}",
            path.display(),
            places()
        ))),
    }
}

fn by_id(context: &Context, word: &str, all: Vec<Stored>) -> Result<Stored> {
    let mut meant: Vec<Stored> = all.into_iter().filter(|one| one.native_id.starts_with(word)).collect();
    if let Some(exact) = meant.iter().position(|one| one.native_id == word) {
        return Ok(meant.swap_remove(exact));
    }
    if word.len() < SHORTEST {
        meant.clear();
    }
    if meant.len() > 1 {
        let named: Vec<String> =
            meant.iter().take(NAMED).map(|one| format!("{} ({})", one.native_id, one.agent)).collect();
        let more = if meant.len() > NAMED { ", …" } else { "" };
        return Err(Failure::usage(format!(
            "{word:?} is the beginning of several conversations: {}{more}; type more of it",
            named.join(", ")
        )));
    }
    match meant.pop() {
        Some(stored) => Ok(stored),
        None => Err(unknown(context, word)),
    }
}

/// A session of ours may be meant by its own id or name.
fn unknown(context: &Context, word: &str) -> Failure {
    match context.engine.home.select(word) {
        Ok(place) => {
            let alive = look_to(Depth::Standing, &place).is_ok_and(|view| !view.ended);
            kept(&called_at(&place), place.id, place.archived, alive)
        }
        Err(_)
            if word.len() >= SHORTEST
                && let Some(older) = older(|one| one.form.id.starts_with(word)) =>
        {
            to_convert(&older)
        }
        Err(_) => Failure::new(Code::NoSession, format!("no conversation begins with {word:?}; searched {}", places())),
    }
}

/// The first of those that an older version of their agent has written and that is as wanted.
fn older(wanted: impl Fn(&Older) -> bool) -> Option<Older> {
    stored::in_older_form(&variable).into_iter().find(wanted)
}

fn to_convert(older: &Older) -> Failure {
    let Older { agent, form, cwd, .. } = older;
    let place = cwd.as_deref().map(|cwd| format!(" in {}", tilde(cwd))).unwrap_or_default();
    Failure::usage(format!(
        "an older {agent} wrote {}, in a form that ostler cannot read; {agent} converts it: run {}{place} once, then adopt it",
        form.id, form.resume
    ))
}

fn places() -> String {
    stored::places(&variable).iter().map(|place| tilde(&place.to_string_lossy())).collect::<Vec<_>>().join(", ")
}

/// Refuses a conversation that a session of this home has.
pub fn refuse_kept(context: &Context, stored: &Stored) -> Result<()> {
    let views = list(&context.engine, true, |one| one)?.into_iter().filter_map(|listed| match listed {
        Listed::Good(view) => Some(*view),
        Listed::Bad(_) => None,
    });
    let same = |view: &View| {
        view.native_id.as_deref() == Some(stored.native_id.as_str()) && view.conversation_agent() == stored.agent
    };
    match views.into_iter().find(same) {
        Some(view) => Err(kept(&called(&view), view.id, view.archived, !view.ended)),
        None => Ok(()),
    }
}

fn kept(called: &str, id: SessionId, archived: bool, alive: bool) -> Failure {
    let what_to_do = match (archived, alive) {
        (true, _) => "restore it: ostler restore",
        (false, true) => "it is running; open it: ostler attach",
        (false, false) => "continue it: ostler resume",
    };
    Failure::new(Code::Refused, format!("already kept: {called}; {what_to_do} {id}"))
}
