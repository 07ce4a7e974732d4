//! Full text of every conversation on the machine: those of ostler's sessions and those that agents store by
//! themselves.
//!
//! Theory of operation:
//!
//! * The index is derived. A search brings it up to date itself ([`update`]), one at a time under a kernel lock. A
//!   search that finds another update at work uses the present index, or waits if that is not complete yet. A damaged
//!   index is made again.
//! * Transcripts are read through the decoders of `agents`, so that what is found is what `logs` shows.
//! * The index contains no text, only which words are in which [`passages`]. Passages that may match are read again
//!   from the transcript ([`find`]), so that a hit is always what the transcript says now.
//! * [`query`] and [`tokens`] define what a word is, in one place for indexing, searching and marking.

#![warn(missing_docs)]

mod database;
mod discover;
mod error;
mod files;
mod find;
mod known;
mod lines;
mod message;
mod passages;
mod query;
mod rows;
mod sessions;
mod snippet;
mod source;
mod tokens;
mod unread;
mod update;

pub use error::SearchError;
pub use find::{Hit, Query};
pub use message::Role;
pub use snippet::Piece;
pub use unread::Unread;

use database::{Folder, Wait};
use ostler_agents::Variable;
use ostler_store::home::Home;
use rusqlite::Connection;
use unread::Collected;

/// How far an update is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of transcripts that were read.
    pub read: u64,
    /// How many there are to read.
    pub all: u64,
    /// There is no complete index yet, and another search is making it: this search waits.
    pub waits: bool,
}

/// What a search has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hits<H = Hit> {
    /// The newest first.
    pub hits: Vec<H>,
    /// False when there are so many messages to look at that the oldest were left out.
    pub complete: bool,
    /// Another search is updating the index, so that the newest messages may be missing.
    pub updating: bool,
    /// Why the index could not be updated, so that the newest messages may be missing: a full disk.
    pub not_updated: Option<String>,
    /// What could not be read, so that its messages may be missing.
    pub unread: Option<Unread>,
    /// Whether there was anything to look for: `false` when every word is excluded, or there is none.
    pub asked: bool,
}

impl<H> Hits<H> {
    fn none() -> Hits<H> {
        Hits { hits: Vec::new(), complete: true, updating: false, not_updated: None, unread: None, asked: true }
    }

    /// The same with other hits.
    pub fn map<T>(self, change: impl FnMut(H) -> T) -> Hits<T> {
        let Hits { hits, complete, updating, not_updated, unread, asked } = self;
        Hits { hits: hits.into_iter().map(change).collect(), complete, updating, not_updated, unread, asked }
    }
}

/// Searches. The index is updated first; `tell` is called with the progress of the update.
pub fn search(
    home: &Home,
    variable: Variable<'_>,
    query: &Query,
    tell: &mut dyn FnMut(Progress),
) -> Result<Hits, SearchError> {
    let asked = query::Terms::parse(query.words.iter().map(String::as_str)).expression().is_some();
    if !asked {
        return Ok(Hits { asked, ..Hits::none() });
    }
    let folder = Folder::open(home.root())?;
    match attempt(&folder, home, variable, query, tell) {
        Err(error) if error.is_damage() => {
            // The index is made again, once the process that writes now has finished.
            if let Some(_held) = folder.lock(Wait::Long)? {
                folder.delete().map_err(SearchError::io(&folder.index()))?;
            }
            attempt(&folder, home, variable, query, tell)
        }
        // The index was deleted meanwhile, perhaps with its folder.
        Err(_) if !folder.index().exists() => attempt(&Folder::open(home.root())?, home, variable, query, tell),
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
    let found = |connection: &Connection, mut unread: Collected| -> Result<Hits, SearchError> {
        let (hits, complete) = find::find(connection, query, &mut unread)?;
        Ok(Hits { hits, complete, unread: unread.into_unread(), ..Hits::none() })
    };
    let held = match folder.lock(Wait::Short)? {
        Some(held) => held,
        // Another search is updating the index, or just making it.
        None => match folder.existing()? {
            Some(connection) if database::is_whole(&connection)? => {
                return Ok(Hits { updating: true, ..found(&connection, Collected::default())? });
            }
            // A search in an incomplete index would give a wrong answer.
            Some(_) | None => {
                tell(Progress { waits: true, ..Progress::default() });
                folder.lock_when_free()?
            }
        },
    };
    let mut connection = folder.for_update(&held)?;
    let mut unread = Collected::default();
    let not_updated = match update::update(&mut connection, folder, home, variable, &mut unread, tell) {
        Ok(()) => None,
        // What is in the index already is better than nothing.
        Err(error) if error.is_full_disk() && find::has_any(&connection)? => Some(error.to_string()),
        Err(error) => return Err(error),
    };
    Ok(Hits { not_updated, ..found(&connection, unread)? })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn an_index_that_is_deleted_during_its_update_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let projects = root.join("home/.claude/projects/-work");
        fs::create_dir_all(&projects).unwrap();
        let line = format!("{{\"type\":\"user\",\"message\":{{\"content\":\"zebra {}\"}}}}\n", "x".repeat(1 << 20));
        // So large that the update does not wait for the disk until it ends.
        fs::write(projects.join("11111111-408d-4262-88d9-97e7e2d532f0.jsonl"), line.repeat(9)).unwrap();
        let variable = |name: &str| (name == "HOME").then(|| root.join("home").to_str().unwrap().to_owned());
        let home = Home::at(root.join("ostler"));
        let query = Query { words: vec!["zebra".to_owned()], ..Query::default() };
        let mut deleted = false;
        let mut tell = |_| {
            if !std::mem::replace(&mut deleted, true) {
                fs::remove_dir_all(root.join("ostler/search")).unwrap();
            }
        };
        let found = search(&home, &variable, &query, &mut tell).unwrap();
        assert_eq!((found.hits.len(), found.updating), (1, false), "{found:?}");
        assert!(deleted && root.join("ostler/search/index.sqlite").exists());
    }
}
