//! A prompt that is in a file.

use ostler_core::MESSAGE_LIMIT;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The bytes of the file; `None` when they are more than a message may have. No more than that is read.
pub fn read_prompt(file: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(MESSAGE_LIMIT as u64 + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() <= MESSAGE_LIMIT).then_some(bytes))
}
