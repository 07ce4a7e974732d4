//! Changing a file that belongs to an agent: the old file is kept beside it under another name, and the new file
//! replaces it in one step.
//!
//! The backup is made first, as a hard link where the file system allows it, so it costs nothing and cannot be
//! incomplete. The new file is written in full, synced, and given the old file's mode and owner before it is renamed.

use ostler_agents::repair::{Format, examine};
use ostler_sys::clock;
use ostler_transcript::{Branches, Examination, Finding};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A file that may be replaced.
pub struct Original {
    path: PathBuf,
    pub file: File,
    as_it_was: Metadata,
}

/// A transcript that was looked at.
pub struct Looked {
    original: Original,
    format: Format,
    pub examination: Examination,
}

/// What was written.
pub struct Written {
    /// Everything that was found on the way.
    pub findings: Vec<Finding>,
    pub backup: PathBuf,
    /// Conversations that were moved out of the file: their ids and their new files.
    pub moved: Vec<(String, PathBuf)>,
}

/// How often a repaired file is examined again. One fault can hide another, once or twice.
const ROUNDS: usize = 8;

impl Looked {
    pub fn at(path: &Path, format: Format, branches: Branches) -> io::Result<Looked> {
        let original = Original::open(path)?;
        let examination = examine(format, &original.file, branches)?;
        Ok(Looked { original, format, examination })
    }

    /// Puts the repaired file in the place of the old one, until there is nothing to repair.
    pub fn repair(self) -> io::Result<Written> {
        let backup = self.original.back_up()?;
        let mut moved = self.write()?;
        let mut findings = self.examination.findings;
        for _ in 0..ROUNDS {
            let again = Looked::at(&self.original.path, self.format, Branches::Join)?;
            if !again.examination.repairs() {
                break;
            }
            moved.extend(again.write()?);
            findings.extend(again.examination.findings);
        }
        Ok(Written { findings, backup, moved })
    }

    fn write(&self) -> io::Result<Vec<(String, PathBuf)>> {
        let original = &self.original;
        let mut moved = Vec::new();
        for branch in &self.examination.moved {
            let path = original.path.with_file_name(format!("{}.jsonl", branch.id));
            original.write_as(&path, |out| branch.write(&original.file, out))?;
            moved.push((branch.id.clone(), path));
        }
        original.replace(|out| self.examination.edits.apply(&original.file, out))?;
        Ok(moved)
    }
}

impl Original {
    pub fn open(path: &Path) -> io::Result<Original> {
        // Otherwise a symbolic link would be replaced, and not the file that it points to.
        let path = std::fs::canonicalize(path)?;
        let file = File::open(&path)?;
        let as_it_was = file.metadata()?;
        Ok(Original { path, file, as_it_was })
    }

    /// Replaces the file with what `write` writes.
    pub fn replace(&self, write: impl Fn(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
        self.write_as(&self.path, write)?;
        File::open(self.folder())?.sync_all()
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// Keeps the file under another name beside it, and returns that path.
    pub fn back_up(&self) -> io::Result<PathBuf> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let time = clock::now().strftime("%Y%m%dT%H%M%SZ").to_string();
        for number in 1.. {
            let more = if number == 1 { String::new() } else { format!("-{number}") };
            let backup = self.path.with_file_name(format!("{name}.ostler-{time}{more}.bak"));
            match std::fs::hard_link(&self.path, &backup) {
                Ok(()) => return Ok(backup),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(_) => {
                    std::fs::copy(&self.path, &backup)?;
                    File::open(&backup)?.sync_all()?;
                    return Ok(backup);
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn write_as(&self, path: &Path, write: impl Fn(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = path.with_file_name(format!(".{name}.ostler-{}", std::process::id()));
        let written = self.fill(&temporary, write).and_then(|()| std::fs::rename(&temporary, path));
        if written.is_err() {
            // A temporary file that cannot be removed is never read.
            let _ = std::fs::remove_file(&temporary);
        }
        written
    }

    fn fill(&self, temporary: &Path, write: impl Fn(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(temporary)?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        write(&mut out)?;
        out.flush()?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        let (old, new) = (&self.as_it_was, file.metadata()?);
        if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
            std::os::unix::fs::fchown(&file, Some(old.uid()), Some(old.gid()))?;
        }
        file.set_permissions(std::fs::Permissions::from_mode(old.mode() & 0o7777))?;
        file.sync_all()?;
        // A process that we could not see may have written to the file in the meantime.
        let now = std::fs::metadata(&self.path)?;
        let stamp = |of: &Metadata| (of.ino(), of.len(), of.mtime(), of.mtime_nsec());
        if stamp(&now) != stamp(old) {
            return Err(io::Error::other("it changed while it was read; another process is writing to it"));
        }
        Ok(())
    }
}
