//! A file that may be written to at the same time, read piece by piece, never in memory as a whole. Reading stops at
//! the end that the file had when it was opened. What is written meanwhile is for the next time: otherwise a reader
//! would never finish while a program writes without end.

use crate::StoreError;
use ostler_sys::dir::Dir;
use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// How much is read at once.
const PIECE: usize = 256 * 1024;

pub struct Pieces {
    file: File,
    name: String,
    end: u64,
    buffer: Vec<u8>,
}

impl Pieces {
    /// From `position` to the present end. `None`: there is no such file.
    pub fn open(dir: &Dir, name: &str, position: u64) -> Result<Option<Pieces>, StoreError> {
        let file = match dir.file(name, OFlags::RDONLY) {
            Ok(file) => File::from(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io(name)(error)),
        };
        let end = file.metadata().map_err(StoreError::io(name))?.len();
        let length = usize::try_from(end.saturating_sub(position)).unwrap_or(usize::MAX).clamp(1, PIECE);
        Ok(Some(Pieces { file, name: name.to_owned(), end, buffer: vec![0; length] }))
    }

    /// The piece at `position`, which is then moved after it; `None` at the end.
    pub fn next(&mut self, position: &mut u64) -> Result<Option<&[u8]>, StoreError> {
        while *position < self.end {
            match self.file.read_at(&mut self.buffer, *position) {
                Ok(0) => return Ok(None),
                Ok(count) => {
                    *position += count as u64;
                    return Ok(Some(&self.buffer[..count]));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(StoreError::io(self.name.as_str())(error)),
            }
        }
        Ok(None)
    }

    /// The position up to which it will be read.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The piece that was read last, which had so many bytes.
    pub fn last(&self, length: usize) -> &[u8] {
        &self.buffer[..length]
    }

    /// Whether the file has a hole at this position.
    pub fn has_hole_at(&self, position: u64) -> Result<bool, StoreError> {
        ostler_sys::dir::is_hole(&self.file, position).map_err(StoreError::io(self.name.as_str()))
    }
}

/// Reads a file of a run from `position` to its present end, in pieces.
pub fn read_from(run: &Dir, name: &str, position: &mut u64, mut each: impl FnMut(&[u8])) -> Result<(), StoreError> {
    if let Some(mut pieces) = Pieces::open(run, name, *position)? {
        while let Some(bytes) = pieces.next(position)? {
            each(bytes);
        }
    }
    Ok(())
}
