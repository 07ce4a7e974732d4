//! The first snapshot: files that the person's index knows to be unchanged are not read, but taken from the repository.
//!
//! They are taken as hard links: a pack or an object of the person's repository gets a second name in our store. Where
//! links are impossible, because the two are on different file systems, the objects are copied. Then the store is asked
//! which of the objects it has. A file whose object is missing is read like any other file.
//!
//! An object in the person's repository has what a filter made of a file, such as other line ends. A snapshot has the
//! bytes of the file. So a file with a filter is read, and so is a file that is not as long as its object.

use super::Bounds;
use super::known::Tag;
use super::listing::Stat;
use super::store::TurnStore;
use super::tree::WorkingTree;
use super::walk::{Change, Walked};
use crate::git::{done, fields};
use crate::{GitError, Result};
use ostler_sys::pause_points::{self, Point};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What the store has already: the object of a file, by the place of the file in the list of what was seen.
#[derive(Debug, Default)]
pub(super) struct Stored(HashMap<usize, String>);

impl Stored {
    pub fn object(&self, place: usize) -> Option<&str> {
        self.0.get(&place).map(String::as_str)
    }
}

impl TurnStore {
    /// Links what the first snapshot needs into the store.
    pub(super) fn link(&self, tree: &WorkingTree, walked: &Walked, bounds: &Bounds) -> Result<Stored> {
        let mut unchanged = unchanged(tree, walked)?;
        if unchanged.is_empty() {
            return Ok(Stored::default());
        }
        let needed: HashSet<String> = unchanged.values().map(|(object, _)| object.clone()).collect();
        let mut all = true;
        for objects in object_folders(&tree.objects) {
            all &= self.link_folder(&objects, &needed, bounds)?;
        }
        pause_points::at(Point::ObjectsLinked);
        if !all {
            self.copy(tree, &needed)?;
        }
        let sizes = self.sizes(&needed)?;
        let filtered = filtered(tree, walked, &unchanged)?;
        unchanged.retain(|place, (object, size)| sizes.get(object) == Some(size) && !filtered.contains(place));
        Ok(Stored(unchanged.into_iter().map(|(place, (object, _))| (place, object)).collect()))
    }

    /// False: something cannot be linked.
    fn link_folder(&self, objects: &Path, needed: &HashSet<String>, bounds: &Bounds) -> Result<bool> {
        let ours = self.folder.join("objects");
        let packs = names(&objects.join("pack"))?;
        for name in packs.iter().filter(|name| name.ends_with(".pack")) {
            let stem = name.trim_end_matches(".pack");
            // The `.keep` file: a linked pack must not be repacked.
            let keep = ours.join("pack").join(format!("{stem}.keep"));
            std::fs::create_dir_all(ours.join("pack")).map_err(GitError::io(&ours))?;
            File::create(&keep).map_err(GitError::io(&keep))?;
            // Git finds a pack by its index, so the index is linked last.
            for ending in ["pack", "rev", "idx"] {
                let file = format!("{stem}.{ending}");
                if !link(&objects.join("pack").join(&file), &ours.join("pack").join(&file))? {
                    return Ok(false);
                }
            }
            bounds.check()?;
        }
        for folder in names(objects)?.iter().filter(|name| name.len() == 2) {
            let loose = names(&objects.join(folder))?;
            let wanted: Vec<&String> =
                loose.iter().filter(|rest| needed.contains(&format!("{folder}{rest}"))).collect();
            if !wanted.is_empty() {
                std::fs::create_dir_all(ours.join(folder)).map_err(GitError::io(&ours))?;
            }
            for rest in wanted {
                if !link(&objects.join(folder).join(rest), &ours.join(folder).join(rest))? {
                    return Ok(false);
                }
            }
            bounds.check()?;
        }
        Ok(true)
    }

    /// Copies objects from the person's repository, as one pack.
    fn copy(&self, tree: &WorkingTree, needed: &HashSet<String>) -> Result<()> {
        let have = self.sizes(needed)?;
        let missing: String =
            needed.iter().filter(|object| !have.contains_key(*object)).map(|object| format!("{object}\n")).collect();
        let pack = ["pack-objects", "--quiet", "--stdout", "--no-reuse-delta", "--window=0"];
        let packed = done(&pack.map(Into::into), tree.git.feed(&tree.top, pack, missing.as_bytes())?);
        // Objects that the repository does not have either are read from the files.
        if let Ok(packed) = packed {
            let index = ["index-pack", "--stdin"];
            done(&index.map(Into::into), self.git.feed(&self.folder, index, &packed)?)?;
        }
        Ok(())
    }

    /// The sizes of those objects that the store has.
    fn sizes(&self, objects: &HashSet<String>) -> Result<HashMap<String, u64>> {
        let asked: String = objects.iter().map(|object| format!("{object}\n")).collect();
        let words = ["cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", "--buffer"];
        let answers = done(&words.map(Into::into), self.git.feed(&self.folder, words, asked.as_bytes())?)?;
        let blob = |line: &str| {
            let (object, rest) = line.split_once(" blob ")?;
            Some((object.to_owned(), rest.parse().ok()?))
        };
        Ok(String::from_utf8_lossy(&answers).lines().filter_map(blob).collect())
    }
}

/// Gives a file a second name. False: links are impossible here. A file that is gone, or a name that exists already, is
/// not an error.
fn link(from: &Path, to: &Path) -> Result<bool> {
    match std::fs::hard_link(from, to) {
        Ok(()) => Ok(true),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists => Ok(true),
            io::ErrorKind::CrossesDevices
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::TooManyLinks
            | io::ErrorKind::Unsupported => Ok(false),
            _ => Err(GitError::io(to)(error)),
        },
    }
}

fn names(folder: &Path) -> Result<Vec<String>> {
    match std::fs::read_dir(folder) {
        Ok(names) => Ok(names.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(GitError::io(folder)(error)),
    }
}

/// The folder of a repository's objects, and the folders that it borrows objects from.
fn object_folders(objects: &Path) -> Vec<PathBuf> {
    const DEEPEST: usize = 5;
    let mut found = vec![objects.to_owned()];
    let mut newest = found.clone();
    for _ in 0..DEEPEST {
        let mut next = Vec::new();
        for folder in &newest {
            let text = std::fs::read_to_string(folder.join("info/alternates")).unwrap_or_default();
            let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
            next.extend(lines.map(|line| folder.join(line)).filter(|path| !found.contains(path)));
        }
        found.extend(next.iter().cloned());
        newest = next;
    }
    found
}

/// Files that are as the person's index knows them, each with its object and its length, by their places.
fn unchanged(tree: &WorkingTree, walked: &Walked) -> Result<HashMap<usize, (String, u64)>> {
    let mut tracked: HashMap<&[u8], (usize, Stat, &str)> = HashMap::new();
    for change in &walked.changes {
        if let Change::Read { place, mode, stat } = change
            && let Some(seen) = walked.known.seen.get(*place).filter(|seen| seen.tag == Tag::Tracked)
        {
            tracked.insert(&seen.path, (*place, *stat, mode));
        }
    }
    let Ok(index) = std::fs::metadata(&tree.index) else { return Ok(HashMap::new()) };
    let index = (index.mtime(), index.mtime_nsec());
    let listed = tree.git.run(&tree.top, ["ls-files", "--stage", "--debug", "-z"])?;
    let mut found = HashMap::new();
    let mut rest = &listed[..];
    while let Some(end) = rest.iter().position(|&byte| byte == 0) {
        let (entry, behind) = (&rest[..end], &rest[end + 1..]);
        // Five lines about the entry follow its name.
        let mut ends = behind.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(place, _)| place + 1);
        let Some(length) = ends.nth(4) else { break };
        let about = String::from_utf8_lossy(&behind[..length]);
        rest = &behind[length..];
        let Some((object, path)) = staged(entry) else { continue };
        if let Some((place, stat, mode)) = tracked.get(path)
            && is_unchanged(&about, stat, index)
        {
            // The contents of a link are its target, in the object and in the snapshot; the mode is taken from the
            // file.
            let link = entry.starts_with(b"120000");
            if link == (*mode == "120000") {
                found.insert(*place, (object, stat.size));
            }
        }
    }
    Ok(found)
}

/// `100644 OBJECT 0\tPATH`: the object and the path of an entry without a conflict.
fn staged(entry: &[u8]) -> Option<(String, &[u8])> {
    let tab = entry.iter().position(|&byte| byte == b'\t')?;
    let head = std::str::from_utf8(&entry[..tab]).ok()?;
    let mut words = head.split(' ');
    let (mode, object, side) = (words.next()?, words.next()?, words.next()?);
    (side == "0" && mode != "160000").then(|| (object.to_owned(), &entry[tab + 1..]))
}

/// Whether the index entry matches the file, and the file was not changed again while the index was written.
fn is_unchanged(about: &str, stat: &Stat, index: (i64, i64)) -> bool {
    let number = |name: &str| {
        let behind = about.split_once(name)?.1.trim_start();
        let end = behind.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(behind.len());
        Some((behind[..end].parse::<i64>().ok()?, &behind[end..]))
    };
    let time = |name: &str| {
        let (seconds, behind) = number(name)?;
        let text = behind.strip_prefix(':')?;
        let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
        Some((seconds, text[..end].parse::<i64>().ok()?))
    };
    // An index keeps the lower 32 bits of these numbers.
    let short = |number: u64| i64::from(number as u32);
    time("ctime:") == Some(stat.ctime)
        && time("mtime:") == Some(stat.mtime)
        && number("ino:").map(|(ino, _)| ino) == Some(short(stat.ino))
        && number("size:").map(|(size, _)| size) == Some(short(stat.size))
        && stat.mtime < index
}

/// The places of files that a filter may have changed on their way into the repository without changing their length.
fn filtered(tree: &WorkingTree, walked: &Walked, of: &HashMap<usize, (String, u64)>) -> Result<HashSet<usize>> {
    let mut asked = Vec::new();
    let mut places = Vec::new();
    for place in of.keys() {
        if let Some(seen) = walked.known.seen.get(*place) {
            asked.extend_from_slice(&seen.path);
            asked.push(0);
            places.push(*place);
        }
    }
    let words = ["check-attr", "--stdin", "-z", "filter", "working-tree-encoding"];
    let answers = done(&words.map(Into::into), tree.git.feed(&tree.top, words, &asked)?)?;
    let mut fields = fields(&answers);
    let mut found = HashSet::new();
    // For each path: the path, the attribute, its value; twice.
    for place in places {
        for _ in 0..2 {
            let (Some(_), Some(_), Some(value)) = (fields.next(), fields.next(), fields.next()) else {
                return Err(GitError::Failed { what: "check-attr".to_owned(), words: "it did not answer".to_owned() });
            };
            if value != b"unspecified" && value != b"unset" {
                found.insert(place);
            }
        }
    }
    Ok(found)
}
