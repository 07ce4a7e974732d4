//! Words that mean several sessions: `group:NAME` and `label:KEY=VALUE`. Every command that takes ids takes these.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::session_ref::SessionRef;
use ostler_core::record::Session;
use ostler_store::home::{NotFound, Place};

/// How many of the matching sessions are named in an error.
const NAMED: usize = 4;

/// A word that means all sessions that have something in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Several {
    /// Those that were started as this group.
    Group(String),
    /// Those with this label; with this value, when there is one.
    Label(String, Option<String>),
}

impl Several {
    /// `None`: the word means one session.
    #[must_use]
    pub fn parse(word: &str) -> Option<Several> {
        if let Some(group) = word.strip_prefix("group:") {
            return Some(Several::Group(group.to_owned()));
        }
        let label = word.strip_prefix("label:")?;
        Some(match label.split_once('=') {
            Some((key, value)) => Several::Label(key.to_owned(), Some(value.to_owned())),
            None => Several::Label(label.to_owned(), None),
        })
    }

    /// Whether a session is one of them.
    #[must_use]
    pub fn includes(&self, session: &Session) -> bool {
        match self {
            Several::Group(name) => session.group.as_ref() == Some(name),
            Several::Label(key, value) => {
                session.labels.get(key).is_some_and(|has| value.as_ref().is_none_or(|value| has == value))
            }
        }
    }
}

impl Engine {
    /// The sessions that a word means, the oldest first: one, or all that a group or a label names. Archived sessions
    /// are found only by their own id or name.
    pub fn select_several(&self, word: &str) -> Result<Vec<Place>> {
        match Several::parse(word) {
            Some(several) => self.matching(word, &several, &self.home.live_places()?),
            None => Ok(vec![self.select(word)?]),
        }
    }

    pub(crate) fn select_several_archived(&self, word: &str) -> Result<Option<Vec<Place>>> {
        Several::parse(word).map(|several| self.matching(word, &several, &self.home.archived_places()?)).transpose()
    }

    /// The session that a word means that may mean several; an error unless it is exactly one.
    pub(crate) fn only_one(&self, word: &str, several: &Several) -> Result<Place> {
        let mut places = self.matching(word, several, &self.home.live_places()?)?;
        match places.len() {
            1 => Ok(places.swap_remove(0)),
            count => {
                let mut named: Vec<String> =
                    places.iter().take(NAMED).map(|place| SessionRef::at(place).to_string()).collect();
                named.extend((count > NAMED).then(|| "…".to_owned()));
                Err(Error::MeansSeveral { word: word.to_owned(), count, named })
            }
        }
    }

    fn matching(&self, word: &str, several: &Several, among: &[Place]) -> Result<Vec<Place>> {
        let mut found: Vec<_> = among
            .iter()
            .filter_map(|place| {
                // A session that cannot be read has no label. It can be named by its id.
                let session = place.open().and_then(|folder| folder.session()).ok()?;
                several.includes(&session).then(|| (session.created, place.clone()))
            })
            .collect();
        found.sort_by_key(|(created, place)| (*created, place.id));
        if found.is_empty() {
            return Err(Error::NotFound { error: NotFound::None(word.to_owned()), nearest: None });
        }
        Ok(found.into_iter().map(|(_, place)| place).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_these_words_mean_several() {
        assert_eq!(Several::parse("group:fix"), Some(Several::Group("fix".to_owned())));
        assert_eq!(Several::parse("label:task=4=2"), Some(Several::Label("task".to_owned(), Some("4=2".to_owned()))));
        assert_eq!(Several::parse("label:task"), Some(Several::Label("task".to_owned(), None)));
        for one in ["@last", "k3v9x2ab", "tests", "groups"] {
            assert_eq!(Several::parse(one), None, "{one}");
        }
    }
}
