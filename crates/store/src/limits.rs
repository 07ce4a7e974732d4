//! The groups that hold one run and keep it within its limits: what they tell, and that they go when it is over.

use crate::RunRecord;
use ostler_core::record::Session;
use ostler_sys::cgroup::Group;
use ostler_sys::cgroup::bounds::{Bounds, Meter, Usage};
use std::path::Path;

/// What a person is told when a limit has struck.
#[must_use]
pub fn struck(session: &Session, record: &RunRecord) -> Option<String> {
    if session.limits.is_none() {
        return None;
    }
    let struck = meter(record).struck();
    session.limits.struck(struck.memory, struck.processes)
}

/// What the run uses now, as far as its groups tell.
#[must_use]
pub fn usage(record: &RunRecord) -> Usage {
    meter(record).usage()
}

fn meter(record: &RunRecord) -> Meter {
    Meter::new(record.cgroup.as_deref().map(Path::new), &Bounds::recorded(&record.bounds))
}

/// Removes the groups of a run that is over. Whatever still lives in one keeps it.
pub fn clear(record: &RunRecord) {
    if let Some(group) = record.cgroup.as_deref().map(Path::new).and_then(Group::open) {
        group.remove();
    }
    Bounds::recorded(&record.bounds).remove();
}
