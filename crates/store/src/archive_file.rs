//! Archived sessions as one file each ([`ostler_sys::pack`]), and back as folders.
//!
//! The file has the name that the folder had. Both directions work in the same way: the new form is written beside the
//! old one under a hidden name, synced and compared, then the two names are exchanged in one step, then the old form,
//! which now has the hidden name, is deleted. If the process is killed, the session is in one form or the other, whole,
//! and perhaps a hidden file is left, which the next process deletes. The caller is the only process at work on the
//! archive ([`lock`]), and the session is at rest.
//!
//! What cannot be packed stays a folder: large sessions, for which the number of names and blocks does not matter, and
//! folders with something in them that is not ours. Archives of older versions are folders, too.

use crate::StoreError;
use crate::folder::Folder;
use ostler_core::id::SessionId;
use ostler_sys::dir::{Dir, Sync};
use ostler_sys::lock::{self, Held};
use ostler_sys::pack::{Builder, Kind, Pack, Packed, stat_of};
use ostler_sys::pause_points::{self, Point};
use rustix::fs::{FileType, Mode, OFlags, Timespec, Timestamps};
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

/// Locked by a process that packs, unpacks or deletes packed sessions.
const LOCK: &str = "pack.lock";
/// What is being packed or unpacked.
const HIDDEN: &str = ".pack-";
/// A session with more bytes than this stays a folder: a reader of a pack has a whole file of it in memory.
const LARGEST: u64 = 4 << 20;

/// Waits until no other process packs or unpacks. `archive`: the folder of all months.
pub fn lock(archive: &Path) -> Result<Held, StoreError> {
    let failed = |error| StoreError::io(LOCK)(error);
    let file = Dir::open(archive).and_then(|dir| dir.file(LOCK, OFlags::RDWR | OFlags::CREATE)).map_err(failed)?;
    lock::exclusive(file).map_err(failed)
}

fn hidden(id: SessionId) -> String {
    format!("{HIDDEN}{id}")
}

/// Packs a session that is at rest in this folder. False: it stays a folder.
pub fn pack(month: &Dir, id: SessionId, _lock: &Held) -> Result<bool, StoreError> {
    let pack = || {
        let folder = month.open_dir(id.as_str())?;
        let Some(bytes) = read_all(&folder)? else {
            return Ok(false);
        };
        let hidden = hidden(id);
        month.remove_all(&hidden)?;
        // Synced before it gets its name.
        month.replace(&hidden, &bytes, Sync::Bytes)?;
        pause_points::at(Point::PackWritten);
        let written = month.open_dir_or_link(&hidden)?;
        if !written.pack().is_some_and(|pack| is_same(pack, &folder).unwrap_or(false)) {
            month.remove_all(&hidden)?;
            return Ok(false);
        }
        take_place(month, id, Point::PackExchanged)
    };
    pack().map_err(StoreError::io(id.as_str()))
}

/// The suffix of a record that was damaged in a pack: it is kept, but not read as the record.
pub const DAMAGED: &str = ".damaged";

/// The files in the pack of a session that were changed or cut off. Reads all of it.
pub fn damaged_files(folder: &Folder) -> Result<Vec<String>, StoreError> {
    let Some(pack) = folder.dir().pack() else {
        return Ok(Vec::new());
    };
    let mut found = pack.damaged_files().map_err(StoreError::io("pack"))?;
    if found.is_empty() && !pack.is_whole() {
        found.push("its length".to_owned());
    }
    Ok(found)
}

/// Makes a packed session a folder again, unless it is one. Returns the files that were damaged.
pub fn unpack(month: &Dir, id: SessionId, _lock: &Held) -> Result<Vec<String>, StoreError> {
    let unpack = || {
        let packed = month.open_dir_or_link(id.as_str())?;
        let Some(pack) = packed.pack() else {
            return Ok(Vec::new());
        };
        let hidden = hidden(id);
        month.remove_all(&hidden)?;
        month.make_dir(&hidden)?;
        let folder = month.open_dir(&hidden)?;
        let damaged = pack.damaged_files()?;
        write_all(pack, &damaged, &folder)?;
        pause_points::at(Point::Unpacked);
        take_place(month, id, Point::UnpackExchanged)?;
        Ok(damaged)
    };
    unpack().map_err(StoreError::open(id.as_str(), true))
}

/// Exchanges the two forms and deletes the old one. Where names cannot be exchanged, the session stays as it is.
fn take_place(month: &Dir, id: SessionId, point: Point) -> io::Result<bool> {
    let hidden = hidden(id);
    if let Err(error) = month.exchange(&hidden, id.as_str()) {
        month.remove_all(&hidden)?;
        return Err(error);
    }
    month.sync()?;
    pause_points::at(point);
    month.remove_all(&hidden)?;
    Ok(true)
}

/// Deletes the hidden files that a killed process has left in this folder.
pub fn clear(month: &Dir, _lock: &Held) -> Result<(), StoreError> {
    let clear = || {
        let names = month.names()?;
        // Also a temporary file that did not have its hidden name yet.
        let left = |name: &str| name.starts_with(HIDDEN) || name.starts_with('.') && name[1..].starts_with(HIDDEN);
        names.iter().filter(|name| left(name)).try_for_each(|name| month.remove_all(name))
    };
    clear().map_err(StoreError::io("archive"))
}

/// The session as a pack; `None`: it cannot be one.
fn read_all(folder: &Dir) -> io::Result<Option<Vec<u8>>> {
    let (mut builder, mut total) = (Builder::default(), 0_u64);
    let mut known: HashMap<(u64, u64), String> = HashMap::new();
    let mut left = vec![String::new()];
    while let Some(below) = left.pop() {
        let dir = if below.is_empty() { folder.duplicate()? } else { folder.open_dir(&below)? };
        let mut names = dir.names()?;
        names.sort();
        // A name that begins with a dot was left by a process that was killed in the middle, and is never read.
        for name in names.into_iter().filter(|name| !name.starts_with('.')) {
            let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
            let stat = stat_of(&dir, &name)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => {
                    builder.folder(&path, &stat);
                    left.push(path);
                }
                FileType::RegularFile => {
                    let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
                    total = total.saturating_add(size);
                    // Fewer blocks than its size: its beginning was dropped to free disk space, and readers check for
                    // that hole.
                    let has_hole = u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512) < size;
                    if total > LARGEST || (has_hole && size > 4096) {
                        return Ok(None);
                    }
                    if let Some(first) = known.get(&(stat.st_dev, stat.st_ino)) {
                        builder.link(&path, first, &stat);
                        continue;
                    }
                    let Some(contents) = dir.read(&name)? else {
                        return Ok(None);
                    };
                    builder.file(&path, &stat, contents);
                    known.insert((stat.st_dev, stat.st_ino), path);
                }
                // Left by helpers that were killed; no process listens on it.
                FileType::Socket => {}
                FileType::Symlink
                | FileType::Fifo
                | FileType::CharacterDevice
                | FileType::BlockDevice
                | FileType::Unknown => return Ok(None),
            }
        }
    }
    Ok(Some(builder.build()))
}

/// Whether a pack has what the folder has.
fn is_same(pack: &Pack, folder: &Dir) -> io::Result<bool> {
    for (path, packed) in pack.names() {
        let same = match &packed.kind {
            Kind::Folder => folder.open_dir(path).is_ok(),
            Kind::File | Kind::Link(_) => pack.contents(path)? == folder.read(path)?,
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes everything, durably, into a folder that is not visible yet. A damaged record gets another name, because its
/// contents may be wrong. Damage in output or in a file of lines is skipped or shown by their readers.
fn write_all(pack: &Pack, damaged: &[String], folder: &Dir) -> io::Result<()> {
    let is_damaged_record = |path: &str| path.ends_with(".json") && damaged.iter().any(|name| name == path);
    let mut folders = Vec::new();
    for (path, packed) in pack.names() {
        match &packed.kind {
            Kind::Folder => {
                folder.make_dir(path)?;
                folders.push((path, packed));
            }
            Kind::File => {
                let contents = pack.bytes(packed)?;
                let name = if is_damaged_record(path) { format!("{path}{DAMAGED}") } else { path.to_owned() };
                let mut file = std::fs::File::from(folder.file(&name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?);
                file.write_all(&contents)?;
                rustix::fs::fchmod(&file, Mode::from_raw_mode(packed.mode))?;
                rustix::fs::futimens(&file, &date(packed))?;
                file.sync_all()?;
            }
            Kind::Link(_) => {}
        }
    }
    for (path, packed) in pack.names() {
        if let Kind::Link(target) = &packed.kind
            && !is_damaged_record(target)
        {
            folder.link(target, folder, path)?;
        }
    }
    // The innermost first: what is written into a folder changes its date.
    for (path, packed) in folders.into_iter().rev() {
        let dir = folder.open_dir(path)?;
        rustix::fs::fchmod(&dir, Mode::from_raw_mode(packed.mode))?;
        rustix::fs::futimens(&dir, &date(packed))?;
        dir.sync()?;
    }
    folder.sync()
}

fn date(packed: &Packed) -> Timestamps {
    let date = Timespec { tv_sec: packed.modified_s, tv_nsec: packed.modified_ns.into() };
    Timestamps { last_access: date, last_modification: date }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use std::path::PathBuf;

    struct Fixture {
        root: tempfile::TempDir,
        id: SessionId,
    }

    impl Fixture {
        fn new() -> Fixture {
            let (root, id) = (tempfile::tempdir().unwrap(), SessionId::parse("0aqx73sx").unwrap());
            let session = root.path().join("2026-11").join(id.as_str());
            std::fs::create_dir_all(session.join("runs/1")).unwrap();
            for (name, text) in [("session.json", "{}"), ("runs/1/out", "said"), ("runs/1/in", "")] {
                std::fs::write(session.join(name), text).unwrap();
            }
            // Larger than the part that is read together with the index.
            std::fs::write(session.join("runs/1/err"), vec![b'e'; 50_000]).unwrap();
            std::fs::write(session.join("runs/1/outcome.json"), "ended").unwrap();
            std::fs::hard_link(session.join("runs/1/outcome.json"), session.join("outcome.json")).unwrap();
            Fixture { root, id }
        }

        fn month(&self) -> Dir {
            Dir::open(self.root.path().join("2026-11")).unwrap()
        }

        fn session(&self) -> PathBuf {
            self.root.path().join("2026-11").join(self.id.as_str())
        }

        fn lock(&self) -> Held {
            lock(self.root.path()).unwrap()
        }

        fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
            Dir::open(self.session())?.read(name)
        }
    }

    #[test]
    fn a_packed_session_reads_as_its_folder_did_and_becomes_that_folder_again() {
        let fixture = Fixture::new();
        let date = std::fs::metadata(fixture.session().join("runs/1/out")).unwrap().modified().unwrap();
        assert!(pack(&fixture.month(), fixture.id, &fixture.lock()).unwrap());
        assert!(fixture.session().is_file());
        assert_eq!(fixture.month().names().unwrap(), [fixture.id.as_str()]);

        let dir = Dir::open(fixture.session()).unwrap();
        let run = dir.open_dir("runs").unwrap().open_dir("1").unwrap();
        let mut names = run.names().unwrap();
        names.sort();
        assert_eq!(names, ["err", "in", "out", "outcome.json"]);
        assert_eq!(run.read("out").unwrap().unwrap(), b"said");
        assert_eq!(run.read("in").unwrap().unwrap(), b"");
        assert_eq!(run.read("none").unwrap(), None);
        assert_eq!(dir.read("outcome.json").unwrap().unwrap(), b"ended");
        assert_eq!(dir.stat("runs/1/err").unwrap().unwrap().size, 50_000);
        assert_eq!(dir.stat("runs/2").unwrap(), None);
        let file = std::fs::File::from(run.file("err", OFlags::RDONLY).unwrap());
        assert_eq!(std::io::read_to_string(file).unwrap(), "e".repeat(50_000));
        for refused in [
            dir.create("new", b"").unwrap_err(),
            run.replace("out", b"x", Sync::No).unwrap_err(),
            dir.remove("outcome.json").unwrap_err(),
            dir.make_dir("more").unwrap_err(),
            run.file("out", OFlags::RDWR).unwrap_err(),
        ] {
            assert_eq!(refused.kind(), io::ErrorKind::ReadOnlyFilesystem);
        }

        assert!(unpack(&fixture.month(), fixture.id, &fixture.lock()).unwrap().is_empty());
        assert_eq!(std::fs::read(fixture.session().join("runs/1/out")).unwrap(), b"said");
        assert_eq!(std::fs::metadata(fixture.session().join("runs/1/out")).unwrap().modified().unwrap(), date);
        let inode = |name: &str| std::fs::metadata(fixture.session().join(name)).unwrap().ino();
        assert_eq!(inode("outcome.json"), inode("runs/1/outcome.json"), "one file with two names");
        assert_eq!(fixture.month().names().unwrap(), [fixture.id.as_str()]);
        assert!(unpack(&fixture.month(), fixture.id, &fixture.lock()).unwrap().is_empty(), "it is a folder");
        assert!(fixture.session().is_dir());
    }

    #[test]
    fn a_pack_that_was_cut_off_or_changed_is_an_error_and_never_other_bytes() {
        let fixture = Fixture::new();
        std::fs::remove_file(fixture.session().join("runs/1/err")).unwrap();
        assert!(pack(&fixture.month(), fixture.id, &fixture.lock()).unwrap());
        let whole = std::fs::read(fixture.session()).unwrap();
        let names = ["session.json", "runs/1/out", "runs/1/in", "outcome.json"];
        let good: Vec<Vec<u8>> = names.map(|name| fixture.read(name).unwrap().unwrap()).to_vec();
        for at in 0..whole.len() {
            for bad in [whole[..at].to_vec(), [&whole[..at], &[whole[at] ^ 1], &whole[at + 1..]].concat()] {
                std::fs::write(fixture.session(), &bad).unwrap();
                let read: Vec<io::Result<Option<Vec<u8>>>> = names.map(|name| fixture.read(name)).into_iter().collect();
                let found = || damaged_files(&Folder::new(Dir::open(fixture.session()).unwrap())).unwrap();
                assert!(read.iter().any(Result::is_err) || !found().is_empty(), "byte {at} of {}", whole.len());
                for (read, good) in read.into_iter().zip(&good) {
                    assert!(read.is_err() || read.is_ok_and(|read| read.as_ref() == Some(good)), "byte {at}");
                }
            }
        }
    }

    #[test]
    fn what_is_large_has_holes_or_is_not_ours_stays_a_folder() {
        let refused = |change: &dyn Fn(&Path)| {
            let fixture = Fixture::new();
            change(&fixture.session());
            assert!(!pack(&fixture.month(), fixture.id, &fixture.lock()).unwrap());
            assert!(fixture.session().is_dir());
            assert_eq!(fixture.month().names().unwrap(), [fixture.id.as_str()]);
        };
        refused(&|session| std::fs::write(session.join("runs/1/out"), vec![b'x'; 5 << 20]).unwrap());
        refused(&|session| std::fs::File::create(session.join("runs/1/out")).unwrap().set_len(1 << 20).unwrap());
        refused(&|session| std::os::unix::fs::symlink("/", session.join("link")).unwrap());
    }

    #[test]
    fn what_was_left_in_the_middle_is_deleted_by_the_next() {
        let fixture = Fixture::new();
        let left = fixture.root.path().join("2026-11").join(hidden(fixture.id));
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join("half"), "x").unwrap();
        clear(&fixture.month(), &fixture.lock()).unwrap();
        assert_eq!(fixture.month().names().unwrap(), [fixture.id.as_str()]);
        std::fs::write(&left, "half").unwrap();
        assert!(pack(&fixture.month(), fixture.id, &fixture.lock()).unwrap());
        assert_eq!(fixture.month().names().unwrap(), [fixture.id.as_str()]);
    }
}
