//! Finds the conversation that a word names: by the agent's own id, the beginning of that id, or the path of its
//! transcript.

use super::refusal::AdoptRefusal;
use crate::engine::Engine;
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::foreign::about::{self, About};
use crate::foreign::stored::{self, Older, Stored};
use crate::list::{Listed, list};
use crate::session_ref::SessionRef;
use ostler_core::view::View;
use ostler_view::look::{Depth, look_to};
use std::path::{Path, PathBuf};

/// A conversation, and what is in it.
#[derive(Debug)]
pub struct Found {
    /// Where it is.
    pub stored: Stored,
    /// What is in it.
    pub about: About,
}

/// A shorter word is not accepted as the beginning of an id: too many ids begin with it.
const SHORTEST: usize = 4;
/// When several ids begin with the word, at most this many are named.
const NAMED: usize = 5;

/// The conversation that a word names.
pub fn find(engine: &Engine, word: &str) -> Result<Found> {
    let stored = locate(engine, word)?;
    refuse_kept(engine, &stored)?;
    let mut found = Found { stored, about: About::default() };
    found.read_again()?;
    Ok(found)
}

/// As `find`, but returns only where the conversation is, and accepts one that a session has.
pub fn locate(engine: &Engine, word: &str) -> Result<Stored> {
    let all = match stored::all(&engine.environment.lookup()) {
        Ok(all) => all,
        // A database that cannot be read must not hide conversations that are in files.
        Err(error) => {
            let files = stored::in_files(&engine.environment.lookup());
            let is_there = |one: &Stored| one.native_id.starts_with(word) || one.file == Path::new(word);
            if files.iter().any(is_there) { files } else { return Err(error) }
        }
    };
    match by_file(engine, word, &all)? {
        Some(stored) => Ok(stored),
        None => by_id(engine, word, all),
    }
}

impl Found {
    /// Reads the conversation again.
    pub fn read_again(&mut self) -> Result<()> {
        let cannot = |error| AdoptRefusal::Unreadable { file: self.stored.file.clone(), error };
        self.about = about::whole(&self.stored).map_err(cannot)?;
        Ok(())
    }
}

/// The conversation in a file. The file has to be where its agent looks for conversations.
fn by_file(engine: &Engine, word: &str, all: &[Stored]) -> Result<Option<Stored>> {
    let path = Path::new(word);
    if !(word.contains('/') || word.ends_with(".jsonl") || word.ends_with(".json")) {
        return Ok(None);
    }
    if !path.is_file() {
        return Err(AdoptRefusal::NoFile { word: word.to_owned() }.into());
    }
    let path = std::fs::canonicalize(path)?;
    let same =
        |one: &&Stored| one.queries().is_none() && std::fs::canonicalize(&one.file).is_ok_and(|file| file == path);
    match all.iter().find(same) {
        Some(stored) => Ok(Some(stored.clone())),
        None if let Some(older) = older(engine, |one| one.file == path) => Err(to_convert(older)),
        None => Err(AdoptRefusal::NotWhereAgentsLook { file: path, searched: places(&engine.environment) }.into()),
    }
}

fn by_id(engine: &Engine, word: &str, all: Vec<Stored>) -> Result<Stored> {
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
        let named = format!("{}{more}", named.join(", "));
        return Err(AdoptRefusal::Ambiguous { word: word.to_owned(), named }.into());
    }
    match meant.pop() {
        Some(stored) => Ok(stored),
        None => Err(unknown(engine, word)),
    }
}

/// The error for a word that names no conversation. The word may be the id or the name of a session.
fn unknown(engine: &Engine, word: &str) -> Error {
    match engine.home.select(word) {
        Ok(place) => {
            let alive = look_to(Depth::Standing, &place).is_ok_and(|view| !view.ended);
            AdoptRefusal::AlreadyKept { session: SessionRef::at(&place), archived: place.archived, alive }.into()
        }
        Err(_)
            if word.len() >= SHORTEST
                && let Some(older) = older(engine, |one| one.form.id.starts_with(word)) =>
        {
            to_convert(older)
        }
        Err(_) => AdoptRefusal::Unknown { word: word.to_owned(), searched: places(&engine.environment) }.into(),
    }
}

/// The first conversation in an older format of its agent that matches `wanted`.
fn older(engine: &Engine, wanted: impl Fn(&Older) -> bool) -> Option<Older> {
    stored::in_older_form(&engine.environment.lookup()).into_iter().find(wanted)
}

fn to_convert(older: Older) -> Error {
    let Older { agent, form, cwd, .. } = older;
    AdoptRefusal::OlderForm { agent, native_id: form.id, resume: form.resume, cwd }.into()
}

fn places(environment: &Environment) -> Vec<PathBuf> {
    stored::places(&environment.lookup())
}

/// Refuses a conversation that a session of this home has.
pub fn refuse_kept(engine: &Engine, stored: &Stored) -> Result<()> {
    let views = list(engine, true, |one| one)?.into_iter().filter_map(|listed| match listed {
        Listed::Good(view) => Some(*view),
        Listed::Bad(_) => None,
    });
    let same = |view: &View| {
        view.native_id.as_deref() == Some(stored.native_id.as_str()) && view.conversation_agent() == stored.agent
    };
    match views.into_iter().find(same) {
        Some(view) => {
            let session = SessionRef::from(&view);
            Err(AdoptRefusal::AlreadyKept { session, archived: view.archived, alive: !view.ended }.into())
        }
        None => Ok(()),
    }
}
