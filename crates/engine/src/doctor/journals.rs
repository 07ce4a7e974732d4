//! Journals with lines that cannot be read. What readers know of a session comes from its newest lines, so that only a look at
//! all of them finds one in the middle.

use super::{AT_ONCE, Finding};
use crate::error::Result;
use ostler_core::limits::counted;
use ostler_store::home::Home;
use ostler_store::journal;
use ostler_sys::threads::many_at_once;

pub fn check(home: &Home) -> Result<Vec<Finding>> {
    let places = home.live_places()?;
    let bad = many_at_once(AT_ONCE, &places, |place| {
        // A folder that cannot be opened is reported as damaged.
        place.open().and_then(|folder| journal::bad_lines(folder.dir())).unwrap_or(0)
    });
    let found = places.iter().zip(bad).filter(|(_, bad)| *bad > 0).map(|(place, bad)| {
        let id = place.id;
        Finding::note(
            format!(
                "{id}: its journal has {} that cannot be read; the rest is used",
                counted(bad.into(), "line", "lines")
            ),
            format!("ostler events {id}"),
        )
    });
    Ok(found.collect())
}
