//! tmux, with a server of its own that stays when the last session has ended.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::bench::Bench;
use crate::bench::execute::run;
use crate::bench::scratch::Scratch;
use crate::bench::terminal::{COLUMNS, ROWS};
use crate::processes::Tree;

pub struct Tmux<'a> {
    scratch: &'a Scratch,
    program: &'a Path,
    socket: PathBuf,
}

impl<'a> Tmux<'a> {
    pub fn start(bench: &'a Bench) -> Result<Self> {
        let tmux =
            Self { scratch: &bench.scratch, program: bench.tools.tmux.path()?, socket: bench.scratch.socket("t") };
        run(tmux.command().args(["start-server", ";", "set-option", "-g", "exit-empty", "off"]))?;
        Ok(tmux)
    }

    pub fn command(&self) -> Command {
        command_at(self.scratch, self.program, &self.socket)
    }

    /// Starts a detached session of one shell command, of the size at which clients will attach.
    pub fn launch(&self, name: &str, shell_command: &str) -> Result<()> {
        let mut command = self.command();
        command.args(["new-session", "-d", "-s", name, "-x", &COLUMNS.to_string(), "-y", &ROWS.to_string()]);
        run(command.arg(shell_command)).map(drop)
    }

    pub fn server_pid(&self) -> Result<i32> {
        let said = run(self.command().args(["display-message", "-p", "#{pid}"]))?.stdout;
        said.trim().parse().with_context(|| format!("tmux gave {said:?} for its process id"))
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    pub fn program(&self) -> &Path {
        self.program
    }
}

/// A command to a server that does not run yet, and that exits with its last session.
pub fn cold_command(bench: &Bench) -> Result<Command> {
    Ok(command_at(&bench.scratch, bench.tools.tmux.path()?, &bench.scratch.socket("tc")))
}

fn command_at(scratch: &Scratch, program: &Path, socket: &Path) -> Command {
    let mut command = scratch.command(program);
    // Without the user's settings file.
    command.arg("-S").arg(socket).args(["-f", "/dev/null"]);
    command
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        let _ended_after_it = self.server_pid().and_then(|server| Tree::below(vec![server])).ok();
        if let Err(error) = run(self.command().arg("kill-server")) {
            eprintln!("tmux was not ended by its own means: {error:#}");
        }
    }
}
