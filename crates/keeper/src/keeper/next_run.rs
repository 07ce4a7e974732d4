//! The next process of a session, started without a request: for a further message to an agent that takes one message
//! per process, or for a run that went wrong and is started again.
//!
//! In this order, so that the session is never seen as ended in between: the folder of the next run, then the outcome
//! of this one, then the order to the holder, which has the environment and everything else that a process needs. The
//! holder also starts the keeper of the new run, and this keeper exits when both exist (`next_run_order`).

use super::effects::finish;
use super::next_run_order::Ordering;
use super::notifications::{self, moment_of};
use super::{About, Keeper, KeeperError, entry};
use crate::handles::Handles;
use crate::{Settings, agent_program};
use ostler_agents::launch::Launching;
use ostler_core::event::Event;
use ostler_core::outcome::judge;
use ostler_core::record::{Session, Speaks};
use ostler_store::folder::{After, Folder, RunFolder};
use ostler_store::journal::{self, Journal};
use ostler_store::{RunRecord, StoreError, limits};
use ostler_sys::clock::since_boot_ms;
use ostler_sys::pause_points::{self, Point};
use ostler_view::fold::fold;
use ostler_view::proof::Begun;
use ostler_view::{proof, write_outcome};
use std::io;
use std::path::Path;
use uuid::Uuid;

/// What goes into the folder of a run, by name.
type Files = Vec<(&'static str, Vec<u8>)>;

impl Keeper {
    pub(super) fn next_run(&mut self) -> Result<(), KeeperError> {
        if !self.is_prepared()? {
            return Ok(());
        }
        let number = self.run.number + 1;
        let (record, files) = self.next_record(number)?;
        match self.folder.begin_run_with(&record, &files, After::Running) {
            Ok(_) => {}
            // A predecessor has already made it.
            Err(StoreError::Io { error, .. }) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.into()),
        }
        pause_points::at(Point::NextRunMade);
        let outcome = judge(&self.state, since_boot_ms());
        let outcome =
            write_outcome::publish(&self.folder, &self.run, &self.session, &self.record, &self.state, outcome)?;
        pause_points::at(Point::NextRunPublished);
        self.note_silently(Event::Ended { outcome })?;
        limits::clear(&self.record);
        self.order_run()
    }

    /// Orders the holder to start the next run, and ends this keeper so that the next one can take over.
    fn order_run(&mut self) -> Result<(), KeeperError> {
        let next = self.folder.run(self.run.number + 1)?;
        let holder = std::mem::take(&mut self.holder);
        let replaced = Ordering {
            folder: &self.folder,
            run: &next,
            handles: &mut self.handles,
            signals: &mut self.signals,
            holder,
        }
        .carry_out()?;
        if let Some(pid) = replaced {
            self.note_silently(Event::HolderReplaced { pid })?;
        }
        self.done = true;
        Ok(())
    }

    /// How the next process is started: a command like the one before it, an agent in its own way of resuming.
    fn next_record(&self, number: u32) -> Result<(RunRecord, Files), KeeperError> {
        let own_binary = std::env::current_exe()?.to_string_lossy().into_owned();
        let session = ostler_core::record::Session { keep: self.record.plan.keep, ..self.session.clone() };
        let known = self.state.native_id.clone().or_else(|| self.record.native_id.clone());
        let begun = known.as_ref().map_or(Begun::No, |native_id| {
            let transcript = self.state.transcript.as_deref().or(self.record.transcript.as_deref());
            proof::begun(self.agent, native_id, &self.session.cwd, transcript).unwrap_or(Begun::Yes)
        });
        let known = known.map(|known| if begun == Begun::InNameOnly { Uuid::new_v4().to_string() } else { known });
        let native_id = known.clone().unwrap_or_else(|| Uuid::new_v4().to_string());
        // The working directory is the session's folder.
        let folder = std::env::current_dir()?.join(format!("runs/{number}"));
        let one_turn = self.record.plan.speaks() == Speaks::OneTurn;
        let launching = Launching {
            session: &session,
            own_binary: &own_binary,
            // An agent that takes one message per process reports its id later, and gets none from us.
            native_id: if one_turn { known.as_deref().unwrap_or_default() } else { &native_id },
            resume: begun == Begun::Yes,
            linger_ms: self.record.plan.linger_ms,
            variable: &|name| std::env::var(name).ok(),
            folder: &folder.to_string_lossy(),
            file: &|name| std::fs::read_to_string(Path::new(&self.session.cwd).join(name)).ok(),
            // It is the same program: it knows every option that it was started with before.
            knows: &|option| self.record.argv.iter().any(|word| word.split('=').next() == Some(option)),
        };
        let mut how = self.agent.launch(&launching);
        let files = self.agent.files(&launching);
        let known = if one_turn { known } else { how.native_id.clone().or(known) };
        // The agents of a person's configuration end as that configuration says; it was read before the first run.
        how.plan.ending = self.record.plan.ending.clone();
        how.plan.rules = self.record.plan.rules.clone();
        if let (Some(program), Some(before)) = (how.argv.first_mut(), self.record.argv.first()) {
            *program = agent_program::resolve_again(self.agent, program, before);
        }
        let record = RunRecord {
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
            continues: Some(self.record.continues.unwrap_or(self.record.run)),
            variables: how.variables,
            // The session has waited, and has its slot until it ends.
            start_when: None,
            ..self.record.clone()
        };
        Ok((record, files))
    }

    /// Notes where the transcript is, once the agent has reported its id of the conversation.
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
    settings: Settings,
) -> Result<(), KeeperError> {
    let mut journal = folder.even_when_full(|| Journal::open(folder.dir()))?;
    let mut note = |event, notify| {
        let entry = entry(record.run, About { notify, ..About::default() }, event);
        folder.even_when_full(|| journal.append(&entry))
    };
    let known = journal::read(folder.dir(), 0)?.entries.iter().any(|entry| entry.run == record.run);
    if let (false, Some(reason)) = (known, &record.not_started) {
        note(Event::NotStarted { reason: reason.clone() }, None)?;
    }
    let state = fold(folder, run, record, session)?.state;
    if state.outcome.is_none() {
        let outcome = write_outcome::publish(folder, run, session, record, &state, judge(&state, since_boot_ms()))?;
        let event = Event::Ended { outcome };
        let notify = moment_of(settings, &state, &event, false).map(|(moment, _)| moment);
        note(event, notify)?;
    }
    if (settings.notify)().is_some_and(|wanted| wanted.by_sender) {
        // A sender that cannot be started now is started by the next moment in this home.
        let _ = notifications::start(handles, folder);
    }
    finish(folder, run, record, handles)
}
