//! What the last snapshot saw of each file, so that only changed files are read.
//!
//! It is kept small, because there is one for every session: each name without the part that it shares with the name
//! before, and a six-byte hash of the file's size, dates, mode and inode number. It says which snapshot it belongs to.
//! One that is older than the newest snapshot works as well: then more files count as changed.

use super::listing::{Look, Stat};
use std::hash::Hasher;
use std::os::unix::fs::MetadataExt;

/// What a path is for the snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    /// In the index of the person.
    Tracked,
    /// Not in the index, and not ignored.
    Untracked,
    Ignored,
    Folder,
    /// Left out: too large, or not a regular file or link.
    Skipped,
    /// A repository of its own.
    Repository,
}

impl Tag {
    const ALL: [Tag; 6] = [Tag::Tracked, Tag::Untracked, Tag::Ignored, Tag::Folder, Tag::Skipped, Tag::Repository];

    /// Whether a snapshot has it.
    pub fn is_stored(self) -> bool {
        match self {
            Tag::Tracked | Tag::Untracked | Tag::Repository => true,
            Tag::Ignored | Tag::Folder | Tag::Skipped => false,
        }
    }
}

/// What was seen of a path.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub path: Vec<u8>,
    pub tag: Tag,
    /// A hash of everything that changes with a file; 0: the file has to be read again.
    pub mark: u64,
}

/// What a snapshot saw.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// The tree and the commit of the snapshot.
    pub tree: String,
    pub commit: String,
    /// A hash of the state of the person's index.
    pub index: u64,
    /// A hash of the state of the exclude files, besides the `.gitignore` files.
    pub excludes: u64,
    /// A hash of what git does not keep.
    pub unusual: u64,
    pub seen: Vec<Seen>,
}

const BEGINS: &[u8] = b"ostler turns 2\n";
const MARK: u64 = (1 << 48) - 1;

/// The hash of a file's state.
pub(super) fn mark(look: &Look) -> u64 {
    let Look { mode, stat } = look;
    let numbers = [
        u64::from(*mode),
        stat.size,
        stat.mtime.0.cast_unsigned(),
        stat.mtime.1.cast_unsigned(),
        stat.ctime.0.cast_unsigned(),
        stat.ctime.1.cast_unsigned(),
        stat.ino,
    ];
    let mut hasher = std::hash::DefaultHasher::new();
    numbers.into_iter().for_each(|number| hasher.write_u64(number));
    (hasher.finish() & MARK).max(1)
}

/// The hash of a file's state, from the metadata of the standard library.
pub(super) fn mark_at(stat: &std::fs::Metadata) -> u64 {
    mark(&Look { mode: stat.mode(), stat: Stat::of(stat) })
}

/// The hash of some bytes.
pub(super) fn mark_of(bytes: &[u8]) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(bytes);
    (hasher.finish() & MARK).max(1)
}

impl Known {
    /// Assigns what was seen to this snapshot. Files that changed while they were read are marked to be read again.
    pub fn after(mut self, tree: &str, commit: &str, unsure: &[usize]) -> Known {
        tree.clone_into(&mut self.tree);
        commit.clone_into(&mut self.commit);
        for &place in unsure {
            if let Some(seen) = self.seen.get_mut(place) {
                seen.mark = 0;
            }
        }
        self
    }

    /// The contents of the file in the store.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = BEGINS.to_vec();
        for name in [&self.tree, &self.commit] {
            number(&mut bytes, name.len());
            bytes.extend_from_slice(name.as_bytes());
        }
        bytes.extend_from_slice(&self.index.to_le_bytes());
        bytes.extend_from_slice(&self.excludes.to_le_bytes());
        bytes.extend_from_slice(&self.unusual.to_le_bytes());
        let mut before: &[u8] = &[];
        for Seen { path, tag, mark } in &self.seen {
            let shared = path.iter().zip(before).take_while(|(one, other)| one == other).count();
            number(&mut bytes, shared);
            number(&mut bytes, path.len() - shared);
            bytes.extend_from_slice(&path[shared..]);
            bytes.push(*tag as u8);
            if *tag != Tag::Folder {
                bytes.extend_from_slice(&mark.to_le_bytes()[..6]);
            }
            before = path;
        }
        let check = mark_of(&bytes);
        bytes.extend_from_slice(&check.to_le_bytes());
        bytes
    }

    /// `None`: the bytes have another format, or are damaged.
    pub fn from_bytes(bytes: &[u8]) -> Option<Known> {
        let (bytes, check) = bytes.split_at_checked(bytes.len().checked_sub(8)?)?;
        if mark_of(bytes).to_le_bytes() != check {
            return None;
        }
        let mut rest = Rest(bytes.strip_prefix(BEGINS)?);
        let mut name = || {
            let length = rest.number()?;
            String::from_utf8(rest.take(length)?.to_vec()).ok()
        };
        let (tree, commit) = (name()?, name()?);
        let index = u64::from_le_bytes(rest.take(8)?.try_into().ok()?);
        let excludes = u64::from_le_bytes(rest.take(8)?.try_into().ok()?);
        let unusual = u64::from_le_bytes(rest.take(8)?.try_into().ok()?);
        let mut seen: Vec<Seen> = Vec::new();
        while !rest.0.is_empty() {
            let shared = rest.number()?;
            let length = rest.number()?;
            let before = seen.last().map_or(&[][..], |seen| &seen.path[..]);
            let mut path = Vec::with_capacity(shared + length);
            path.extend_from_slice(before.get(..shared)?);
            path.extend_from_slice(rest.take(length)?);
            let tag = *Tag::ALL.get(usize::from(*rest.take(1)?.first()?))?;
            let mut mark = [0; 8];
            if tag != Tag::Folder {
                mark[..6].copy_from_slice(rest.take(6)?);
            }
            seen.push(Seen { path, tag, mark: u64::from_le_bytes(mark) });
        }
        Some(Known { tree, commit, index, excludes, unusual, seen })
    }
}

/// Seven bits per byte, the lowest first. Only the last byte has no eighth bit.
fn number(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<usize> {
        let mut number = 0usize;
        for shift in (0..usize::BITS).step_by(7) {
            let byte = *self.take(1)?.first()?;
            number |= usize::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn known() -> Known {
        let seen = |path: &[u8], tag, mark| Seen { path: path.to_vec(), tag, mark };
        Known {
            tree: "3c4d".to_owned(),
            commit: "1a2b".to_owned(),
            index: 7,
            excludes: u64::MAX,
            unusual: 9,
            seen: vec![
                seen(b"a", Tag::Folder, 0),
                seen(b"a/one", Tag::Tracked, MARK),
                seen(b"a/\xff\n", Tag::Untracked, 1),
                seen(&[b'x'; 400], Tag::Repository, 0),
                seen(b"b", Tag::Ignored, 5),
                seen(b"c", Tag::Skipped, 6),
            ],
        }
    }

    #[test]
    fn what_was_seen_is_read_as_it_was_written() {
        let known = known();
        let read = Known::from_bytes(&known.to_bytes()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{known:?}"));
    }

    #[test]
    fn a_file_that_is_damaged_anywhere_is_none() {
        let bytes = known().to_bytes();
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 1;
            assert!(Known::from_bytes(&damaged).is_none(), "byte {place}");
            assert!(Known::from_bytes(&bytes[..place]).is_none(), "cut at {place}");
        }
    }
}
