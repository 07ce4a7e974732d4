//! Two commands that work on one session at the same time: the second one gets an error that says what the first one
//! did.
//!
//! The second command has looked up a path that does not exist any more, and can fail at any of its steps, with any
//! error. So after an error it looks once more where the session is.

use crate::error::{Error, Result};
use ostler_store::home::{Home, Place};
use std::fmt;
use std::io::ErrorKind;

/// What another command did to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// It was moved to the archive.
    Archived,
    /// It was moved back from the archive.
    Restored,
    /// It was deleted.
    Purged,
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Moved::Archived => "archived",
            Moved::Restored => "restored",
            Moved::Purged => "purged",
        })
    }
}

/// Whether a session is no longer at its place.
pub fn is_gone(place: &Place) -> bool {
    std::fs::symlink_metadata(&place.path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// The error, or what another command did when that is the reason.
pub fn or_else(place: &Place, error: Error) -> Error {
    if is_gone(place) { by_another_command(place) } else { error }
}

/// The error for a session that another command has moved or is using at this moment.
pub fn by_another_command(place: &Place) -> Error {
    let id = place.id;
    match now(place) {
        Ok(Some(how)) => Error::Moved { id, how },
        Ok(None) => Error::InUse { id },
        Err(error) => error,
    }
}

/// `None`: the session is where it was, or was moved back meanwhile.
fn now(place: &Place) -> Result<Option<Moved>> {
    let above = if place.archived { 3 } else { 2 };
    let Some(root) = place.path.ancestors().nth(above) else {
        return Ok(None);
    };
    let home = Home::at(root.to_owned());
    // The lookup checks live sessions first: a session that is restored during the first lookup is found by the second
    // one.
    let found = match home.place_of(place.id)? {
        Some(found) => Some(found),
        None => home.place_of(place.id)?,
    };
    Ok(match (found.map(|found| found.archived), place.archived) {
        (Some(true), false) => Some(Moved::Archived),
        (Some(false), true) => Some(Moved::Restored),
        (None, _) => Some(Moved::Purged),
        (Some(true), true) | (Some(false), false) => None,
    })
}
