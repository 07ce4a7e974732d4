//! Limits on what a session may use: memory, processors, number of processes.
//!
//! A limit that is shown but not in force would mislead, so each is written and read back, and a limit that the kernel
//! does not accept is an error with the reason. It is set in the session's own group if that has the controller
//! (version 2, which we enable if we may). A controller that the machine has bound to a hierarchy of version 1 gets a
//! group there, which the process enters before it becomes the program.

use super::mounts::Mounts;
use super::{Base, Group, PREFIX};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The length of time for which processor time is counted.
const PERIOD_US: u64 = 100_000;

/// What can be limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controller {
    Memory,
    Cpu,
    Processes,
}

impl Controller {
    pub const ALL: [Controller; 3] = [Controller::Memory, Controller::Cpu, Controller::Processes];

    /// The kernel's name for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Controller::Memory => "memory",
            Controller::Cpu => "cpu",
            Controller::Processes => "pids",
        }
    }
}

/// One limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Bytes.
    Memory(u64),
    /// Thousandths of a processor.
    Cpu(u64),
    Processes(u64),
}

/// The version of the files in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Limit {
    #[must_use]
    pub fn controller(self) -> Controller {
        match self {
            Limit::Memory(_) => Controller::Memory,
            Limit::Cpu(_) => Controller::Cpu,
            Limit::Processes(_) => Controller::Processes,
        }
    }

    /// The files that set the limit and their contents; the last one is to be read back.
    fn settings(self, version: Version) -> Vec<(&'static str, String)> {
        let quota = |thousandths: u64| thousandths.saturating_mul(PERIOD_US / 1000);
        match (self, version) {
            (Limit::Memory(bytes), Version::Two) => vec![("memory.max", bytes.to_string())],
            (Limit::Memory(bytes), Version::One) => vec![("memory.limit_in_bytes", bytes.to_string())],
            (Limit::Cpu(part), Version::Two) => vec![("cpu.max", format!("{} {PERIOD_US}", quota(part)))],
            (Limit::Cpu(part), Version::One) => {
                vec![("cpu.cfs_period_us", PERIOD_US.to_string()), ("cpu.cfs_quota_us", quota(part).to_string())]
            }
            (Limit::Processes(count), Version::One | Version::Two) => vec![("pids.max", count.to_string())],
        }
    }

    fn set(self, folder: &Path, version: Version) -> io::Result<()> {
        for (file, value) in self.settings(version) {
            write(&folder.join(file), &value)?;
        }
        if self.holds(folder, version)? { Ok(()) } else { Err(io::Error::other("the kernel did not accept it")) }
    }

    /// Whether it is in force there. The kernel rounds memory down to whole pages; a lower limit is stricter.
    fn holds(self, folder: &Path, version: Version) -> io::Result<bool> {
        let settings = self.settings(version);
        let Some((file, wanted)) = settings.last() else {
            return Ok(false);
        };
        let first = |text: &str| text.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
        let found = std::fs::read_to_string(folder.join(file))?;
        Ok(first(&found).zip(first(wanted)).is_some_and(|(found, wanted)| found <= wanted))
    }
}

/// Writes to a file that must exist: creating a file with that name would be another error.
fn write(file: &Path, value: &str) -> io::Result<()> {
    io::Write::write_all(&mut std::fs::File::options().write(true).open(file)?, value.as_bytes())
}

/// Why a limit cannot be enforced.
#[derive(Debug)]
pub struct NotBounded {
    pub controller: Controller,
    pub why: String,
}

impl fmt::Display for NotBounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} controller {}", self.controller.name(), self.why)
    }
}

/// How a limit of one kind can be enforced here.
#[derive(Debug, PartialEq, Eq)]
pub enum Usable {
    /// In each session's own group.
    Unified,
    /// In a group of version 1 below this folder.
    Bound(PathBuf),
    /// Not at all, and why.
    No(String),
}

/// Checks, without changing anything, how a limit of this kind could be enforced.
#[must_use]
pub fn usable(controller: Controller, base: Option<&Base>, mounts: &Mounts) -> Usable {
    let unified = match base {
        None => Err("cannot be used: there is no cgroup v2 here".to_owned()),
        Some(base) => handed_on(controller, base),
    };
    let Err(why) = unified else {
        return Usable::Unified;
    };
    let Some(hierarchy) = mounts.bound(controller.name()) else {
        return Usable::No(why);
    };
    let writable = |path: &Path| rustix::fs::access(path, rustix::fs::Access::WRITE_OK).map_err(io::Error::from);
    match mounts.spot(hierarchy).map(|spot| writable(&spot.path).map(|()| spot.path)) {
        Some(Ok(path)) => Usable::Bound(path),
        Some(Err(error)) => Usable::No(format!("is bound to cgroup v1 at {}: {error}", hierarchy.mount.display())),
        None => {
            Usable::No(format!("is bound to cgroup v1 at {}, where this process is not", hierarchy.mount.display()))
        }
    }
}

/// Whether groups in `base` have the controller, or would have it if we enabled it.
fn handed_on(controller: Controller, base: &Base) -> Result<(), String> {
    let has = |file: &str| {
        let text = std::fs::read_to_string(base.path.join(file)).unwrap_or_default();
        text.split_whitespace().any(|word| word == controller.name())
    };
    if let Err(error) = base.is_ours_to_write() {
        return Err(format!("cannot be used in {}: {error}", base.path.display()));
    }
    let occupied = || std::fs::read_to_string(base.path.join("cgroup.procs")).is_ok_and(|text| !text.trim().is_empty());
    if has("cgroup.subtree_control") {
        Ok(())
    } else if !has("cgroup.controllers") {
        Err(format!("is not delegated to {}", base.path.display()))
    } else if !base.is_top() && occupied() {
        Err(format!("cannot be delegated in {}, because it contains processes", base.path.display()))
    } else {
        Ok(())
    }
}

/// The limits of one run, in force. Only the folders of version 1 have to be remembered: the other limits are set in
/// the session's own group.
#[derive(Debug, Default)]
pub struct Bounds {
    folders: Vec<PathBuf>,
}

impl Bounds {
    /// Puts limits in force for a process that is started in `group` and enters these bounds. All of them, or none.
    pub fn make(
        base: Option<&Base>,
        group: Option<&Group>,
        name: &str,
        limits: &[Limit],
    ) -> Result<Bounds, NotBounded> {
        let mut bounds = Bounds::default();
        if limits.is_empty() {
            return Ok(bounds);
        }
        let Some(mounts) = Mounts::look() else {
            let why = "cannot be found: /proc does not say where".to_owned();
            return Err(NotBounded { controller: limits[0].controller(), why });
        };
        for &limit in limits {
            if let Err(why) = bounds.add(base, group, name, limit, &mounts) {
                bounds.remove();
                return Err(NotBounded { controller: limit.controller(), why });
            }
        }
        Ok(bounds)
    }

    fn add(
        &mut self,
        base: Option<&Base>,
        group: Option<&Group>,
        name: &str,
        limit: Limit,
        mounts: &Mounts,
    ) -> Result<(), String> {
        let controller = limit.controller();
        match (usable(controller, base, mounts), base, group) {
            (Usable::Unified, Some(base), Some(group)) => {
                let control = base.path.join("cgroup.subtree_control");
                let enabled = write(&control, &format!("+{}", controller.name()));
                limit.set(&group.path, Version::Two).map_err(|error| match enabled {
                    Ok(()) => format!("does not accept the limit: {error}"),
                    Err(error) => format!("cannot be enabled in {}: {error}", control.display()),
                })
            }
            (Usable::Unified, _, _) => Err("needs a cgroup, and none could be made".to_owned()),
            (Usable::No(why), _, _) => Err(why),
            (Usable::Bound(beside), _, _) => {
                let folder = beside.join(format!("{PREFIX}{name}"));
                let failed = |error: io::Error| format!("does not accept the limit in {}: {error}", beside.display());
                // Controllers that are bound together share a group.
                if !self.folders.contains(&folder) {
                    std::fs::create_dir(&folder).map_err(failed)?;
                    self.folders.push(folder.clone());
                }
                limit.set(&folder, Version::One).map_err(failed)
            }
        }
    }

    /// The bounds in a record. Only paths that look like ours are accepted.
    #[must_use]
    pub fn recorded(folders: &[String]) -> Bounds {
        let ours = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
        Bounds { folders: folders.iter().map(PathBuf::from).filter(|path| ours(path)).collect() }
    }

    #[must_use]
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Puts this process, and whatever it starts, under these limits.
    pub fn enter(&self) -> io::Result<()> {
        self.folders.iter().try_for_each(|folder| write(&folder.join("cgroup.procs"), "0"))
    }

    /// Removes the groups, when no process is in them any more.
    pub fn remove(&self) {
        for folder in &self.folders {
            // A group that is not empty stays, and `doctor` reports it.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Whether every limit is in force in a group of version 2 that was set up by another program.
pub fn hold_in(group: &Path, limits: &[Limit]) -> Result<(), NotBounded> {
    for limit in limits {
        let why = match limit.holds(group, Version::Two) {
            Ok(true) => continue,
            Ok(false) => format!("did not accept the limit in {}", group.display()),
            Err(error) => format!("is not in {}: {error}", group.display()),
        };
        return Err(NotBounded { controller: limit.controller(), why });
    }
    Ok(())
}

/// How often a limit was hit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitHits {
    /// Processes that were killed because of the memory limit.
    pub memory: u64,
    /// Processes that could not be started.
    pub processes: u64,
}

/// What is in use now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes.
    pub memory: Option<u64>,
    pub processes: Option<u64>,
    /// Processor time so far, in microseconds.
    pub cpu_us: Option<u64>,
}

/// Reads the values in the folders of one run, whichever version each folder has.
#[derive(Debug)]
pub struct Meter {
    folders: Vec<PathBuf>,
}

impl Meter {
    #[must_use]
    pub fn new(group: Option<&Path>, bounds: &Bounds) -> Meter {
        Meter { folders: group.map(Path::to_owned).into_iter().chain(bounds.folders.iter().cloned()).collect() }
    }

    #[must_use]
    pub fn limit_hits(&self) -> LimitHits {
        LimitHits {
            memory: self
                .field("memory.events", "oom_kill")
                .or(self.field("memory.oom_control", "oom_kill"))
                .unwrap_or(0),
            processes: self.field("pids.events", "max").unwrap_or(0),
        }
    }

    #[must_use]
    pub fn usage(&self) -> Usage {
        let number = |file: &str| self.read(file)?.trim().parse().ok();
        Usage {
            memory: number("memory.current").or_else(|| number("memory.usage_in_bytes")),
            processes: number("pids.current"),
            cpu_us: self.field("cpu.stat", "usage_usec"),
        }
    }

    /// The number after a word, in the first folder that has such a file with such a word.
    fn field(&self, file: &str, word: &str) -> Option<u64> {
        let mut found = self.texts(file);
        found.find_map(|text| text.lines().find_map(|line| line.strip_prefix(word)?.trim().parse().ok()))
    }

    fn read(&self, file: &str) -> Option<String> {
        self.texts(file).next()
    }

    fn texts(&self, file: &str) -> impl Iterator<Item = String> {
        self.folders.iter().filter_map(move |folder| std::fs::read_to_string(folder.join(file)).ok())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    /// A folder with the files of a group, in the place of the kernel's.
    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(root.path().join(name), text).unwrap();
        }
        root
    }

    #[test]
    fn each_limit_is_written_as_its_version_of_the_files_wants_it() {
        let two = folder(&[("memory.max", ""), ("cpu.max", ""), ("pids.max", "")]);
        let one = folder(&[("memory.limit_in_bytes", ""), ("cpu.cfs_quota_us", ""), ("cpu.cfs_period_us", "")]);
        for limit in [Limit::Memory(2 << 30), Limit::Cpu(1500)] {
            limit.set(two.path(), Version::Two).unwrap();
            limit.set(one.path(), Version::One).unwrap();
        }
        Limit::Processes(200).set(two.path(), Version::Two).unwrap();
        let read = |root: &tempfile::TempDir, file| std::fs::read_to_string(root.path().join(file)).unwrap();
        assert_eq!(read(&two, "memory.max"), "2147483648");
        assert_eq!(read(&two, "cpu.max"), "150000 100000");
        assert_eq!(read(&two, "pids.max"), "200");
        assert_eq!(read(&one, "cpu.cfs_quota_us"), "150000");
        assert!(hold_in(two.path(), &[Limit::Memory(2 << 30), Limit::Cpu(1500), Limit::Processes(200)]).is_ok());
        assert!(hold_in(two.path(), &[Limit::Processes(199)]).is_err(), "a wider one is not the one asked for");
    }

    #[test]
    fn a_group_without_the_controller_takes_no_limit_and_gets_no_file() {
        let group = folder(&[("pids.max", "max\n")]);
        assert!(Limit::Memory(1).set(group.path(), Version::Two).is_err());
        assert!(!group.path().join("memory.max").exists());
        let refused = hold_in(group.path(), &[Limit::Processes(5)]).unwrap_err().to_string();
        assert!(refused.starts_with("the pids controller did not accept the limit"), "{refused}");
    }

    #[test]
    fn a_controller_is_usable_only_where_it_can_be_handed_on() {
        let look = |files: &[(&str, &str)], controller| {
            let root = folder(files);
            let base = Base { path: root.path().to_owned(), nested: false };
            usable(controller, Some(&base), &Mounts::only(root.path()))
        };
        let here = ("cgroup.controllers", "cpu memory\n");
        assert_eq!(look(&[here, ("cgroup.procs", "7\n")], Controller::Memory), Usable::Unified, "the top may");
        let group = ("cgroup.type", "domain\n");
        assert_eq!(look(&[here, group, ("cgroup.procs", "")], Controller::Memory), Usable::Unified);
        let handed = ("cgroup.subtree_control", "memory\n");
        assert_eq!(look(&[here, group, handed], Controller::Memory), Usable::Unified);
        let no = |files: &[(&str, &str)], controller, words: &str| {
            let way = look(files, controller);
            assert!(matches!(&way, Usable::No(why) if why.contains(words)), "{way:?}");
        };
        no(&[here, group, ("cgroup.procs", "7\n")], Controller::Memory, "it contains processes");
        no(&[here], Controller::Processes, "is not delegated to");
    }

    #[test]
    fn strikes_and_use_are_read_from_whichever_version_has_them() {
        let group = folder(&[("cpu.stat", "usage_usec 1234\nuser_usec 1\n"), ("pids.events", "max 3\n")]);
        let memory = folder(&[("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")]);
        std::fs::write(memory.path().join("memory.usage_in_bytes"), "4096\n").unwrap();
        let bounds = Bounds { folders: vec![memory.path().to_owned()] };
        let meter = Meter::new(Some(group.path()), &bounds);
        assert_eq!(meter.limit_hits(), LimitHits { memory: 2, processes: 3 });
        assert_eq!(meter.usage(), Usage { memory: Some(4096), processes: None, cpu_us: Some(1234) });
    }

    #[test]
    fn a_folder_that_is_not_named_like_ours_is_never_touched() {
        let bounds = Bounds::recorded(&["/sys/fs/cgroup/pids".to_owned(), "/x/ostler-a".to_owned()]);
        assert_eq!(bounds.folders(), [PathBuf::from("/x/ostler-a")]);
    }
}
