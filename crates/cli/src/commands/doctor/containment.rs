//! Whether the kernel itself holds a session's processes together, and groups that outlived their session.

use super::{Finding, quoted};
use crate::exit::Result;
use ostler_core::id::SessionId;
use ostler_store::home::Home;
use ostler_sys::cgroup::{self, Group};
use rustix::fs::{Access, access};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

pub fn check(home: &Home) -> Result<Vec<Finding>> {
    let walking = "what a session starts is found by walking its process tree";
    let Some(base) = cgroup::base() else {
        return Ok(vec![Finding::note(format!("no cgroup v2 here: {walking}"), "")]);
    };
    // Without a slash at its end.
    let path: &Path = &base.path().components().collect::<PathBuf>();
    if let Err(error) = access(path, Access::WRITE_OK | Access::EXEC_OK) {
        let error = std::io::Error::from(error);
        return Ok(vec![Finding::note(
            format!("{} is not ours to write ({error}): {walking}", path.display()),
            "systemd-run --user --scope ostler run … contains it",
        )]);
    }
    let mut findings = vec![Finding::fine(format!("each session has a cgroup of its own in {}", path.display()))];
    let known: HashSet<SessionId> = home.live_places()?.into_iter().map(|place| place.id).collect();
    findings.extend(left_over(path, &known));
    Ok(findings)
}

/// Empty groups here that belong to no session of this home.
fn left_over(base: &Path, known: &HashSet<SessionId>) -> Option<Finding> {
    let groups = std::fs::read_dir(base).into_iter().flatten().flatten().map(|entry| entry.path());
    let empty = groups.filter(|path| {
        let id = path
            .file_name()
            .and_then(|name| name.to_str()?.strip_prefix("ostler-")?.get(..8))
            .and_then(SessionId::parse);
        let processes = Group::open(path).and_then(|group| group.processes().ok());
        id.is_some_and(|id| !known.contains(&id)) && processes.is_some_and(|processes| processes.is_empty())
    });
    let count = empty.count();
    (count > 0).then(|| {
        Finding::note(
            format!("{count} empty cgroups in {} were left by sessions that ended with nobody there", base.display()),
            format!("rmdir {}/ostler-* spares those in use", quoted(base)),
        )
    })
}
