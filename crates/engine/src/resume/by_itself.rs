//! The process called `__prepare`: does the checks and repairs of [`Engine::resume`] for a conversation that the keeper
//! continues by itself. The keeper starts it before the next run of an agent whose last process did not end well.
//!
//! It inherits the keeper's lock, so that no other process begins a run and no other keeper does the same at the same
//! time. It writes nothing to the journal, which only the keeper writes; its answer says what it has done.

use super::transcript;
use crate::config::Config;
use crate::engine::Engine;
use crate::environment::Environment;
use crate::error::Result;
use crate::notice::Notice;
use crate::orphans;
use crate::owners::first_other;
use crate::repair;
use ostler_core::limits::counted;
use ostler_keeper::keeper::helper_process::Given;
use ostler_keeper::keeper::preparing::{Answer, Other, Repaired};
use ostler_keeper::launcher_process::Launcher;
use ostler_store::RunRecord;
use ostler_store::checkpoints;
use ostler_store::folder::Folder;
use ostler_store::home::{Home, Place};
use ostler_sys::dir::Dir;
use ostler_sys::pause_points::{self, Point, Role};
use ostler_view::proof::find_transcript_with;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// The process ends after this time at the latest.
const LONGEST: Duration = Duration::from_secs(120);

/// The main function of this process; returns its exit code.
#[must_use]
pub fn main(arguments: &[String]) -> i32 {
    pause_points::act_as(Role::Preparer);
    let Ok(given) = Given::of(arguments) else { return 2 };
    // A thread that waits for a file system that does not respond cannot check the time, and the lock must not be held
    // for ever.
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let prepared = || -> Result<()> {
            let answer = prepare(&given.folder_path()?)?;
            pause_points::at(Point::Prepared);
            Ok(given.answer(&answer)?)
        };
        tell.send(prepared())
    });
    match told.recv_timeout(LONGEST) {
        Ok(Ok(())) => 0,
        Ok(Err(_)) | Err(_) => 1,
    }
}

/// The engine of the home that a session is in, and the session, for a process that its keeper has started.
pub(crate) fn of_folder(path: &Path) -> Result<(Engine, Place)> {
    let environment = Environment::of_process();
    let home = Home::at(path.ancestors().nth(2).unwrap_or(path).to_owned());
    let config = Config::load(&environment.lookup());
    let id = Folder::new(Dir::open(path)?).session()?.id;
    let engine = Engine { home, config, environment, launcher: Launcher::ThisProgram };
    Ok((engine, Place { id, path: path.to_owned(), archived: false }))
}

fn prepare(path: &Path) -> Result<Answer> {
    let (engine, place) = of_folder(path)?;
    let folder = place.open()?;
    let session = folder.session()?;
    let view = engine.view_without_last(&place)?;
    let mut answer = Answer::default();
    let Some(native_id) = view.native_id.clone() else {
        return Ok(answer);
    };
    if let Some(other) = first_other(&engine.environment, view.conversation_agent(), &native_id, Some(&folder))? {
        answer.other = Some(Other { words: other.words(), process: other.process().cloned() });
        return Ok(answer);
    }
    let Answer { repaired, alarms, .. } = &mut answer;
    let ended = orphans::end_tools_of(&native_id)?;
    if !ended.is_empty() {
        let processes = counted(ended.len() as u64, "process", "processes");
        alarms.push(format!("ended {processes} that the run before had left: {}", ended.join(", ")));
    }
    // Changes are recorded in the journal; only what cannot be repaired becomes an alarm.
    let tell = &mut |notice: Notice| {
        if let Notice::TranscriptGone { .. } = &notice {
            alarms.push("its transcript is gone, and there is no copy of it".to_owned());
        } else if let Notice::TranscriptLacks { words, .. } = notice {
            alarms.push(words);
        }
    };
    let note: repair::Note<'_> = &mut |changes, backup: &Path| {
        repaired.push(Repaired { changes, backup: backup.to_string_lossy().into_owned() });
        Ok(())
    };
    let last = folder.run(view.run)?.record()?;
    let agent = ostler_agents::find(view.conversation_agent());
    let find = || find_transcript_with(agent?, &native_id, &view.cwd, &engine.environment.lookup());
    let transcript = view.transcript.clone().or_else(find);
    let record = RunRecord { native_id: Some(native_id.clone()), transcript, ..last };
    transcript::bring_back(&engine.environment, &folder, &view, tell, note)?;
    transcript::bring_back_lost(&folder, &view, tell, note)?;
    transcript::save(&folder, &view, &record, checkpoints::save)?;
    repair::before_resume(&engine, &session, &record, tell, note)?;
    transcript::save(&folder, &view, &record, checkpoints::settle)?;
    Ok(answer)
}
