//! A folder held open, and the ways in which we write into one.
//!
//! Important files are written to a temporary name, synced, and given their name; then the folder is synced. So after a
//! power cut a file is complete or does not exist. `publish_once` gives the name with link(2), which fails when the
//! name is taken, so the first writer wins and its file is never overwritten.
//!
//! A folder that was packed into one file ([`crate::pack`]) is read through the same type; nothing can be written to
//! it.
//!
//! The file is long because each way of reading and writing is a short method of this one type.

use crate::memory_file;
use crate::pack::{Kind, Pack};
use crate::pause_points::{self, Point};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FallocateFlags, FileType, Mode, OFlags, RawDir, Timespec, Timestamps};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// An open folder.
#[derive(Debug)]
pub struct Dir(Held);

#[derive(Debug)]
enum Held {
    Open(OwnedFd),
    /// A folder in a pack, with its path there; empty for the outermost.
    Packed(Arc<Pack>, String),
}

/// Whether to wait until the bytes are on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Enough to survive the death of processes.
    No,
    /// The bytes are synced before they get their name: after a power cut the file is the old one or the new one, and
    /// never an empty one. Which of the two it is may stay open.
    Bytes,
    /// Needed to survive a power cut.
    Yes,
}

/// How much older a mark is than the moment in which it is set.
const MARK_S: i64 = 10;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Dir {
    pub fn open(path: impl AsRef<Path>) -> io::Result<Dir> {
        Dir::open_or_pack(CWD, path.as_ref(), FOLDER)
    }

    /// A folder, or a file that a folder was packed into.
    fn open_or_pack(above: impl AsFd, path: &Path, flags: OFlags) -> io::Result<Dir> {
        match rustix::fs::openat(&above, path, flags, Mode::empty()) {
            Ok(fd) => Ok(Dir(Held::Open(fd))),
            Err(Errno::NOTDIR) => match Pack::open_at(above, path)? {
                Some(pack) => Ok(Dir(Held::Packed(Arc::new(pack), String::new()))),
                None => Err(Errno::NOTDIR.into()),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// The pack that this folder is in, if it is in one.
    #[must_use]
    pub fn pack(&self) -> Option<&Pack> {
        match &self.0 {
            Held::Open(_) => None,
            Held::Packed(pack, _) => Some(pack),
        }
    }

    /// The descriptor of a folder that can be written to.
    fn fd(&self) -> io::Result<&OwnedFd> {
        match &self.0 {
            Held::Open(fd) => Ok(fd),
            Held::Packed(..) => Err(Errno::ROFS.into()),
        }
    }

    /// The pack, and the path in it of a name in this folder.
    fn packed(&self, name: &str) -> Option<(&Arc<Pack>, String)> {
        let Held::Packed(pack, below) = &self.0 else {
            return None;
        };
        let path = match (below.as_str(), name) {
            (below, ".") => below.to_owned(),
            ("", name) => name.to_owned(),
            (below, name) => format!("{below}/{name}"),
        };
        Some((pack, path))
    }

    /// A folder below this one. A link in its place is not followed.
    pub fn open_dir(&self, name: &str) -> io::Result<Dir> {
        if let Some((pack, path)) = self.packed(name) {
            return match pack.find(&path).map(|found| &found.kind) {
                Some(Kind::Folder) => Ok(Dir(Held::Packed(Arc::clone(pack), path))),
                None if path.is_empty() => Ok(Dir(Held::Packed(Arc::clone(pack), path))),
                Some(Kind::File | Kind::Link(_)) => Err(Errno::NOTDIR.into()),
                None => Err(Errno::NOENT.into()),
            };
        }
        Ok(Dir(Held::Open(rustix::fs::openat(self.fd()?, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?)))
    }

    /// The same, also through a link, and also a folder that was packed.
    pub fn open_dir_or_link(&self, name: &str) -> io::Result<Dir> {
        Dir::open_or_pack(self.fd()?, Path::new(name), FOLDER)
    }

    /// Makes a folder that only its owner may enter.
    pub fn make_dir(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(self.fd()?, name, Mode::RWXU)?)
    }

    #[must_use]
    pub fn adopt(fd: OwnedFd) -> Dir {
        Dir(Held::Open(fd))
    }

    pub fn duplicate(&self) -> io::Result<Dir> {
        Ok(Dir(match &self.0 {
            Held::Open(fd) => Held::Open(rustix::io::fcntl_dupfd_cloexec(fd, 3)?),
            Held::Packed(pack, below) => Held::Packed(Arc::clone(pack), below.clone()),
        }))
    }

    /// Opens a file of this folder; only its owner can read a new file.
    pub fn file(&self, name: &str, flags: OFlags) -> io::Result<OwnedFd> {
        if let Some((pack, path)) = self.packed(name) {
            if flags.intersects(OFlags::WRONLY | OFlags::RDWR | OFlags::CREATE) {
                return Err(Errno::ROFS.into());
            }
            let bytes = pack.read_file(&path)?.ok_or(Errno::NOENT)?;
            return Ok(memory_file::with(&bytes)?.into());
        }
        // There may be a pipe in the place of a record, and a reader must not wait for its writer.
        let flags = if flags.intersects(OFlags::WRONLY | OFlags::RDWR) { flags } else { flags | OFlags::NONBLOCK };
        Ok(rustix::fs::openat(self.fd()?, name, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::RUSR | Mode::WUSR)?)
    }

    /// The whole file; `None` when there is none.
    pub fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        if let Some((pack, path)) = self.packed(name) {
            return pack.read_file(&path);
        }
        let file = match self.file(name, OFlags::RDONLY) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        // Most records are small, and a list reads thousands. A short read of a regular file is its end, so one call is
        // enough for most, and the memory that is allocated has the size of the record.
        let mut first = [MaybeUninit::uninit(); 2048];
        match rustix::io::read(&file, &mut first) {
            Ok((bytes, rest)) if !rest.is_empty() => Ok(Some(bytes.to_vec())),
            Ok((bytes, _)) => read_on(&file, bytes.to_vec()).map(Some),
            Err(Errno::INTR) => read_on(&file, Vec::new()).map(Some),
            Err(error) => Err(error.into()),
        }
    }

    /// The same for a file whose length is known, without moving it in memory while it is read.
    pub fn read_long(&self, name: &str, length: u64) -> io::Result<Vec<u8>> {
        let room = usize::try_from(length).unwrap_or(0).saturating_add(1);
        read_on(&self.file(name, OFlags::RDONLY)?, Vec::with_capacity(room))
    }

    /// Writes a file, new or empty until now, in a folder that has no readers yet: a reader could see half of the file.
    pub fn create(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        File::from(self.file(name, OFlags::WRONLY | OFlags::CREATE)?).write_all(bytes)
    }

    /// Replaces the file as one step: readers see the old bytes or the new ones.
    pub fn replace(&self, name: &str, bytes: &[u8], sync: Sync) -> io::Result<()> {
        let temporary = self.temporary(name, bytes, sync)?;
        pause_points::at(Point::ReplacementWritten);
        if let Err(error) = rustix::fs::renameat(self.fd()?, temporary.as_str(), self.fd()?, name) {
            self.discard(&temporary);
            return Err(error.into());
        }
        pause_points::at(Point::ReplacementNamed);
        self.settle(sync)
    }

    /// Makes `name` a second name of the file `of`, in place of the file that had this name, in one step.
    pub fn replace_by_link(&self, name: &str, of: &str) -> io::Result<()> {
        let temporary = format!(".{name}.{}.link", rustix::process::getpid().as_raw_nonzero());
        // An existing link was left by a process that died and had our pid.
        self.remove(&temporary)?;
        self.link(of, self, &temporary)?;
        pause_points::at(Point::ReplacementWritten);
        let renamed = rustix::fs::renameat(self.fd()?, temporary.as_str(), self.fd()?, name);
        // If both names belong to the same file, the kernel renames neither.
        self.discard(&temporary);
        pause_points::at(Point::ReplacementNamed);
        Ok(renamed?)
    }

    /// Creates the file in one step, durably, unless it exists. `Ok(false)`: another process was first, and its file
    /// stays.
    pub fn publish_once(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        let temporary = self.temporary(name, bytes, Sync::Yes)?;
        pause_points::at(Point::PublicationWritten);
        let linked = rustix::fs::linkat(self.fd()?, temporary.as_str(), self.fd()?, name, AtFlags::empty());
        pause_points::at(Point::PublicationLinked);
        self.discard(&temporary);
        match linked {
            Ok(()) => self.settle(Sync::Yes).map(|()| true),
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn temporary(&self, name: &str, bytes: &[u8], sync: Sync) -> io::Result<String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let pid = rustix::process::getpid().as_raw_nonzero();
        // In the folder of the file, which may be a folder below this one.
        let (folder, file) = name.split_at(name.rfind('/').map_or(0, |slash| slash + 1));
        // A name that is taken was left by a process that died and had our pid, and may be a second name of the file
        // that it published.
        let (temporary, opened) = loop {
            let temporary = format!("{folder}.{file}.{pid}.{}", NUMBER.fetch_add(1, Ordering::Relaxed));
            match self.file(&temporary, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                other => break (temporary, other?),
            }
        };
        let mut file = File::from(opened);
        let written = file.write_all(bytes).and_then(|()| match sync {
            Sync::Yes | Sync::Bytes => file.sync_all(),
            Sync::No => Ok(()),
        });
        match written {
            Ok(()) => Ok(temporary),
            Err(error) => {
                self.discard(&temporary);
                Err(error)
            }
        }
    }

    /// Best effort: a left-over temporary file is never read.
    fn discard(&self, name: &str) {
        if let Ok(fd) = self.fd() {
            let _ = rustix::fs::unlinkat(fd, name, AtFlags::empty());
        }
    }

    fn settle(&self, sync: Sync) -> io::Result<()> {
        match sync {
            Sync::Yes => self.sync(),
            Sync::Bytes | Sync::No => Ok(()),
        }
    }

    /// Whether this very folder has that name in the folder above it.
    pub fn is_called(&self, name: &str, above: &Dir) -> io::Result<bool> {
        let me = rustix::fs::fstat(self)?;
        match rustix::fs::statat(above.fd()?, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok((found.st_dev, found.st_ino) == (me.st_dev, me.st_ino)),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the folder itself was deleted while we hold it open.
    pub fn is_deleted(&self) -> io::Result<bool> {
        Ok(rustix::fs::fstat(self)?.st_nlink == 0)
    }

    /// Waits until the names in this folder are on the disk.
    pub fn sync(&self) -> io::Result<()> {
        // The names in a packed folder are part of the bytes of its file, which were synced before the file had its
        // name.
        Ok(rustix::fs::fsync(self)?)
    }

    /// Removes a file. It is not an error if the file does not exist.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match rustix::fs::unlinkat(self.fd()?, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes an empty folder.
    pub fn remove_dir(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(self.fd()?, name, AtFlags::REMOVEDIR)?)
    }

    /// Removes a folder with everything in it, or anything else that has this name. It is not an error if it does not
    /// exist.
    pub fn remove_all(&self, name: &str) -> io::Result<()> {
        match std::fs::remove_dir_all(format!("/proc/self/fd/{}/{name}", self.fd()?.as_raw_fd())) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            // There is something else than a folder.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => self.remove(name),
            other => other,
        }
    }

    /// Gives a file of this folder a second name in another, unless that name is taken.
    pub fn link(&self, name: &str, into: &Dir, new: &str) -> io::Result<()> {
        Ok(rustix::fs::linkat(self.fd()?, name, into.fd()?, new, AtFlags::empty())?)
    }

    /// Moves something from this folder to a new name in another, unless that name is taken.
    pub fn rename_new(&self, name: &str, into: &Dir, new: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat_with(self.fd()?, name, into.fd()?, new, rustix::fs::RenameFlags::NOREPLACE)?)
    }

    /// Size of a file and when it last changed (seconds and nanoseconds of the wall clock); `None` when there is none.
    pub fn stat(&self, name: &str) -> io::Result<Option<FileStat>> {
        if let Some((pack, path)) = self.packed(name) {
            return Ok(pack.stat(&path));
        }
        match rustix::fs::statat(self.fd()?, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(FileStat {
                size: u64::try_from(stat.st_size).unwrap_or(0),
                inode: stat.st_ino,
                modified_s: stat.st_mtime,
                modified_ns: i64::try_from(stat.st_mtime_nsec).unwrap_or(0),
            })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The inode number of this folder.
    pub fn inode(&self) -> io::Result<u64> {
        Ok(rustix::fs::fstat(self)?.st_ino)
    }

    /// The device and the inode number of this folder: no other folder has both as long as this one exists.
    pub fn device_and_inode(&self) -> io::Result<(u64, u64)> {
        let stat = rustix::fs::fstat(self)?;
        Ok((wide(stat.st_dev), stat.st_ino))
    }

    /// Whether this user is its owner.
    pub fn is_ours(&self) -> io::Result<bool> {
        Ok(rustix::fs::fstat(self)?.st_uid == rustix::process::geteuid().as_raw())
    }

    /// Whether this is a file without contents and with exactly these permissions.
    pub fn is_empty_file(&self, name: &str, mode: u32) -> io::Result<bool> {
        let stat = rustix::fs::statat(self.fd()?, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        Ok(is_file && stat.st_size == 0 && stat.st_mode & 0o7777 == mode)
    }

    /// When a folder last changed (seconds and nanoseconds of the wall clock), if it is a folder with exactly these
    /// permissions.
    pub fn date_if_folder(&self, name: &str, mode: u32) -> io::Result<Option<(i64, u64)>> {
        let stat = rustix::fs::statat(self.fd()?, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        Ok((is_folder && stat.st_mode & 0o7777 == mode).then_some((stat.st_mtime, stat.st_mtime_nsec)))
    }

    /// Exchanges the names of two things in this folder, in one step.
    pub fn exchange(&self, one: &str, other: &str) -> io::Result<()> {
        let fd = self.fd()?;
        Ok(rustix::fs::renameat_with(fd, one, fd, other, rustix::fs::RenameFlags::EXCHANGE)?)
    }

    /// When a folder, or the file that it was packed into, last changed in any way. This date cannot be set by
    /// programs. `None`: it does not exist, or it is a link.
    pub fn changed(&self, name: &str) -> io::Result<Option<Date>> {
        match rustix::fs::statat(self.fd()?, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat)
                if matches!(FileType::from_raw_mode(stat.st_mode), FileType::Directory | FileType::RegularFile) =>
            {
                Ok(Some(Date { seconds: stat.st_ctime, nanos: stat.st_ctime_nsec }))
            }
            Ok(_) | Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The state by which a change of a file or a folder can be detected later. `None`: it does not exist, or it is a
    /// link.
    pub fn stamp(&self, name: &str) -> io::Result<Option<Stamp>> {
        match rustix::fs::statat(self.fd()?, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => {
                let kind = FileType::from_raw_mode(stat.st_mode);
                Ok(matches!(kind, FileType::Directory | FileType::RegularFile).then(|| Stamp {
                    inode: stat.st_ino,
                    size: u64::try_from(stat.st_size).unwrap_or(0),
                    seconds: stat.st_ctime,
                    nanos: stat.st_ctime_nsec,
                }))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The state by which it can be detected that names were added to this folder or removed since it was marked.
    pub fn names_stamp(&self) -> io::Result<NamesStamp> {
        let stat = rustix::fs::fstat(self)?;
        Ok(NamesStamp {
            inode: stat.st_ino,
            modified: Date { seconds: stat.st_mtime, nanos: stat.st_mtime_nsec },
            links: wide(stat.st_nlink),
        })
    }

    /// Gives this folder a date of its own, some seconds in the past. Every later change of its names, even one that
    /// follows at once, gives it the date of that moment. So a folder that still has this date has the same names as
    /// before. `None`: the file system does not store the date to the nanosecond, or a name has changed already.
    pub fn mark(&self) -> io::Result<Option<NamesStamp>> {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let mark = Timespec { tv_sec: now.tv_sec - MARK_S, tv_nsec: now.tv_nsec };
        let omit = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
        rustix::fs::futimens(self.fd()?, &Timestamps { last_access: omit, last_modification: mark })?;
        let stamp = self.names_stamp()?;
        let asked = Date { seconds: mark.tv_sec, nanos: u64::try_from(mark.tv_nsec).unwrap_or(0) };
        Ok((stamp.modified == asked && !asked.nanos.is_multiple_of(1_000_000)).then_some(stamp))
    }

    /// Sets the date of this folder's last change to that second.
    pub fn set_date(&self, second: i64) -> io::Result<()> {
        let date = Timespec { tv_sec: second, tv_nsec: 0 };
        Ok(rustix::fs::futimens(self.fd()?, &Timestamps { last_access: date, last_modification: date })?)
    }

    /// The names in this folder, in no order.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        self.each_name(|name| names.push(String::from_utf8_lossy(name).into_owned()))?;
        Ok(names)
    }

    /// Each name in this folder, in no order.
    pub fn each_name(&self, mut each: impl FnMut(&[u8])) -> io::Result<()> {
        if let Held::Packed(pack, below) = &self.0 {
            let inner = |name: &'_ str| match below.as_str() {
                "" => Some(name.to_owned()),
                below => name.strip_prefix(below)?.strip_prefix('/').map(str::to_owned),
            };
            let names = pack.names().filter_map(|(name, _)| inner(name));
            names.filter(|name| !name.contains('/')).for_each(|name| each(name.as_bytes()));
            return Ok(());
        }
        // A new descriptor has its own position in the folder; the buffer has room for a thousand names at a time.
        let folder = self.open_dir(".")?;
        let mut buffer = Vec::with_capacity(32 * 1024);
        let mut entries = RawDir::new(&folder, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                each(name);
            }
        }
        Ok(())
    }

    /// Makes a file really occupy this much of the disk. If there is no room for all of it, the file stays as it was.
    pub fn reserve(&self, name: &str, bytes: u64) -> io::Result<()> {
        let file = File::from(self.file(name, OFlags::WRONLY | OFlags::CREATE)?);
        let before = file.metadata()?.len();
        let reserved = match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes) {
            Err(Errno::OPNOTSUPP) => (&file).write_all(&vec![0; usize::try_from(bytes).unwrap_or(0)]),
            other => other.map_err(io::Error::from),
        };
        if reserved.is_err() {
            file.set_len(before)?;
        }
        reserved
    }

    /// Makes a file occupy nothing.
    pub fn empty(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::ftruncate(self.file(name, OFlags::WRONLY)?, 0)?)
    }

    /// Makes a file this much shorter. False when it was empty already.
    pub fn shorten(&self, name: &str, by: u64) -> io::Result<bool> {
        let file = self.file(name, OFlags::WRONLY)?;
        let size = u64::try_from(rustix::fs::fstat(&file)?.st_size).unwrap_or(0);
        rustix::fs::ftruncate(&file, size.saturating_sub(by))?;
        Ok(size > 0)
    }
}

impl AsFd for Dir {
    /// For a packed folder, the file that it is in.
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Held::Open(fd) => fd.as_fd(),
            Held::Packed(pack, _) => pack.file().as_fd(),
        }
    }
}

impl TryFrom<Dir> for OwnedFd {
    type Error = io::Error;

    fn try_from(dir: Dir) -> io::Result<OwnedFd> {
        match dir.0 {
            Held::Open(fd) => Ok(fd),
            Held::Packed(..) => Err(Errno::NOTDIR.into()),
        }
    }
}

/// Reads to the end of the file, behind the bytes that were read before.
fn read_on(file: &OwnedFd, mut bytes: Vec<u8>) -> io::Result<Vec<u8>> {
    loop {
        if bytes.len() == bytes.capacity() {
            bytes.reserve((3 * bytes.len()).max(1024));
        }
        match rustix::io::read(file, rustix::buffer::spare_capacity(&mut bytes)) {
            Ok(_) if bytes.len() < bytes.capacity() => return Ok(bytes),
            Ok(_) => {}
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The part of `stat` that we need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStat {
    pub size: u64,
    pub inode: u64,
    pub modified_s: i64,
    pub modified_ns: i64,
}

/// The state of a file or a folder. If the inode, the size or the date differs, it has changed; programs cannot set
/// this date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    pub inode: u64,
    pub size: u64,
    /// When it last changed in any way, by the wall clock.
    pub seconds: i64,
    pub nanos: u64,
}

/// A number that has 32 bits on some machines and 64 on others.
fn wide(number: impl Into<u64>) -> u64 {
    number.into()
}

/// The folder, when its names last changed, and its number of links (the folders in it, if the file system counts
/// them).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamesStamp {
    pub inode: u64,
    pub modified: Date,
    pub links: u64,
}

/// A time of the wall clock, as exactly as the file system stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    pub seconds: i64,
    pub nanos: u64,
}

/// Frees the disk space of the first `bytes` of a file without moving the rest: every noted position stays valid.
pub fn forget_front(file: impl AsFd, bytes: u64) -> io::Result<()> {
    Ok(rustix::fs::fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, bytes)?)
}

/// The position of an open file, which is shared with every process that inherited it.
pub fn position(file: impl AsFd) -> io::Result<u64> {
    Ok(rustix::fs::seek(file, rustix::fs::SeekFrom::Current(0))?)
}

/// Whether the disk space of a file's beginning can be freed: tried after the end of the file, where it changes
/// nothing.
pub fn can_forget_front(file: impl AsFd) -> io::Result<()> {
    let end = u64::try_from(rustix::fs::fstat(file.as_fd())?.st_size).unwrap_or(0);
    let behind = end.next_multiple_of(1 << 20) + (1 << 20);
    Ok(rustix::fs::fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, behind, 4096)?)
}

/// Whether a file has no data at this position: its space was freed, or the position is after the end. `false` on a
/// file system that cannot tell.
pub fn is_hole(file: impl AsFd, position: u64) -> io::Result<bool> {
    match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(position)) {
        Ok(data) => Ok(data > position),
        Err(Errno::NXIO) => Ok(true),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The room on a file system, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Free for us.
    pub free: u64,
    pub total: u64,
}

/// The room on the file system of this folder.
pub fn space(folder: impl AsFd) -> io::Result<Space> {
    let stat = rustix::fs::fstatvfs(folder)?;
    Ok(Space { free: stat.f_bavail.saturating_mul(stat.f_frsize), total: stat.f_blocks.saturating_mul(stat.f_frsize) })
}

/// The space that is free for us on the file system of this folder.
pub fn free_space(folder: impl AsFd) -> io::Result<u64> {
    Ok(space(folder)?.free)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_marked_folder_has_its_mark_until_a_name_in_it_changes() {
        let place = tempfile::tempdir().unwrap();
        let folder = Dir::open(place.path()).unwrap();
        let mark = loop {
            // One nanosecond value in a million looks like a rounded date.
            if let Some(mark) = folder.mark().unwrap() {
                break mark;
            }
        };
        assert_eq!(folder.names_stamp().unwrap(), mark);
        // A change in the same moment in which it was marked, and the change back.
        folder.make_dir("new").unwrap();
        let made = folder.names_stamp().unwrap();
        assert_ne!(made.modified, mark.modified);
        folder.remove_dir("new").unwrap();
        assert_ne!(folder.names_stamp().unwrap().modified, mark.modified);
        assert_ne!(folder.mark().unwrap(), Some(mark), "each mark is another one");
    }

    #[test]
    fn the_first_to_publish_wins_and_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open(folder.path()).unwrap();
        assert!(dir.publish_once("outcome.json", b"first").unwrap());
        assert!(!dir.publish_once("outcome.json", b"second").unwrap());
        assert_eq!(dir.read("outcome.json").unwrap().unwrap(), b"first");
        assert_eq!(dir.names().unwrap(), ["outcome.json"], "no temporary file stays");
    }

    #[test]
    fn who_has_the_pid_of_one_that_died_while_publishing_does_not_write_into_what_it_published() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open(folder.path()).unwrap();
        // Every name that could be tried next is taken, whatever the counter is.
        for number in 0..100 {
            let name = format!(".outcome.json.{}.{number}", std::process::id());
            dir.create(&name, b"published").unwrap();
            let published = format!("{number}.json");
            rustix::fs::linkat(&dir, name.as_str(), &dir, published.as_str(), AtFlags::empty()).unwrap();
        }
        assert!(dir.publish_once("outcome.json", b"later").unwrap());
        for number in 0..100 {
            assert_eq!(dir.read(&format!("{number}.json")).unwrap().unwrap(), b"published");
        }
    }

    #[test]
    fn forgetting_the_front_keeps_every_position() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open(folder.path()).unwrap();
        dir.replace("out", &[b'x'; 10_000], Sync::No).unwrap();
        let file = dir.file("out", OFlags::RDWR).unwrap();
        forget_front(&file, 8192).unwrap();
        let bytes = dir.read("out").unwrap().unwrap();
        assert_eq!((bytes.len(), bytes[8191], bytes[8192]), (10_000, 0, b'x'));
    }

    #[test]
    fn a_reserve_that_cannot_grow_is_not_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open(folder.path()).unwrap();
        dir.reserve("kept", 4096).unwrap();
        dir.reserve("kept", 1 << 60).unwrap_err();
        assert_eq!(dir.stat("kept").unwrap().unwrap().size, 4096);
    }
}
