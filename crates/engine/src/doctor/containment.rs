//! How a session's processes are grouped, which limits can be enforced, and cgroups that outlived their session.

use super::fix::Fix;
use super::helpers::Helper;
use super::{Finding, quoted};
use crate::environment::Environment;
use crate::error::Result;
use ostler_core::id::SessionId;
use ostler_core::limits::counted;
use ostler_core::outcome::Kind;
use ostler_keeper::scope::Manager;
use ostler_store::home::{Home, Place};
use ostler_sys::cgroup::bounds::{Controller, Usable, usable};
use ostler_sys::cgroup::mounts::Mounts;
use ostler_sys::cgroup::{self, Base, Group, PREFIX};
use ostler_view::look::{Depth, look_to};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An empty group older than this is abandoned: a process that makes a group enters it at once.
const ABANDONED: Duration = Duration::from_secs(60);

pub fn check(environment: &Environment, home: &Home, helpers: &[Helper]) -> Result<Vec<Finding>> {
    let Some(mounts) = Mounts::look() else {
        return Ok(vec![Finding::note(
            "the system does not say where control groups are; processes are found through the process tree instead",
            "",
        )]);
    };
    let base = cgroup::base();
    let manager = Manager::find(&environment.lookup());
    let mut findings = vec![in_force(&mounts, base.as_ref(), manager.as_ref())];
    let ways: Vec<_> = Controller::ALL.into_iter().map(|kind| (kind, usable(kind, base.as_ref(), &mounts))).collect();
    let limits = limits(&ways, manager.is_some());
    findings.extend(limits.into_iter().map(|finding| Finding { check: "session_limits", ..finding }));
    let bound = ways.into_iter().filter_map(|(_, way)| match way {
        Usable::Bound(folder) => Some(folder),
        Usable::Unified | Usable::No(_) => None,
    });
    let folders: BTreeSet<PathBuf> = base.iter().map(|base| base.path().to_owned()).chain(bound).collect();
    findings.extend(left_over(&folders, &Owners::look(home, helpers)?));
    Ok(findings)
}

/// Which of the three ways is used.
fn in_force(mounts: &Mounts, base: Option<&Base>, manager: Option<&Manager>) -> Finding {
    let walking = "the processes of a session are found through the process tree";
    let scope = manager.map(|manager| {
        let socket = manager.socket().display();
        format!("each session gets a scope of the user's systemd ({socket})")
    });
    let (Some(hierarchy), Some(base)) = (mounts.unified(), base) else {
        return Finding::note(format!("no cgroup v2 is mounted: {walking}"), "");
    };
    let mount = hierarchy.mount.display();
    match (base.is_ours_to_write(), scope) {
        (Ok(()), _) => {
            let path = base.path().display();
            Finding::fine(format!("each session has a cgroup of its own in {path} (cgroup v2 is at {mount})"))
        }
        (Err(_), Some(scope)) => Finding::fine(format!("{scope}; cgroup v2 is at {mount}")),
        (Err(error), None) => Finding::note(
            format!("{} is not writable ({error}) and no user systemd is running: {walking}", base.path().display()),
            "systemd-run --user --scope ostler run …",
        ),
    }
}

/// Which limits can be enforced, and where.
fn limits(ways: &[(Controller, Usable)], manager: bool) -> Vec<Finding> {
    let word = |kind: Controller| match kind {
        Controller::Memory => "--memory",
        Controller::Cpu => "--cpus",
        Controller::Processes => "--processes",
    };
    let mut can = Vec::new();
    let mut findings = Vec::new();
    for (kind, way) in ways {
        match way {
            Usable::Unified => can.push(word(*kind).to_owned()),
            Usable::Bound(folder) => can.push(format!("{} (cgroup v1 in {})", word(*kind), folder.display())),
            Usable::No(_) if manager => can.push(format!("{} (if the user's systemd has the controller)", word(*kind))),
            Usable::No(why) => {
                let controller = kind.name();
                findings.push(Finding::note(
                    format!("{} cannot be enforced: the {controller} controller {why}", word(*kind)),
                    "",
                ));
            }
        }
    }
    if !can.is_empty() {
        findings.insert(0, Finding::fine(format!("limits can be enforced: {}", can.join(", "))));
    }
    findings
}

/// The sessions that may have groups: running sessions of this home, and sessions of any home that have a helper.
struct Owners {
    kept: BTreeSet<String>,
    /// Sessions of this home, whether they run or not.
    known: BTreeMap<String, Place>,
}

impl Owners {
    fn look(home: &Home, helpers: &[Helper]) -> Result<Owners> {
        let mut places = home.live_places()?;
        places.extend(home.archived_places()?);
        let known = places.into_iter().map(|place| (place.id.to_string(), place)).collect();
        Ok(Owners { kept: helpers.iter().filter_map(Helper::session).collect(), known })
    }

    /// The session of this home whose record names the group.
    fn named_by(&self, id: &str, group: &Path) -> Option<&Place> {
        let place = self.known.get(id)?;
        let folder = place.open().ok()?;
        let record = folder.run(folder.newest_or_first().ok()?).ok()?.record().ok()?;
        (Path::new(&record.cgroup?) == group).then_some(place)
    }

    /// Whether a session may have a group. The session is read only when it has no helper; one that cannot be read may
    /// be running.
    fn owns(&self, id: &str) -> bool {
        let runs = |place: &Place| look_to(Depth::Awaited, place).map_or(true, |view| !view.ended);
        self.kept.contains(id) || self.known.get(id).filter(|place| !place.archived).is_some_and(runs)
    }
}

/// Groups that belong to no session that may have them. Empty ones are reported together, those with processes one by
/// one.
fn left_over(folders: &BTreeSet<PathBuf>, owners: &Owners) -> Vec<Finding> {
    let mut empty = Vec::new();
    let mut findings = Vec::new();
    for path in folders.iter().flat_map(|folder| groups_in(folder)) {
        let Some(id) = session_of(&path).filter(|id| !owners.owns(id)) else {
            continue;
        };
        match Group::open(&path).and_then(|group| group.processes().ok()) {
            Some(processes) if processes.is_empty() && is_old(&path) => empty.push(path),
            Some(processes) if !processes.is_empty() => {
                let pids: Vec<String> = processes.iter().map(i32::to_string).collect();
                let processes = counted(pids.len() as u64, "process", "processes");
                let what = format!("{processes} of {id} left in {} without a keeper", path.display());
                findings.push(if let Some(place) = owners.named_by(&id, &path) {
                    let lost = look_to(Depth::Awaited, place)
                        .is_ok_and(|view| view.outcome.is_some_and(|outcome| outcome.kind == Kind::Lost));
                    let remedy = if lost { format!("ostler stop {id}") } else { format!("kill {}", pids.join(" ")) };
                    Finding::problem(what, remedy)
                } else {
                    // In its own home, of which this one may be a copy, the session may get a keeper again with the next
                    // command.
                    Finding::note(what, "ostler doctor, with the OSTLER_HOME that it belongs to")
                });
            }
            Some(_) | None => {}
        }
    }
    if let Some(first) = empty.first() {
        let beside = first.parent().unwrap_or(Path::new("/"));
        let groups = counted(empty.len() as u64, "empty cgroup was", "empty cgroups were");
        let what = format!("{groups} left by sessions that ended without a keeper");
        let remedy = format!("rmdir {}/{PREFIX}*", quoted(beside));
        findings.push(Finding::note(what, remedy).fixed_by(Fix::RemoveGroups(empty)));
    }
    findings
}

fn groups_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.sort();
    found
}

fn session_of(group: &Path) -> Option<String> {
    let id = group.file_name()?.to_str()?.strip_prefix(PREFIX)?.get(..8)?;
    SessionId::parse(id).map(|id| id.to_string())
}

fn is_old(path: &Path) -> bool {
    let modified = std::fs::metadata(path).and_then(|stat| stat.modified());
    modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > ABANDONED))
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn what_can_be_limited_is_said_in_one_line_and_what_cannot_with_the_reason() {
        let ways = [
            (Controller::Memory, Usable::Unified),
            (Controller::Cpu, Usable::Bound(PathBuf::from("/c"))),
            (Controller::Processes, Usable::No("is not handed to /x".to_owned())),
        ];
        let found = limits(&ways, false);
        assert_eq!(found[0].what, "limits can be enforced: --memory, --cpus (cgroup v1 in /c)");
        assert_eq!(found[1].what, "--processes cannot be enforced: the pids controller is not handed to /x");
        assert_eq!(limits(&ways, true).len(), 1, "the user's systemd may be able to");
        assert!(found.iter().all(|finding| finding.level != Level::Problem));
    }

    #[test]
    fn a_group_is_known_by_the_session_in_its_name() {
        let of = |name: &str| session_of(&Path::new("/x").join(name));
        assert_eq!(of("ostler-0aqx73sx-1-77").as_deref(), Some("0aqx73sx"));
        assert_eq!(of("ostler-0aqx73sx-1-77.scope").as_deref(), Some("0aqx73sx"));
        assert_eq!(of("other-0aqx73sx"), None);
        assert_eq!(of("ostler-x"), None);
    }
}
