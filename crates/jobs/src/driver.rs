//! The driver of a job: takes steps, each of them once, and waits for the sessions that it has started.
//!
//! * `waiting`: until a child has ended, has had its turn, or a person has answered.

mod waiting;

pub use waiting::Waited;

use crate::error::JobError;
use crate::steps::Steps;
use crate::{Drive, End};
use ostler_core::fact::Ask;
use ostler_core::id::SessionId;
use ostler_core::outcome::Kind;
use ostler_core::record::Mode;
use ostler_core::rules::{OnLimit, Rules};
use ostler_core::view::{Phase, View};
use ostler_engine::job::why_with_job;
use ostler_engine::launch::COMMAND;
use ostler_engine::process::Terminations;
use ostler_engine::rules;
use ostler_engine::send::Sent;
use ostler_engine::stop::{self, Stop, StopHow};
use ostler_engine::{Engine, Environment, Launch, Place, Resume};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use waiting::Own;

/// So much of the end of what a check has printed is kept.
const TAIL: u64 = 4096;

/// The exit code of a driver that could not go on, and may another time: it is started again, as one that was killed.
const TRY_AGAIN: u8 = 125;

/// A check whose process was killed by others is run again, so many times.
const CHECKS: u32 = 5;

/// What a check came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Its exit code; `None` when it was ended by a signal.
    pub code: Option<i32>,
    /// The last of what it printed.
    pub tail: String,
}

impl Check {
    /// In words for a progress line.
    #[must_use]
    pub fn words(&self) -> String {
        match self.code {
            Some(0) => "check passed".to_owned(),
            Some(code) => format!("check failed (exit {code})"),
            None => "check was interrupted".to_owned(),
        }
    }
}

/// Drives one job.
pub struct Driver {
    engine: Engine,
    place: Place,
    folder: PathBuf,
    steps: Steps,
    own: Own,
}

/// Runs a driver to its end; its exit code.
pub(crate) fn run(kind: &str, kinds: &[(&str, Drive)]) -> u8 {
    match drive(kind, kinds) {
        Ok(end) => u8::from(!end.succeeded),
        // As a program that was told to end.
        Err(JobError::Stopped) => 143,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "ostler: {error}");
            if error.may_pass() { TRY_AGAIN } else { 1 }
        }
    }
}

fn drive(kind: &str, kinds: &[(&str, Drive)]) -> Result<End, JobError> {
    let ends = Terminations::take()?;
    ostler_engine::process::settle_signals_of_driver();
    let engine = Engine::open(Environment::of_process())?;
    let place = engine.own_job()?;
    let (_, drive) =
        kinds.iter().find(|(name, _)| *name == kind).ok_or_else(|| JobError::UnknownKind(kind.to_owned()))?;
    let spec = engine.job_spec(&place)?;
    let folder = engine.record(&place)?.cwd.into();
    let steps = Steps::read(&engine, &place)?;
    let own = Own::new(&engine, &place, ends)?;
    let mut driver = Driver { engine, place, folder, steps, own };
    if let Some((succeeded, words)) = driver.noted::<(bool, String)>("end")? {
        driver.progress(&words)?;
        return Ok(End { succeeded, words });
    }
    let end = drive(&mut driver, &spec);
    match &end {
        Ok(end) => {
            driver.progress(&end.words)?;
            driver.note("end", &(end.succeeded, &end.words))?;
        }
        // Without a request it is the machine that shuts down, or somebody who ends this process: its children are not to be ended.
        Err(JobError::Stopped) if driver.is_to_stop()? => driver.stop_children()?,
        Err(_) => {}
    }
    end
}

impl Driver {
    /// The engine, for what is only looked at. What has an effect is a step.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The session of the job.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The id of the job.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.place.id
    }

    /// Where the job works: the folder that it was started in, or its worktree.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.folder.clone()
    }

    /// The beginning of a [`Launch`] of a child: in the folder of the job.
    #[must_use]
    pub fn child_launch(&self) -> Launch {
        Launch { cwd: Some(self.folder()), ..Launch::default() }
    }

    /// The rules of a child with this agent: what config.toml says, and what it may cost. At a usage limit it waits.
    pub fn child_rules(&self, agent: &str, budget_usd: Option<f64>) -> Result<Rules, JobError> {
        let asked = rules::Asked { budget: budget_usd.map(|usd| usd.to_string()), ..rules::Asked::default() };
        Ok(within_job(self.engine.rules(&asked, rules::For { agent, mode: Mode::Headless, waits: true })?))
    }

    /// What was noted under this key, by this driver or one before it.
    pub fn noted<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, JobError> {
        self.steps.noted(key)
    }

    /// Notes something, so that a driver that is started again finds it. What was noted first stays.
    pub fn note<T: Serialize>(&mut self, key: &str, value: &T) -> Result<(), JobError> {
        self.steps.note(&self.engine, &self.place, key, value)
    }

    /// What was noted under this key, or what `make` makes, which is noted before this returns. For what is different each time: the
    /// clock, a random choice, the output of a command.
    pub fn once<T: Serialize + DeserializeOwned>(
        &mut self,
        key: &str,
        make: impl FnOnce(&mut Driver) -> Result<T, JobError>,
    ) -> Result<T, JobError> {
        match self.noted(key)? {
            Some(known) => Ok(known),
            None => {
                let made = make(self)?;
                self.note(key, &made)?;
                Ok(made)
            }
        }
    }

    /// Launches a child, once. Its id is on the disk before it is launched, and it is a child of the job by its `parent`.
    pub fn child(&mut self, key: &str, launch: Launch) -> Result<Place, JobError> {
        self.own.check()?;
        let id = self.steps.child(&self.engine, &self.place, key)?;
        Ok(self.engine.launch(Launch { id: Some(id), ..launch }, &mut |_| {})?.place)
    }

    /// The same for a child that is started in another way: a copy, a review, a hand-over. `start` gets the id that is reserved for it, and
    /// finds the child when it is called again.
    pub fn child_by(
        &mut self,
        key: &str,
        start: impl FnOnce(&Engine, SessionId) -> ostler_engine::Result<Place>,
    ) -> Result<Place, JobError> {
        self.own.check()?;
        let id = self.steps.child(&self.engine, &self.place, key)?;
        Ok(start(&self.engine, id)?)
    }

    /// The child that was launched under this key, if it was.
    pub fn child_of(&mut self, key: &str) -> Result<Option<Place>, JobError> {
        match self.steps.reserved(key) {
            Some(id) => Ok(self.engine.settled(id)?),
            None => Ok(None),
        }
    }

    /// Continues a child that was meant to go on and lost its processes, as `ostler recover` does with sessions that no job has launched.
    /// False: it runs, has come to its end, or was not meant to. May be repeated: of several who try, one continues it.
    pub fn recover(&mut self, child: &Place) -> Result<bool, JobError> {
        self.own.check()?;
        Ok(self.engine.recover_child(child)?)
    }

    /// Sends a message to a session, once. One that has ended is continued with it. Returns the id by which [`Driver::reply`] finds the
    /// answer.
    pub fn send(&mut self, key: &str, to: &Place, text: &str, resume: Resume) -> Result<String, JobError> {
        self.own.check()?;
        let request = self.steps.request(&self.engine, &self.place, key)?;
        if self.engine.send_once(to, &request, text.to_owned())? == Sent::ForNextRun {
            self.engine.resume_once(to, Resume { message: None, ..resume }, &mut |_| {})?;
        }
        Ok(request)
    }

    /// Runs a command of the shell in a folder, as a session of its own, and waits for it. Its result is noted: it is run once, and again
    /// only when its process was killed by others.
    pub fn check(&mut self, key: &str, command: &str, folder: &Path) -> Result<Check, JobError> {
        if let Some(known) = self.noted(key)? {
            return Ok(known);
        }
        let (code, place) = self.shell(key, command, folder)?;
        let check = Check { code, tail: self.engine.printed_tail(&place, TAIL)? };
        self.note(key, &check)?;
        Ok(check)
    }

    /// Runs a command of the shell and returns what it printed on its standard output; its exit code with it. Noted like a check.
    pub fn output(&mut self, key: &str, command: &str, folder: &Path) -> Result<(Option<i32>, String), JobError> {
        if let Some(known) = self.noted(key)? {
            return Ok(known);
        }
        let (code, place) = self.shell(key, command, folder)?;
        let result = (code, self.engine.printed_text(&place)?);
        self.note(key, &result)?;
        Ok(result)
    }

    /// Runs a command until it comes to its own end; its exit code, and its session. One that was cut off is run again: as often as the
    /// job was stopped meanwhile, and a few times when others have killed it.
    fn shell(&mut self, key: &str, command: &str, folder: &Path) -> Result<(Option<i32>, Place), JobError> {
        let (mut attempt, mut kills) = (0, 0);
        loop {
            attempt += 1;
            let place = self.child(&format!("{key} #{attempt}"), self.check_launch(command, folder))?;
            let Waited::Ended(view) = self.wait(&place, None)? else { continue };
            match self.cut_off(&place, &view)? {
                Some(CutOff::Stopped) => continue,
                Some(CutOff::Killed) if kills + 1 < CHECKS => kills += 1,
                Some(CutOff::Killed) | None => {
                    return Ok((view.outcome.as_ref().and_then(|outcome| outcome.exit_code), place));
                }
            }
        }
    }

    fn check_launch(&self, command: &str, folder: &Path) -> Launch {
        Launch {
            agent: COMMAND.to_owned(),
            arguments: ["sh", "-c", command].map(str::to_owned).into(),
            cwd: Some(folder.to_owned()),
            labels: BTreeMap::from([("check-of".to_owned(), self.id().to_string())]),
            ..Launch::default()
        }
    }

    /// Asks a person, and waits for the answer: the job is `asking` until then. Asked once; the answer is noted.
    pub fn ask(&mut self, key: &str, text: &str) -> Result<String, JobError> {
        if let Some(known) = self.noted(key)? {
            return Ok(known);
        }
        let question = self.steps.request(&self.engine, &self.place, key)?;
        let answer = self.wait_for_answer(&Ask::question(question, text))?;
        let words = answer.text.unwrap_or_else(|| if answer.allow { "yes" } else { "no" }.to_owned());
        self.note(key, &words)?;
        Ok(words)
    }

    /// Says how far the job is: a line of its log, and what `ls` shows of it. A driver that is started again says all of it again, because
    /// the log is that of its newest run; who follows the job is told each line once.
    pub fn progress(&mut self, line: &str) -> Result<(), JobError> {
        let line = line.replace('\n', " ");
        self.steps.say(&self.engine, &self.place, &line)?;
        let printed = std::io::stdout().write_all(format!("{line}\n").as_bytes());
        if printed.is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
            // Both helpers were killed, and those that replace them have no pipe to read from.
            self.engine.add_to_job_log(&self.place, &line)?;
        }
        // What else keeps it from being printed changes nothing: the line is in the record.
        Ok(())
    }

    /// What `ls` shows until there is a line of progress. It is in the log alone: those who follow the job have nothing to be told yet.
    pub fn begins_with(&self, line: &str) {
        let _ = writeln!(std::io::stdout(), "{line}");
    }

    /// Whether a child was kept from what it was to do, so that it has to be done again. `None`: it came to its own end, or a person has
    /// stopped it.
    pub fn cut_off(&self, child: &Place, view: &View) -> Result<Option<CutOff>, JobError> {
        if was_killed(view) {
            return Ok(Some(CutOff::Killed));
        }
        // An agent that is asked to end may say that its turn was interrupted, and end well.
        let ended_well = view.outcome.as_ref().is_some_and(|outcome| outcome.kind == Kind::Succeeded);
        let failed = view.outcome.as_ref().is_some_and(|outcome| outcome.kind == Kind::Failed);
        if failed && self.engine.lost_its_connection(child)? {
            return Ok(Some(CutOff::Killed));
        }
        let stopped = !ended_well && self.engine.stopped_with_job(child, self.id())?;
        Ok(stopped.then_some(CutOff::Stopped))
    }

    /// Stops sessions properly, and waits until they have ended.
    pub fn stop(&mut self, places: Vec<Place>) -> Result<(), JobError> {
        let why = format!("job {}", self.id());
        self.stop_because(places, why)
    }

    fn stop_because(&mut self, places: Vec<Place>, why: String) -> Result<(), JobError> {
        let grace = self.engine.config.grace;
        let stopping = self.engine.stop(places, &Stop { how: StopHow::Interrupt, grace, why })?;
        let mut failed = None;
        stop::wait_for_all(stopping, |waited| failed = failed.take().or(waited.stopped.err()));
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Has the children end after their turns, and waits for that.
    fn let_turns_end(&mut self) -> Result<(), JobError> {
        let living = self.engine.living_children(&self.place)?;
        let stop = Stop { how: StopHow::AfterTurn, grace: self.engine.config.grace, why: why_with_job(self.id()) };
        self.engine.stop(living.clone(), &stop)?;
        self.own.waits_for_turns();
        self.wait_all(&living, None).map(|_| ())
    }

    fn is_to_stop(&self) -> Result<bool, JobError> {
        Ok(self.engine.view_without_last(&self.place)?.state == Phase::Stopping)
    }

    fn stop_children(&mut self) -> Result<(), JobError> {
        if self.engine.how_to_stop(&self.place)? == Some(StopHow::AfterTurn) {
            match self.let_turns_end() {
                // Somebody does not want to wait any longer.
                Err(JobError::Stopped) => {}
                done => return done,
            }
        }
        let living = self.engine.living_children(&self.place)?;
        self.stop_because(living, why_with_job(self.id()))
    }
}

/// How a child was kept from what it was to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutOff {
    /// Others have killed its process.
    Killed,
    /// It was stopped because its job was, or because the machine shut down.
    Stopped,
}

/// The rules of a session that works for a job. Another agent that is configured to continue at a usage limit would work outside of the
/// job, which would take the step again beside it: so it waits.
pub(crate) fn within_job(mut rules: Rules) -> Rules {
    if matches!(rules.on_limit, Some(OnLimit::Agent { .. })) {
        rules.on_limit = Some(OnLimit::Wait);
    }
    rules
}

/// Whether the process of a session was killed by others: what it was to do is not done, and nothing is known of it.
fn was_killed(view: &View) -> bool {
    view.outcome.as_ref().is_none_or(|outcome| match outcome.kind {
        Kind::Lost => true,
        Kind::Failed | Kind::Interrupted => outcome.exit_code.is_none() && outcome.signal != Some(15),
        Kind::Succeeded | Kind::Stopped => false,
    })
}
