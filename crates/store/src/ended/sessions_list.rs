//! `sessions.list`: which sessions a folder contained when it last changed, as the difference from the index, so that
//! thousands of names are not listed again and again. Derived: it is valid only while the folder has that date and the
//! index is the same. `names.list` has the same form ([`super::names`]).

use ostler_core::id::SessionId;
use ostler_sys::dir::{Date, Dir, Sync};
use std::collections::HashSet;
use std::io;

const MAGIC: &[u8; 16] = b"ostler listed 1\n";
/// Listing fewer names than this costs no more than reading another file.
pub const WORTH_IT: usize = 1000;

/// Of which folder and which index this is the difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Of {
    pub folder: u64,
    pub changed: Date,
    /// The checksum of the index.
    pub index: u64,
}

impl Of {
    fn bytes(self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for number in [self.folder, self.changed.seconds.cast_unsigned(), self.changed.nanos, self.index] {
            bytes.extend(number.to_le_bytes());
        }
        bytes
    }
}

/// What is in the folder and not in the index, and the other way round.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Difference {
    pub more: Vec<SessionId>,
    pub missing: HashSet<SessionId>,
}

impl Difference {
    /// The ids in the folder. `indexed`: the ids in the index.
    pub fn applied_to(self, indexed: impl Iterator<Item = SessionId>) -> Vec<SessionId> {
        let mut all = self.more;
        all.extend(indexed.filter(|id| self.missing.is_empty() || !self.missing.contains(id)));
        all
    }
}

/// The checksum of the index from which a file is the difference.
pub fn index_of(home: &Dir, name: &str) -> Option<u64> {
    let bytes = home.read(name).ok()??;
    bytes.get(MAGIC.len() + 24..)?.first_chunk().map(|index| u64::from_le_bytes(*index))
}

/// `None`: the names in the folder have to be listed.
pub fn read(home: &Dir, name: &str, of: Of) -> Option<Difference> {
    let bytes = home.read(name).ok()??;
    let (body, check) = bytes.split_last_chunk::<8>()?;
    let rest = body.strip_prefix(of.bytes().as_slice())?;
    let (count, rest) = rest.split_first_chunk::<8>()?;
    if u64::from_le_bytes(*check) != super::table::check(body) || rest.len() % 8 != 0 {
        return None;
    }
    let ids: Vec<SessionId> = rest.chunks_exact(8).map(SessionId::from_bytes).collect::<Option<_>>()?;
    let (more, missing) = ids.split_at_checked(usize::try_from(u64::from_le_bytes(*count)).ok()?)?;
    Some(Difference { more: more.to_vec(), missing: missing.iter().copied().collect() })
}

/// Writes what listing the folder has found.
pub fn write(
    home: &Dir,
    name: &str,
    of: Of,
    indexed: impl Iterator<Item = SessionId>,
    found: &[SessionId],
) -> io::Result<()> {
    let indexed: HashSet<SessionId> = indexed.collect();
    if indexed.len() < WORTH_IT {
        return Ok(());
    }
    let all: HashSet<SessionId> = found.iter().copied().collect();
    let more = found.iter().filter(|id| !indexed.contains(id)).copied().collect();
    write_difference(home, name, of, &Difference { more, missing: indexed.difference(&all).copied().collect() })
}

pub fn write_difference(home: &Dir, name: &str, of: Of, difference: &Difference) -> io::Result<()> {
    if !home.is_ours()? {
        return Ok(());
    }
    let mut bytes = of.bytes();
    bytes.extend((difference.more.len() as u64).to_le_bytes());
    for id in difference.more.iter().chain(&difference.missing) {
        bytes.extend(id.as_bytes());
    }
    let check = super::table::check(&bytes);
    bytes.extend(check.to_le_bytes());
    home.replace(name, &bytes, Sync::No)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_same_names_are_read_only_for_that_date_and_that_index_and_only_while_no_byte_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let home = Dir::open(folder.path()).unwrap();
        let ids: Vec<SessionId> = (0..WORTH_IT as u64 + 2).map(SessionId::from_random).collect();
        // One session of the index is gone, and one is not in the index.
        let (indexed, found) = (&ids[..ids.len() - 1], &ids[1..]);
        let of = Of { folder: 1, changed: Date { seconds: 2, nanos: 3 }, index: 4 };
        write(&home, "list", of, indexed.iter().copied(), found).unwrap();
        let read = |of| {
            let difference = read(&home, "list", of)?;
            Some(difference.applied_to(indexed.iter().copied()).into_iter().collect::<HashSet<_>>())
        };
        assert_eq!(read(of), Some(found.iter().copied().collect()));
        assert_eq!(read(Of { folder: 2, ..of }), None);
        assert_eq!(read(Of { changed: Date { seconds: 2, nanos: 4 }, ..of }), None);
        assert_eq!(read(Of { index: 5, ..of }), None);
        let whole = home.read("list").unwrap().unwrap();
        for at in 0..whole.len() {
            for damaged in [whole[..at].to_vec(), [&whole[..at], &[whole[at] ^ 1], &whole[at + 1..]].concat()] {
                std::fs::write(folder.path().join("list"), damaged).unwrap();
                assert_eq!(read(of), None, "byte {at}");
            }
        }
    }
}
