//! What a session is called in a sentence: by its name, with the id behind it, or by its id alone. Commands in a hint take
//! the id: it is one word, and stays the same when the name changes.

use ostler_core::id::SessionId;
use ostler_core::view::View;
use ostler_engine::Place;

/// `helper (jpfjhr9b)`, or `jpfjhr9b` when it has no name.
pub fn called(view: &View) -> String {
    words(view.id, view.name.as_deref())
}

/// The same for a session that nobody has looked at yet. One whose record cannot be read is called by its id.
pub fn called_at(place: &Place) -> String {
    let name = place.open().and_then(|folder| folder.session()).ok().and_then(|session| session.name);
    words(place.id, name.as_deref())
}

fn words(id: SessionId, name: Option<&str>) -> String {
    match name {
        Some(name) => format!("{} ({id})", ostler_screen::printable(name)),
        None => id.to_string(),
    }
}
