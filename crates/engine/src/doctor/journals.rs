//! Journals with lines that cannot be read. Readers use the newest lines of a journal, so a bad line in the middle is
//! found only by reading all of them.

use super::{AT_ONCE, Finding};
use crate::error::Result;
use ostler_core::limits::counted;
use ostler_store::home::Home;
use ostler_store::journal;
use ostler_sys::threads::each_in_parallel;

pub fn check(home: &Home) -> Result<Vec<Finding>> {
    let Some(sessions) = home.sessions_dirs(false)?.into_iter().next() else {
        return Ok(Vec::new());
    };
    // A journal that cannot be read at all is reported elsewhere, as damaged.
    let bad = each_in_parallel(AT_ONCE, &sessions.ids, |&id| journal::bad_lines(&sessions.dir, id).unwrap_or(0));
    let found = sessions.ids.iter().zip(bad).filter(|(_, bad)| *bad > 0).map(|(id, bad)| {
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
