//! What the copies of a transcript have and the transcript itself has lost: it was cut, deleted or replaced, and not by
//! the agent that writes it. What can be put back is put back; for the rest, the report names the command that restores
//! the copy.
//!
//! A transcript that was restored or repaired on purpose is the reference from then on, whatever older copies contain.

use super::file::Original;
use crate::error::{Error, Result};
use crate::quantities::to_the_millisecond;
use ostler_agents::repair::Format;
use ostler_core::id::SessionId;
use ostler_core::limits::{counted, size};
use ostler_store::checkpoints::{self, Checkpoint};
use ostler_store::folder::Folder;
use ostler_transcript::{Rejoined, missing_from};
use std::fs::File;
use std::io::{self, Read, Seek, Take};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A transcript of a session, and its copies.
pub struct Kept<'a> {
    pub folder: &'a Folder,
    pub id: SessionId,
    pub transcript: &'a Path,
    /// What is looked at and repaired: the transcript, or a copy of it to find out what would be done.
    pub file: &'a Path,
    pub format: Option<Format>,
}

/// Something that only a copy has.
pub struct Loss {
    pub words: String,
    copy: Checkpoint,
    way: Way,
}

enum Way {
    /// Nothing was written since it was cut.
    PutBack,
    /// More was written since, but the messages that it follows are missing.
    Join(Rejoined),
    /// It is not known how the copy and the transcript belong together.
    None,
}

impl Loss {
    pub fn can_be_repaired(&self) -> bool {
        match self.way {
            Way::PutBack | Way::Join(_) => true,
            Way::None => false,
        }
    }
}

impl Kept<'_> {
    /// Puts back what can be put back, and returns what cannot. `tell` is called for each repair, with the path of the
    /// backup.
    pub fn bring_back(&self, tell: &mut dyn FnMut(&str, &Path) -> Result<()>) -> Result<Option<Loss>> {
        // After each round the transcript contains one more copy completely.
        for _ in checkpoints::earlier(self.folder, self.transcript)? {
            let Some(loss) = self.look()? else {
                return Ok(None);
            };
            if !loss.can_be_repaired() {
                break;
            }
            let backup = self.repair(&loss)?;
            tell(&loss.words, &backup)?;
        }
        self.look()
    }

    /// A loss; one that can be repaired comes first.
    pub fn look(&self) -> Result<Option<Loss>> {
        let cannot = |error| self.cannot(error);
        let original = Original::open(self.file).map_err(cannot)?;
        let now = original.file.metadata().map_err(cannot)?.len();
        let mut missing = None;
        for copy in checkpoints::earlier(self.folder, self.transcript)? {
            if checkpoints::is_followed_by(self.folder, &copy, &original.file)? {
                continue;
            }
            let time = to_the_millisecond(copy.at);
            let held = checkpoints::copy(self.folder, &copy)?;
            if now < copy.length && begins_with(&held, &original.file, now).map_err(cannot)? {
                let (whole, now) = (size(copy.length), size(now));
                let words = format!("the transcript was cut from {whole} to {now}: restored from the copy of {time}");
                return Ok(Some(Loss { words, copy, way: Way::PutBack }));
            }
            if let Some(format) = self.format {
                let copied = from_start(&held, copy.length).map_err(cannot)?;
                let joined = format.rejoin(&original.file, copied).map_err(cannot)?;
                if let Some(joined) = joined {
                    let messages = counted(joined.messages as u64, "message", "messages");
                    let words = format!("{messages} were missing in the transcript: restored from the copy of {time}");
                    return Ok(Some(Loss { words, copy, way: Way::Join(joined) }));
                }
            }
            if missing.is_none() {
                let mut transcript = &original.file;
                transcript.rewind().map_err(cannot)?;
                let copied = from_start(&held, copy.length).map_err(cannot)?;
                let records = missing_from(transcript, copied).map_err(cannot)?;
                let words = format!(
                    "the transcript lacks {} of the copy of {time}; to restore that copy: ostler checkpoints restore {} {time}",
                    counted(records as u64, "record", "records"),
                    self.id
                );
                missing = (records > 0).then_some(Loss { words, copy, way: Way::None });
            }
        }
        Ok(missing)
    }

    fn repair(&self, loss: &Loss) -> Result<PathBuf> {
        match &loss.way {
            Way::PutBack => {
                let backup = checkpoints::restore_as(self.folder, &loss.copy, self.file)?;
                Ok(backup.unwrap_or_else(|| self.file.to_owned()))
            }
            Way::Join(joined) => {
                let copy = checkpoints::copy(self.folder, &loss.copy)?;
                let join = || -> io::Result<PathBuf> {
                    let original = Original::open(self.file)?;
                    let backup = original.back_up()?;
                    let length = loss.copy.length;
                    original.replace(|out| joined.write(&original.file, from_start(&copy, length)?, out))?;
                    Ok(backup)
                };
                join().map_err(|error| self.cannot(error))
            }
            Way::None => Err(Error::OnlyInCopy(loss.words.clone())),
        }
    }

    fn cannot(&self, error: io::Error) -> Error {
        Error::CannotCompare { path: self.transcript.to_owned(), error }
    }
}

fn from_start(mut copy: &File, length: u64) -> io::Result<Take<&File>> {
    copy.rewind()?;
    Ok(copy.take(length))
}

/// Whether the first bytes of two files are the same.
fn begins_with(copy: &File, transcript: &File, length: u64) -> io::Result<bool> {
    const PIECE: usize = 1 << 16;
    let (mut one, mut other) = (vec![0; PIECE], vec![0; PIECE]);
    let mut at = 0;
    while at < length {
        let count = usize::try_from(length - at).unwrap_or(PIECE).min(PIECE);
        copy.read_exact_at(&mut one[..count], at)?;
        transcript.read_exact_at(&mut other[..count], at)?;
        if one[..count] != other[..count] {
            return Ok(false);
        }
        at += count as u64;
    }
    Ok(true)
}
