//! What one test gets: a home of its own, a model server, and a working directory whose name shows whether it is quoted
//! and encoded properly. At the end the harness proves that no process of the test is alive.

use ostler_mock_llm::agents::{Agent, folder};
use ostler_mock_llm::{Kind, Request, Server};
use ostler_sys::process::{Identity, command_line};
use ostler_testkit::{Harness, Output, Session, patience};
use serde_json::Value;
use std::path::PathBuf;

pub struct Fixture {
    pub agent: Agent,
    /// Declared before the server, so that it is dropped first: it ends the sessions, which may be connected to the
    /// server.
    pub harness: Harness,
    pub server: Server,
}

impl Fixture {
    /// None, with a conspicuous message, where the agents are not installed.
    pub fn new(agent: Agent) -> Option<Fixture> {
        let server = Server::start().unwrap();
        let url = server.url();
        Fixture::talking_to(agent, server, &url)
    }

    /// A claude that may also be used in a terminal: it trusts its working directory.
    pub fn of_trusting_claude() -> Option<Fixture> {
        let fixture = Fixture::new(Agent::Claude)?;
        Agent::Claude.trust(&fixture.harness.root().join("home"), &fixture.work()).unwrap();
        Some(fixture)
    }

    /// The agent gets the address of a server that has ended.
    pub fn with_dead_server(agent: Agent) -> Option<Fixture> {
        let dead = Server::start().unwrap().url();
        Fixture::talking_to(agent, Server::start().unwrap(), &dead)
    }

    fn talking_to(agent: Agent, server: Server, url: &str) -> Option<Fixture> {
        let program = match agent.program() {
            Ok(words) => words.last().unwrap().clone(),
            Err(missing) => {
                assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{missing}");
                eprintln!("\n!!! LEFT OUT: {missing}\n");
                return None;
            }
        };
        let mut harness = Harness::new(env!("CARGO_BIN_EXE_ostler"));
        let home = harness.root().join("home");
        for (name, value) in agent.furnish(&home, url).unwrap() {
            harness.set(name, value);
        }
        harness.set("XDG_CONFIG_HOME", home.join(".config"));
        harness.set("XDG_DATA_HOME", home.join(".local/share"));
        // As npm installs it: the launchers come first, and ostler must find the program behind them.
        let launchers = folder().join("node_modules/.bin").canonicalize().unwrap();
        let system = std::env::var("PATH").unwrap();
        let path = format!("{}:{}:{system}", launchers.display(), program.parent().unwrap().display());
        harness.set("PATH", path);
        let fixture = Fixture { agent, harness, server };
        std::fs::create_dir(fixture.work()).unwrap();
        Some(fixture)
    }

    pub fn work(&self) -> PathBuf {
        self.harness.root().join("a work.dir_é")
    }

    /// `ostler run` for this agent, with its tools allowed. `flags` come first.
    pub fn words(&self, flags: &[&str], prompt: Option<&str>) -> Vec<String> {
        let work = self.work();
        let mut words = vec!["run", "--cwd", work.to_str().unwrap()];
        words.extend(flags);
        words.push(self.agent.name());
        words.extend(prompt);
        words.push("--");
        words.extend(self.agent.allowing());
        words.into_iter().map(str::to_owned).collect()
    }

    /// A session in the background whose tools need permission.
    #[track_caller]
    pub fn detach_strict(&self, flags: &[&str], prompt: &str) -> Session<'_> {
        let work = self.work();
        let place = ["--cwd", work.to_str().unwrap()];
        self.harness.detach(&[&place, flags, &[self.agent.name(), prompt]].concat())
    }

    /// Runs the agent and follows it to its end.
    #[track_caller]
    pub fn follow(&self, prompt: &str) -> Output {
        self.ostler(&self.words(&[], Some(prompt)))
    }

    /// A session in the background.
    #[track_caller]
    pub fn detach(&self, flags: &[&str], prompt: Option<&str>) -> Session<'_> {
        let flags: Vec<&str> = ["-d"].iter().chain(flags).copied().collect();
        let output = self.ostler(&self.words(&flags, prompt)).exits(0);
        self.harness.session(output.stdout.trim_end())
    }

    #[track_caller]
    fn ostler(&self, words: &[String]) -> Output {
        self.harness.run(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The last line of a test: what it has proven with this agent, as a row of docs/agents.md says it.
    pub fn proves(&self, ability: &str) {
        ostler_testkit::proves(self.agent.name(), ability);
    }

    /// The last line of a test in which ostler said that this agent cannot do it, and why.
    pub fn proves_impossible(&self, ability: &str, why: &str) {
        ostler_testkit::proves_impossible(self.agent.name(), ability, why);
    }

    /// The session that was started last.
    #[track_caller]
    pub fn last(&self) -> Session<'_> {
        let shown = self.harness.run(&["show", "--json", "@last"]).exits(0).json();
        self.harness.session(shown["id"].as_str().unwrap())
    }

    /// The step of a script that runs a shell command.
    pub fn tool(&self, command: &str) -> String {
        self.agent.shell_call(command)
    }

    /// A tool that runs until it is ended, and the command line of its process.
    pub fn endless_tool(&self) -> (String, &'static str) {
        (self.tool("mkfifo gate; cat gate"), "cat gate")
    }

    /// Waits for the process with this command line.
    pub fn process(&self, words: &str) -> Identity {
        patience::until(&format!("{words:?} runs"), &[&self.work()], || {
            self.harness.alive().into_iter().find(|process| command_line(process.pid()).join(" ") == words)
        })
    }

    /// What a tool wrote into the working directory.
    pub fn written(&self, name: &str) -> String {
        std::fs::read_to_string(self.work().join(name)).unwrap_or_else(|error| format!("{name}: {error}"))
    }

    /// The user's messages of the only conversation.
    #[track_caller]
    pub fn seen(&self) -> Vec<String> {
        let conversations = self.server.user_messages();
        assert_eq!(conversations.len(), 1, "one conversation: {conversations:?}");
        conversations.into_iter().flat_map(|conversation| conversation.messages).collect()
    }

    /// Fails unless the model got exactly these messages, in this order, each new in one request only.
    #[track_caller]
    pub fn saw_once(&self, messages: &[&str]) {
        assert_eq!(self.seen(), messages);
        let requests = self.server.requests();
        let brought: Vec<usize> = requests
            .iter()
            .filter_map(Request::turn)
            .filter(|turn| turn.answers == 0)
            .map(|turn| turn.user_messages.len())
            .collect();
        assert_eq!(brought, (1..=messages.len()).collect::<Vec<_>>(), "each message is new in one request");
    }

    /// Waits until the model was asked for this many answers.
    pub fn asked_for(&self, answers: usize) {
        self.server.wait_for(|requests| requests.iter().filter_map(Request::turn).count() >= answers).unwrap();
    }

    /// What the last request of the conversation carries, as text.
    pub fn last_request(&self) -> String {
        let requests = self.server.requests();
        requests.iter().rev().find(|request| request.turn().is_some()).unwrap().body.to_string()
    }

    /// How many tokens the model has counted: (read, written). Requests on the side count for the agents that report
    /// them.
    pub fn tokens(&self) -> (u64, u64) {
        let counts = |request: &&Request| match request.kind {
            Kind::Turn(_) => true,
            Kind::Background(_) => self.agent == Agent::Gemini,
            Kind::Other => false,
        };
        let answers = self.server.requests().iter().filter(counts).count() as u64;
        (answers * ostler_mock_llm::INPUT_TOKENS, answers * ostler_mock_llm::OUTPUT_TOKENS)
    }
}

/// How many tokens a session says it used in its newest run: (read, written).
pub fn tokens_of(fixture: &Fixture, session: &Session<'_>) -> (u64, u64) {
    let shown: Value = fixture.harness.run(&["show", "--json", session.id()]).exits(0).json();
    let tokens = &shown["outcome"]["tokens"];
    (tokens["input"].as_u64().unwrap_or(0), tokens["output"].as_u64().unwrap_or(0))
}

/// One test per agent for the same promise.
macro_rules! for_every_agent {
    ($promise:ident: $($name:ident $agent:ident),+ $(,)?) => {
        $(#[test]
        fn $name() {
            $promise(ostler_mock_llm::agents::Agent::$agent);
        })+
    };
}
pub(crate) use for_every_agent;
