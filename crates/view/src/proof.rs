//! The proof that a turn is saved: its messages, by their ids, in whole lines of the agent's own transcript, or in rows of its
//! database.

use crate::database;
use ostler_agents::saved::Search;
use ostler_agents::transcript::Location;
use ostler_agents::{Agent, unsaved_on_exit};
use ostler_core::fact::{Tokens, TurnEnd, Verdict};
use ostler_core::life::{Message, State};
use ostler_core::outcome::Exit;
use ostler_core::record::{Mode, Request, RequestKind, Session, Speaks};
use ostler_core::view::View;
use ostler_store::folder::Folder;
use ostler_store::{RunRecord, StoreError, backwards, inbox};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// What must be in the transcript: the prompt of the newest turn, and what the agent said in it. `so_far`: what it has
/// said in a turn that is not over.
pub fn marks(
    agent: &dyn Agent,
    folder: &Folder,
    state: &State,
    so_far: Vec<String>,
) -> Result<Vec<String>, StoreError> {
    let mut marks = match state.last_turn() {
        Some(turn) if !state.turn_is_told() => turn.messages.clone(),
        Some(_) | None => so_far,
    };
    marks = unsaved_on_exit::names_to_find(marks, state.exit().is_some_and(Exit::is_by_request));
    // What was typed has no name of ours in the transcript; the turn's own marks name it.
    if let Some(prompt) = state.last_fed()
        && state.plan.speaks() != Speaks::Hooks
        && !was_a_command(folder, state, prompt)?
    {
        marks.extend(mark_of(agent, folder, state.plan.mode(), prompt)?);
    }
    Ok(marks)
}

/// Whether this was a command to the agent's own program (`/clear`), which carried it out without its model: neither it nor
/// what the program said about it is in the transcript under the name that we know.
fn was_a_command(folder: &Folder, state: &State, prompt: Message) -> Result<bool, StoreError> {
    let without_model = |turn: &TurnEnd| turn.verdict == Verdict::Succeeded && turn.messages.is_empty();
    if state.turn_is_told() || !state.last_turn().is_some_and(without_model) {
        return Ok(false);
    }
    let request = inbox::read_one(folder.dir(), prompt.at)?;
    Ok(
        matches!(request.map(|request| request.kind), Some(RequestKind::Message { text, .. }) if text.trim_start().starts_with('/')),
    )
}

/// What to look for to know that the agent has this message.
pub fn mark_of(agent: &dyn Agent, folder: &Folder, mode: Mode, message: Message) -> Result<Option<String>, StoreError> {
    Ok(match inbox::read_one(folder.dir(), message.at)? {
        Some(Request { id, kind: RequestKind::Message { text, .. }, .. }) => Some(match mode {
            Mode::Headless => agent.mark(&id, &text),
            // Typed, it has no name of ours.
            Mode::Terminal => agent.mark_of_words(&ostler_agents::speak::typeable(&text)),
        }),
        Some(_) | None => None,
    })
}

/// The agent's transcript of a conversation, when it is there.
#[must_use]
pub fn find_transcript(agent: &dyn Agent, native_id: &str, cwd: &str) -> Option<String> {
    find_transcript_with(agent, native_id, cwd, &|name| std::env::var(name).ok())
}

/// The same where the agent has this environment.
#[must_use]
pub fn find_transcript_with(
    agent: &dyn Agent,
    native_id: &str,
    cwd: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Option<String> {
    match agent.transcript(native_id, cwd, variable)? {
        Location::At(path) => Some(path),
        Location::Below { folder, name_ends_with } => {
            let mut open = vec![std::path::PathBuf::from(folder)];
            // A copy of a conversation may have two files of its name: it goes on in the newer one.
            let mut newest: Option<(std::time::SystemTime, String)> = None;
            while let Some(folder) = open.pop() {
                for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                    if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                        open.push(entry.path());
                    } else if entry.file_name().to_string_lossy().ends_with(&name_ends_with) {
                        let written = entry.metadata().and_then(|file| file.modified()).ok()?;
                        if newest.as_ref().is_none_or(|(known, _)| written > *known) {
                            newest = Some((written, entry.path().to_string_lossy().into_owned()));
                        }
                    }
                }
            }
            newest.map(|(_, path)| path)
        }
    }
}

/// Whether an agent can go on with a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    Yes,
    /// There is no trace of it.
    No,
    /// There is a file, and nothing in it that the agent would resume; it begins no other of that name either.
    InNameOnly,
}

/// Whether there is a conversation to go on with. `transcript`: where it is, as far as that is known. `None` for agents
/// whose conversations nobody can look into.
pub fn begun(agent: &dyn Agent, native_id: &str, cwd: &str, transcript: Option<&str>) -> Option<Begun> {
    begun_with(agent, native_id, cwd, transcript, &|name| std::env::var(name).ok())
}

/// The same where the agent has this environment.
pub fn begun_with(
    agent: &dyn Agent,
    native_id: &str,
    cwd: &str,
    transcript: Option<&str>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Option<Begun> {
    // A database says nothing about this conversation: it is there for all of them.
    if agent.keeps_what_it_names() {
        return Some(Begun::Yes);
    }
    agent.transcript(native_id, cwd, variable)?;
    // Where its file is may not be known: the agent named it, and everybody died.
    let found = transcript.map(str::to_owned).or_else(|| find_transcript_with(agent, native_id, cwd, variable));
    let Some(file) = found.and_then(|path| File::open(path).ok()) else {
        return Some(Begun::No);
    };
    let begins = agent.begins(&mut BufReader::new(file).split(b'\n').map_while(Result::ok));
    Some(if begins { Begun::Yes } else { Begun::InNameOnly })
}

/// How far the transcript has been written before a run of an agent that takes one message per run: one of those is
/// told the same words twice has to be found saying them twice.
#[must_use]
pub fn written_before(record: &RunRecord) -> u64 {
    let transcript = record.transcript.as_ref().filter(|_| record.plan.speaks() == Speaks::OneTurn);
    transcript.and_then(|path| std::fs::metadata(path).ok()).map_or(0, |file| file.len())
}

/// Whether the transcript, from there on, holds all of them now. One that does not exist holds nothing.
pub fn holds(agent: &dyn Agent, transcript: &Path, from: u64, marks: &[String]) -> io::Result<bool> {
    finds(agent.search(marks), transcript, from)
}

/// Whether they are in what the conversation is now: an agent may have taken back what it had written down.
pub fn conversation_has(agent: &dyn Agent, transcript: &Path, from: u64, marks: &[String]) -> io::Result<bool> {
    finds(agent.search_conversation(marks), transcript, from)
}

fn finds(mut search: Box<dyn Search + '_>, transcript: &Path, from: u64) -> io::Result<bool> {
    let file = match File::open(transcript) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(search.is_over()),
        Err(error) => return Err(error),
    };
    backwards::lines(&file, from, |line| match search.line(line) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    })?;
    Ok(search.is_over())
}

/// What the turn with these marks used, by the agent's transcript; `None` when it does not say.
pub fn turn_tokens(agent: &dyn Agent, transcript: &Path, marks: &[String]) -> io::Result<Option<Tokens>> {
    let Some(mut count) = agent.count(marks) else {
        return Ok(None);
    };
    let file = File::open(transcript)?;
    backwards::lines(
        &file,
        0,
        |line| if count.line(line) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) },
    )?;
    Ok(Some(count.tokens()))
}

/// Where an agent keeps a conversation, and where in it a run began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    File {
        path: PathBuf,
        from: u64,
    },
    Database {
        path: PathBuf,
        native_id: String,
        /// Milliseconds since 1970.
        since_ms: u64,
    },
}

impl Kept {
    /// As far as it is known: a conversation without a name is in no row.
    #[must_use]
    pub fn of(record: &RunRecord, state: &State) -> Option<Kept> {
        if let Some(transcript) = own_transcript(record, state) {
            // In another file than the one that was known, nothing of this run was written before.
            let before = record.written_before.max(state.typed().written);
            let from = if record.transcript.as_ref() == Some(transcript) { before } else { 0 };
            return Some(Kept::File { path: transcript.into(), from });
        }
        let native_id = state.native_id.clone().or_else(|| record.native_id.clone())?;
        let since_ms = record.started.map_or(0, |started| u64::try_from(started.as_millisecond()).unwrap_or(0));
        let since_ms = since_ms.max(state.typed().at_ms);
        record.database.as_ref().map(|path| Kept::Database { path: path.into(), native_id, since_ms })
    }

    /// Whether it holds all these marks now.
    pub fn holds(&self, agent: &dyn Agent, marks: &[String]) -> io::Result<bool> {
        match self {
            Kept::File { path, from } => holds(agent, path, *from, marks),
            Kept::Database { path, native_id, since_ms } => database::holds(agent, path, native_id, *since_ms, marks),
        }
    }
}

/// The file of this conversation alone: what the agent has told, or what was known when it was started.
#[must_use]
pub fn own_transcript<'a>(record: &'a RunRecord, state: &'a State) -> Option<&'a String> {
    state.transcript.as_ref().or(record.transcript.as_ref())
}

/// Where the conversation is, for a person: its file, or the database that it is in.
#[must_use]
pub fn location(record: &RunRecord, state: &State) -> Option<String> {
    own_transcript(record, state).or(record.database.as_ref()).cloned()
}

/// The file of this conversation alone, which may be copied, repaired and put back. A database has others in it, too.
pub fn own_file(folder: &Folder, view: &View) -> Result<Option<String>, StoreError> {
    let Some(location) = &view.transcript else {
        return Ok(None);
    };
    let database = folder.run(view.run)?.record()?.database;
    Ok(Some(location).filter(|path| database.as_ref() != Some(*path)).cloned())
}

/// The same for a finished turn of an agent that is gone: whatever will be in the transcript is in it.
pub fn finished_turn_is_saved(
    folder: &Folder,
    session: &Session,
    record: &RunRecord,
    state: &State,
) -> Result<bool, StoreError> {
    let agent = ostler_agents::find_for(&session.agent, &record.plan);
    let (Some(agent), Some(kept)) = (agent, Kept::of(record, state)) else {
        return Ok(false);
    };
    let marks = marks(agent, folder, state, Vec::new())?;
    match (kept.holds(agent, &marks), &kept) {
        // A newer agent may keep its rows in another way, which proves nothing and is no fault of the session.
        (Err(_), Kept::Database { .. }) => Ok(false),
        (held, Kept::File { path, .. }) => held.map_err(StoreError::io(path.to_string_lossy())),
        (Ok(held), Kept::Database { .. }) => Ok(held),
    }
}
