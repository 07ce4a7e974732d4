//! The cgroups that contain one run and enforce its limits: what they report, and their removal when the run is over.

use crate::RunRecord;
use ostler_core::record::Session;
use ostler_sys::cgroup::Group;
use ostler_sys::cgroup::bounds::{Bounds, Meter, Usage};
use std::path::Path;

/// What a person is told when a limit was hit.
#[must_use]
pub fn limit_hit(session: &Session, record: &RunRecord) -> Option<String> {
    if session.limits.is_none() {
        return None;
    }
    let hits = meter(record).limit_hits();
    session.limits.hit_words(hits.memory, hits.processes)
}

/// What the run uses now, as far as its cgroups report it.
#[must_use]
pub fn usage(record: &RunRecord) -> Usage {
    meter(record).usage()
}

fn meter(record: &RunRecord) -> Meter {
    Meter::new(record.cgroup.as_deref().map(Path::new), &Bounds::recorded(&record.bounds))
}

/// Removes the cgroups of a run that is over. A cgroup in which a process still lives stays.
pub fn clear(record: &RunRecord) {
    if let Some(group) = record.cgroup.as_deref().map(Path::new).and_then(Group::open) {
        group.remove();
    }
    Bounds::recorded(&record.bounds).remove();
}
