//! The sessions that existed at the last look. Comparing them with those that exist now shows which sessions appeared,
//! were archived, were restored or were deleted.

use super::changes::Changes;
use super::{Batch, about, entries};
use crate::error::Result;
use crate::notice::Notice;
use jiff::Timestamp;
use ostler_core::id::SessionId;
use ostler_store::home::{Home, Place};
use ostler_store::journal;
use ostler_sys::dir::Dir;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The sessions that are asked for, and how far the journal of each has been read.
pub struct Known {
    sessions: BTreeMap<SessionId, One>,
    only: Only,
    /// Called for what cannot be read.
    tell: fn(Notice),
}

/// Which events are asked for.
#[derive(Default)]
pub struct Only {
    /// Of these sessions; `None`: of all.
    pub sessions: Option<BTreeSet<SessionId>>,
    /// Only those from this time on.
    pub since: Option<Timestamp>,
}

impl Only {
    fn includes(&self, id: SessionId) -> bool {
        self.sessions.as_ref().is_none_or(|sessions| sessions.contains(&id))
    }
}

struct One {
    place: Place,
    position: u64,
}

/// Which journals to read, besides those of new and moved sessions.
pub enum Read<'a> {
    All,
    Only(&'a [SessionId]),
}

impl Known {
    pub fn of(only: Only, tell: fn(Notice)) -> Known {
        Known { sessions: BTreeMap::new(), only, tell }
    }

    /// Compares the sessions, and reads their journals. New folders are watched before they are read.
    pub fn look(&mut self, home: &Home, changes: Option<&mut Changes>, read: &Read<'_>) -> Result<Batch> {
        let mut changes = changes;
        if let Some(changes) = &mut changes {
            changes.watch_folders(home);
        }
        let mut now = places(home)?;
        now.retain(|id, _| self.only.includes(*id));
        let mut batch = Batch::default();
        for place in now.values() {
            self.compare(place, changes.as_deref_mut(), read, &mut batch);
        }
        let gone: Vec<SessionId> = self.sessions.keys().filter(|id| !now.contains_key(id)).copied().collect();
        for id in gone {
            self.gone(id, changes.as_deref_mut(), &mut batch);
        }
        Ok(batch)
    }

    /// The same for a few sessions. `moved`: sessions that were created, removed or moved. A session of `read` that is
    /// no longer in its place is handled later, when the change of its folder is reported.
    pub fn look_at(
        &mut self,
        home: &Home,
        changes: &mut Changes,
        moved: &[SessionId],
        read: &Read<'_>,
    ) -> Result<Batch> {
        let mut batch = Batch::default();
        for &id in moved {
            if !self.only.includes(id) {
                continue;
            }
            // Asked twice: a session that is moved out of the archive during the first search is not gone.
            match home.place_of(id)?.map_or_else(|| home.place_of(id), |place| Ok(Some(place)))? {
                Some(place) => self.compare(&place, Some(changes), read, &mut batch),
                None => self.gone(id, Some(changes), &mut batch),
            }
        }
        let others: Vec<SessionId> = match read {
            Read::All => self.sessions.keys().copied().collect(),
            Read::Only(ids) => ids.to_vec(),
        };
        for id in others.iter().filter(|id| !moved.contains(id)) {
            if let Some(one) = self.sessions.get_mut(id) {
                batch.entries.push(entries::read(
                    *id,
                    &one.place.path,
                    &mut one.position,
                    self.only.since,
                    &mut self.tell,
                ));
            }
        }
        Ok(batch)
    }

    fn compare(&mut self, place: &Place, changes: Option<&mut Changes>, read: &Read<'_>, batch: &mut Batch) {
        let (id, mut changes) = (place.id, changes);
        if let (Some(changes), false) = (&mut changes, place.archived) {
            changes.watch_session(place);
        }
        let before = self.sessions.get(&id).map(|one| one.place.archived);
        let (arrival, departure) = match (before, place.archived) {
            (None, false) => (Some("appeared"), None),
            (None, true) => (Some("appeared"), Some("archived")),
            (Some(false), true) => (None, Some("archived")),
            (Some(true), false) => (Some("restored"), None),
            (Some(false), false) | (Some(true), true) => (None, None),
        };
        let moved = arrival.is_some() || departure.is_some();
        let one = self.sessions.entry(id).or_insert_with(|| One {
            place: place.clone(),
            position: self.only.since.map_or(0, |since| skipped(&place.path, since)),
        });
        one.place.clone_from(place);
        let wanted = match read {
            Read::All => true,
            Read::Only(ids) => moved || ids.contains(&id),
        };
        if wanted {
            batch.entries.push(entries::read(id, &one.place.path, &mut one.position, self.only.since, &mut self.tell));
        }
        batch.arrivals.extend(arrival.map(|what| about(id, what)));
        batch.departures.extend(departure.map(|what| about(id, what)));
        if let (Some(changes), Some(_)) = (changes, departure) {
            changes.forget_session(id);
        }
    }

    fn gone(&mut self, id: SessionId, changes: Option<&mut Changes>, batch: &mut Batch) {
        if self.sessions.remove(&id).is_some() {
            batch.departures.push(about(id, "purged"));
        }
        if let Some(changes) = changes {
            changes.forget_session(id);
        }
    }
}

/// Where to begin in a journal when older entries are not asked for: at its end, if the journal was not written since.
/// So with many ended sessions, most journals are not read.
fn skipped(folder: &Path, since: Timestamp) -> u64 {
    let size = || -> Option<u64> {
        let dir = Dir::open(folder).ok()?;
        let size = dir.stat("journal.jsonl").ok()??.size;
        (!journal::may_have_news(&dir, since).ok()?).then_some(size)
    };
    size().unwrap_or(0)
}

/// Where every session is. The live sessions are listed before and after the archived ones, so that a session that is
/// moved meanwhile is found at least once.
fn places(home: &Home) -> Result<BTreeMap<SessionId, Place>> {
    let mut places = BTreeMap::new();
    for place in home.live_places()?.into_iter().chain(home.archived_places()?).chain(home.live_places()?) {
        places.insert(place.id, place);
    }
    Ok(places)
}
