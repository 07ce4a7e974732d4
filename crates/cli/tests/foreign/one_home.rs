//! A home that ostler and a foreign process share. The test starts the agent without ostler, as from another terminal.

use ostler_mock_llm::Server;
use ostler_mock_llm::agents::Agent;
use ostler_sys::process::{Identity, Pidfd};
use ostler_testkit::{Harness, patience};
use rustix::process::Signal;
use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Stdio};

pub struct OneHome {
    agent: Agent,
    pub harness: Harness,
    server: Server,
}

impl OneHome {
    /// `None`, with a line on stderr, where the agent is not installed.
    pub fn new(agent: Agent) -> Option<OneHome> {
        let program = match agent.program() {
            Ok(words) => words.last().unwrap().clone(),
            Err(missing) => {
                assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{missing}");
                eprintln!("\n!!! LEFT OUT: {missing}\n");
                return None;
            }
        };
        let server = Server::start().unwrap();
        let mut harness = Harness::new(env!("CARGO_BIN_EXE_ostler"));
        let home = harness.root().join("home");
        for (name, value) in agent.furnish(&home, &server.url()).unwrap() {
            harness.set(name, value);
        }
        harness.set("XDG_CONFIG_HOME", home.join(".config"));
        harness.set("XDG_DATA_HOME", home.join(".local/share"));
        let system = std::env::var("PATH").unwrap();
        harness.set("PATH", format!("{}:{system}", program.parent().unwrap().display()));
        let one_home = OneHome { agent, harness, server };
        std::fs::create_dir(one_home.work()).unwrap();
        Some(one_home)
    }

    /// A name that fails where it is not quoted and encoded properly.
    pub fn work(&self) -> PathBuf {
        self.harness.root().join("a work.dir_é")
    }

    /// Starts the agent without ostler and writes to its standard input.
    pub fn start(&self, arguments: &[&str], input: &str) -> Foreign {
        let words = self.agent.program().unwrap();
        let mut command = self.harness.command(&words[0]);
        command.args(&words[1..]).args(arguments).current_dir(self.work());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(input.as_bytes()).unwrap();
        let identity = Identity::of(child.id() as i32).unwrap().unwrap();
        Foreign { child, identity }
    }

    /// The first process of `ls --foreign` that is as wanted.
    fn listed(&self, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
        let listed = self.harness.run(&["ls", "--foreign", "--json"]).exits(0).json();
        listed.as_array().unwrap().iter().find(|one| wanted(one)).cloned()
    }

    /// Waits until `ls --foreign` has such a process.
    pub fn until_listed(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let home = self.harness.root().join("home");
        patience::until("the foreign process is listed", &[&home], || self.listed(&wanted))
    }

    /// This process in `ls --foreign`; `None` when it is not listed.
    pub fn foreign(&self, foreign: &Foreign) -> Option<Value> {
        self.listed(|one| one["pid"] == foreign.pid())
    }

    /// Waits until this process is listed.
    pub fn until_foreign(&self, foreign: &Foreign) -> Value {
        self.until_listed(|one| one["pid"] == foreign.pid())
    }

    /// Waits until this process is listed with this conversation, which it opens some time after its start.
    pub fn until_at(&self, foreign: &Foreign, native_id: &str) -> Value {
        self.until_listed(|one| one["pid"] == foreign.pid() && one["native_id"] == native_id)
    }

    /// The processes that `who` names, and whether each is ours.
    pub fn who(&self, word: &str) -> Vec<(i64, bool)> {
        let answer = self.harness.run(&["who", word, "--json"]).exits(0).json();
        let holders = answer["holders"].as_array().unwrap();
        holders.iter().map(|holder| (holder["pid"].as_i64().unwrap(), holder["ours"].as_bool().unwrap())).collect()
    }

    /// Waits until an answer is in a transcript.
    pub fn until_answered(&self, transcript: &str, text: &str) {
        let folder = std::path::Path::new(transcript).parent().unwrap();
        let answer = format!("\"text\":\"{text}\"");
        patience::until("the answer is on disk", &[folder], || {
            std::fs::read_to_string(transcript).ok()?.contains(&answer).then_some(())
        });
    }

    /// The body of the last request for an answer that the model got.
    pub fn last_request(&self) -> String {
        let requests = self.server.requests();
        requests.iter().rev().find(|request| request.turn().is_some()).unwrap().body.to_string()
    }

    /// Waits until the model was asked for this many answers.
    pub fn asked_for(&self, answers: usize) {
        let turns = |requests: &[ostler_mock_llm::Request]| requests.iter().filter(|one| one.turn().is_some()).count();
        self.server.wait_for(|requests| turns(requests) >= answers).unwrap();
    }

    /// Waits until the model was asked for an answer.
    pub fn asked(&self) {
        self.server.wait_for(|requests| requests.iter().any(|request| request.turn().is_some())).unwrap();
    }
}

/// An agent that ostler has not started.
pub struct Foreign {
    child: Child,
    pub identity: Identity,
}

impl Foreign {
    pub fn pid(&self) -> i64 {
        self.identity.pid().into()
    }

    /// Closes its input, at which the agent ends the conversation and exits.
    pub fn leave(&mut self) {
        self.child.stdin = None;
        patience::ended(&self.identity);
        self.child.wait().unwrap();
    }

    /// Closes its input, which ends the prompt, so that the agent begins.
    pub fn end_prompt(&mut self) {
        self.child.stdin = None;
    }

    pub fn kill(&mut self) {
        Pidfd::open(&self.identity).unwrap().unwrap().signal(Signal::KILL).unwrap();
        patience::ended(&self.identity);
        self.child.wait().unwrap();
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // After its exit these do nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
