//! What is in a folder, with what the kernel knows about each name. A snapshot spends most of its time here, so each
//! name costs one system call, relative to the open folder, and one allocation.

use crate::{GitError, Result};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat as KernelStat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The part of a file's metadata that an index has as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub mtime: (i64, i64),
    pub ctime: (i64, i64),
    pub ino: u64,
    pub size: u64,
}

impl Stat {
    pub fn of(stat: &Metadata) -> Stat {
        Stat {
            mtime: (stat.mtime(), stat.mtime_nsec()),
            ctime: (stat.ctime(), stat.ctime_nsec()),
            ino: stat.ino(),
            size: stat.size(),
        }
    }

    /// When it was last changed in any way, in nanoseconds since 1970.
    pub fn ctime_ns(&self) -> i128 {
        nanoseconds(self.ctime)
    }

    /// The later of `ctime` and `mtime`; a program can set `mtime`.
    pub fn changed_ns(&self) -> i128 {
        nanoseconds(self.mtime).max(nanoseconds(self.ctime))
    }
}

fn nanoseconds((seconds, rest): (i64, i64)) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(rest)
}

/// What the kernel says about a name. A link is not followed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub mode: u32,
    pub stat: Stat,
}

impl Look {
    fn of(stat: &KernelStat) -> Look {
        let date = |seconds, rest: u64| (seconds, i64::try_from(rest).unwrap_or(0));
        Look {
            mode: stat.st_mode,
            stat: Stat {
                mtime: date(stat.st_mtime, stat.st_mtime_nsec),
                ctime: date(stat.st_ctime, stat.st_ctime_nsec),
                ino: stat.st_ino,
                size: u64::try_from(stat.st_size).unwrap_or(0),
            },
        }
    }

    pub fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    pub fn is_dir(&self) -> bool {
        self.kind() == FileType::Directory
    }

    pub fn is_file(&self) -> bool {
        self.kind() == FileType::RegularFile
    }
}

/// A folder.
#[derive(Debug)]
pub(super) struct Listed {
    /// Sorted, with their paths relative to the top of the tree.
    pub names: Vec<(Vec<u8>, Look)>,
    /// Whether there is a `.git`, which is not among the names.
    pub has_git: bool,
    /// When names were last added or removed, in nanoseconds since 1970.
    pub ctime_ns: i128,
}

impl Listed {
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && !self.has_git
    }
}

/// What is in a folder of a tree; an empty path is its top. `None`: the folder is gone, is not a folder, or may not be
/// read.
pub(super) fn list(top: &Path, folder: &[u8]) -> Result<Option<Listed>> {
    let full = top.join(OsStr::from_bytes(folder));
    match read(&full, folder) {
        Ok(listed) => Ok(Some(listed)),
        Err(error) if is_passed_over(error) => Ok(None),
        Err(error) => Err(GitError::io(full)(error.into())),
    }
}

fn is_passed_over(error: Errno) -> bool {
    [Errno::NOENT, Errno::NOTDIR, Errno::ACCESS, Errno::PERM, Errno::LOOP].contains(&error)
}

fn read(full: &Path, folder: &[u8]) -> std::result::Result<Listed, Errno> {
    let mut flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // What was a folder a moment ago may by now be a link that points out of the tree.
    if !folder.is_empty() {
        flags |= OFlags::NOFOLLOW;
    }
    let open = rustix::fs::openat(CWD, full, flags, Mode::empty())?;
    let ctime_ns = Look::of(&rustix::fs::fstat(&open)?).stat.ctime_ns();
    let mut listed = Listed { names: Vec::new(), has_git: false, ctime_ns };
    for entry in Dir::read_from(&open)? {
        let entry = entry?;
        let name = entry.file_name();
        match name.to_bytes() {
            b"." | b".." => continue,
            b".git" => {
                listed.has_git = true;
                continue;
            }
            _ => {}
        }
        let look = match rustix::fs::statat(&open, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Look::of(&stat),
            Err(error) if is_passed_over(error) => continue,
            Err(error) => return Err(error),
        };
        listed.names.push((below(folder, name.to_bytes()), look));
    }
    listed.names.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    Ok(listed)
}

/// The path of a name in a folder.
pub(super) fn below(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}
