//! The proof that a turn is saved: its messages, by their ids, in whole lines of the agent's own transcript, or in rows
//! of its database.

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

/// What must be in the transcript: the prompt of the newest turn, and what the agent said in it. `so_far`: what the
/// agent has said in a turn that is not over.
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
    // A typed prompt has no id of ours in the transcript; the turn's own marks identify it.
    if let Some(prompt) = state.last_fed()
        && state.plan.speaks() != Speaks::Hooks
        && !was_a_command(folder, state, prompt)?
    {
        marks.extend(mark_of(agent, folder, state.plan.mode(), prompt)?);
    }
    Ok(marks)
}

/// Whether this was a command to the agent's own program (`/clear`), which carried it out without its model: neither
/// the command nor what the program said about it is in the transcript under the id that we know.
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
            // A typed message has no id of ours.
            Mode::Terminal => agent.mark_of_words(&ostler_agents::speak::typeable(&text)),
        }),
        Some(_) | None => None,
    })
}

/// The agent's transcript of a conversation, if it exists.
#[must_use]
pub fn find_transcript(agent: &dyn Agent, native_id: &str, cwd: &str) -> Option<String> {
    find_transcript_with(agent, native_id, cwd, &|name| std::env::var(name).ok())
}

/// The same for an agent that has this environment.
#[must_use]
pub fn find_transcript_with(
    agent: &dyn Agent,
    native_id: &str,
    cwd: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Option<String> {
    match agent.transcript(native_id, cwd, variable)? {
        Location::At(path) => Some(path),
        Location::UnderFolder { folder, name_ends_with } => {
            let mut open = vec![std::path::PathBuf::from(folder)];
            // A copy of a conversation may have two files with its name: it continues in the newer one.
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

/// Whether an agent can continue a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    Yes,
    /// There is no trace of it.
    No,
    /// There is a file, but nothing in it that the agent would resume; the agent does not begin another conversation
    /// with that name either.
    InNameOnly,
}

/// Whether there is a conversation to continue. `transcript`: where it is, as far as that is known. `None` for agents
/// whose conversations cannot be read.
pub fn begun(agent: &dyn Agent, native_id: &str, cwd: &str, transcript: Option<&str>) -> Option<Begun> {
    begun_with(agent, native_id, cwd, transcript, &|name| std::env::var(name).ok())
}

/// The same for an agent that has this environment.
pub fn begun_with(
    agent: &dyn Agent,
    native_id: &str,
    cwd: &str,
    transcript: Option<&str>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Option<Begun> {
    // A database says nothing about this conversation: it exists for all of them.
    if agent.keeps_what_it_names() {
        return Some(Begun::Yes);
    }
    agent.transcript(native_id, cwd, variable)?;
    // The place of its file may be unknown: the agent reported it, and all processes of the session were killed.
    let found = transcript.map(str::to_owned).or_else(|| find_transcript_with(agent, native_id, cwd, variable));
    let Some(file) = found.and_then(|path| File::open(path).ok()) else {
        return Some(Begun::No);
    };
    let begins = agent.begins(&mut BufReader::new(file).split(b'\n').map_while(Result::ok));
    Some(if begins { Begun::Yes } else { Begun::InNameOnly })
}

/// How long the transcript is before a run of an agent that takes one message per run: if such an agent is given the
/// same words twice, they have to be found twice.
#[must_use]
pub fn written_before(record: &RunRecord) -> u64 {
    let transcript = record.transcript.as_ref().filter(|_| record.plan.speaks() == Speaks::OneTurn);
    transcript.and_then(|path| std::fs::metadata(path).ok()).map_or(0, |file| file.len())
}

/// Whether the transcript, from position `from` on, contains all marks now. A file that does not exist contains
/// nothing.
pub fn holds(agent: &dyn Agent, transcript: &Path, from: u64, marks: &[String]) -> io::Result<bool> {
    finds(agent.search(marks), transcript, from)
}

/// Whether the marks are in the present conversation: an agent may have taken back what it had written.
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

/// What the turn with these marks used, according to the agent's transcript; `None` when the transcript does not say.
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

/// Where an agent stores a conversation, and where in it a run began.
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
    /// The place, as far as it is known. A conversation without an id cannot be found in a database.
    #[must_use]
    pub fn of(record: &RunRecord, state: &State) -> Option<Kept> {
        if let Some(transcript) = own_transcript(record, state) {
            // A file other than the known one has nothing from before this run.
            let before = record.written_before.max(state.typed().written);
            let from = if record.transcript.as_ref() == Some(transcript) { before } else { 0 };
            return Some(Kept::File { path: transcript.into(), from });
        }
        let native_id = state.native_id.clone().or_else(|| record.native_id.clone())?;
        let since_ms = record.started.map_or(0, |started| u64::try_from(started.as_millisecond()).unwrap_or(0));
        let since_ms = since_ms.max(state.typed().at_ms);
        record.database.as_ref().map(|path| Kept::Database { path: path.into(), native_id, since_ms })
    }

    /// Whether it contains all these marks now.
    pub fn holds(&self, agent: &dyn Agent, marks: &[String]) -> io::Result<bool> {
        match self {
            Kept::File { path, from } => holds(agent, path, *from, marks),
            Kept::Database { path, native_id, since_ms } => database::holds(agent, path, native_id, *since_ms, marks),
        }
    }
}

/// The file of this conversation alone: the one that the agent has reported, or the one that was known when it was
/// started.
#[must_use]
pub fn own_transcript<'a>(record: &'a RunRecord, state: &'a State) -> Option<&'a String> {
    state.transcript.as_ref().or(record.transcript.as_ref())
}

/// Where the conversation is, for a person: its file, or the database that it is in.
#[must_use]
pub fn location(record: &RunRecord, state: &State) -> Option<String> {
    own_transcript(record, state).or(record.database.as_ref()).cloned()
}

/// The file of this conversation alone, which may be copied, repaired and restored. A database also contains other
/// conversations.
pub fn own_file(folder: &Folder, view: &View) -> Result<Option<String>, StoreError> {
    let Some(location) = &view.transcript else {
        return Ok(None);
    };
    let database = folder.run(view.run)?.record()?.database;
    Ok(Some(location).filter(|path| database.as_ref() != Some(*path)).cloned())
}

/// Whether a finished turn of an agent that is gone is saved: nothing more will be written to the transcript.
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
        // A newer agent may store its rows in another way, which proves nothing and is not an error of the session.
        (Err(_), Kept::Database { .. }) => Ok(false),
        (held, Kept::File { path, .. }) => held.map_err(StoreError::io(path.to_string_lossy())),
        (Ok(held), Kept::Database { .. }) => Ok(held),
    }
}
