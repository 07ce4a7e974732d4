//! The changes of a file, as replaced ranges, and the copying that makes the changed file.

use std::io::{self, Read, Seek, SeekFrom, Write};

/// One range of the old file and its replacement in the new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub from: u64,
    pub to: u64,
    pub with: Vec<u8>,
}

/// Changes that do not overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    list: Vec<Edit>,
}

impl Edits {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn replace(&mut self, from: u64, to: u64, with: impl Into<Vec<u8>>) {
        self.list.push(Edit { from, to, with: with.into() });
    }

    pub fn cut(&mut self, from: u64, to: u64) {
        self.replace(from, to, Vec::new());
    }

    /// Inserts bytes before this position. Several insertions at one position keep their order.
    pub fn insert(&mut self, at: u64, bytes: impl Into<Vec<u8>>) {
        self.replace(at, at, bytes);
    }

    /// Adds other edits, after those at the same position.
    pub fn then(&mut self, others: Edits) {
        self.list.extend(others.list);
    }

    /// Writes the changed file.
    ///
    /// # Errors
    /// When one of the two cannot be read or written.
    pub fn apply(&self, mut source: impl Read + Seek, mut target: impl Write) -> io::Result<()> {
        let mut ordered: Vec<&Edit> = self.list.iter().collect();
        ordered.sort_by_key(|edit| (edit.from, edit.to));
        source.seek(SeekFrom::Start(0))?;
        let mut position = 0;
        for edit in ordered {
            // Overlapping edits would be a bug; then the first counts, and no byte is written twice.
            let from = edit.from.max(position);
            io::copy(&mut source.by_ref().take(from - position), &mut target)?;
            target.write_all(&edit.with)?;
            position = edit.to.max(from);
            source.seek(SeekFrom::Start(position))?;
        }
        io::copy(&mut source, &mut target)?;
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_replaced_and_all_else_is_as_it_was() {
        let mut edits = Edits::default();
        edits.insert(10, "!");
        edits.cut(2, 4);
        edits.replace(5, 6, "XYZ");
        edits.insert(0, "<");
        edits.insert(0, "=");
        let mut out = Vec::new();
        edits.apply(io::Cursor::new(b"0123456789"), &mut out).unwrap();
        assert_eq!(out, b"<=014XYZ6789!");
    }
}
