//! Which files a working tree has, and which of them have changed since the last snapshot.
//!
//! A file counts as unchanged when everything that the kernel knows about it is the same. That is not certain for a
//! file that was changed in the moment in which it was looked at, so such a file is read again by the next snapshot.

use super::Bounds;
use super::ignored::Ignored;
use super::known::{Known, Seen, Tag, mark, mark_at, mark_of};
use super::listing::{Listed, Look, Stat, list};
use super::tree::WorkingTree;
use super::unusual::Noted;
use crate::Result;
use crate::git::fields;
use ostler_core::turns::{Skipped, Why};
use rustix::fs::FileType;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A file that changed within this many nanoseconds before it was looked at may have changed again without a new date,
/// because the clocks of file systems go in steps.
const UNSURE_NS: i128 = 100_000_000;

pub(super) fn skipped(path: &[u8], why: Why) -> Skipped {
    Skipped { path: String::from_utf8_lossy(path).into_owned(), why }
}

/// A path that is different from what the last snapshot has.
#[derive(Debug)]
pub(super) enum Change {
    /// A file or a link, to be read. `place`: its place in the list of what was seen.
    Read { place: usize, mode: &'static str, stat: Stat },
    /// A repository inside, at this commit.
    Repository { place: usize, commit: String },
    /// A path that was in the last snapshot and is gone.
    Gone { path: Vec<u8> },
}

/// What was found.
#[derive(Debug)]
pub(super) struct Walked {
    pub known: Known,
    pub changes: Vec<Change>,
    pub skipped: Vec<Skipped>,
    pub files: usize,
    pub newest_ns: i128,
    /// What git does not keep of it, as text.
    pub unusual: String,
}

/// Looks at every file of a tree that is not ignored.
pub(super) fn walk(tree: &WorkingTree, before: Option<&Known>, bounds: &Bounds) -> Result<Walked> {
    let index = std::fs::symlink_metadata(&tree.index).map_or(0, |stat| mark_at(&stat));
    let excludes: Vec<u8> = tree
        .excludes
        .iter()
        .flat_map(|path| std::fs::metadata(path).map_or(0, |stat| mark_at(&stat)).to_le_bytes())
        .collect();
    let known = Known { index, excludes: mark_of(&excludes), ..Known::default() };
    let again = before.is_none_or(|before| before.excludes != known.excludes);
    let tracked = match before {
        Some(before) if before.index == index => None,
        Some(_) | None => Some(Tracked::of(tree)?),
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    let mut walk = Walk {
        tree,
        bounds,
        ignored: Ignored::new(tree),
        ends: before.map(|before| ends(&before.seen)).unwrap_or_default(),
        before: before.map_or(&[], |before| &before.seen),
        stored: vec![false; before.map_or(0, |before| before.seen.len())],
        tracked,
        sure_ns: i128::try_from(now).unwrap_or(i128::MAX) - UNSURE_NS,
        walked: Walked {
            known,
            changes: Vec::new(),
            skipped: Vec::new(),
            files: 0,
            newest_ns: 0,
            unusual: String::new(),
        },
        noted: Noted::default(),
    };
    if let Some(listed) = list(&tree.top, b"")? {
        let all = 0..walk.before.len();
        walk.folder(b"", listed, again, all)?;
    }
    let Walk { mut walked, before, stored, noted, .. } = walk;
    walked.unusual = noted.text(&walked.known.seen);
    walked.known.unusual = mark_of(walked.unusual.as_bytes());
    let gone = before.iter().zip(stored).filter(|(seen, stored)| seen.tag.is_stored() && !stored);
    walked.changes.extend(gone.map(|(seen, _)| Change::Gone { path: seen.path.clone() }));
    Ok(walked)
}

/// For each entry, where the entries below it end. Entries are in the order in which they were seen: a folder, then
/// what is below it.
fn ends(seen: &[Seen]) -> Vec<usize> {
    let mut ends: Vec<usize> = (1..=seen.len()).collect();
    let mut open: Vec<usize> = Vec::new();
    for (place, one) in seen.iter().enumerate() {
        while let Some(&folder) = open.last() {
            let path = &seen[folder].path;
            if one.path.get(path.len()) == Some(&b'/') && one.path.starts_with(path) {
                break;
            }
            ends[folder] = place;
            open.pop();
        }
        if one.tag == Tag::Folder {
            open.push(place);
        }
    }
    for folder in open {
        ends[folder] = seen.len();
    }
    ends
}

/// What the person's index has.
struct Tracked {
    files: HashSet<Vec<u8>>,
    folders: HashSet<Vec<u8>>,
}

impl Tracked {
    fn of(tree: &WorkingTree) -> Result<Tracked> {
        let listed = tree.git.run(&tree.top, ["ls-files", "-z", "--cached"])?;
        let files: HashSet<Vec<u8>> = fields(&listed).map(<[u8]>::to_vec).collect();
        let mut folders = HashSet::new();
        for file in &files {
            let mut path = &file[..];
            while let Some(slash) = path.iter().rposition(|&byte| byte == b'/') {
                path = &path[..slash];
                if !folders.insert(path.to_vec()) {
                    break;
                }
            }
        }
        Ok(Tracked { files, folders })
    }
}

struct Walk<'a> {
    tree: &'a WorkingTree,
    bounds: &'a Bounds,
    ignored: Ignored<'a>,
    before: &'a [Seen],
    /// For each entry of `before`, where the entries below it end.
    ends: Vec<usize>,
    /// Which entries of `before` are stored now as well.
    stored: Vec<bool>,
    /// `None`: the index is unchanged, so what was tracked still is.
    tracked: Option<Tracked>,
    sure_ns: i128,
    walked: Walked,
    noted: Noted,
}

impl Walk<'_> {
    /// Where the last snapshot saw each of these names, among what it saw in their folder. Both lists are sorted.
    fn places(&self, names: &[(Vec<u8>, Look)], seen: Range<usize>) -> Vec<Option<usize>> {
        let mut place = seen.start;
        let find = |(path, _): &(Vec<u8>, Look)| {
            while place < seen.end && self.before[place].path < *path {
                place = self.ends[place];
            }
            (place < seen.end && self.before[place].path == *path).then_some(place)
        };
        names.iter().map(find).collect()
    }

    /// Everything in a folder. `again`: what is ignored may have changed. `seen`: what the last snapshot saw below it.
    fn folder(&mut self, folder: &[u8], listed: Listed, again: bool, seen: Range<usize>) -> Result<()> {
        self.bounds.check()?;
        // A deleted file changes only the date of its folder.
        self.walked.newest_ns = self.walked.newest_ns.max(listed.ctime_ns);
        let places = self.places(&listed.names, seen.clone());
        let again = again || self.rules_changed(folder, &listed, &places, seen);
        let named = listed.names;
        let mut tags: Vec<Option<Tag>> = named
            .iter()
            .zip(&places)
            .map(|((path, look), place)| self.tag_without_asking(path, look.is_dir(), *place, again))
            .collect();
        let unknown: Vec<&[u8]> =
            named.iter().zip(&tags).filter(|(_, tag)| tag.is_none()).map(|((path, _), _)| &path[..]).collect();
        let mut answers = self.ignored.ask(&unknown)?.into_iter();
        for ((_, look), tag) in named.iter().zip(&mut tags).filter(|(_, tag)| tag.is_none()) {
            *tag = Some(match (answers.next(), look.is_dir()) {
                (Some(true), _) => Tag::Ignored,
                (Some(false) | None, true) => Tag::Folder,
                (Some(false) | None, false) => Tag::Untracked,
            });
        }
        for (((path, look), place), tag) in named.into_iter().zip(places).zip(tags.into_iter().flatten()) {
            match tag {
                Tag::Folder => self.enter(path, place, again)?,
                Tag::Ignored => self.see(path, Tag::Ignored, mark(&look)),
                Tag::Tracked | Tag::Untracked | Tag::Skipped | Tag::Repository => self.file(path, &look, place, tag),
            }
        }
        Ok(())
    }

    /// Whether the rules about what is ignored have changed in this folder.
    fn rules_changed(&self, folder: &[u8], listed: &Listed, places: &[Option<usize>], seen: Range<usize>) -> bool {
        const RULES: &[u8] = b".gitignore";
        let is_rules = |path: &[u8]| {
            path.ends_with(RULES) && path.len() == folder.len() + RULES.len() + usize::from(!folder.is_empty())
        };
        match listed.names.iter().zip(places).find(|((path, _), _)| is_rules(path)) {
            Some(((_, look), place)) => place.map(|place| self.before[place].mark) != Some(mark(look)),
            // There were rules before.
            None => {
                let mut place = seen.start;
                while place < seen.end {
                    if is_rules(&self.before[place].path) {
                        return true;
                    }
                    place = self.ends[place];
                }
                false
            }
        }
    }

    /// What a path is, as far as that is known without asking git.
    fn tag_without_asking(&self, path: &[u8], is_dir: bool, place: Option<usize>, again: bool) -> Option<Tag> {
        let before = place.map(|place| self.before[place].tag);
        if is_dir {
            if self
                .tracked
                .as_ref()
                .is_some_and(|tracked| tracked.folders.contains(path) || tracked.files.contains(path))
            {
                return Some(Tag::Folder);
            }
            return match before {
                Some(Tag::Folder | Tag::Repository) if !again => Some(Tag::Folder),
                Some(Tag::Ignored) if !again => Some(Tag::Ignored),
                Some(_) | None => None,
            };
        }
        match (&self.tracked, before) {
            (Some(tracked), _) if tracked.files.contains(path) => Some(Tag::Tracked),
            (None, Some(Tag::Tracked)) => Some(Tag::Tracked),
            (_, Some(tag @ (Tag::Untracked | Tag::Ignored))) if !again => Some(tag),
            (_, Some(Tag::Skipped)) if !again => Some(Tag::Untracked),
            (_, Some(_) | None) => None,
        }
    }

    /// A folder, or a repository inside.
    fn enter(&mut self, path: Vec<u8>, place: Option<usize>, again: bool) -> Result<()> {
        let Some(listed) = list(&self.tree.top, &path)? else {
            self.walked.skipped.push(skipped(&path, Why::Unreadable));
            return Ok(());
        };
        if listed.has_git {
            let full = self.full(&path);
            if self.is_repository(&full)? {
                return self.repository(path, &full, place);
            }
        }
        if listed.is_empty() {
            self.noted.empty_folders.push(path.clone());
        }
        let seen = place.map_or(0..0, |place| place + 1..self.ends[place]);
        self.see(path.clone(), Tag::Folder, 0);
        self.folder(&path, listed, again, seen)
    }

    fn is_repository(&self, folder: &Path) -> Result<bool> {
        let top = self.tree.git.path(folder, ["rev-parse", "--show-toplevel"])?;
        let real = |path: PathBuf| std::fs::canonicalize(path).ok();
        Ok(top.and_then(real) == real(folder.to_owned()))
    }

    fn repository(&mut self, path: Vec<u8>, folder: &Path, before: Option<usize>) -> Result<()> {
        let Some(commit) = self.tree.git.line(folder, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])? else {
            self.walked.skipped.push(skipped(&path, Why::NoCommit));
            self.see(path, Tag::Skipped, 0);
            return Ok(());
        };
        let mark = mark_of(commit.as_bytes());
        let same = before.is_some_and(|place| {
            self.stored[place] = true;
            self.before[place].tag == Tag::Repository && self.before[place].mark == mark
        });
        if !same {
            let place = self.walked.known.seen.len();
            self.walked.changes.push(Change::Repository { place, commit });
        }
        self.see(path, Tag::Repository, mark);
        Ok(())
    }

    /// A file, a link, or something that cannot be stored.
    fn file(&mut self, path: Vec<u8>, look: &Look, before: Option<usize>, tag: Tag) {
        let now = mark(look);
        if let Some(why) = left_out(look, self.bounds.largest_file) {
            self.walked.skipped.push(skipped(&path, why));
            return self.see(path, Tag::Skipped, now);
        }
        let tag = if tag == Tag::Tracked { Tag::Tracked } else { Tag::Untracked };
        self.walked.files += 1;
        self.walked.newest_ns = self.walked.newest_ns.max(look.stat.ctime_ns());
        let place = self.walked.known.seen.len();
        if look.is_file() {
            self.noted.files.push((place, look.mode & 0o777));
        }
        let same = before.is_some_and(|place| {
            self.stored[place] = true;
            let seen = &self.before[place];
            matches!(seen.tag, Tag::Tracked | Tag::Untracked) && seen.mark == now
        });
        if !same {
            let mode = match (look.is_file(), look.mode & 0o100) {
                (false, _) => "120000",
                (true, 0) => "100644",
                (true, _) => "100755",
            };
            self.walked.changes.push(Change::Read { place, mode, stat: look.stat });
        }
        self.see(path, tag, if look.stat.changed_ns() < self.sure_ns { now } else { 0 });
    }

    fn see(&mut self, path: Vec<u8>, tag: Tag, mark: u64) {
        self.walked.known.seen.push(Seen { path, tag, mark });
    }

    fn full(&self, path: &[u8]) -> PathBuf {
        self.tree.top.join(OsStr::from_bytes(path))
    }
}

/// Why something cannot be stored.
fn left_out(look: &Look, largest: u64) -> Option<Why> {
    match look.kind() {
        FileType::RegularFile => (look.stat.size > largest).then_some(Why::TooLarge),
        FileType::Symlink => None,
        FileType::Socket => Some(Why::Socket),
        FileType::Fifo => Some(Why::Pipe),
        FileType::Directory | FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => {
            Some(Why::Device)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_a_folder_ends_where_another_name_begins() {
        let seen: Vec<Seen> = [
            ("a", Tag::Folder),
            ("a/b", Tag::Folder),
            ("a/b/c", Tag::Tracked),
            ("a/d", Tag::Tracked),
            ("a-b", Tag::Folder),
            ("ab", Tag::Tracked),
            ("z", Tag::Folder),
        ]
        .map(|(path, tag)| Seen { path: path.as_bytes().to_vec(), tag, mark: 0 })
        .into();
        assert_eq!(ends(&seen), [4, 3, 3, 4, 5, 6, 7]);
    }
}
