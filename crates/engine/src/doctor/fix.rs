//! `doctor --fix`: only what is safe. It removes what is of no use (a socket without a process behind it, an empty
//! cgroup, a folder that no list shows), records ends that were not recorded, and starts sending notifications that
//! wait. Each thing is checked again before it is changed, under the lock that excludes other processes. It signals no
//! process and changes no file that is not ostler's own.

use super::{Finding, Level};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::purge;
use crate::quiesced::{NotQuiesced, Quiesced};
use crate::request::look_and_record;
use ostler_core::limits::counted;
use ostler_store::home::Place;
use ostler_sys::cgroup::Group;
use ostler_sys::socket;
use std::path::PathBuf;

/// What would fix a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fix {
    /// The folder of a launch or a deletion that was interrupted.
    RemoveHidden(PathBuf),
    /// The socket of a session that has ended.
    RemoveSocket(Place),
    /// Groups without processes.
    RemoveGroups(Vec<PathBuf>),
    /// The end of a session that was not recorded.
    Record(Place),
    /// This many notifications wait, and no process sends them.
    Send(u64),
}

/// Fixes what can be fixed. A finding whose fix failed keeps its level and gets the reason.
pub fn fix(engine: &Engine, findings: Vec<Finding>) -> Vec<Finding> {
    let one = |finding: Finding| match &finding.fix {
        None => finding,
        Some(fix) => match apply(engine, fix) {
            Ok(done) => Finding { level: Level::Fixed, what: done, remedy: None, fix: None, ..finding },
            Err(error) => Finding { what: format!("{}; not fixed: {error}", finding.what), fix: None, ..finding },
        },
    };
    findings.into_iter().map(one).collect()
}

fn apply(engine: &Engine, fix: &Fix) -> Result<String> {
    match fix {
        Fix::RemoveHidden(folder) => {
            purge::remove(folder)?;
            Ok(format!("removed {}", folder.display()))
        }
        Fix::RemoveSocket(place) => {
            let id = place.id;
            let _still = Quiesced::take(place).map_err(|not| match not {
                NotQuiesced::Runs => Error::StartedAgain { id },
                NotQuiesced::Failed(error) => error,
            })?;
            let folder = place.open()?;
            if socket::reach(folder.dir())?.is_some() {
                return Err(Error::SocketInUse { id });
            }
            folder.dir().remove("sock")?;
            Ok(format!("removed the socket that {id} left"))
        }
        Fix::RemoveGroups(groups) => {
            for group in groups.iter().filter_map(|path| Group::open(path)) {
                group.remove();
            }
            let (gone, left): (Vec<_>, Vec<_>) = groups.iter().partition(|path| !path.exists());
            match (gone.len(), left.first()) {
                (0, Some(group)) => Err(Error::GroupStays { group: (*group).clone() }),
                (count, _) => Ok(format!("removed {}", counted(count as u64, "empty cgroup", "empty cgroups"))),
            }
        }
        Fix::Record(place) => {
            let view = look_and_record(place)?;
            if place.open()?.dir().stat("sock")?.is_some() {
                apply(engine, &Fix::RemoveSocket(place.clone()))?;
            }
            let kind = view.outcome.map_or("nothing", |outcome| outcome.kind.word());
            Ok(format!("recorded how {} ended: {kind}", place.id))
        }
        Fix::Send(waiting) => {
            engine.config.notify.as_ref().ok_or(Error::NoNotifications)?;
            engine.send_what_waits()?;
            Ok(format!("sending {}", counted(*waiting, "notification that waits", "notifications that wait")))
        }
    }
}
