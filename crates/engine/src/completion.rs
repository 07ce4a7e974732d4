//! What could be meant by a word that is not typed to its end: sessions, labels and conversations.
//!
//! It must be quick, whatever the number of sessions: nothing is asked of the kernel or of an agent, only what a session was started as
//! is read, and only of the newest ones.

use crate::foreign::stored::{self, Stored};
use crate::settings::Engine;
use ostler_core::record::Session;
use ostler_store::home::Place;
use std::collections::BTreeSet;
use std::time::SystemTime;

/// So many sessions are looked at, the newest first.
const SESSIONS: usize = 300;

/// So many conversations are offered.
const CONVERSATIONS: usize = 50;

/// Which sessions are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Among {
    /// Those that are not archived.
    Live,
    /// The archived ones.
    Archived,
}

impl Engine {
    /// What the newest sessions were started as, of those that begin like this or may do so, the newest first. One that cannot be read
    /// is left out.
    #[must_use]
    pub fn sessions_like(&self, typed: &str, among: Among) -> Vec<Session> {
        let places = match among {
            Among::Live => self.home.live_places(),
            Among::Archived => self.home.archived_places(),
        };
        let places = places.unwrap_or_default();
        // The names of those that have ended are in one file, so that an old one is found without reading all the others.
        let index = (!typed.is_empty() && places.len() > SESSIONS).then(|| self.home.ended_index());
        let begins = |place: &Place| match index.as_ref().and_then(|index| index.once(place.id)) {
            _ if place.id.as_str().starts_with(typed) => Some(true),
            Some(ended) if ended.name.as_ref().is_some_and(|name| name.starts_with(typed)) => Some(true),
            Some(_) => None,
            // Its name is not known yet.
            None => Some(false),
        };
        let changed = |place: &Place| std::fs::metadata(&place.path).and_then(|folder| folder.modified());
        let found = |place: Place| Some((begins(&place)?, changed(&place).ok()?, place));
        let mut found: Vec<(bool, SystemTime, Place)> = places.into_iter().filter_map(found).collect();
        found.sort_by_key(|(begins, changed, _)| std::cmp::Reverse((*begins, *changed)));
        let read = |place: &Place| place.open().and_then(|folder| folder.session()).ok();
        found.iter().take(SESSIONS).filter_map(|(_, _, place)| read(place)).collect()
    }

    /// The labels (`key=value`) of the newest sessions that begin like this.
    #[must_use]
    pub fn labels_like(&self, typed: &str) -> BTreeSet<String> {
        let sessions = self.sessions_like("", Among::Live).into_iter();
        let labels =
            sessions.flat_map(|session| session.labels.into_iter().map(|(key, value)| format!("{key}={value}")));
        labels.filter(|label| label.starts_with(typed)).collect()
    }

    /// `group:NAME` and `label:KEY=VALUE` of the newest sessions that begin like this. Not before a part of it was typed: there may be
    /// many.
    #[must_use]
    pub fn selectors_like(&self, typed: &str) -> BTreeSet<String> {
        if typed.is_empty()
            || !["group:", "label:"].iter().any(|kind| kind.starts_with(typed) || typed.starts_with(kind))
        {
            return BTreeSet::new();
        }
        let sessions = self.sessions_like("", Among::Live).into_iter();
        let words = sessions.flat_map(|session| {
            let labels = session.labels.into_iter().map(|(key, value)| format!("label:{key}={value}"));
            session.group.map(|group| format!("group:{group}")).into_iter().chain(labels)
        });
        words.filter(|word| word.starts_with(typed)).collect()
    }

    /// Conversations that the agents keep and that begin like this, the newest first. By the names of files alone: none is opened but
    /// where the id is in the first lines, and no database.
    #[must_use]
    pub fn conversations_like(&self, typed: &str) -> Vec<Stored> {
        let mut found = stored::in_files(&self.environment.lookup());
        found.retain(|one| one.native_id.starts_with(typed));
        found.sort_by_key(|one| std::cmp::Reverse(one.updated));
        found.truncate(CONVERSATIONS);
        found
    }
}
