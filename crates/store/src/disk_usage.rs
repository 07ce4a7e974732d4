//! What sessions use on the disk: allocated blocks, by kind of content. A file with several names is counted once.

use crate::StoreError;
use ostler_sys::dir::Dir;
use serde::Serialize;
use std::collections::HashSet;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DiskUsage {
    /// The input and output of its program.
    pub output: u64,
    /// Copies of its transcript.
    pub checkpoints: u64,
    /// Snapshots of its screen and of its files.
    pub snapshots: u64,
    /// Everything else.
    pub records: u64,
}

impl DiskUsage {
    #[must_use]
    pub fn total(&self) -> u64 {
        self.output + self.checkpoints + self.snapshots + self.records
    }

    fn add(&mut self, kind: Kind, bytes: u64) {
        match kind {
            Kind::Output => self.output += bytes,
            Kind::Checkpoint => self.checkpoints += bytes,
            Kind::Snapshot => self.snapshots += bytes,
            Kind::Record => self.records += bytes,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Output,
    Checkpoint,
    Snapshot,
    Record,
}

/// What a file of a session holds, by its path in the session's folder.
fn kind(path: &Path) -> Kind {
    let words: Vec<&str> = path.iter().filter_map(|word| word.to_str()).collect();
    match words.as_slice() {
        ["checkpoints", ..] => Kind::Checkpoint,
        ["runs", _, "out" | "err" | "out.times" | "err.times" | "in" | "hooks"] => Kind::Output,
        // Also a snapshot that is being written.
        ["runs", _, name] if name.starts_with("screen") => Kind::Snapshot,
        _ => Kind::Record,
    }
}

/// Adds up sizes, and remembers which files were counted.
#[derive(Debug, Default)]
pub struct Counter {
    seen: HashSet<(u64, u64)>,
}

impl Counter {
    /// What a session's folder uses, apart from what was counted before.
    pub fn session(&mut self, folder: &Path) -> Result<DiskUsage, StoreError> {
        let mut usage = DiskUsage::default();
        if let Some(pack) = Dir::open(folder).ok().as_ref().and_then(Dir::pack) {
            let mut total = 0;
            self.walk(folder, &mut |_, bytes| total += bytes)?;
            // Its blocks hold several files: what is not content of the other kinds counts as records.
            for (path, packed) in pack.names() {
                match kind(Path::new(path)) {
                    Kind::Record => {}
                    kind @ (Kind::Output | Kind::Checkpoint | Kind::Snapshot) => usage.add(kind, packed.size),
                }
            }
            usage.records = total.saturating_sub(usage.total());
            return Ok(usage);
        }
        self.walk(folder, &mut |path, bytes| usage.add(kind(path), bytes))?;
        Ok(usage)
    }

    /// What everything in a folder uses, apart from what was counted before.
    pub fn rest(&mut self, folder: &Path) -> Result<u64, StoreError> {
        let mut total = 0;
        self.walk(folder, &mut |_, bytes| total += bytes)?;
        Ok(total)
    }

    /// The same, without files that have other names as well: a linked file uses no space here.
    pub fn unlinked(&mut self, folder: &Path) -> Result<u64, StoreError> {
        let mut total = 0;
        self.walk_with(folder, &mut |_, stat| {
            if stat.is_dir() || stat.nlink() == 1 {
                total += stat.blocks().saturating_mul(512);
            }
        })?;
        Ok(total)
    }

    fn walk(&mut self, folder: &Path, each: &mut impl FnMut(&Path, u64)) -> Result<(), StoreError> {
        self.walk_with(folder, &mut |path, stat| each(path, stat.blocks().saturating_mul(512)))
    }

    /// `each` gets the path below the folder. Sessions end and are deleted while we look: a file that is gone uses no
    /// space. Links are not followed.
    fn walk_with(&mut self, folder: &Path, each: &mut impl FnMut(&Path, &std::fs::Metadata)) -> Result<(), StoreError> {
        let mut left = vec![PathBuf::new()];
        while let Some(below) = left.pop() {
            // A path that ends with a slash would mean a folder, and a packed session is a file.
            let path = if below.as_os_str().is_empty() { folder.to_owned() } else { folder.join(&below) };
            let failed = |error: io::Error| StoreError::io(path.to_string_lossy())(error);
            let Some(stat) = there(std::fs::symlink_metadata(&path)).map_err(failed)? else {
                continue;
            };
            if self.seen.insert((stat.dev(), stat.ino())) {
                each(&below, &stat);
            }
            if stat.is_dir() {
                for entry in there(std::fs::read_dir(&path)).map_err(failed)?.into_iter().flatten() {
                    left.push(below.join(entry.map_err(failed)?.file_name()));
                }
            }
        }
        Ok(())
    }
}

fn there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn files_count_for_what_they_hold_and_once() {
        let home = tempfile::tempdir().unwrap();
        let session = home.path().join("session");
        std::fs::create_dir_all(session.join("runs/1")).unwrap();
        std::fs::create_dir_all(session.join("checkpoints")).unwrap();
        for name in ["runs/1/out", "runs/1/screen", "runs/1/outcome.json", "checkpoints/1"] {
            std::fs::write(session.join(name), vec![b'x'; 100_000]).unwrap();
        }
        std::fs::hard_link(session.join("runs/1/outcome.json"), session.join("outcome.json")).unwrap();
        std::os::unix::fs::symlink("/", session.join("link")).unwrap();
        // A long file that is one hole: it uses no blocks.
        std::fs::File::create(session.join("runs/1/in")).unwrap().set_len(1 << 30).unwrap();
        let mut counter = Counter::default();
        let usage = counter.session(&session).unwrap();
        for bytes in [usage.output, usage.checkpoints, usage.snapshots, usage.records] {
            assert!((100_000..200_000).contains(&bytes), "{usage:?}");
        }
        assert!(counter.rest(home.path()).unwrap() < 100_000, "nothing is counted twice");
        assert_eq!(counter.session(&home.path().join("gone")).unwrap().total(), 0);
    }
}
