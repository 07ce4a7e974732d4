//! Repairing a transcript on request: of a session, of a file, or of a conversation by the agent's own id.

use super::file::Looked;
use super::lost::Kept;
use super::rehearsal::Rehearsal;
use super::target::Target;
use super::{changes, note, owner, split_off};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::quiesced::{NotQuiesced, Quiesced};
use crate::session_ref::SessionRef;
use ostler_core::id::SessionId;
use ostler_core::view::View;
use ostler_store::checkpoints;
use ostler_store::folder::Folder;
use ostler_sys::clock;
pub use ostler_transcript::Remedy;
use ostler_transcript::{Branches, Finding};
use std::io;
use std::path::{Path, PathBuf};

/// How to repair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// Two conversations in one file become two files; without this they are joined.
    pub split: bool,
    /// Only find out what would be done.
    pub dry_run: bool,
}

/// Something that was found or done, in the order in which it happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// What was lost is put back from a copy. `backup`: the file as it was; `None` when nothing was changed yet.
    FromCopy {
        /// What was lost, and which copy has it.
        words: String,
        /// The path of the backup.
        backup: Option<PathBuf>,
    },
    /// A copy has something that the transcript lacks and that cannot be put back.
    Lacks {
        /// What it is, and how to get that copy.
        words: String,
    },
    /// Something was found in the transcript.
    Found {
        /// What is wrong.
        words: String,
        /// What can be done about it.
        remedy: Remedy,
        /// Whether it has been done.
        repaired: bool,
    },
    /// The path of the backup, which has the file as it was.
    Backup(PathBuf),
    /// The other one of two conversations that were in one file.
    SplitOff {
        /// Its transcript.
        file: PathBuf,
        /// The agent's id of it.
        native_id: String,
        /// The agent of the conversation.
        agent: &'static str,
        /// The session that was made for it, when the first one belongs to a session.
        session: Option<SessionId>,
    },
}

/// The result of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// The transcript.
    pub file: PathBuf,
    /// How many messages it has.
    pub messages: usize,
    /// How it ended.
    pub end: End,
}

/// How a repair ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing was wrong.
    NothingToRepair,
    /// Everything that was lost was put back from a copy.
    PutBack,
    /// Something can be repaired, and was not, because of `dry_run`.
    NotYet,
    /// Something cannot be repaired, and nothing was changed.
    CannotBeRepaired,
    /// It was changed. `left`: something cannot be repaired.
    Changed {
        /// Whether something is left that cannot be repaired.
        left: bool,
    },
}

/// Whether something that only the copies of a session's transcript contain is to be put back, or was put back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lost {
    Nothing,
    ToPutBack,
    PutBack,
}

impl Engine {
    /// Repairs the transcript that a word names. Each step is reported when it is done.
    pub fn repair(&self, word: &str, how: Repair, tell: &mut dyn FnMut(Step)) -> Result<Repaired> {
        let target = Target::find(self, word)?;
        if let Some(id) = &target.native_id
            && let Some(owner) = owner(self, target.format, id)?
        {
            let program = owner.command.first().map(|program| program.rsplit('/').next().unwrap_or(program).to_owned());
            return Err(Error::UsedBy { pid: owner.pid, terminal: owner.terminal, program });
        }
        // No process may begin the session's next run meanwhile.
        let quiesced = match &target.session {
            Some(view) if !how.dry_run => Some(self.quiesce(view)?),
            Some(view) if view.alive => return Err(runs(view)),
            Some(_) | None => None,
        };
        let cannot = |error: io::Error| Error::NotRepaired { path: target.file.clone(), error };
        let branches = if how.split { Branches::Split } else { Branches::Join };
        let rehearsal = how.dry_run.then(|| Rehearsal::of(&target.file)).transpose().map_err(cannot)?;
        let file = rehearsal.as_ref().map_or(target.file.as_path(), Rehearsal::file);
        let lost = match &target.session {
            Some(view) => self.put_back(view, &target, file, how.dry_run, tell)?,
            None => Lost::Nothing,
        };
        let looked = Looked::at(file, target.format, branches).map_err(cannot)?;
        let left = looked.examination.cannot_be_repaired();
        let messages = looked.examination.messages;
        let done = |messages, end| Repaired { file: target.file.clone(), messages, end };
        let not_yet = || -> Result<Repaired> {
            let as_it_is = Looked::at(&target.file, target.format, branches).map_err(cannot)?;
            Ok(done(as_it_is.examination.messages, End::NotYet))
        };
        if !looked.examination.repairs() {
            report(&looked.examination.findings, false, tell);
            return match (lost, left) {
                (Lost::ToPutBack, _) => not_yet(),
                (Lost::Nothing | Lost::PutBack, true) => Ok(done(messages, End::CannotBeRepaired)),
                (Lost::PutBack, false) => Ok(done(messages, End::PutBack)),
                (Lost::Nothing, false) => Ok(done(messages, End::NothingToRepair)),
            };
        }
        let written = looked.repair().map_err(cannot)?;
        report(&written.findings, !how.dry_run, tell);
        if how.dry_run {
            return not_yet();
        }
        if let (Some(view), Some(_)) = (&target.session, &quiesced) {
            let folder = self.select(view.id.as_str())?.open()?;
            note(&folder, view.run, changes(&written.findings), &written.backup)?;
            settle(&folder, &target.file)?;
        }
        tell(Step::Backup(written.backup));
        for (native_id, path) in written.moved {
            tell(self.split_off(&target, native_id, path)?);
        }
        Ok(done(messages, End::Changed { left }))
    }

    fn quiesce(&self, view: &View) -> Result<Quiesced> {
        Quiesced::take(&self.select(view.id.as_str())?).map_err(|not| match not {
            NotQuiesced::Runs => runs(view),
            NotQuiesced::Failed(error) => error,
        })
    }

    fn put_back(
        &self,
        view: &View,
        target: &Target,
        file: &Path,
        dry_run: bool,
        tell: &mut dyn FnMut(Step),
    ) -> Result<Lost> {
        let folder = self.select(view.id.as_str())?.open()?;
        let kept = Kept { folder: &folder, id: view.id, transcript: &target.file, file, format: Some(target.format) };
        let mut lost = Lost::Nothing;
        let left = kept.bring_back(&mut |words, backup| {
            lost = if dry_run { Lost::ToPutBack } else { Lost::PutBack };
            tell(Step::FromCopy { words: words.to_owned(), backup: (!dry_run).then(|| backup.to_owned()) });
            if dry_run { Ok(()) } else { note(&folder, view.run, vec![words.to_owned()], backup) }
        })?;
        if let Some(loss) = left {
            tell(Step::Lacks { words: loss.words });
        }
        if lost == Lost::PutBack {
            settle(&folder, &target.file)?;
        }
        Ok(lost)
    }

    /// Repairs the other conversation, which may be damaged at its end, too, and makes a session for it.
    fn split_off(&self, target: &Target, native_id: String, file: PathBuf) -> Result<Step> {
        let cannot = |error: io::Error| Error::NotRepaired { path: target.file.clone(), error };
        let other = Looked::at(&file, target.format, Branches::Join).map_err(cannot)?;
        if other.examination.repairs() {
            std::fs::remove_file(other.repair().map_err(cannot)?.backup).map_err(cannot)?;
        }
        let session = match &target.session {
            Some(view) => {
                let original = self.select(view.id.as_str())?.open()?.session()?;
                Some(split_off::keep(self, original, &native_id, &file)?)
            }
            None => None,
        };
        Ok(Step::SplitOff { file, native_id, agent: target.format.agent(), session })
    }
}

/// Begins another copy where there are copies, so that our own change is not reported at the next resume.
fn settle(folder: &Folder, transcript: &Path) -> Result<()> {
    if !checkpoints::earlier(folder, transcript)?.is_empty() {
        checkpoints::settle(folder, transcript, clock::now())?;
    }
    Ok(())
}

fn report(findings: &[Finding], repaired: bool, tell: &mut dyn FnMut(Step)) {
    for finding in findings {
        tell(Step::Found { words: finding.to_string(), remedy: finding.remedy(), repaired });
    }
}

fn runs(view: &View) -> Error {
    Error::RunsForRepair { session: SessionRef::from(view), pid: view.pid }
}
