//! A folder of small files in one file: an archived session needs one name and few blocks instead of a dozen.
//!
//! ```text
//! magic (16 bytes) | length of the index, its check, length of the whole file (8 bytes each) | index | contents
//! ```
//!
//! The index has one record per name: kind, permissions, date, size, place and checksum of the contents, and the path.
//! Numbers are little-endian. Small files come first, so that what lists need is read together with the index. The
//! index is checked when the file is opened, contents when they are read. Contents that were cut off or changed give an
//! error and never other bytes, and only that one file is lost: the others can be read. Only files of lines (`.jsonl`)
//! are read as they are, because their readers skip a bad line.
//!
//! A pack is only read. It is written to another name and verified before it takes the folder's place ([`Builder`]).

use crate::dir::FileStat;
use rustix::fs::{AtFlags, Mode, OFlags};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

const MAGIC: &[u8; 16] = b"ostler packed 1\n";
const HEADER: usize = 40;
/// How much is read at once when a pack is opened.
const HEAD: usize = 16 * 1024;
/// The length of a record without the path.
const RECORD: usize = 48;
/// No index is larger: a larger number means damage.
const LARGEST_INDEX: u64 = 16 << 20;

/// What a name belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Folder,
    File,
    /// A second name of the file with this path.
    Link(String),
}

/// One name in a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    pub kind: Kind,
    /// Permissions.
    pub mode: u32,
    pub modified_s: i64,
    pub modified_ns: u32,
    pub size: u64,
    /// Counted from the beginning of the contents.
    place: u64,
    check: u64,
}

/// An open pack.
#[derive(Debug)]
pub struct Pack {
    file: File,
    names: BTreeMap<String, Packed>,
    /// Where the contents begin.
    contents: u64,
    /// The beginning of the file.
    head: Vec<u8>,
    inode: u64,
    /// The file has the length that its header says.
    is_whole: bool,
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the archived file is damaged: {what}"))
}

impl Pack {
    /// Opens a pack below a folder. `None`: it is a file, but not a pack.
    pub(crate) fn open_at(folder: impl rustix::fd::AsFd, name: &std::path::Path) -> io::Result<Option<Pack>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        Pack::read(File::from(rustix::fs::openat(folder, name, flags, Mode::empty())?))
    }

    fn read(file: File) -> io::Result<Option<Pack>> {
        let stat = file.metadata()?;
        let mut head = vec![0; usize::try_from(stat.len()).unwrap_or(HEAD).min(HEAD)];
        if !stat.is_file() || head.len() < MAGIC.len() {
            return Ok(None);
        }
        file.read_exact_at(&mut head, 0)?;
        if !head.starts_with(MAGIC) {
            return Ok(None);
        }
        let number = |at: usize| head.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
        let (Some(length), Some(index_check), Some(whole)) = (number(16), number(24), number(32)) else {
            return Err(damaged("it was cut off"));
        };
        if length > LARGEST_INDEX {
            return Err(damaged("its index is too large"));
        }
        let contents = HEADER as u64 + length;
        let wanted = usize::try_from(contents).map_err(|_| damaged("its index is too large"))?;
        if stat.len() < contents {
            return Err(damaged("it was cut off"));
        }
        if head.len() < wanted {
            head = vec![0; wanted];
            file.read_exact_at(&mut head, 0)?;
        }
        let index = &head[HEADER..wanted];
        if check(index) != index_check {
            return Err(damaged("its index was changed"));
        }
        let names = parse(index).ok_or_else(|| damaged("its index cannot be read"))?;
        Ok(Some(Pack { file, names, contents, head, inode: stat.ino(), is_whole: whole == stat.len() }))
    }

    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    #[must_use]
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Every name in the pack, folders before what is in them.
    pub fn names(&self) -> impl Iterator<Item = (&str, &Packed)> {
        self.names.iter().map(|(name, packed)| (name.as_str(), packed))
    }

    /// The entry at this path; for a link, the file of which it is a second name.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<&Packed> {
        match self.names.get(path) {
            Some(Packed { kind: Kind::Link(target), .. }) => self.names.get(target),
            found => found,
        }
    }

    #[must_use]
    pub fn stat(&self, path: &str) -> Option<FileStat> {
        let found = self.find(path)?;
        Some(FileStat {
            size: found.size,
            inode: self.inode,
            modified_s: found.modified_s,
            modified_ns: i64::from(found.modified_ns),
        })
    }

    /// The contents of a file. Changed contents are an error.
    pub fn contents(&self, path: &str) -> io::Result<Option<Vec<u8>>> {
        match self.find(path) {
            Some(found) => match self.bytes(found)? {
                bytes if check(&bytes) == found.check => Ok(Some(bytes)),
                _ => Err(damaged(&format!("{path} was changed"))),
            },
            None => Ok(None),
        }
    }

    /// The same for a reader: a file of lines is returned even if it was changed.
    pub(crate) fn read_file(&self, path: &str) -> io::Result<Option<Vec<u8>>> {
        match self.find(path) {
            Some(found) if has_lines(path) => self.bytes(found).map(Some),
            Some(_) | None => self.contents(path),
        }
    }

    /// The bytes of a file that exist, changed or not.
    pub fn bytes(&self, found: &Packed) -> io::Result<Vec<u8>> {
        if found.kind == Kind::Folder {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let begin = self.contents.saturating_add(found.place);
        let size = usize::try_from(found.size).map_err(|_| damaged("a file is too large"))?;
        let in_head = usize::try_from(begin).ok().and_then(|begin| self.head.get(begin..begin.checked_add(size)?));
        if let Some(bytes) = in_head {
            return Ok(bytes.to_vec());
        }
        let there = self.file.metadata()?.len().saturating_sub(begin).min(found.size);
        let mut bytes = vec![0; usize::try_from(there).map_err(|_| damaged("a file is too large"))?];
        self.file.read_exact_at(&mut bytes, begin)?;
        Ok(bytes)
    }

    /// The files in the pack that were changed or cut off. Reads the whole pack.
    pub fn damaged_files(&self) -> io::Result<Vec<String>> {
        let mut found = Vec::new();
        for (path, packed) in self.names() {
            if packed.kind == Kind::File && check(&self.bytes(packed)?) != packed.check {
                found.push(path.to_owned());
            }
        }
        Ok(found)
    }

    /// Whether the file has the length that its header says.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }
}

/// Whether readers of a file skip lines that they cannot read.
#[must_use]
pub fn has_lines(path: &str) -> bool {
    path.ends_with(".jsonl")
}

fn parse(mut index: &[u8]) -> Option<BTreeMap<String, Packed>> {
    let mut names = BTreeMap::new();
    while !index.is_empty() {
        let (record, rest) = index.split_at_checked(RECORD)?;
        let long = |at: usize| Some(u64::from_le_bytes(record.get(at..at + 8)?.try_into().ok()?));
        let short = |at: usize| Some(u32::from_le_bytes(record.get(at..at + 4)?.try_into().ok()?));
        let half = |at: usize| Some(usize::from(u16::from_le_bytes(record.get(at..at + 2)?.try_into().ok()?)));
        let (path, rest) = rest.split_at_checked(half(44)?)?;
        let (target, rest) = rest.split_at_checked(half(46)?)?;
        let (path, target) = (std::str::from_utf8(path).ok()?, std::str::from_utf8(target).ok()?);
        let kind = match short(0)? {
            0 => Kind::Folder,
            1 => Kind::File,
            2 => Kind::Link(target.to_owned()),
            _ => return None,
        };
        if !is_plain(path) {
            return None;
        }
        let packed = Packed {
            kind,
            mode: short(4)? & 0o777,
            modified_s: long(8)?.cast_signed(),
            modified_ns: short(40)?,
            size: long(16)?,
            place: long(24)?,
            check: long(32)?,
        };
        names.insert(path.to_owned(), packed);
        index = rest;
    }
    Some(names)
}

/// Whether a path stays below its folder.
fn is_plain(path: &str) -> bool {
    !path.is_empty() && path.split('/').all(|word| !word.is_empty() && word != "." && word != "..")
}

/// Builds a pack.
#[derive(Debug, Default)]
pub struct Builder {
    names: Vec<(String, Packed)>,
    contents: Vec<Vec<u8>>,
}

impl Builder {
    pub fn folder(&mut self, path: &str, stat: &rustix::fs::Stat) {
        self.names.push((path.to_owned(), packed(Kind::Folder, stat)));
        self.contents.push(Vec::new());
    }

    pub fn link(&mut self, path: &str, target: &str, stat: &rustix::fs::Stat) {
        self.names.push((path.to_owned(), packed(Kind::Link(target.to_owned()), stat)));
        self.contents.push(Vec::new());
    }

    pub fn file(&mut self, path: &str, stat: &rustix::fs::Stat, contents: Vec<u8>) {
        let size = contents.len() as u64;
        self.names.push((path.to_owned(), Packed { size, check: check(&contents), ..packed(Kind::File, stat) }));
        self.contents.push(contents);
    }

    /// The bytes of the pack.
    #[must_use]
    pub fn build(self) -> Vec<u8> {
        let mut all: Vec<((String, Packed), Vec<u8>)> = self.names.into_iter().zip(self.contents).collect();
        all.sort_by_key(|(_, contents)| contents.len());
        let (mut index, mut place) = (Vec::new(), 0_u64);
        for ((path, packed), contents) in &all {
            let (kind, target) = match &packed.kind {
                Kind::Folder => (0_u32, ""),
                Kind::File => (1, ""),
                Kind::Link(target) => (2, target.as_str()),
            };
            index.extend(kind.to_le_bytes());
            index.extend(packed.mode.to_le_bytes());
            index.extend(packed.modified_s.to_le_bytes());
            for number in [packed.size, place, packed.check] {
                index.extend(number.to_le_bytes());
            }
            index.extend(packed.modified_ns.to_le_bytes());
            for text in [path.as_str(), target] {
                index.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes());
            }
            index.extend(path.as_bytes());
            index.extend(target.as_bytes());
            place += contents.len() as u64;
        }
        let mut bytes = MAGIC.to_vec();
        let whole = HEADER as u64 + index.len() as u64 + place;
        for number in [index.len() as u64, check(&index), whole] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(&index);
        all.iter().for_each(|(_, contents)| bytes.extend(contents));
        bytes
    }
}

fn packed(kind: Kind, stat: &rustix::fs::Stat) -> Packed {
    Packed {
        kind,
        mode: stat.st_mode & 0o777,
        modified_s: stat.st_mtime,
        modified_ns: u32::try_from(stat.st_mtime_nsec).unwrap_or(0),
        size: 0,
        place: 0,
        check: 0,
    }
}

/// The status of a name in a folder, without following links.
pub fn stat_of(folder: &crate::dir::Dir, name: &str) -> io::Result<rustix::fs::Stat> {
    Ok(rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// A checksum of the bytes. Four words at a time, because files of megabytes are checked with it.
#[must_use]
pub fn check(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut sums = [1_u64, 2, 3, 4];
    let mut mix = |lane: usize, word: u64| sums[lane] = (sums[lane] ^ word).wrapping_mul(FACTOR).rotate_left(29);
    let mut words = bytes.chunks_exact(32);
    for four in &mut words {
        for (lane, word) in four.chunks_exact(8).enumerate() {
            mix(lane, word.try_into().map_or(0, u64::from_le_bytes));
        }
    }
    for (at, &byte) in words.remainder().iter().enumerate() {
        mix(at % 4, u64::from(byte) + 1);
    }
    sums.iter().fold(bytes.len() as u64, |all, sum| (all ^ sum).wrapping_mul(FACTOR).rotate_left(31))
}
