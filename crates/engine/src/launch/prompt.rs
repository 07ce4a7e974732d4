//! A prompt that is in a file.

use ostler_core::MESSAGE_LIMIT;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The bytes of the file; `None` when they are more than a message may have. No more than that is read.
pub fn read_prompt(file: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(MESSAGE_LIMIT as u64 + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() <= MESSAGE_LIMIT).then_some(bytes))
}

/// The Markdown files in a folder, in the order of their names; none when there is no such folder.
#[must_use]
pub fn prompt_files(folder: &Path) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    files.sort();
    files
}
