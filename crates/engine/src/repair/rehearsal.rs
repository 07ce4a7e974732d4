//! A copy of a transcript that is repaired instead of it, to find out what a repair would do. Examining alone is not
//! enough: one fault can hide another, and what is put back from a copy is no longer a fault.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The copy, in a folder of its own that is deleted with it.
pub struct Rehearsal {
    folder: PathBuf,
    file: PathBuf,
}

impl Rehearsal {
    pub fn of(transcript: &Path) -> io::Result<Rehearsal> {
        let folder = std::env::temp_dir().join(format!("ostler-{}", uuid::Uuid::new_v4()));
        // A conversation is private, and so is its copy.
        std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let file = folder.join(transcript.file_name().unwrap_or_default());
        let rehearsal = Rehearsal { folder, file };
        std::fs::copy(transcript, &rehearsal.file)?;
        Ok(rehearsal)
    }

    pub fn file(&self) -> &Path {
        &self.file
    }
}

impl Drop for Rehearsal {
    fn drop(&mut self) {
        // A copy that cannot be removed stays in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
