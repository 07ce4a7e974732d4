//! pueue: one daemon, a queue of shell commands, here with room for all of them at once.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::daemon::Daemon;
use crate::bench::Bench;
use crate::bench::execute::run;
use crate::bench::scratch::Scratch;

pub struct Pueue<'a> {
    scratch: &'a Scratch,
    program: &'a Path,
    settings: PathBuf,
    daemon: Daemon,
}

impl<'a> Pueue<'a> {
    pub fn start(bench: &'a Bench, at_once: usize) -> Result<Self> {
        let (scratch, program) = (&bench.scratch, bench.tools.pueue.path()?);
        let folder = scratch.folder("pueue")?;
        let settings = folder.join("pueue.yml");
        let mut text = String::from("shared:\n  use_unix_socket: true\n");
        writeln!(text, "  pueue_directory: {}", folder.display())?;
        writeln!(text, "  runtime_directory: {}", folder.display())?;
        writeln!(text, "  unix_socket_path: {}", scratch.socket("p").display())?;
        std::fs::write(&settings, text)?;
        let mut server = scratch.command(bench.tools.pueued.path()?);
        let answers = || run(client(scratch, program, &settings).arg("status")).is_ok();
        let daemon = Daemon::start(server.arg("-c").arg(&settings), answers)?;
        let pueue = Self { scratch, program, settings, daemon };
        run(pueue.command().args(["parallel", &at_once.to_string()]))?;
        Ok(pueue)
    }

    pub fn command(&self) -> Command {
        client(self.scratch, self.program, &self.settings)
    }

    /// Adds a task and returns its number.
    pub fn add(&self, shell_command: &str) -> Result<String> {
        let printed = run(self.command().args(["add", "--print-task-id", "--"]).arg(shell_command))?.stdout;
        let number = printed.trim();
        number.parse::<u32>().with_context(|| format!("pueue printed {number:?} instead of a task's number"))?;
        Ok(number.to_owned())
    }

    /// Adds several tasks of one command and returns once all of them run.
    pub fn add_running(&self, count: usize, shell_command: &str) -> Result<()> {
        let tasks = (0..count).map(|_| self.add(shell_command)).collect::<Result<Vec<_>>>()?;
        run(self.command().args(["wait", "--quiet", "--status", "running"]).args(tasks)).map(drop)
    }

    /// Returns once no task waits or runs.
    pub fn wait_until_done(&self) -> Result<()> {
        run(self.command().args(["wait", "--quiet"])).map(drop)
    }

    pub fn daemon_pid(&self) -> u32 {
        self.daemon.pid()
    }
}

fn client(scratch: &Scratch, program: &Path, settings: &Path) -> Command {
    let mut command = scratch.command(program);
    command.arg("-c").arg(settings);
    command
}
