//! Which session an error or a notice is about.

use ostler_core::id::SessionId;
use ostler_core::view::View;
use ostler_store::home::Place;
use std::fmt;

/// A session by its id, and by its name when it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRef {
    /// Its id.
    pub id: SessionId,
    /// Its name, if it has one.
    pub name: Option<String>,
}

impl SessionRef {
    /// Reads the name. A session whose record cannot be read is known by its id only.
    #[must_use]
    pub fn at(place: &Place) -> SessionRef {
        let name = place.open().and_then(|folder| folder.session()).ok().and_then(|session| session.name);
        SessionRef { id: place.id, name }
    }
}

impl From<&View> for SessionRef {
    fn from(view: &View) -> SessionRef {
        SessionRef { id: view.id, name: view.name.clone() }
    }
}

impl From<&Place> for SessionRef {
    fn from(place: &Place) -> SessionRef {
        SessionRef::at(place)
    }
}

impl fmt::Display for SessionRef {
    /// `helper (jpfjhr9b)`, or `jpfjhr9b` when it has no name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{} ({})", ostler_screen::printable(name), self.id),
            None => write!(f, "{}", self.id),
        }
    }
}
