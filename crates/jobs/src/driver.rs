//! The driver of a job: takes steps, each of them once, and waits for the sessions that it has started.
//!
//! * `waiting`: waits until a child has ended or has finished its turn, or until a person has answered.

mod waiting;

pub use waiting::Waited;

use crate::error::JobError;
use crate::steps::Steps;
use crate::{Drive, End};
use ostler_core::fact::Ask;
use ostler_core::id::SessionId;
use ostler_core::outcome::Kind;
use ostler_core::record::{Mode, RequestKind};
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

/// How many bytes at the end of a check's output are kept.
const TAIL: u64 = 4096;

/// The exit code of a driver that could not continue now but may be able to later. It is started again, like a driver
/// that was killed.
const TRY_AGAIN: u8 = 125;

/// How many times a check is run whose process is killed from outside.
const CHECKS: u32 = 5;

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Its exit code; `None` when it was ended by a signal.
    pub code: Option<i32>,
    /// The end of its output.
    pub tail: String,
}

impl Check {
    /// The result in words, for a progress line.
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

/// Runs a driver to its end. Returns its exit code.
pub(crate) fn run(kind: &str, kinds: &[(&str, Drive)]) -> u8 {
    match drive(kind, kinds) {
        Ok(end) => u8::from(!end.succeeded),
        // As a program that was ended by SIGTERM.
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
    driver.print_earlier_lines()?;
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
        // Without a request to stop, the machine shuts down or a person has signalled this process: the children are
        // not stopped.
        Err(JobError::Stopped) if driver.is_to_stop()? => driver.stop_children()?,
        Err(_) => {}
    }
    end
}

impl Driver {
    /// The engine, for reading only. Everything that has an effect has to be a step.
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

    /// The base of a [`Launch`] of a child: in the folder of the job.
    #[must_use]
    pub fn child_launch(&self) -> Launch {
        Launch { cwd: Some(self.folder()), ..Launch::default() }
    }

    /// The rules of a child with this agent: what config.toml says, and what it may cost. At a usage limit it waits.
    pub fn child_rules(&self, agent: &str, budget_usd: Option<f64>) -> Result<Rules, JobError> {
        let asked = rules::Asked { budget: budget_usd.map(|usd| usd.to_string()), ..rules::Asked::default() };
        Ok(within_job(self.engine.rules(&asked, rules::For { agent, mode: Mode::Headless, waits: true })?))
    }

    /// What was noted under this key, by this driver or by an earlier one.
    pub fn noted<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, JobError> {
        self.steps.noted(key)
    }

    /// Notes a value, so that a driver that is started again finds it. The first value of a key stays.
    pub fn note<T: Serialize>(&mut self, key: &str, value: &T) -> Result<(), JobError> {
        self.steps.note(&self.engine, &self.place, key, value)
    }

    /// What was noted under this key, or what `make` makes, which is noted before this returns. For values that differ
    /// each time: the time, a random choice, the output of a command.
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

    /// Launches a child, once. Its id is on the disk before it is launched. Its `parent` is the job.
    pub fn child(&mut self, key: &str, launch: Launch) -> Result<Place, JobError> {
        self.own.check()?;
        let id = self.steps.child(&self.engine, &self.place, key)?;
        Ok(self.engine.launch(Launch { id: Some(id), ..launch }, &mut |_| {})?.place)
    }

    /// Starts a child in another way than [`Driver::child`]: a copy, a review, a hand-over. `start` gets the id that is
    /// reserved for the child, and must find the child when it is called again.
    pub fn child_by(
        &mut self,
        key: &str,
        start: impl FnOnce(&Engine, SessionId) -> ostler_engine::Result<Place>,
    ) -> Result<Place, JobError> {
        self.own.check()?;
        let id = self.steps.child(&self.engine, &self.place, key)?;
        Ok(start(&self.engine, id)?)
    }

    /// The child that was launched under this key. `None`: none was.
    pub fn child_of(&mut self, key: &str) -> Result<Option<Place>, JobError> {
        match self.steps.reserved(key) {
            Some(id) => Ok(self.engine.settled(id)?),
            None => Ok(None),
        }
    }

    /// Continues a child that was meant to go on and lost its processes, as `ostler recover` does with sessions that no
    /// job has launched. False: the child runs, has ended by itself, or was not meant to go on. May be repeated: when
    /// several processes try, only one continues it.
    pub fn recover(&mut self, child: &Place) -> Result<bool, JobError> {
        self.own.check()?;
        Ok(self.engine.recover_child(child)?)
    }

    /// Sends a message to a session, once. A session that has ended is continued with the message. Returns the id with
    /// which [`Driver::reply`] finds the answer.
    pub fn send(&mut self, key: &str, to: &Place, text: &str, resume: Resume) -> Result<String, JobError> {
        self.own.check()?;
        let request = self.steps.request(&self.engine, &self.place, key)?;
        if self.engine.send_once(to, &request, text.to_owned())? == Sent::ForNextRun {
            self.engine.resume_once(to, Resume { message: None, ..resume }, &mut |_| {})?;
        }
        Ok(request)
    }

    /// Continues a child that was cut off before it had done its task, once. A message with the task that the agent has
    /// not taken waits for the next run, which gets it. Otherwise the child gets a message that repeats the task. With
    /// both, the agent would do the task twice.
    pub fn continue_task(&mut self, key: &str, child: &Place, task: &str) -> Result<(), JobError> {
        self.own.check()?;
        let again = format!(
            "The last turn was interrupted before it was over. The task was:\n\n{task}\n\nContinue where it stopped."
        );
        let waits = |engine: &Engine| -> Result<bool, JobError> {
            let has_task = |kind: &RequestKind| matches!(kind, RequestKind::Message { text, .. } if *text == task || *text == again);
            Ok(engine.waiting(child)?.iter().any(|waiting| !waiting.unclear && has_task(&waiting.request.kind)))
        };
        // Noted, because the agent has taken the message when a driver that is started again comes here.
        if !self.once(&format!("{key} has the task waiting"), |driver| waits(&driver.engine))? {
            self.send(key, child, &again, Resume::default())?;
        } else if waits(&self.engine)? {
            self.engine.resume_once(child, Resume::default(), &mut |_| {})?;
        }
        Ok(())
    }

    /// Runs a shell command in a folder, as a session of its own, and waits for it. The result is noted. The command is
    /// run again only when it was cut off.
    pub fn check(&mut self, key: &str, command: &str, folder: &Path) -> Result<Check, JobError> {
        if let Some(known) = self.noted(key)? {
            return Ok(known);
        }
        let (code, place) = self.shell(key, command, folder)?;
        let check = Check { code, tail: self.engine.printed_tail(&place, TAIL)? };
        self.note(key, &check)?;
        Ok(check)
    }

    /// Runs a shell command and returns its exit code and its standard output. Noted like a check.
    pub fn output(&mut self, key: &str, command: &str, folder: &Path) -> Result<(Option<i32>, String), JobError> {
        if let Some(known) = self.noted(key)? {
            return Ok(known);
        }
        let (code, place) = self.shell(key, command, folder)?;
        let result = (code, self.engine.printed_text(&place)?);
        self.note(key, &result)?;
        Ok(result)
    }

    /// Runs a command until it ends by itself. Returns its exit code and its session. A command that was cut off is run
    /// again: whenever the job was stopped meanwhile, and up to [`CHECKS`] times when it was killed from outside.
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

    /// Reports how far the job is: a line of its log, which `ls` shows as well. A driver that is started again may take a
    /// step without the lines that belong to it, so a line is reported before its step is noted as done.
    pub fn progress(&mut self, line: &str) -> Result<(), JobError> {
        let line = line.replace('\n', " ");
        if self.steps.say(&self.engine, &self.place, &line)? { self.print(&line) } else { Ok(()) }
    }

    /// Each run has its own log, which therefore begins with the lines of the drivers before this one.
    fn print_earlier_lines(&self) -> Result<(), JobError> {
        self.engine.job_lines(&self.place)?.iter().try_for_each(|line| self.print(line))
    }

    fn print(&self, line: &str) -> Result<(), JobError> {
        let printed = std::io::stdout().write_all(format!("{line}\n").as_bytes());
        if printed.is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
            // Both helpers were killed, and their replacements have no pipe to read from.
            self.engine.add_to_job_log(&self.place, line)?;
        }
        // Any other error while printing is ignored: the line is in the record.
        Ok(())
    }

    /// What `ls` shows until there is a line of progress. It is only in the log, not among the progress lines.
    pub fn begins_with(&self, line: &str) {
        if self.steps.has_no_lines() {
            let _ = writeln!(std::io::stdout(), "{line}");
        }
    }

    /// Whether a child was prevented from finishing, so that its work has to be done again. `None`: it ended by itself,
    /// or a person has stopped it.
    pub fn cut_off(&self, child: &Place, view: &View) -> Result<Option<CutOff>, JobError> {
        if was_killed(view) {
            return Ok(Some(CutOff::Killed));
        }
        // An agent that is asked to end may report that its turn was interrupted, and exit with success.
        let ended_well = view.outcome.as_ref().is_some_and(|outcome| outcome.kind == Kind::Succeeded);
        let failed = view.outcome.as_ref().is_some_and(|outcome| outcome.kind == Kind::Failed);
        if failed && self.engine.lost_its_connection(child)? {
            return Ok(Some(CutOff::Killed));
        }
        let stopped = !ended_well && self.engine.stopped_with_job(child, self.id())?;
        Ok(stopped.then_some(CutOff::Stopped))
    }

    /// Stops sessions by the usual steps, and waits until they have ended.
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

    /// Asks the children to end after their turns, and waits until they have.
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
                // Another request says to stop at once.
                Err(JobError::Stopped) => {}
                done => return done,
            }
        }
        let living = self.engine.living_children(&self.place)?;
        self.stop_because(living, why_with_job(self.id()))
    }
}

/// Why a child could not finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutOff {
    /// Its process was killed from outside.
    Killed,
    /// It was stopped together with its job, or because the machine shut down.
    Stopped,
}

/// The rules of a session that works for a job. With a rule that another agent continues at a usage limit, that agent
/// would work outside of the job while the job takes the step again. So the session waits instead.
pub(crate) fn within_job(mut rules: Rules) -> Rules {
    if matches!(rules.on_limit, Some(OnLimit::Agent { .. })) {
        rules.on_limit = Some(OnLimit::Wait);
    }
    rules
}

/// Whether the process of a session was killed from outside: its work is not done, and its result is unknown.
fn was_killed(view: &View) -> bool {
    view.outcome.as_ref().is_none_or(|outcome| match outcome.kind {
        Kind::Lost => true,
        Kind::Failed | Kind::Interrupted => outcome.exit_code.is_none() && outcome.signal != Some(15),
        Kind::Succeeded | Kind::Stopped => false,
    })
}
