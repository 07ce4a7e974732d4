//! Searching every conversation on the machine: those of sessions, and those that agents store by themselves.
//!
//! The index and its queries are in [`ostler_search`]. This module adds the session that a hit belongs to, as it is
//! now, and the command that continues the conversation.

use crate::engine::Engine;
use crate::error::Result;
use jiff::Timestamp;
use ostler_core::SCHEMA;
use ostler_core::id::SessionId;
use ostler_core::view::View;
pub use ostler_search::{Piece, Progress, Query, Role, Unread};
use ostler_view::look::{Depth, look_to};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// What a search has found.
pub type Hits = ostler_search::Hits<Hit>;

/// A message that has what was searched for.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Hit {
    /// The version of this object's form.
    pub schema: u32,
    /// The session of ostler that has the conversation.
    pub session: Option<SessionId>,
    /// The name of that session.
    pub name: Option<String>,
    /// The agent that keeps the conversation.
    pub agent: String,
    /// The agent's own id of the conversation.
    pub native_id: Option<String>,
    /// The first line that a person wrote in it.
    pub title: Option<String>,
    /// The folder in which it works.
    pub cwd: Option<String>,
    /// When the message was written, as far as the transcript tells.
    pub at: Option<Timestamp>,
    /// By whom it is.
    pub role: Role,
    /// The part of the message with the words, in one line.
    pub text: String,
    /// The same in pieces, with the words marked.
    pub snippet: Vec<Piece>,
    /// The command that continues the conversation, word by word.
    pub command: Vec<String>,
    /// The command that shows the conversation, word by word.
    pub read: Vec<String>,
    /// The transcript, or the database that has it.
    pub file: Option<PathBuf>,
    /// What `command` does, for a face that does it itself.
    #[serde(skip)]
    pub next: Next,
}

/// What continues a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Its session runs.
    Attach(SessionId),
    /// Its session has ended.
    Resume(SessionId),
    /// Its session is archived.
    Restore(SessionId),
    /// No session has it; the agent's own id.
    Adopt(String),
    /// Its session is damaged, and no other record of the conversation is known.
    Doctor,
}

impl Next {
    /// The commands that continue the conversation and that show it, word by word.
    fn commands(&self) -> (Vec<String>, Vec<String>) {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
        let (verb, id) = match self {
            Next::Attach(id) => ("attach", id),
            Next::Resume(id) => ("resume", id),
            Next::Restore(id) => ("restore", id),
            Next::Adopt(native_id) => {
                return (words(&["ostler", "adopt", native_id]), words(&["ostler", "logs", "--foreign", native_id]));
            }
            Next::Doctor => return (words(&["ostler", "doctor"]), words(&["ostler", "doctor"])),
        };
        (words(&["ostler", verb, id.as_str()]), words(&["ostler", "logs", id.as_str()]))
    }
}

impl Engine {
    /// Searches; the index is brought up to date first, which takes long only the first time.
    pub fn search(&self, query: &Query) -> Result<Hits> {
        self.search_with_progress(query, &mut |_| {})
    }

    /// The same; `tell` is called with the progress of the update.
    pub fn search_with_progress(&self, query: &Query, tell: &mut dyn FnMut(Progress)) -> Result<Hits> {
        let found = ostler_search::search(&self.home, &self.environment.lookup(), query, tell)?;
        let mut sessions = HashMap::new();
        Ok(found.map(|hit| {
            let view = hit.session.and_then(|id| sessions.entry(id).or_insert_with(|| self.look_at(id)).as_ref());
            describe(hit, view)
        }))
    }

    /// The folder that a person means by this path, in the form in which agents record it.
    pub fn folder(&self, path: &Path) -> Result<PathBuf> {
        let path = self.environment.folder().map_or_else(|_| path.to_owned(), |folder| folder.join(path));
        Ok(std::fs::canonicalize(&path).unwrap_or(path))
    }

    /// A session as it is now; `None` for one that is gone or damaged.
    fn look_at(&self, id: SessionId) -> Option<View> {
        let place = self.home.place_of(id).ok().flatten()?;
        look_to(Depth::Awaited, &place).ok()
    }
}

fn describe(hit: ostler_search::Hit, view: Option<&View>) -> Hit {
    let next = match (view, &hit.native_id) {
        (Some(view), _) => match (view.archived, view.ended) {
            (true, _) => Next::Restore(view.id),
            (false, true) => Next::Resume(view.id),
            (false, false) => Next::Attach(view.id),
        },
        (None, Some(native_id)) => Next::Adopt(native_id.clone()),
        (None, None) => Next::Doctor,
    };
    let (command, read) = next.commands();
    Hit {
        schema: SCHEMA,
        session: view.map(|view| view.id),
        name: view.and_then(|view| view.name.clone()),
        agent: hit.agent,
        native_id: hit.native_id,
        title: hit.title,
        cwd: hit.cwd,
        at: hit.at,
        role: hit.role,
        text: hit.snippet.iter().map(|piece| piece.text.as_str()).collect(),
        snippet: hit.snippet,
        command,
        read,
        file: hit.file,
        next,
    }
}
