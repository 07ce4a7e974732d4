//! Looks again at a few sessions of a list, in the same way as a list.

use super::{Listed, look_at};
use crate::engine::Engine;
use crate::error::Result;
use ostler_core::id::SessionId;
use ostler_store::home::{Place, SessionsDir};
use ostler_view::overview::Overview;

/// What these sessions look like now, without those that were archived or purged. The folder that contains the sessions
/// is not read.
pub fn look_again(engine: &Engine, ids: &[SessionId]) -> Result<Vec<Listed>> {
    let Some(&first) = ids.first() else {
        return Ok(Vec::new());
    };
    let path = engine.home.sessions().join(first.as_str());
    let sessions_dir = SessionsDir::with(&Place { id: first, path, archived: false })?;
    let overview = Overview::over(&sessions_dir, None)?;
    ids.iter().filter_map(|&id| look_at(&overview, &sessions_dir, id).transpose()).collect()
}
