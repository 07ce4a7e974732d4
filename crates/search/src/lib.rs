//! Full text of every conversation on the machine: those of ostler's sessions and those that agents keep by themselves.
//!
//! Theory of operation:
//!
//! * The index is derived. A search brings it up to date itself ([`update`]), one at a time by a kernel lock; a search that
//!   finds another one at work uses what is there. A damaged index is made again.
//! * Transcripts are read through the decoders of `agents`, so that what is found is what `logs` shows.
//! * The index has no text, only which words stand in which [`passages`]. Passages that may match are read again where they
//!   stand ([`find`]), so that a hit is always what the transcript says now.
//! * [`query`] and [`tokens`] say what a word is, once, for indexing, searching and marking.

#![warn(missing_docs)]

mod database;
mod discover;
mod error;
mod find;
mod lines;
mod message;
mod passages;
mod query;
mod rows;
mod sessions;
mod snippet;
mod tokens;
mod update;

pub use error::SearchError;
pub use find::{Hit, Query};
pub use message::Role;
pub use snippet::Piece;

use database::{Folder, Wait};
use ostler_agents::Variable;
use ostler_store::home::Home;

/// How far an update is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of transcripts that were read.
    pub read: u64,
    /// How many there are to read.
    pub all: u64,
}

/// What a search has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hits {
    /// The newest first.
    pub hits: Vec<Hit>,
    /// False when there are so many messages to look at that the oldest were left out.
    pub complete: bool,
    /// Another search is updating the index, so that the newest messages may be missing.
    pub updating: bool,
    /// Whether there was anything to look for: `false` when every word is excluded, or there is none.
    pub asked: bool,
}

/// Searches. `tell` hears how far the update is that comes first.
pub fn search(
    home: &Home,
    variable: Variable<'_>,
    query: &Query,
    tell: &mut dyn FnMut(Progress),
) -> Result<Hits, SearchError> {
    let asked = query::Terms::parse(query.words.iter().map(String::as_str)).expression().is_some();
    if !asked {
        return Ok(Hits { hits: Vec::new(), complete: true, updating: false, asked });
    }
    let folder = Folder::open(home.root())?;
    match attempt(&folder, home, variable, query, tell) {
        Err(error) if error.is_damage() => {
            // It is made again, once the process that writes now has finished.
            if let Some(_held) = folder.lock(Wait::Long)? {
                folder.delete().map_err(SearchError::io(&folder.index()))?;
            }
            attempt(&folder, home, variable, query, tell)
        }
        done => done,
    }
}

fn attempt(
    folder: &Folder,
    home: &Home,
    variable: Variable<'_>,
    query: &Query,
    tell: &mut dyn FnMut(Progress),
) -> Result<Hits, SearchError> {
    let nothing = Hits { hits: Vec::new(), complete: true, updating: true, asked: true };
    let (connection, updating) = match folder.lock(Wait::Short)? {
        Some(held) => {
            let mut connection = folder.for_update(&held)?;
            update::update(&mut connection, folder, home, variable, tell)?;
            (connection, false)
        }
        None => match folder.existing() {
            Ok(Some(connection)) => (connection, true),
            // Another search is just making it.
            Ok(None) => return Ok(nothing),
            Err(error) => return Err(error),
        },
    };
    let found = find::find(&connection, query)?;
    Ok(Hits { hits: found.hits, complete: found.complete, updating, asked: true })
}
