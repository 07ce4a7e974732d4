//! Changing names without overwriting anything.

use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::io;
use std::path::Path;

/// Exchanges the names of two files.
pub fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

/// Gives a file a new name, which must not exist.
pub fn no_replace(from: &Path, to: &Path) -> io::Result<()> {
    Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}
