//! What a session is called in a sentence: its name followed by the id, or its id alone. Commands in a hint take the
//! id: it is one word, and stays the same when the name changes.

use ostler_core::view::View;
use ostler_engine::{Place, SessionRef};

/// `helper (jpfjhr9b)`, or `jpfjhr9b` when it has no name.
pub fn called(view: &View) -> String {
    SessionRef::from(view).to_string()
}

/// The same for a session that was not read yet. A session whose record cannot be read is called by its id.
pub fn called_at(place: &Place) -> String {
    SessionRef::at(place).to_string()
}
