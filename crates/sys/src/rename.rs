//! Names that change without a moment in which something is overwritten.

use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::io;
use std::path::Path;

/// Two files change places.
pub fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

/// A file gets a name that no other has.
pub fn no_replace(from: &Path, to: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}
