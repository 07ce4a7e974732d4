//! What has changed, as a commit in our store. One git process gets the changes as a stream and writes them as one pack
//! that has only the changed files and their folders. It reads no file of the tree, so no filter and no hook is run.

use super::Bounds;
use super::first::Stored;
use super::known::Known;
use super::listing::Stat;
use super::store::{REFS, TurnStore};
use super::tree::WorkingTree;
use super::unusual::quoted;
use super::walk::{Change, Walked, skipped};
use crate::git::complaint;
use crate::{GitError, Result};
use ostler_core::turns::{Skipped, Why};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A file that changes while it is read is read this often.
const TRIES: usize = 3;

/// What was written.
pub(super) struct Written {
    pub tree: String,
    pub commit: String,
    pub changed: usize,
    pub skipped: Vec<Skipped>,
    /// Places of files that changed while they were read.
    pub unsure: Vec<usize>,
}

impl TurnStore {
    /// Writes a snapshot under this name.
    pub(super) fn write(
        &self,
        tree: &WorkingTree,
        name: &str,
        before: Option<&Known>,
        walked: &Walked,
        stored: &Stored,
        bounds: &Bounds,
    ) -> Result<Written> {
        let same = |before: &&Known| walked.changes.is_empty() && before.unusual == walked.known.unusual;
        if let Some(before) = before.filter(same) {
            self.git.run(&self.folder, ["update-ref", &format!("{REFS}/{name}"), &before.commit])?;
            let (tree, commit) = (before.tree.clone(), before.commit.clone());
            return Ok(Written { tree, commit, changed: 0, skipped: Vec::new(), unsure: Vec::new() });
        }
        let marks = self.folder.join("tmp_marks");
        let mut export = std::ffi::OsString::from("--export-marks=");
        export.push(&marks);
        let words = ["-c", "fastimport.unpackLimit=0", "fast-import", "--quiet", "--force", "--done"];
        let words = words.iter().map(std::ffi::OsString::from).chain([export]);
        let mut process = self.git.start(&self.folder, words)?;
        let Some(input) = process.stdin.take() else { return Err(failed("it has no input")) };
        let mut stream = Stream {
            to: BufWriter::with_capacity(1 << 18, input),
            tree,
            bounds,
            skipped: Vec::new(),
            unsure: Vec::new(),
        };
        let sent = stream.send(name, before, walked, stored);
        let Stream { to, skipped, unsure, .. } = stream;
        // Without the final `done` git writes nothing.
        drop(to);
        let output = process.wait_with_output().map_err(|error| failed(&error.to_string()))?;
        if let Err(error) = sent {
            // Git's own error message says more than the error that it has closed its input.
            return Err(if output.status.success() || !is_pipe(&error) { error } else { failed(&complaint(&output)) });
        }
        if !output.status.success() {
            return Err(failed(&complaint(&output)));
        }
        let said = String::from_utf8_lossy(&output.stdout);
        let tree = said.split_whitespace().nth(2).ok_or_else(|| failed("it did not name its tree"))?;
        let text = std::fs::read_to_string(&marks).map_err(GitError::io(&marks))?;
        let commit =
            text.lines().find_map(|line| line.strip_prefix(":1 ")).ok_or_else(|| failed("it made no commit"))?;
        let _ = std::fs::remove_file(&marks);
        Ok(Written { tree: tree.to_owned(), commit: commit.to_owned(), changed: walked.changes.len(), skipped, unsure })
    }
}

fn is_pipe(error: &GitError) -> bool {
    matches!(error, GitError::Io { error, .. } if error.kind() == io::ErrorKind::BrokenPipe)
}

fn failed(words: &str) -> GitError {
    GitError::Failed { what: "fast-import".to_owned(), words: words.to_owned() }
}

struct Stream<'a, W: Write> {
    to: W,
    tree: &'a WorkingTree,
    bounds: &'a Bounds,
    skipped: Vec<Skipped>,
    unsure: Vec<usize>,
}

/// The contents of a file.
enum Contents {
    Bytes { bytes: Vec<u8>, sure: bool },
    Gone,
    Unreadable,
}

impl<W: Write> Stream<'_, W> {
    fn send(&mut self, name: &str, before: Option<&Known>, walked: &Walked, stored: &Stored) -> Result<()> {
        let pipe = GitError::io("fast-import");
        let mut begin = || -> io::Result<()> {
            let to = &mut self.to;
            writeln!(to, "commit {REFS}/{name}\nmark :1\ncommitter ostler <ostler@localhost> 0 +0000")?;
            writeln!(to, "data {}\n{}", walked.unusual.len(), walked.unusual)?;
            match before {
                // Without a parent: a parent would keep every older snapshot for as long as this one.
                Some(before) => writeln!(to, "M 040000 {} \"\"", before.tree),
                None => writeln!(to, "deleteall"),
            }
        };
        begin().map_err(pipe)?;
        for change in &walked.changes {
            if let Change::Gone { path } = change {
                self.put(&[b"D ", quoted(path).as_bytes(), b"\n"])?;
            }
        }
        for change in &walked.changes {
            match change {
                Change::Gone { .. } => {}
                Change::Repository { place, commit } => {
                    let path = path_at(walked, *place);
                    self.put(&[b"M 160000 ", commit.as_bytes(), b" ", quoted(path).as_bytes(), b"\n"])?;
                }
                Change::Read { place, mode, stat } => {
                    let path = path_at(walked, *place);
                    match stored.object(*place) {
                        Some(object) => {
                            self.put(&[
                                b"M ",
                                mode.as_bytes(),
                                b" ",
                                object.as_bytes(),
                                b" ",
                                quoted(path).as_bytes(),
                                b"\n",
                            ])?;
                        }
                        None => self.send_file(path, *place, mode, stat)?,
                    }
                }
            }
        }
        // `ls` prints the name of the tree.
        self.put(&[b"ls \"\"\ndone\n"])?;
        self.to.flush().map_err(GitError::io("fast-import"))
    }

    fn put(&mut self, parts: &[&[u8]]) -> Result<()> {
        parts.iter().try_for_each(|part| self.to.write_all(part)).map_err(GitError::io("fast-import"))
    }

    fn send_file(&mut self, path: &[u8], place: usize, mode: &str, stat: &Stat) -> Result<()> {
        self.bounds.check()?;
        let full = self.tree.top.join(OsStr::from_bytes(path));
        let contents = if mode == "120000" { link_contents(&full) } else { contents(&full, stat, self.bounds) };
        match contents.map_err(GitError::io(&full))? {
            Contents::Bytes { bytes, sure } => {
                if !sure {
                    self.unsure.push(place);
                }
                let length = bytes.len().to_string();
                self.put(&[
                    b"M ",
                    mode.as_bytes(),
                    b" inline ",
                    quoted(path).as_bytes(),
                    b"\ndata ",
                    length.as_bytes(),
                    b"\n",
                ])?;
                self.put(&[&bytes, b"\n"])
            }
            Contents::Gone => {
                self.unsure.push(place);
                self.put(&[b"D ", quoted(path).as_bytes(), b"\n"])
            }
            Contents::Unreadable => {
                self.unsure.push(place);
                self.skipped.push(skipped(path, Why::Unreadable));
                self.put(&[b"D ", quoted(path).as_bytes(), b"\n"])
            }
        }
    }
}

fn path_at(walked: &Walked, place: usize) -> &[u8] {
    walked.known.seen.get(place).map_or(&[], |seen| &seen.path)
}

/// Reads a file that other processes may be writing, again and again until it did not change during a read, at most
/// [`TRIES`] times.
fn contents(path: &Path, expected: &Stat, bounds: &Bounds) -> io::Result<Contents> {
    let mut read = (Vec::new(), false);
    for _ in 0..TRIES {
        let opened = std::os::unix::fs::OpenOptionsExt::custom_flags(File::options().read(true), NO_LINK).open(path);
        let mut file = match opened {
            Ok(file) => file,
            Err(error) => return passed_over(error),
        };
        let before = file.metadata()?;
        if !before.is_file() {
            return Ok(Contents::Gone);
        }
        let mut bytes = Vec::with_capacity(usize::try_from(before.len()).unwrap_or(0));
        match (&mut file).take(bounds.largest_file.saturating_mul(2)).read_to_end(&mut bytes) {
            Ok(_) => {}
            Err(error) => return passed_over(error),
        }
        let after = file.metadata()?;
        let same = Stat::of(&before) == Stat::of(&after) && bytes.len() as u64 == after.len();
        read = (bytes, same && Stat::of(&after) == *expected);
        if same {
            break;
        }
    }
    Ok(Contents::Bytes { bytes: read.0, sure: read.1 })
}

/// A link in the place of a file is not followed, and opening a pipe does not wait (`O_NOFOLLOW | O_NONBLOCK`).
const NO_LINK: i32 = ostler_sys::descriptors::NO_FOLLOW_NO_WAIT;

fn link_contents(path: &Path) -> io::Result<Contents> {
    match std::fs::read_link(path) {
        Ok(target) => Ok(Contents::Bytes { bytes: target.as_os_str().as_bytes().to_vec(), sure: true }),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(Contents::Gone),
        Err(error) => passed_over(error),
    }
}

fn passed_over(error: io::Error) -> io::Result<Contents> {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(Contents::Gone),
        io::ErrorKind::PermissionDenied => Ok(Contents::Unreadable),
        _ if ostler_sys::descriptors::met_link(&error) => Ok(Contents::Gone),
        _ => Err(error),
    }
}
