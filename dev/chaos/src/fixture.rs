//! One session with faults: what simulated people do with it, and what must hold in the end.
//!
//! Every command may be killed in the middle; then the person types it again. A message counts as accepted when `send`
//! or `run` said so, and as attempted when the command was killed before it said anything. An accepted message must
//! reach the agent once, an attempted message at most once, and no other message may.

use crate::agents::Agents;
use crate::witness::{Truth, Witness};
use ostler_core::view::{Phase, View};
use ostler_mock_llm::Server;
use ostler_mock_llm::agents::Missing;
use ostler_sys::pause_points::{self, Point, Role};
use ostler_sys::process::{Identity, Life};
use ostler_testkit::{Harness, Output, ProcessKind, Session, Started, patience};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// How often a command that was killed is typed again.
const PATIENCE: u32 = 4;

/// A session and its environment.
#[derive(Debug)]
pub struct Fixture {
    pub agents: Agents,
    pub truth: Arc<Truth>,
    /// Dropped before the server: dropping it ends the session, which may be using the server.
    pub harness: Harness,
    server: Option<Server>,
    id: OnceLock<String>,
    said: Mutex<Said>,
    /// Refusing a message is right for now: there is no room for it.
    pub may_refuse: AtomicBool,
    /// The agent was killed. An answer that it had given and not written down yet is missing in its transcript, but was
    /// given once.
    pub agent_killed: AtomicBool,
}

#[derive(Debug, Default)]
struct Said {
    count: u32,
    accepted: Vec<String>,
    attempted: Vec<String>,
}

impl Drop for Fixture {
    /// Keeps the files that can explain a broken promise, below target/chaos.
    fn drop(&mut self) {
        let Some(id) = self.id.get().filter(|_| std::thread::panicking()) else { return };
        let evidence = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/chaos")).join(id);
        let kept = keep_evidence(self.harness.root(), &evidence)
            .and_then(|()| keep_evidence(&self.session().path(), &evidence.join("session")));
        match kept {
            Ok(()) => println!("  what it left: {}", evidence.display()),
            Err(error) => println!("  what it left could not be kept: {error}"),
        }
    }
}

/// Copies the files of a home, without what programs installed there.
fn keep_evidence(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            keep_evidence(&entry.path(), &target)?;
        } else if kind.is_file() && entry.file_name() != "ostler-copy" {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

impl Fixture {
    /// A home for this agent. An error when the agent is not installed.
    pub fn new(program: &Path, agents: Agents) -> Result<Fixture, Missing> {
        Fixture::with_sessions_below(program, agents, None)
    }

    /// A home for this agent, with the sessions below this folder.
    pub fn with_sessions_below(program: &Path, agents: Agents, folder: Option<&Path>) -> Result<Fixture, Missing> {
        let mut harness = Harness::new(&program.to_string_lossy());
        let server = agents.furnish(&mut harness)?;
        let pauses = harness.root().join("pauses");
        std::fs::create_dir(&pauses).expect("a folder");
        harness.set(pause_points::VARIABLE, pauses);
        harness.has_own_clock();
        if let Some(folder) = folder {
            harness.keep_sessions_below(folder);
        }
        Ok(Fixture {
            agents,
            truth: Arc::default(),
            harness,
            server,
            id: OnceLock::new(),
            said: Mutex::default(),
            may_refuse: AtomicBool::new(false),
            agent_killed: AtomicBool::new(false),
        })
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn token(&self, role: Role, point: Point, ending: &str) -> PathBuf {
        self.harness.root().join("pauses").join(format!("{}.{ending}", pause_points::token(role, point)))
    }

    /// The `nth` process of this role that passes this point is killed there.
    pub fn arm(&self, role: Role, point: Point, nth: usize) {
        std::fs::write(self.token(role, point, "kill"), vec![b'x'; nth]).expect("a token");
    }

    /// The next process of this role that passes this point is stopped there, until it is continued.
    pub fn hold(&self, role: Role, point: Point) {
        std::fs::write(self.token(role, point, "stop"), "x").expect("a token");
    }

    /// Whether a process was killed there.
    #[must_use]
    pub fn was_injected(&self, role: Role, point: Point) -> bool {
        !self.token(role, point, "kill").exists()
    }

    /// Waits until the keeper is stopped at this point.
    pub fn keeper_stopped_at(&self, point: Point) {
        let token = self.token(Role::Keeper, point, "stop");
        let session = self.session();
        session.until("the keeper is stopped", || {
            let stands = session.recorded(ProcessKind::Keeper)?.look().is_ok_and(|life| life == Life::Stopped);
            (stands && !token.exists()).then_some(())
        });
    }

    /// Waits until a process that the holder has started for the next run is stopped at this point.
    pub fn next_agent_stopped_at(&self, point: Point) -> Identity {
        let token = self.token(Role::Holder, point, "stop");
        let session = self.session();
        session.until("the next process is stopped", || {
            let agent = session.recorded(ProcessKind::Agent)?;
            let stands = agent.look().is_ok_and(|life| life == Life::Stopped);
            (stands && !token.exists()).then_some(agent)
        })
    }

    #[must_use]
    pub fn is_launched(&self) -> bool {
        self.id.get().is_some()
    }

    #[must_use]
    pub fn session(&self) -> Session<'_> {
        self.harness.session(self.id.get().expect("launched"))
    }

    #[must_use]
    pub fn look_on(&self) -> Witness {
        Witness::start(&self.harness, &self.session(), &self.truth, self.agents.writers())
    }

    /// Starts the session with its first message.
    pub fn launch(&self, prompt: Option<&str>) {
        for _ in 0..PATIENCE {
            let text = prompt.map_or_else(|| self.next_message(), str::to_owned);
            let words = ["run", "-d", "--keep", self.agents.agent(), "-"];
            let output = self.harness.run_with_input(&words, text.as_bytes());
            if output.code == Some(0) {
                self.said().accepted.push(text);
                self.id.set(output.stdout.trim_end().to_owned()).expect("launched once");
                return;
            }
            if output.code.is_none() {
                // What the launcher's copy is about to start is not visible yet.
                let sessions = self.harness.home().join("sessions");
                patience::until("what a killed launcher left shows, or is gone", &[&sessions], || {
                    (!self.harness.ls().is_empty() || self.harness.alive().is_empty()).then_some(())
                });
            }
            let left = self.harness.ls();
            assert!(left.is_empty() || output.code.is_none(), "a launch failed and left {left:?}: {output:?}");
            for session in left {
                // The launch did not report this session, and it may be in the middle of its turn.
                let stopped = self.harness.run(&["stop", "--kill", &session.id]);
                assert!(matches!(stopped.code, Some(0 | 8)), "{stopped:?}");
            }
        }
        panic!("no launch succeeded");
    }

    fn next_message(&self) -> String {
        let mut said = self.said();
        said.count += 1;
        self.agents.message(said.count)
    }

    /// Starts a client that sends a message. [`Fixture::sent`] tells whether the message was accepted.
    #[must_use]
    pub fn start_sending(&self) -> (String, Started) {
        let text = self.next_message();
        self.said().attempted.push(text.clone());
        let mut command = self.harness.command(self.harness.program());
        command.args(["send", self.session().id(), "-"]);
        let client = Started::new(command, Some(text.clone().into_bytes()));
        (text, client)
    }

    /// True when the message was accepted.
    pub fn sent(&self, text: String, output: &Output) -> bool {
        match output.code {
            Some(0) => {
                let mut said = self.said();
                said.attempted.retain(|attempted| *attempted != text);
                said.accepted.push(text);
                true
            }
            None => false,
            Some(_) if self.may_refuse.load(Ordering::SeqCst) => false,
            Some(_) => panic!("refused: {output:?}"),
        }
    }

    /// Sends messages until one is accepted.
    pub fn send(&self) {
        for _ in 0..PATIENCE {
            let (text, client) = self.start_sending();
            if self.sent(text, &client.finish()) {
                return;
            }
        }
        assert!(self.may_refuse.load(Ordering::SeqCst), "no message was accepted");
    }

    /// Sends one more message, and waits until everything has been answered. Resumes the session if it has ended.
    pub fn settle(&self) {
        self.send();
        for _ in 0..PATIENCE {
            let at_rest =
                |view: &View| view.ended || (matches!(view.state, Phase::Idle) && view.queued == 0 && view.kept);
            let view = self.session().until_look("everything is answered, or the end", at_rest);
            // A message that the agent had not taken in when it was killed does not count as queued; the next resume
            // sends it again.
            if !view.ended || (view.queued == 0 && self.is_saved()) {
                return;
            }
            // 125: the process that was to hold it was killed, and `resume` reports that.
            self.typed_again(&["resume", "--keep", "-d", self.session().id()], &[0, 125]);
        }
        panic!("it ends again and again");
    }

    /// Waits until the agent has written everything that was accepted into its transcript, which it does late.
    pub fn until_saved(&self) {
        self.session().until("all of it is in the transcript", || self.is_saved().then_some(()));
    }

    fn is_saved(&self) -> bool {
        let transcript = self.session().show().transcript;
        let told = transcript.map(|path| self.agents.told(Path::new(&path))).unwrap_or_default();
        self.said().accepted.iter().all(|text| told.contains(text))
    }

    /// Types a command until it was not killed.
    pub fn typed_again(&self, words: &[&str], right: &[i32]) -> Output {
        for _ in 0..PATIENCE {
            let output = self.harness.run(words);
            if let Some(code) = output.code {
                assert!(right.contains(&code), "{output:?}");
                return output;
            }
        }
        panic!("{words:?} was killed each time");
    }

    /// Ends the session and checks everything that was promised. `kinds`: the outcomes that are allowed.
    pub fn judge(&self, witness: Witness, kinds: &[&str]) -> u64 {
        self.truth.may_end();
        self.typed_again(&["stop", self.session().id()], &[0]);
        let shown = self.session().show();
        assert!(shown.ended && !shown.alive, "{shown:?}");
        let outcome = shown.outcome();
        assert!(kinds.contains(&outcome.kind.as_str()), "a wrong outcome: {outcome:?}");
        assert_eq!(outcome.saved, "verified", "{outcome:?}");
        assert_eq!(shown.queued, 0, "messages wait: {shown:?}");
        let transcript = shown.transcript.as_deref().expect("a transcript");
        self.compare(&self.agents.told(Path::new(transcript)), "the transcript");
        if let Some(server) = &self.server {
            let last = server.user_messages().into_iter().next_back();
            self.compare(
                &last.map(|conversation| conversation.messages).unwrap_or_default(),
                "the model's last request",
            );
        }
        let looks = witness.saw_nothing_wrong();
        self.harness.nothing_is_left();
        looks
    }

    /// Whether the answer is in the output of some run.
    fn was_answered(&self, text: &str) -> bool {
        let answer = self.agents.answer(text);
        let runs = std::fs::read_dir(self.session().path().join("runs")).expect("runs").flatten();
        let outputs = runs.filter_map(|run| std::fs::read_to_string(run.path().join("out")).ok());
        outputs.into_iter().any(|output| output.contains(&answer))
    }

    /// Accepted messages once, attempted messages at most once, and no others.
    fn compare(&self, told: &[String], whose: &str) {
        let said = self.said();
        let short = |text: &String| text.chars().take(24).collect::<String>();
        let times = |text: &String| told.iter().filter(|one| *one == text).count();
        for text in &said.accepted {
            let lost_after_its_answer =
                || times(text) == 0 && self.agent_killed.load(Ordering::SeqCst) && self.was_answered(text);
            let right = times(text) == 1 || lost_after_its_answer();
            assert!(right, "accepted {:?} is {} times in {whose}", short(text), times(text));
        }
        for text in &said.attempted {
            assert!(times(text) <= 1, "attempted {:?} is {} times in {whose}", short(text), times(text));
        }
        let known = |text: &&String| said.accepted.contains(text) || said.attempted.contains(text);
        let strange: Vec<String> = told.iter().filter(|text| !known(text)).map(short).collect();
        assert!(strange.is_empty(), "{strange:?} was never sent, and it is in {whose}");
    }
}
