//! Plays one scene with the real agent, and records what happens.

use crate::normal::{Normal, Surroundings};
use crate::process::{Heard, Process, Waited};
use crate::scene::{Act, Scene, takes_several};
use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use ostler_agents::Agent;
use ostler_agents::decoder::Decoder;
use ostler_agents::launch::Launching;
use ostler_agents::speak::{Answer, Message};
use ostler_agents::transcript::Location;
use ostler_core::fact::{Ask, Fact};
use ostler_core::id::SessionId;
use ostler_core::record::{Mode, Session};
use ostler_mock_llm::{Request, Server};
use ostler_replay::{Action, End, Recording, Run, Step, Text};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The slowest agent gives up on a failed request after half a minute.
const LIMIT: Duration = Duration::from_secs(120);

/// How precisely the time is known at which a transcript grows.
const TICK: Duration = Duration::from_millis(5);

/// How long an agent is left running after its last turn, to see how late it saves.
const AFTERWARDS: Duration = Duration::from_millis(400);

/// The answer to a question is sent only when the agent has been quiet this long. Otherwise later output of the
/// question would come before or after the answer by chance.
const QUIET: Duration = Duration::from_millis(200);

/// After this many pieces an answer counts as begun.
const BUSY: usize = 3;

/// Plays the scene, and normalises what depends on the machine or on chance.
pub fn record(scene: &Scene) -> Result<Recording> {
    let root = tempfile::Builder::new().prefix("ostler-record-").tempdir().context("a temporary folder")?;
    let (home, work) = (root.path().join("home"), root.path().join("work"));
    fs::create_dir(&home)?;
    fs::create_dir(&work)?;
    let agent = ostler_agents::find(scene.agent.name()).context("ostler does not know it")?;
    let server = Server::start()?;
    let mut surroundings = Surroundings::begin(root.path(), server.port());
    let mut fixture = Fixture {
        scene,
        agent,
        server,
        home,
        work,
        conversation: uuid::Uuid::new_v4().to_string(),
        transcript: None,
        saved: 0,
    };
    let runs = (0..scene.runs.len()).map(|number| fixture.run(number)).collect::<Result<Vec<_>>>()?;
    surroundings.end();
    let mut normal = Normal::new(&surroundings, &fixture.conversation);
    let conversation = normal.text(&fixture.conversation);
    let runs = runs.into_iter().map(|run| normal.run(run)).collect();
    let version = scene.agent.version()?;
    let (agent, name) = (agent.name().to_owned(), scene.name.to_owned());
    let recording = Recording { agent, version, scene: name, conversation, runs };
    match normal.leak(&recording.to_string()) {
        Some(place) => bail!("{place} is still in it; see normal.rs"),
        None => Ok(recording),
    }
}

struct Fixture<'a> {
    scene: &'a Scene,
    agent: &'static dyn Agent,
    server: Server,
    home: PathBuf,
    work: PathBuf,
    conversation: String,
    transcript: Option<PathBuf>,
    /// How many bytes of the transcript are recorded.
    saved: usize,
}

/// A running process.
struct Take {
    process: Process,
    decoder: Box<dyn Decoder>,
    actions: Vec<(Instant, Action)>,
    /// When it last printed something.
    heard: Instant,
    asked: Option<Ask>,
    said: usize,
    turns: usize,
    over: bool,
}

impl Fixture<'_> {
    fn run(&mut self, number: usize) -> Result<Run> {
        let session = self.session();
        let launch = self.agent.launch(&Launching {
            session: &session,
            own_binary: "",
            native_id: &self.conversation,
            resume: number > 0,
            linger_ms: 0,
            variable: &|_| None,
            folder: "",
            file: &|_| None,
            knows: &|_| true,
        });
        let mut command = self.scene.agent.command(&self.home, &self.server.url())?;
        command.args(launch.argv.iter().skip(1)).envs(launch.variables).current_dir(&self.work);
        let begin = Instant::now();
        let mut take = Take {
            process: Process::start(&mut command)?,
            decoder: self.agent.decoder(),
            actions: Vec::new(),
            heard: begin,
            asked: None,
            said: 0,
            turns: 0,
            over: false,
        };
        for act in &self.scene.runs[number] {
            self.perform(act, &mut take)?;
        }
        if takes_several(self.scene.agent) {
            let enough = Instant::now() + AFTERWARDS;
            self.until("", &mut take, |_, take| take.over || Instant::now() >= enough)?;
            take.end_input();
        }
        self.until("its end", &mut take, |_, take| take.over)?;
        let status = take.process.status()?;
        self.look_at_transcript(&mut take, true)?;
        let end = match (status.code(), status.signal()) {
            (Some(code), _) => End::Exit(code),
            (None, signal) => End::Signal(signal.context("neither exited nor killed")?),
        };
        take.note(Action::Ends(end));
        let below_home = |path: &PathBuf| path.strip_prefix(&self.home).map(|path| path.to_string_lossy().into_owned());
        Ok(Run {
            argv: launch.argv,
            transcript: self.transcript.as_ref().map(below_home).transpose()?,
            steps: steps(begin, take.actions),
            files: files_below(&self.work)?
                .into_iter()
                .map(|file| {
                    Ok((file.strip_prefix(&self.work)?.to_string_lossy().into_owned(), fs::read_to_string(&file)?))
                })
                .collect::<Result<_>>()?,
        })
    }

    /// The session as ostler would have it.
    fn session(&self) -> Session {
        let arguments: &[&str] = if self.scene.allowed { self.scene.agent.allowing() } else { &[] };
        Session {
            schema: ostler_core::SCHEMA,
            id: SessionId::from_random(0),
            name: None,
            agent: self.agent.name().to_owned(),
            cwd: self.work.to_string_lossy().into_owned(),
            mode: Mode::Headless,
            keep: false,
            labels: BTreeMap::new(),
            parent: None,
            fork: None,
            origin: None,
            read_only: false,
            adopted: None,
            model: None,
            arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
            prompt: None,
            attended: false,
            limits: ostler_core::limits::Limits::default(),
            rules: ostler_core::rules::Rules::default(),
            worktree: None,
            job: None,
            driven: false,
            group: None,
            created: Timestamp::UNIX_EPOCH,
        }
    }

    fn perform(&mut self, act: &Act, take: &mut Take) -> Result<()> {
        match act {
            Act::Say(text) => {
                self.say(text, take)?;
                self.until_turn_ends(take)
            }
            Act::SayUntilAsked(text) => {
                self.say(text, take)?;
                self.until("a question", take, |_, take| take.asked.is_some() && take.heard.elapsed() > QUIET)
            }
            Act::SayUntilBusy(text) => {
                self.say(text, take)?;
                // Not every agent shows that it gets an answer, but the model server knows.
                self.until("an answer", take, |fixture, take| {
                    take.said >= BUSY || fixture.server.requests().iter().any(is_hung)
                })
            }
            Act::Answer { allow } => {
                let ask = take.asked.take().context("nothing was asked")?;
                let answer = self.agent.answer(&ask, &Answer { allow: *allow, always: false, text: None });
                take.give(&answer.context("it takes no answers")?)?;
                self.until_turn_ends(take)
            }
            Act::Interrupt => {
                match self.agent.interrupt(&self.conversation, "interrupt-0") {
                    Some(words) => take.give(&words)?,
                    None => {
                        take.process.interrupt()?;
                        take.note(Action::Interrupted);
                    }
                }
                self.until_turn_ends(take)
            }
        }
    }

    fn say(&self, text: &str, take: &mut Take) -> Result<()> {
        take.turns = 0;
        let id = uuid::Uuid::new_v4().to_string();
        take.give(&self.agent.message(&Message { native_id: &self.conversation, id: &id, text }))?;
        if !takes_several(self.scene.agent) {
            take.end_input();
        }
        Ok(())
    }

    fn until_turn_ends(&mut self, take: &mut Take) -> Result<()> {
        let several = takes_several(self.scene.agent);
        self.until("the end of its turn", take, |_, take| {
            // An interrupt may end the process.
            take.over || several && take.turns > 0
        })
    }

    fn until(&mut self, what: &str, take: &mut Take, done: impl Fn(&Self, &Take) -> bool) -> Result<()> {
        let limit = Instant::now() + LIMIT;
        while !done(self, take) {
            if take.over || Instant::now() > limit {
                bail!("it {} without {what}", if take.over { "ended" } else { "went on and on" });
            }
            match take.process.wait_for_word(TICK) {
                Waited::Heard(at, heard) => self.hear(at, heard, take),
                Waited::Nothing => {}
                Waited::Over => take.over = true,
            }
            self.look_at_transcript(take, false)?;
        }
        Ok(())
    }

    fn hear(&mut self, at: Instant, heard: Heard, take: &mut Take) {
        take.heard = at;
        let text = match heard {
            Heard::Complained(text) => return take.actions.push((at, Action::PrintsError(text))),
            Heard::Printed(text) => text,
        };
        let mut facts = Vec::new();
        take.decoder.line(text.text.as_bytes(), &mut facts);
        take.actions.push((at, Action::Prints(text)));
        for fact in facts {
            match fact {
                Fact::Native { id } => self.conversation = id,
                Fact::Saying { .. } => take.said += 1,
                Fact::Asked(ask) => take.asked = Some(ask),
                Fact::TurnEnded(_) => take.turns += 1,
                Fact::TurnStarted
                | Fact::Said { .. }
                | Fact::Thought { .. }
                | Fact::Model { .. }
                | Fact::ToolCalled { .. }
                | Fact::ToolReturned { .. }
                | Fact::AskClosed { .. }
                | Fact::Background { .. }
                | Fact::Retrying(_)
                | Fact::Limited(_)
                | Fact::Transcript { .. }
                | Fact::Ready
                | Fact::Subagent(_)
                | Fact::Behind { .. }
                | Fact::Recalled { .. }
                | Fact::Opened { .. }
                | Fact::NotOpened { .. }
                | Fact::ReplyDue { .. }
                | Fact::Unknown { .. }
                | Fact::LineTooLong { .. } => {}
            }
        }
    }

    /// Records the new lines of the transcript; at the end also what follows the last line.
    fn look_at_transcript(&mut self, take: &mut Take, at_end: bool) -> Result<()> {
        if self.transcript.is_none() {
            self.transcript = self.find_transcript()?;
        }
        let Some(transcript) = &self.transcript else { return Ok(()) };
        let text = String::from_utf8_lossy(&fs::read(transcript)?).into_owned();
        let new = text.get(self.saved..).with_context(|| format!("{} was rewritten", transcript.display()))?;
        for line in new.split_inclusive('\n') {
            let whole = line.ends_with('\n');
            if whole || at_end {
                take.note(Action::Saves(Text { text: line.trim_end_matches('\n').to_owned(), whole }));
                self.saved += line.len();
            }
        }
        Ok(())
    }

    /// Only a transcript that is text: a recording holds no database.
    fn find_transcript(&self) -> Result<Option<PathBuf>> {
        let home = self.home.to_string_lossy().into_owned();
        let variable = |name: &str| (name == "HOME").then(|| home.clone());
        Ok(match self.agent.transcript(&self.conversation, &self.work.to_string_lossy(), &variable) {
            None => None,
            Some(Location::At(path)) => Some(PathBuf::from(path))
                .filter(|path| path.extension().is_some_and(|end| end == "jsonl") && path.exists()),
            Some(Location::UnderFolder { folder, name_ends_with }) => files_below(Path::new(&folder))?
                .into_iter()
                .find(|file| file.to_string_lossy().ends_with(&name_ends_with)),
        })
    }
}

impl Take {
    fn note(&mut self, action: Action) {
        self.actions.push((Instant::now(), action));
    }

    fn give(&mut self, bytes: &[u8]) -> Result<()> {
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            let whole = line.ends_with(b"\n");
            let text = String::from_utf8_lossy(line).trim_end_matches('\n').to_owned();
            self.note(Action::Reads(Text { text, whole }));
        }
        self.process.give(bytes)
    }

    fn end_input(&mut self) {
        self.process.end_input();
        self.note(Action::InputEnds);
    }
}

/// The model does not answer this request.
fn is_hung(request: &Request) -> bool {
    request.turn().is_some_and(|turn| turn.user_messages.last().is_some_and(|message| message == "hang"))
}

/// What happened, in order, with the time in between. A thread that reads a stream may have reported a little late.
fn steps(begin: Instant, mut actions: Vec<(Instant, Action)>) -> Vec<Step> {
    actions.sort_by_key(|(at, _)| *at);
    let mut before = begin;
    let timed = actions.into_iter().map(|(at, action)| {
        let pause = at.saturating_duration_since(std::mem::replace(&mut before, at));
        Step { pause_ms: u64::try_from(pause.as_millis()).unwrap_or(u64::MAX), action }
    });
    timed.collect()
}

/// The files below a folder, in the order of their names. A folder that does not exist yet has none.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error).with_context(|| folder.display().to_string()),
        };
        for entry in entries {
            let entry = entry?;
            let into = if entry.file_type()?.is_dir() { &mut open } else { &mut files };
            into.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}
