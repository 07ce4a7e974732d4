//! What a session is called in a sentence: by its name, with the id behind it, or by its id alone. Commands in a hint take
//! the id: it is one word, and stays the same when the name changes.

use ostler_core::view::View;
use ostler_engine::{Place, SessionRef};

/// `helper (jpfjhr9b)`, or `jpfjhr9b` when it has no name.
pub fn called(view: &View) -> String {
    SessionRef::from(view).to_string()
}

/// The same for a session that nobody has looked at yet. One whose record cannot be read is called by its id.
pub fn called_at(place: &Place) -> String {
    SessionRef::at(place).to_string()
}
