//! Damaged transcripts: which agent wrote a file, what is wrong with it, and the changes that repair it. Pure over
//! streams; the parts that all formats share are in [`ostler_transcript`].

use crate::Agent;
use ostler_transcript::lines::Lines;
use ostler_transcript::{Branches, Examination, Rejoined};
use serde_json::Value;
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// A transcript that is read, from any source.
pub trait Source: Read + Seek {}

impl<T: Read + Seek> Source for T {}

/// An agent whose transcripts may be repairable.
pub trait Repair {
    /// How its transcripts are repaired; `None` when their format is not known.
    fn repairs(&self) -> Option<&'static dyn Repairs> {
        None
    }
}

/// What is known about the transcripts of one agent.
pub trait Repairs: Sync {
    /// Examines a transcript.
    ///
    /// # Errors
    /// When it cannot be read.
    fn examine(&self, source: &mut dyn Source, branches: Branches) -> io::Result<Examination>;

    /// Whether only this agent writes such a record.
    fn is_record(&self, record: &Value) -> bool;

    /// Whether the agent would give a transcript this name, in this place. An empty file has no records, so only its
    /// name decides.
    fn is_name(&self, file: &Path, empty: bool) -> bool;

    /// How to join a transcript with an earlier copy of itself, if it continues messages that only the copy has.
    ///
    /// # Errors
    /// When one of the two cannot be read.
    fn rejoin(&self, transcript: &mut dyn Source, copy: &mut dyn Read) -> io::Result<Option<Rejoined>> {
        let _ = (transcript, copy);
        Ok(None)
    }
}

/// The format of a transcript: the agent that writes it.
#[derive(Clone, Copy)]
pub struct Format {
    agent: &'static dyn Agent,
    repairs: &'static dyn Repairs,
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.agent())
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Format) -> bool {
        self.agent() == other.agent()
    }
}

impl Format {
    /// All known formats.
    pub fn all() -> impl Iterator<Item = Format> {
        crate::all().filter_map(|agent| Some(Format { agent, repairs: agent.repairs()? }))
    }

    #[must_use]
    pub fn of_agent(name: &str) -> Option<Format> {
        Format::all().find(|format| format.agent() == name)
    }

    /// The name of the agent.
    #[must_use]
    pub fn agent(self) -> &'static str {
        self.agent.name()
    }

    /// Detects the format of a file by its first records; `None` when they belong to no agent.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn detect<R: Read + Seek>(mut source: R) -> io::Result<Option<Format>> {
        const ENOUGH: usize = 50;
        source.seek(SeekFrom::Start(0))?;
        let mut lines = Lines::new(&mut source);
        for _ in 0..ENOUGH {
            let Some(line) = lines.next()? else { break };
            let record: Value = line.bytes.and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default();
            if let Some(format) = Format::all().find(|format| format.repairs.is_record(&record)) {
                return Ok(Some(format));
            }
        }
        Ok(None)
    }

    /// Detects the format of a file by its name and its place; that of an empty file by its name.
    #[must_use]
    pub fn of_name(file: &Path, empty: bool) -> Option<Format> {
        Format::all().find(|format| format.repairs.is_name(file, empty))
    }

    /// See [`Repairs::rejoin`].
    ///
    /// # Errors
    /// When one of the two cannot be read.
    pub fn rejoin(self, mut transcript: impl Read + Seek, mut copy: impl Read) -> io::Result<Option<Rejoined>> {
        self.repairs.rejoin(&mut transcript, &mut copy)
    }
}

/// Examines a transcript.
///
/// # Errors
/// When it cannot be read.
pub fn examine<R: Read + Seek>(format: Format, mut source: R, branches: Branches) -> io::Result<Examination> {
    format.repairs.examine(&mut source, branches)
}
