//! How far each job of a file is, for people: from the record of the driver and the sessions themselves.

use super::{Done, Up, results};
use crate::JobError;
use ostler_core::view::View;
use ostler_engine::own_run::session_of;
use ostler_engine::{Engine, Place};

/// One job.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// A word for what it does.
    pub kind: &'static str,
    /// Its result, when it has ended.
    pub done: Option<Done>,
    /// Its session, as it is now.
    pub view: Option<View>,
    /// The jobs that it waits for.
    pub waits_for: Vec<String>,
}

/// The jobs of a run, in the order of their plan.
///
/// # Errors
/// When its record cannot be read.
pub fn rows(engine: &Engine, place: &Place, spec: &Up) -> Result<Vec<Row>, JobError> {
    let done = results(engine, place)?;
    let steps = engine.job_steps(place)?;
    let mut rows = Vec::new();
    for job in &spec.jobs {
        let result = done.get(&job.name).cloned();
        let id = session_of(&steps, &job.name);
        // A session that is just being made or was deleted meanwhile has no view.
        let place = id.map(|id| engine.home.place_of(id)).transpose().map_err(ostler_engine::Error::from)?.flatten();
        let view = place.and_then(|place| engine.view_without_last(&place).ok());
        let open = |need: &&String| done.get(*need).is_none_or(|need| !need.succeeded);
        let waits_for = if result.is_some() || view.is_some() {
            Vec::new()
        } else {
            job.needs.iter().filter(open).cloned().collect()
        };
        rows.push(Row { name: job.name.clone(), kind: job.work.word(), done: result, view, waits_for });
    }
    Ok(rows)
}
