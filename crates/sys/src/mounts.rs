//! Which file system a path is on.

use std::path::{Path, PathBuf};

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Where it is mounted.
    pub point: PathBuf,
    /// For example `ext4`.
    pub kind: String,
}

/// The file system of this path; the path is without symbolic links.
#[must_use]
pub fn of(path: &Path) -> Option<Mount> {
    find(&std::fs::read_to_string("/proc/self/mountinfo").ok()?, path)
}

/// The innermost mount that a path is in; of several at one point the last, which hides the others.
fn find(mountinfo: &str, path: &Path) -> Option<Mount> {
    let mounts = mountinfo.lines().filter_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let point = left.split(' ').nth(4)?.replace("\\040", " ");
        Some(Mount { point: PathBuf::from(point), kind: right.split(' ').next()?.to_owned() })
    });
    mounts.filter(|mount| path.starts_with(&mount.point)).max_by_key(|mount| mount.point.components().count())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:30 / /home/a\\040b rw - tmpfs tmpfs rw
31 22 0:31 / /home rw shared:2 - btrfs /dev/sdb rw
32 31 0:32 / /home rw shared:2 - xfs /dev/sdc rw";

    #[test]
    fn the_innermost_and_newest_mount_is_meant() {
        let kind = |path: &str| find(MOUNTS, Path::new(path)).unwrap().kind;
        assert_eq!(kind("/var/lib"), "ext4");
        assert_eq!(kind("/home/x"), "xfs");
        assert_eq!(kind("/home/a b/c"), "tmpfs");
        assert_eq!(kind("/homely"), "ext4");
    }
}
