//! The differences between two snapshots.

use super::store::TurnStore;
use crate::git::fields;
use crate::{GitError, Result};

/// What a path is in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    File,
    /// An executable file.
    Program,
    Link,
    /// A repository inside the tree. A snapshot has only its commit.
    Repository,
}

impl FileKind {
    fn of(mode: &str) -> Option<FileKind> {
        match mode {
            "100644" => Some(FileKind::File),
            "100755" => Some(FileKind::Program),
            "120000" => Some(FileKind::Link),
            "160000" => Some(FileKind::Repository),
            _ => None,
        }
    }
}

/// A path that is different in two snapshots; `None`: one of them does not have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Below the top of the tree.
    pub path: Vec<u8>,
    pub before: Option<(FileKind, String)>,
    pub after: Option<(FileKind, String)>,
}

impl TurnStore {
    /// What is different in two snapshots.
    pub fn differences(&self, from: &str, to: &str) -> Result<Vec<Difference>> {
        let words = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", from, to];
        let listed = self.git.run(&self.folder, words)?;
        let mut fields = fields(&listed);
        let mut found = Vec::new();
        while let (Some(about), Some(path)) = (fields.next(), fields.next()) {
            let odd = || GitError::Failed { what: "diff-tree".to_owned(), words: "it did not print paths".to_owned() };
            let about = std::str::from_utf8(about).ok().and_then(|about| about.strip_prefix(':')).ok_or_else(odd)?;
            let words: Vec<&str> = about.split(' ').collect();
            let [before, after, old, new, _] = words[..] else { return Err(odd()) };
            let side = |mode: &str, object: &str| FileKind::of(mode).map(|kind| (kind, object.to_owned()));
            found.push(Difference { path: path.to_vec(), before: side(before, old), after: side(after, new) });
        }
        Ok(found)
    }
}
