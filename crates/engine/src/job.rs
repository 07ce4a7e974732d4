//! What the driver of a job needs of its own session: what it was told, its record of steps, and questions to a person.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::launch::SPEC;
use crate::request::{self, Answered, look_and_record_to};
use crate::session_ref::SessionRef;
use ostler_agents::job::STEPS;
use ostler_core::MESSAGE_LIMIT;
use ostler_core::event::{Event, StopHow};
use ostler_core::fact::Ask;
use ostler_core::id::SessionId;
use ostler_core::life::{CONNECTION_LOST, SYSTEM};
use ostler_core::record::RequestKind;
use ostler_store::home::Place;
use ostler_store::journal::append_line;
use ostler_store::{inbox, journal};
use ostler_sys::dir::Sync;
use ostler_view::fold;
use ostler_view::look::Depth;
use rustix::fs::OFlags;
use serde_json::Value;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};

/// In a step: the id that is reserved for a child.
pub const CHILD: &str = "session";

/// In a step: what the driver says to people.
pub const LINE: &str = "line";

/// The answer of a person to a question of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonsAnswer {
    /// Yes or no.
    pub allow: bool,
    /// In words.
    pub text: Option<String>,
}

/// The reason that is recorded when the children of a job are stopped together with the job.
#[must_use]
pub fn why_with_job(job: SessionId) -> String {
    format!("job {job} is stopped")
}

impl Engine {
    /// Whether a session drives other sessions.
    #[must_use]
    pub fn is_job(&self, place: &Place) -> bool {
        place.open().and_then(|folder| folder.session()).is_ok_and(|session| session.job.is_some())
    }

    /// The ids of the sessions that a job has begun, or was about to begin.
    pub fn begun_by_job(&self, job: SessionId) -> Result<Vec<SessionId>> {
        // The steps of a job that is packed in the archive are not read.
        let place = self.home.place_of(job)?.filter(|place| !place.is_packed());
        let Some(place) = place else { return Ok(Vec::new()) };
        let steps = self.job_steps(&place)?;
        Ok(steps.iter().filter_map(|step| step[CHILD].as_str().and_then(SessionId::parse)).collect())
    }

    /// The sessions that a job has begun and that have not ended. A launch that is under way is waited for.
    pub fn living_children(&self, place: &Place) -> Result<Vec<Place>> {
        let mut living = Vec::new();
        for step in self.job_steps(place)? {
            if let Some(id) = step[CHILD].as_str().and_then(SessionId::parse)
                && let Some(child) = self.settled(id)?
                && !child.archived
                && !look_and_record_to(Depth::Awaited, &child)?.ended
                && !living.contains(&child)
            {
                living.push(child);
            }
        }
        Ok(living)
    }

    /// Whether a session was ended because its job was stopped, or because the machine shut down: then its work for the
    /// job is not done, but it was not refused either.
    pub fn stopped_with_job(&self, child: &Place, job: SessionId) -> Result<bool> {
        let folder = child.open()?;
        let run = folder.newest_run()?;
        let last = journal::newest(folder.dir(), |entry| match entry.event {
            Event::StopRequested { by, why, .. } if entry.run == run => Some((by, why)),
            _ => None,
        })?;
        Ok(last.is_some_and(|(by, why)| by == SYSTEM || why == why_with_job(job)))
    }

    /// Whether the newest run of a session has lost its input and output, because both of its helpers were killed at
    /// once. Then the way its process ended says nothing about its work.
    pub fn lost_its_connection(&self, child: &Place) -> Result<bool> {
        let folder = child.open()?;
        let lost = journal::newest(folder.dir(), |entry| match entry.event {
            Event::Alarm { text } if text == CONNECTION_LOST => Some(entry.run),
            _ => None,
        })?;
        Ok(lost == Some(folder.newest_run()?))
    }

    /// How a session was asked to end, if it was asked and has not ended yet.
    pub fn how_to_stop(&self, place: &Place) -> Result<Option<StopHow>> {
        let folder = place.open()?;
        let run = folder.run(folder.newest_run()?)?;
        let state = fold::state_of(&folder, &run)?;
        Ok(state.stop.map(|stop| stop.how))
    }

    /// The session of this process, which is the driver of a job.
    pub fn own_job(&self) -> Result<Place> {
        let id = self.own_session().ok_or(Error::NotInASession)?;
        self.home.place_of(id)?.ok_or(Error::NotInASession)
    }

    /// What the job was told when it was launched.
    pub fn job_spec(&self, place: &Place) -> Result<Vec<u8>> {
        let run = place.open()?.run(1)?;
        run.dir().read(SPEC)?.ok_or_else(|| Error::NoJobSpec { session: SessionRef::at(place) })
    }

    /// The recorded steps, in order. The last line may be torn by a power failure: then that step was not taken.
    pub fn job_steps(&self, place: &Place) -> Result<Vec<Value>> {
        let bytes = place.open()?.dir().read(STEPS)?.unwrap_or_default();
        Ok(bytes.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }

    /// Records a step. When this returns, the step is on the disk.
    pub fn note_job_step(&self, place: &Place, step: &Value) -> Result<()> {
        let mut line = step.to_string().into_bytes();
        line.push(b'\n');
        let folder = place.open()?;
        folder.even_when_full(|| append_line(folder.dir(), STEPS, &line, Sync::Yes))?;
        Ok(())
    }

    /// Adds a line to what the driver has printed in this run, for a driver that has no helper to read its pipe.
    pub fn add_to_job_log(&self, place: &Place, line: &str) -> Result<()> {
        let folder = place.open()?;
        let run = folder.run(folder.newest_run()?)?;
        let line = format!("{line}\n");
        folder.even_when_full(|| append_line(run.dir(), "out", line.as_bytes(), Sync::No))?;
        Ok(())
    }

    /// What the driver has said to people so far, in order, over all its runs.
    pub fn job_lines(&self, place: &Place) -> Result<Vec<String>> {
        let lines = self.job_steps(place)?.into_iter();
        Ok(lines.filter_map(|step| step[LINE].as_str().map(str::to_owned)).collect())
    }

    /// Makes a job ask a person a question. Repeating a question that is already open changes nothing.
    pub fn ask_person(&self, place: &Place, ask: Ask) -> Result<()> {
        match request::make(self, place, RequestKind::Ask { ask })? {
            Answered::Accepted => Ok(()),
            Answered::Refused(why) => Err(Error::Refused { session: SessionRef::at(place), why }),
            Answered::Ended(_) => Err(Error::EndedAndAsksNothing { session: SessionRef::at(place) }),
        }
    }

    /// What a person has answered to this question of a job, in this run of its driver or in one before.
    pub fn answer_of_person(&self, place: &Place, question: &str) -> Result<Option<PersonsAnswer>> {
        let folder = place.open()?;
        let found = journal::newest(folder.dir(), |entry| match &entry.event {
            Event::Answered { request, .. } if request == question => entry.request.clone(),
            _ => None,
        })?;
        let Some(id) = found else { return Ok(None) };
        let (requests, _) = inbox::read(folder.dir(), 0)?;
        Ok(requests.into_iter().find(|placed| placed.request.id == id).and_then(|placed| match placed.request.kind {
            RequestKind::Answer { allow, text, .. } => Some(PersonsAnswer { allow, text }),
            _ => None,
        }))
    }

    /// The end of what a session without a terminal has printed, about this many bytes: its standard output, then its
    /// standard error.
    pub fn printed_tail(&self, place: &Place, bytes: u64) -> Result<String> {
        let mut text = tail_of(place, "out", bytes)?;
        text.push_str(&tail_of(place, "err", bytes)?);
        let all = ostler_screen::printable_lines(&text).into_owned();
        let from = all.len().saturating_sub(usize::try_from(bytes).unwrap_or(usize::MAX));
        Ok(all[all.ceil_char_boundary(from)..].to_owned())
    }

    /// All that a session without a terminal has printed on its standard output, as text; only the end when it is very
    /// long.
    pub fn printed_text(&self, place: &Place) -> Result<String> {
        tail_of(place, "out", MESSAGE_LIMIT as u64)
    }
}

fn tail_of(place: &Place, name: &str, bytes: u64) -> Result<String> {
    let folder = place.open()?;
    let run = folder.run(folder.newest_run()?)?;
    let mut file = match run.dir().file(name, OFlags::RDONLY) {
        Ok(file) => File::from(file),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(error.into()),
    };
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(bytes)))?;
    let mut tail = Vec::new();
    file.take(bytes).read_to_end(&mut tail)?;
    Ok(String::from_utf8_lossy(&tail).into_owned())
}
