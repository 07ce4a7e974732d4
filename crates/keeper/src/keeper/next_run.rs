//! The next process of a session whose agent takes one message each: a further message is a further run.
//!
//! In this order, so that nobody ever sees the session as ended in between: the folder of the next run, then the outcome
//! of this one, then the order to the holder, who has the environment and everything else that a process needs. Our
//! replacement is the keeper of the new run.

use super::effects::finish;
use super::{About, Keeper, KeeperError, entry};
use crate::control::{self, Order};
use crate::handles::{self, Handles};
use crate::program;
use ostler_agents::launch::Launching;
use ostler_core::event::Event;
use ostler_core::outcome::judge;
use ostler_core::record::Session;
use ostler_store::folder::{After, Folder, RunFolder};
use ostler_store::journal::{self, Journal};
use ostler_store::{RunRecord, StoreError, limits};
use ostler_sys::clock::since_boot_ms;
use ostler_sys::pause::{self, Point};
use ostler_view::proof::Begun;
use ostler_view::{closing, look, proof};
use std::io;
use uuid::Uuid;

impl Keeper {
    pub(super) fn next_run(&mut self) -> Result<(), KeeperError> {
        let number = self.run.number + 1;
        match self.folder.begin_run(&self.next_record(number)?, After::Running) {
            Ok(_) => {}
            // A predecessor got as far as this.
            Err(StoreError::Io { error, .. }) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.into()),
        }
        pause::at(Point::NextRunMade);
        let outcome = judge(&self.state, since_boot_ms());
        let outcome = closing::publish(&self.folder, &self.run, &self.session, &self.record, &self.state, outcome)?;
        pause::at(Point::NextRunPublished);
        self.note(Event::Ended { outcome })?;
        limits::clear(&self.record);
        self.order_run()
    }

    /// Has the holder start the newest run, and makes way for its keeper.
    pub(super) fn order_run(&mut self) -> Result<(), KeeperError> {
        if let Some(line) = self.handles.get(handles::HOLDER_LINE) {
            control::order(line, Order::StartRun)?;
        }
        pause::at(Point::NextRunOrdered);
        self.done = true;
        Ok(())
    }

    fn next_record(&self, number: u32) -> Result<RunRecord, KeeperError> {
        let own_binary = std::env::current_exe()?.to_string_lossy().into_owned();
        let session = ostler_core::record::Session { keep: self.record.plan.keep, ..self.session.clone() };
        let known = self.state.native_id.clone().or_else(|| self.record.native_id.clone());
        let begun = known.as_ref().map_or(Begun::No, |native_id| {
            let transcript = self.state.transcript.as_deref().or(self.record.transcript.as_deref());
            proof::begun(self.agent, native_id, &self.session.cwd, transcript).unwrap_or(Begun::Yes)
        });
        let known = known.map(|known| if begun == Begun::InNameOnly { Uuid::new_v4().to_string() } else { known });
        let mut how = self.agent.launch(&Launching {
            session: &session,
            own_binary: &own_binary,
            native_id: known.as_deref().unwrap_or_default(),
            resume: begun == Begun::Yes,
            linger_ms: self.record.plan.linger_ms,
            variable: &|name| std::env::var(name).ok(),
            // Only agents in a terminal are started with these, and of those there is no next run.
            folder: "",
            file: &|_| None,
            knows: &|_| false,
        });
        if let (Some(program), Some(before)) = (how.argv.first_mut(), self.record.argv.first()) {
            *program = program::resolve_again(self.agent, program, before);
        }
        Ok(RunRecord {
            run: number,
            argv: how.argv,
            plan: how.plan,
            begins: begun != Begun::Yes,
            native_id: known,
            cgroup: None,
            bounds: Vec::new(),
            started: None,
            started_ms: 0,
            written_before: 0,
            agent: None,
            serial: None,
            holder: None,
            launcher: None,
            ..self.record.clone()
        })
    }

    /// Notes where the transcript is, once the agent has told its name for the conversation.
    pub(super) fn learn_transcript(&mut self) -> Result<(), KeeperError> {
        if self.record.transcript.is_none()
            && let Some(native_id) = self.state.native_id.as_ref().or(self.record.native_id.as_ref())
        {
            self.record.transcript = proof::find_transcript(self.agent, native_id, &self.session.cwd);
            if self.record.transcript.is_some() {
                self.run.write_record(&self.record)?;
            }
        }
        Ok(())
    }
}

/// Ends a session whose next process could not be started: that is the outcome of the run, and its message waits for
/// `resume`. There is nothing to keep, so this is all that its keeper does.
pub(super) fn conclude_not_started(
    folder: &Folder,
    run: &RunFolder,
    session: &Session,
    record: &RunRecord,
    handles: &Handles,
) -> Result<(), KeeperError> {
    let mut journal = folder.even_when_full(|| Journal::open(folder.dir()))?;
    let mut note = |event| {
        let entry = entry(record.run, About::default(), event);
        folder.even_when_full(|| journal.append(&entry))
    };
    let known = journal::read(folder.dir(), 0)?.entries.iter().any(|entry| entry.run == record.run);
    if let (false, Some(reason)) = (known, &record.not_started) {
        note(Event::NotStarted { reason: reason.clone() })?;
    }
    let state = look::fold(folder, run, record, session)?.state;
    if state.outcome.is_none() {
        let outcome = closing::publish(folder, run, session, record, &state, judge(&state, since_boot_ms()))?;
        note(Event::Ended { outcome })?;
    }
    finish(folder, run, record, handles)
}
