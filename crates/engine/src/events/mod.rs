//! Everything that happens to every session, from files alone. It needs no keeper and no holder, and works when all of
//! them are dead.
//!
//! * `entries` reads the new lines of a journal, whole lines only.
//! * `known` compares the folders that exist with those of the last look.
//! * `changes` waits until something may have changed.
//!
//! Watch first, read afterwards: what happens in between ends the next wait at once, so a new session's first entries
//! are not missed.

mod changes;
mod entries;
mod known;

pub use changes::{Changes, News};
pub use entries::Line;
pub use known::Only;

use crate::engine::Engine;
use crate::error::Result;
use crate::notice::Notice;
use known::{Known, Read};
use ostler_core::id::SessionId;
use rustix::fd::AsFd;

/// The events of some sessions or of all.
pub struct Events<'a> {
    engine: &'a Engine,
    known: Known,
    changes: Changes,
}

impl Engine {
    /// What has happened so far, in the order of time.
    pub fn events(&self, only: Only, tell: fn(Notice)) -> Result<Vec<Line>> {
        Ok(Known::of(only, tell).look(&self.home, None, &Read::All)?.only_entries())
    }

    /// The same, and then what happens from now on.
    pub fn follow_events(&self, only: Only, tell: fn(Notice)) -> Result<(Vec<Line>, Events<'_>)> {
        self.home.open_or_make(&self.home.sessions())?;
        let mut known = Known::of(only, tell);
        let mut changes = Changes::in_files(&["journal.jsonl"], tell);
        // Sessions that exist at the beginning are not reported as new.
        let before = known.look(&self.home, Some(&mut changes), &Read::All)?.only_entries();
        Ok((before, Events { engine: self, known, changes }))
    }
}

impl Events<'_> {
    /// Waits until something has happened. `None` when `output` has no reader any more.
    pub fn wait(&mut self, output: impl AsFd) -> Result<Option<Vec<Line>>> {
        let Events { engine: Engine { home, .. }, known, changes } = self;
        let batch = match changes.wait(output, None, None)? {
            News::ReaderGone => return Ok(None),
            News::Anything => known.look(home, Some(changes), &Read::All)?,
            News::Some { folders: true, moved: _, sessions } => {
                known.look(home, Some(changes), &Read::Only(&sessions))?
            }
            News::Some { folders: false, moved, sessions } => {
                known.look_at(home, changes, &moved, &Read::Only(&sessions))?
            }
        };
        Ok(Some(batch.all()))
    }
}

/// What one look found.
#[derive(Default)]
struct Batch {
    arrivals: Vec<Line>,
    entries: Vec<Vec<Line>>,
    departures: Vec<Line>,
}

impl Batch {
    /// The entries in the order of time; those of one session stay in the order in which they were written.
    fn only_entries(self) -> Vec<Line> {
        entries::merge(self.entries)
    }

    fn all(self) -> Vec<Line> {
        let mut lines = self.arrivals;
        lines.extend(entries::merge(self.entries));
        lines.extend(self.departures);
        lines
    }
}

/// Something about a session that is in no journal.
fn about(id: SessionId, what: &str) -> Line {
    let at = ostler_sys::clock::now();
    Line { at, text: format!(r#"{{"session":"{id}","at":"{at}","what":"{what}"}}"#) }
}
