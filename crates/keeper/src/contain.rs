//! What holds an agent and everything it starts together, and keeps it within its limits.
//!
//! In this order: a cgroup of our own; a scope of the user's systemd; nothing, and the process tree is walked. Limits
//! are in force before the program runs, or it does not run.

use crate::scope::Manager;
use crate::start_agent::NotStarted;
use ostler_core::limits::Limits;
use ostler_sys::cgroup::bounds::{self, Bounds, Limit, NotBounded};
use ostler_sys::cgroup::{Base, Group};
use std::path::PathBuf;

/// How one run will be contained.
pub struct Containment {
    name: String,
    limits: Vec<Limit>,
    bounds: Bounds,
    by: By,
}

enum By {
    Group(Group),
    /// The process asks for the scope itself, because the manager has to be told its pid.
    Scope(Manager),
    Nothing,
}

/// The cgroups in which a process was put.
pub struct Inside {
    pub cgroup: Option<PathBuf>,
    pub bounds: Vec<String>,
}

impl Containment {
    /// Creates what must exist before the process does.
    pub fn prepare(groups: Option<&Base>, name: &str, limits: &Limits) -> Result<Containment, NotStarted> {
        let limits = listed(limits);
        let manager = || Manager::find(&|name| std::env::var(name).ok());
        let group = groups.and_then(|base| Group::make(base, name));
        let contained = |by, bounds, limits| Containment { name: name.to_owned(), limits, bounds, by };
        match (Bounds::make(groups, group.as_ref(), name, &limits), group) {
            (Ok(bounds), Some(group)) => Ok(contained(By::Group(group), bounds, limits)),
            // The limits are in force in groups of version 1; a scope would only have to hold the processes.
            (Ok(bounds), None) => Ok(contained(manager().map_or(By::Nothing, By::Scope), bounds, Vec::new())),
            (Err(why), group) => {
                if let Some(group) = group {
                    group.remove();
                }
                let manager = manager().ok_or_else(|| refused(&why))?;
                Ok(contained(By::Scope(manager), Bounds::default(), limits))
            }
        }
    }

    /// The group in which the process is to be created.
    pub fn group(&self) -> Option<&Group> {
        match &self.by {
            By::Group(group) => Some(group),
            By::Scope(_) | By::Nothing => None,
        }
    }

    /// What the process does itself, before it runs the program. `born`: it was created inside the group.
    pub fn enter(&self, born: bool) -> Result<Inside, NotStarted> {
        self.bounds.enter().map_err(|error| NotStarted::Limits(format!("its cgroup cannot be entered: {error}")))?;
        let cgroup = match &self.by {
            By::Group(group) if born => Some(group.path().to_owned()),
            By::Group(_) if !self.limits.is_empty() => {
                return Err(NotStarted::Limits("it cannot be started in the cgroup with its limits".to_owned()));
            }
            By::Group(_) | By::Nothing => None,
            By::Scope(manager) => match manager.contain_me(&self.name, &self.limits) {
                Ok(group) => {
                    bounds::hold_in(&group, &self.limits).map_err(|why| refused(&why))?;
                    Some(group)
                }
                Err(error) if !self.limits.is_empty() => {
                    return Err(NotStarted::Limits(format!("systemd made no scope for its limits: {error}")));
                }
                // The tree is walked instead.
                Err(_) => None,
            },
        };
        let bounds = self.bounds.folders().iter().map(|folder| folder.to_string_lossy().into_owned());
        Ok(Inside { cgroup, bounds: bounds.collect() })
    }

    /// Removes everything, after a start that failed.
    pub fn discard(&self) {
        self.discard_group();
        self.bounds.remove();
    }

    /// Removes the group, in which the process could not be created.
    pub fn discard_group(&self) {
        if let Some(group) = self.group() {
            group.remove();
        }
    }
}

fn refused(why: &NotBounded) -> NotStarted {
    NotStarted::Limits(format!("a limit cannot be enforced: {why}; remove it, or see ostler doctor"))
}

fn listed(limits: &Limits) -> Vec<Limit> {
    let memory = limits.memory.map(Limit::Memory);
    let cpu = limits.cpus.map(|cpus| Limit::Cpu((cpus * 1000.0).round() as u64));
    memory.into_iter().chain(cpu).chain(limits.processes.map(Limit::Processes)).collect()
}
