//! dtach: one process per session and nothing else.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use rustix::process::Signal;

use crate::bench::Bench;
use crate::bench::execute::run;
use crate::bench::scratch::Scratch;
use crate::processes::{Baseline, Process, Tree};

pub struct Dtach<'a> {
    scratch: &'a Scratch,
    program: &'a Path,
    /// On the same disk as the sessions of the other tools: creating a file takes a different time in different places.
    sockets: PathBuf,
}

/// Sessions and everything that runs in them; ended when dropped, because dtach has no command for that.
pub struct Sessions {
    pub processes: Vec<Process>,
}

impl<'a> Dtach<'a> {
    pub fn new(bench: &'a Bench) -> Result<Self> {
        let sockets = bench.scratch.nearby_folder("dtach")?;
        Ok(Self { scratch: &bench.scratch, program: bench.tools.dtach.path()?, sockets })
    }

    pub fn socket(&self) -> PathBuf {
        self.sockets.join(self.scratch.unique("d"))
    }

    /// `dtach HOW SOCKET …`
    pub fn command(&self, how: &str, socket: &Path) -> Command {
        let mut command = self.scratch.command(self.program);
        command.arg(how).arg(socket);
        command
    }

    /// Starts several sessions of one command.
    pub fn launch(&self, count: usize, words: &[&str]) -> Result<(Sessions, Vec<PathBuf>)> {
        let before = Baseline::now()?;
        let mut sockets = Vec::new();
        let mut sessions = Sessions { processes: Vec::new() };
        for _ in 0..count {
            let socket = self.socket();
            let launched = run(self.command("-n", &socket).args(words));
            // Before an error is returned: what was started belongs to `sessions`, which ends it.
            sessions.processes = before.newcomers()?;
            launched?;
            sockets.push(socket);
        }
        Ok((sessions, sockets))
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        let pids = self.processes.iter().map(|process| process.identity.pid()).collect();
        let _ended_with_them = Tree::below(pids);
        for process in &self.processes {
            if let Err(error) = process.identity.signal(Signal::KILL) {
                eprintln!("{process}: {error:#}");
            }
        }
    }
}
