//! Completions of a partly typed word: sessions, labels and conversations.
//!
//! It must be fast with any number of sessions. So neither the kernel nor an agent is asked; only the record with which
//! a session was started is read, and only of the newest sessions.

use crate::engine::Engine;
use crate::foreign::stored::{self, Stored};
use ostler_core::record::Session;
use ostler_store::home::Place;
use std::collections::BTreeSet;
use std::time::SystemTime;

/// At most this many sessions are read, the newest first.
const SESSIONS: usize = 300;

/// At most this many conversations are offered.
const CONVERSATIONS: usize = 50;

/// Which sessions are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Among {
    /// Those that are not archived.
    Live,
    /// The archived ones.
    Archived,
}

impl Engine {
    /// The records of the newest sessions whose id or name begins with `typed`, or whose name is not known without
    /// reading them. Known matches come first, then the newest. A session that cannot be read is left out.
    #[must_use]
    pub fn sessions_like(&self, typed: &str, among: Among) -> Vec<Session> {
        let places = match among {
            Among::Live => self.home.live_places(),
            Among::Archived => self.home.archived_places(),
        };
        let places = places.unwrap_or_default();
        // The names of ended sessions are in one file, so that an old session is found without reading all the others.
        let index = (!typed.is_empty() && places.len() > SESSIONS).then(|| self.home.ended_index());
        let begins = |place: &Place| match index.as_ref().and_then(|index| index.once(place.id)) {
            _ if place.id.as_str().starts_with(typed) => Some(true),
            Some(ended) if ended.name.as_ref().is_some_and(|name| name.starts_with(typed)) => Some(true),
            Some(_) => None,
            // The index does not contain its name.
            None => Some(false),
        };
        let changed = |place: &Place| std::fs::metadata(&place.path).and_then(|folder| folder.modified());
        let found = |place: Place| Some((begins(&place)?, changed(&place).ok()?, place));
        let mut found: Vec<(bool, SystemTime, Place)> = places.into_iter().filter_map(found).collect();
        found.sort_by_key(|(begins, changed, _)| std::cmp::Reverse((*begins, *changed)));
        let read = |place: &Place| place.open().and_then(|folder| folder.session()).ok();
        found.iter().take(SESSIONS).filter_map(|(_, _, place)| read(place)).collect()
    }

    /// Those labels (`key=value`) of the newest sessions that begin with `typed`.
    #[must_use]
    pub fn labels_like(&self, typed: &str) -> BTreeSet<String> {
        let sessions = self.sessions_like("", Among::Live).into_iter();
        let labels =
            sessions.flat_map(|session| session.labels.into_iter().map(|(key, value)| format!("{key}={value}")));
        labels.filter(|label| label.starts_with(typed)).collect()
    }

    /// Those of `group:NAME` and `label:KEY=VALUE` of the newest sessions that begin with `typed`. Empty when nothing
    /// was typed: there may be many.
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

    /// Conversations that the agents keep and whose id begins with `typed`, the newest first. They are found by file
    /// names: a file is opened only where the id is in its first lines, and no database is opened.
    #[must_use]
    pub fn conversations_like(&self, typed: &str) -> Vec<Stored> {
        let mut found = stored::in_files(&self.environment.lookup());
        found.retain(|one| one.native_id.starts_with(typed));
        found.sort_by_key(|one| std::cmp::Reverse(one.updated));
        found.truncate(CONVERSATIONS);
        found
    }
}
