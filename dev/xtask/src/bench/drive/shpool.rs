//! shpool: one daemon for all sessions.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::daemon::Daemon;
use crate::bench::Bench;
use crate::bench::execute::run;
use crate::bench::scratch::Scratch;

pub struct Shpool<'a> {
    scratch: &'a Scratch,
    program: &'a Path,
    socket: PathBuf,
    daemon: Daemon,
}

impl<'a> Shpool<'a> {
    pub fn start(bench: &'a Bench) -> Result<Self> {
        let (scratch, program) = (&bench.scratch, bench.tools.shpool.path()?);
        let socket = scratch.socket("s");
        let answers = || run(client(scratch, program, &socket).arg("list")).is_ok();
        let daemon = Daemon::start(client(scratch, program, &socket).arg("daemon"), answers)?;
        Ok(Self { scratch, program, socket, daemon })
    }

    pub fn command(&self) -> Command {
        client(self.scratch, self.program, &self.socket)
    }

    /// Starts a session of one command, without attaching to it.
    pub fn launch_command(&self, name: &str, command_line: &str) -> Command {
        let mut command = self.command();
        command.args(["attach", "--background", "--cmd", command_line, name]);
        command
    }

    pub fn daemon_pid(&self) -> u32 {
        self.daemon.pid()
    }
}

fn client(scratch: &Scratch, program: &Path, socket: &Path) -> Command {
    let mut command = scratch.command(program);
    command.arg("--no-daemonize").arg("--socket").arg(socket);
    command
}
