//! What could not be read. It is skipped, so that one file does not hide all others; but a search that could not look
//! everywhere reports this.

use rustix::io::Errno;
use std::collections::HashSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Files and folders of conversations that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// How many.
    pub count: u64,
    /// One of them.
    pub path: PathBuf,
    /// Why that one could not be read.
    pub why: String,
}

/// Collects files and folders that could not be read, each once.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    paths: HashSet<PathBuf>,
    first: Option<(PathBuf, String)>,
}

impl Collected {
    pub fn add(&mut self, path: &Path, why: &dyn Display) {
        self.paths.insert(path.to_owned());
        self.first.get_or_insert_with(|| (path.to_owned(), why.to_string()));
    }

    /// Returns what was opened, or records the error. A path that is gone, or is not a transcript, does not count as
    /// unread.
    pub fn note<T>(&mut self, path: &str, opened: Result<T, Errno>) -> Option<T> {
        match opened {
            Ok(opened) => Some(opened),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO) => None,
            Err(error) => {
                self.add(Path::new(path), &error);
                None
            }
        }
    }

    pub fn merge(&mut self, other: Collected) {
        self.paths.extend(other.paths);
        self.first = self.first.take().or(other.first);
    }

    pub fn into_unread(self) -> Option<Unread> {
        let (path, why) = self.first?;
        Some(Unread { count: self.paths.len() as u64, path, why })
    }
}
