//! What one test gets: a home and a working directory of its own, a model server, and at the end the proof that nothing
//! that it started is alive.

use crate::running::{LIMIT, Running, ends_within};
use crate::terminal::Seated;
use ostler_mock_llm::Server;
use ostler_mock_llm::agents::Agent;
use ostler_sys::process::{Identity, Pidfd, Stat, command_line};
use rustix::process::Signal;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tempfile::TempDir;

pub struct Fixture {
    agent: Agent,
    pub server: Server,
    folder: TempDir,
}

impl Fixture {
    /// `None`, with a line in the output, where the agents are not installed.
    pub fn for_agent(agent: Agent) -> Option<Fixture> {
        if let Err(missing) = agent.program() {
            assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{missing}");
            eprintln!("\n!!! LEFT OUT: {missing}\n");
            return None;
        }
        let fixture = Fixture { agent, server: Server::start().unwrap(), folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(fixture.home()).unwrap();
        fs::create_dir_all(fixture.work()).unwrap();
        Some(fixture)
    }

    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// A directory whose name fails where paths are not quoted and encoded properly.
    pub fn work(&self) -> PathBuf {
        self.folder.path().join("a work.dir_é")
    }

    pub fn start<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Running {
        self.start_with(&[], arguments)
    }

    pub fn start_with<S: AsRef<OsStr>>(
        &self,
        environment: &[(&str, &str)],
        arguments: impl IntoIterator<Item = S>,
    ) -> Running {
        let mut command = self.agent.command(&self.home(), &self.server.url()).unwrap();
        command.args(arguments).envs(environment.iter().copied()).current_dir(self.work());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::new(command.spawn().unwrap())
    }

    /// The agent in a terminal, in a working directory that it trusts.
    pub fn in_terminal(&self, arguments: &[&str]) -> Seated {
        let mut command = self.agent.command(&self.home(), &self.server.url()).unwrap();
        self.agent.trust(&self.home(), &self.work()).unwrap();
        command.args(arguments).env("TERM", "xterm-256color").current_dir(self.work());
        Seated::new(command)
    }

    /// The contents of a file that a tool wrote into the working directory.
    pub fn written(&self, name: &str) -> String {
        fs::read_to_string(self.work().join(name)).unwrap_or_else(|error| format!("{name}: {error}"))
    }

    /// The user's messages of the only conversation.
    pub fn seen(&self) -> Vec<String> {
        let conversations = self.server.user_messages();
        assert_eq!(conversations.len(), 1, "one conversation: {conversations:?}");
        conversations.into_iter().flat_map(|conversation| conversation.messages).collect()
    }

    /// The results of tools that the model got, as the last request has them.
    pub fn returned(&self) -> Vec<String> {
        let requests = self.server.requests();
        requests
            .iter()
            .rev()
            .find_map(|request| request.turn())
            .map(|turn| turn.tool_results.clone())
            .unwrap_or_default()
    }

    /// Every living process that works below this test's folder, which no other test uses.
    pub fn alive(&self) -> Vec<Identity> {
        alive(self.folder.path())
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let deadline = std::time::Instant::now() + LIMIT;
        for process in self.alive() {
            ends_within(&process, deadline.saturating_duration_since(std::time::Instant::now()).min(MOMENT));
        }
        let left = self.alive();
        let names: Vec<String> = left.iter().map(|process| command_line(process.pid()).join(" ")).collect();
        for process in &left {
            if let Ok(Some(pidfd)) = Pidfd::open(process) {
                // The process may have exited meanwhile.
                let _ = pidfd.signal(Signal::KILL);
            }
            ends_within(process, LIMIT);
        }
        if !std::thread::panicking() {
            assert!(names.is_empty(), "left running (ended now): {names:?}");
        }
    }
}

/// The time that an agent needs to exit after it was asked to, also on a busy machine.
const MOMENT: std::time::Duration = std::time::Duration::from_secs(30);

fn alive(folder: &Path) -> Vec<Identity> {
    let me = std::process::id().to_string();
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| *name != me)
        .filter_map(|name| name.parse().ok())
        .filter(|pid: &i32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder)))
        .filter_map(|pid| Stat::read(pid).ok().flatten())
        .filter(|stat| !stat.is_zombie())
        .map(|stat| stat.identity())
        .collect()
}
