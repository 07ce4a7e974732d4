//! A file that exists in memory only: hands text of any size to a process that is about to be started.

use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Seek, Write};

/// A file with these bytes, to be read from its beginning. It is not inherited by accident.
pub fn with(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("ostler", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}
