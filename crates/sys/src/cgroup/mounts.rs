//! Where the kernel's hierarchies of groups are mounted, and the place of this process in them. Nothing is guessed: a
//! usual place is checked before it is used, and a controller may be bound to a hierarchy of its own (cgroup v1), as on
//! older machines.

use super::PREFIX;
use std::io::Read;
use std::path::{Path, PathBuf};

/// One mounted hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    kind: Kind,
    /// The part of the hierarchy that is mounted there.
    root: PathBuf,
    pub mount: PathBuf,
}

impl Hierarchy {
    /// The hierarchy of version 2, if it is mounted at one of the usual places from its top down (the top always has
    /// the first inode number), and if that is also the top of what the kernel shows us (which it is outside of
    /// containers).
    fn at_usual_place() -> Option<Hierarchy> {
        const FIRST_INODE: u64 = 1;
        const OUTERMOST_NAMESPACE: u64 = 0xEFFF_FFFB;
        if rustix::fs::stat("/proc/self/ns/cgroup").ok()?.st_ino != OUTERMOST_NAMESPACE {
            return None;
        }
        let is_it = |mount: &&str| {
            let is_top = || rustix::fs::stat(*mount).is_ok_and(|found| found.st_ino == FIRST_INODE);
            rustix::fs::statfs(*mount).is_ok_and(|system| system.f_type == libc::CGROUP2_SUPER_MAGIC) && is_top()
        };
        let mount = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].into_iter().find(is_it)?;
        Some(Hierarchy { kind: Kind::Unified, root: "/".into(), mount: mount.into() })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Unified,
    /// Version 1, with these controllers.
    Bound(Vec<String>),
}

/// A folder of a hierarchy in which groups of sessions belong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) path: PathBuf,
    /// This process is inside a session's group itself.
    pub(super) nested: bool,
}

/// What this process sees.
#[derive(Clone, Debug)]
pub struct Mounts {
    hierarchies: Vec<Hierarchy>,
    /// `/proc/self/cgroup`.
    ours: String,
}

impl Mounts {
    #[must_use]
    pub fn look() -> Option<Mounts> {
        Some(Mounts::read(&read_at_once("/proc/self/mountinfo")?, read_at_once("/proc/self/cgroup")?))
    }

    /// Only what a session's own group needs. This is quick if the whole hierarchy is mounted at a usual place: finding
    /// it among all mounts would take the kernel ten times as long.
    pub(super) fn look_at_unified() -> Option<Mounts> {
        match Hierarchy::at_usual_place() {
            Some(unified) => Some(Mounts { hierarchies: vec![unified], ours: read_at_once("/proc/self/cgroup")? }),
            None => Mounts::look(),
        }
    }

    fn read(mountinfo: &str, ours: String) -> Mounts {
        Mounts { hierarchies: mountinfo.lines().filter_map(hierarchy).collect(), ours }
    }

    /// The hierarchy of version 2.
    #[must_use]
    pub fn unified(&self) -> Option<&Hierarchy> {
        self.hierarchies.iter().find(|hierarchy| hierarchy.kind == Kind::Unified)
    }

    /// The hierarchy of version 1 that a controller is bound to.
    #[must_use]
    pub fn bound(&self, controller: &str) -> Option<&Hierarchy> {
        self.hierarchies.iter().find(|hierarchy| match &hierarchy.kind {
            Kind::Unified => false,
            Kind::Bound(controllers) => controllers.iter().any(|name| name == controller),
        })
    }

    /// Where our own groups belong in this hierarchy: where we are, or around the outermost session that we are in.
    pub(super) fn spot(&self, hierarchy: &Hierarchy) -> Option<Spot> {
        let ours = self.ours.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            let is_it = match &hierarchy.kind {
                Kind::Unified => controllers.is_empty(),
                Kind::Bound(bound) => controllers.split(',').any(|name| bound.iter().any(|other| other == name)),
            };
            is_it.then_some(path)
        })?;
        let below = Path::new(ours).strip_prefix(&hierarchy.root).ok()?;
        let outside: PathBuf = below.iter().take_while(|part| !part.to_string_lossy().starts_with(PREFIX)).collect();
        let nested = outside.as_path() != below;
        // Without a slash at its end.
        Some(Spot { path: hierarchy.mount.join(outside).components().collect(), nested })
    }

    /// The group of version 2 that we are in.
    #[must_use]
    pub fn here(&self) -> Option<PathBuf> {
        let unified = self.unified()?;
        let ours = self.ours.lines().find_map(|line| line.strip_prefix("0::"))?;
        Some(unified.mount.join(Path::new(ours).strip_prefix(&unified.root).ok()?))
    }

    /// Every group of version 1 that we are in and that was made for a session.
    pub(super) fn bound_and_nested(&self) -> impl Iterator<Item = Spot> {
        let bound = self.hierarchies.iter().filter(|hierarchy| hierarchy.kind != Kind::Unified);
        bound.filter_map(|hierarchy| self.spot(hierarchy)).filter(|spot| spot.nested)
    }

    /// For tests: this machine, with a hierarchy of version 2 at `mount`, with this process at its top.
    #[cfg(test)]
    pub(super) fn only(mount: &Path) -> Mounts {
        let line = format!("36 25 0:30 / {} rw - cgroup2 cgroup2 rw", mount.display());
        Mounts::read(&line, "0::/\n".to_owned())
    }
}

/// A file that the kernel generates as it is read. It has no known size, and every further call costs as much as the
/// first, so the first one asks for more than there usually is.
fn read_at_once(path: &str) -> Option<String> {
    let mut text = String::with_capacity(16 * 1024);
    std::fs::File::open(path).ok()?.take(1 << 20).read_to_string(&mut text).ok()?;
    Some(text)
}

/// A line of mountinfo, when it is about groups.
fn hierarchy(line: &str) -> Option<Hierarchy> {
    let (left, right) = line.split_once(" - ")?;
    let mut right = right.split(' ');
    let kind = match right.next()? {
        "cgroup2" => Kind::Unified,
        // After the type comes what is mounted, then the options of the file system, which include the controllers.
        "cgroup" => Kind::Bound(right.nth(1)?.split(',').map(str::to_owned).collect()),
        _ => return None,
    };
    let mut fields = left.split(' ').skip(3).map(|field| PathBuf::from(unescape(field)));
    Some(Hierarchy { kind, root: fields.next()?, mount: fields.next()? })
}

/// mountinfo writes blanks in names as octal escapes, which are rare.
fn unescape(field: &str) -> String {
    if !field.contains('\\') {
        return field.to_owned();
    }
    field.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const HYBRID: &str = "\
31 25 0:26 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
32 25 0:27 / /sys/fs/cgroup/cpu\\040all rw - cgroup cgroup rw,cpu,cpuacct
36 25 0:30 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw
40 25 8:1 / / rw - ext4 /dev/sda rw";

    fn spot(ours: &str, which: impl Fn(&Mounts) -> Option<&Hierarchy>) -> (String, bool) {
        let mounts = Mounts::read(HYBRID, ours.to_owned());
        let spot = mounts.spot(which(&mounts).unwrap()).unwrap();
        (spot.path.to_string_lossy().into_owned(), spot.nested)
    }

    #[test]
    fn the_mounts_are_where_mountinfo_says_and_each_controller_in_its_own() {
        let mounts = Mounts::read(HYBRID, "0::/\n".to_owned());
        assert_eq!(mounts.unified().unwrap().mount, Path::new("/sys/fs/cgroup/unified"));
        assert_eq!(mounts.bound("cpu").unwrap().mount, Path::new("/sys/fs/cgroup/cpu all"));
        assert_eq!(mounts.bound("memory"), None);
    }

    #[test]
    fn groups_belong_beside_the_outermost_session_that_we_are_in() {
        let ours = "3:cpu,cpuacct:/box\n2:pids:/box/ostler-abc-1-2/ostler-def-1-2\n0::/\n";
        assert_eq!(spot(ours, Mounts::unified), ("/sys/fs/cgroup/unified".to_owned(), false));
        assert_eq!(spot(ours, |mounts| mounts.bound("pids")), ("/sys/fs/cgroup/pids/box".to_owned(), true));
        assert_eq!(spot(ours, |mounts| mounts.bound("cpu")), ("/sys/fs/cgroup/cpu all/box".to_owned(), false));
    }

    #[test]
    fn a_look_at_the_usual_place_finds_what_all_mounts_say() {
        let [quick, whole] = [Mounts::look_at_unified(), Mounts::look()]
            .map(|mounts| mounts.and_then(|mounts| Some((mounts.unified()?.clone(), mounts.here()))));
        assert_eq!(quick, whole);
    }
}
