//! The sessions that were there at the last look. Comparing them with those that are there now tells who appeared, was
//! put away, was brought back or was deleted.

use super::changes::Changes;
use super::{Batch, about, entries};
use crate::exit::Result;
use ostler_core::id::SessionId;
use ostler_store::home::{Home, Place};
use std::collections::BTreeMap;

/// Every session, and how far its journal has been read.
#[derive(Default)]
pub struct Known(BTreeMap<SessionId, One>);

struct One {
    place: Place,
    position: u64,
}

impl Known {
    /// Compares, and reads every journal. New folders are watched before they are read.
    pub fn look(&mut self, home: &Home, mut changes: Option<&mut Changes>) -> Result<Batch> {
        if let Some(changes) = &mut changes {
            changes.watch_folders(home);
        }
        let mut batch = Batch::default();
        let mut now: BTreeMap<SessionId, Place> = BTreeMap::new();
        // What is moved while we list is met in both places or in one, never in none: the place it came from is looked
        // at twice, before and after the other.
        for place in home.live_places()?.into_iter().chain(home.archived_places()?).chain(home.live_places()?) {
            now.insert(place.id, place);
        }
        for (id, place) in now {
            let what = match self.0.get(&id) {
                None => Some("appeared"),
                Some(one) if one.place.archived && !place.archived => Some("restored"),
                Some(_) => None,
            };
            batch.arrivals.extend(what.map(|what| about(id, what)));
            if let (false, Some(changes)) = (place.archived, &mut changes) {
                changes.watch_session(&place);
            }
            let one = self.0.entry(id).or_insert_with(|| One { place: place.clone(), position: 0 });
            let was_archived = std::mem::replace(&mut one.place, place).archived;
            batch.entries.push(entries::read(id, &one.place.path, &mut one.position));
            if one.place.archived && (!was_archived || what.is_some()) {
                batch.departures.push(about(id, "archived"));
            }
        }
        self.forget_deleted(&mut batch);
        Ok(batch)
    }

    /// Reads the journals of these. One that is not where it was is left to the look that its folder's news bring.
    pub fn look_at(&mut self, ids: &[SessionId]) -> Batch {
        let mut batch = Batch::default();
        for id in ids {
            if let Some(one) = self.0.get_mut(id) {
                batch.entries.push(entries::read(*id, &one.place.path, &mut one.position));
            }
        }
        batch
    }

    fn forget_deleted(&mut self, batch: &mut Batch) {
        self.0.retain(|id, one| {
            let there = one.place.path.exists();
            if !there {
                batch.departures.push(about(*id, "purged"));
            }
            there
        });
    }
}
