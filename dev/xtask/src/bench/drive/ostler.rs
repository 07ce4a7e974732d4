//! Our own program, in a home of its own.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::bench::Bench;
use crate::bench::execute::run;
use crate::bench::scratch::Scratch;

/// A session that has no keeper for longer than this is an error.
const KEEPER_LIMIT: Duration = Duration::from_secs(10);

pub struct Ostler<'a> {
    scratch: &'a Scratch,
    binary: &'a Path,
    home: PathBuf,
}

/// The fields of `--json` about a session that the benchmarks use.
pub struct Session {
    pub id: String,
    pub alive: bool,
    pub kept: bool,
    pub holder_pid: Option<i32>,
    pub keeper_pid: Option<i32>,
}

impl<'a> Ostler<'a> {
    pub fn in_new_home(bench: &'a Bench) -> Result<Self> {
        let home = bench.scratch.folder("ostler")?;
        Ok(Self { scratch: &bench.scratch, binary: &bench.tools.ostler, home })
    }

    pub fn command<I: IntoIterator<Item: AsRef<OsStr>>>(&self, arguments: I) -> Command {
        let mut command = self.scratch.command(self.binary);
        command.env("OSTLER_HOME", &self.home).args(arguments);
        command
    }

    /// `run -d …`. Returns the new session's id.
    pub fn launch<I: IntoIterator<Item: AsRef<OsStr>>>(&self, arguments: I) -> Result<String> {
        Ok(printed_id(&run(self.command(["run", "-d"]).args(arguments))?.stdout)?.to_owned())
    }

    pub fn sessions(&self) -> Result<Vec<Session>> {
        let listed: Value = serde_json::from_str(&run(&mut self.command(["ls", "-a", "--json"]))?.stdout)
            .context("ostler ls --json is not JSON")?;
        listed.as_array().context("ostler ls --json is not an array")?.iter().map(Session::from_json).collect()
    }

    pub fn show(&self, id: &str) -> Result<Session> {
        let shown = run(&mut self.command(["show", id, "--json"]))?.stdout;
        Session::from_json(&serde_json::from_str(&shown).context("ostler show --json is not JSON")?)
    }

    /// The keeper's process id, once there is a keeper: `run -d` returns when the program has started, a little
    /// earlier.
    pub fn until_kept(&self, id: &str) -> Result<i32> {
        let deadline = Instant::now() + KEEPER_LIMIT;
        loop {
            let session = self.show(id)?;
            match (session.kept, session.keeper_pid) {
                (true, Some(keeper)) => return Ok(keeper),
                (false, _) | (true, None) if Instant::now() > deadline => bail!("session {id} has no keeper"),
                (false, _) | (true, None) => {}
            }
        }
    }

    /// The process id in keeper.json, whether or not the process still lives.
    pub fn keeper_on_record(&self, id: &str) -> Option<i32> {
        let record = std::fs::read(self.folder(id).join("keeper.json")).ok()?;
        let record: Value = serde_json::from_slice(&record).ok()?;
        i32::try_from(record.get("pid")?.as_i64()?).ok()
    }

    /// Waits until the helpers of an ended session have exited: its folder is smaller then.
    pub fn until_left(&self, id: &str) -> Result<()> {
        let deadline = Instant::now() + KEEPER_LIMIT;
        while self.folder(id).join("keeper.json").exists() || self.show(id)?.kept {
            if Instant::now() > deadline {
                bail!("session {id} has ended and is still kept");
            }
        }
        Ok(())
    }

    pub fn stop(&self, id: &str) -> Result<()> {
        // Exit code 6 means that it was stopped on request, as here: it only matters whether it still runs.
        match run(&mut self.command(["stop", "--kill", id])) {
            Ok(_) => Ok(()),
            Err(error) if !self.show(id)?.alive => {
                drop(error);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    pub fn folder(&self, id: &str) -> PathBuf {
        self.folders().join(id)
    }

    pub fn folders(&self) -> PathBuf {
        self.home.join("sessions")
    }

    /// How many sessions have their view noted in the index of lists.
    pub fn noted_by_lists(&self) -> Result<usize> {
        match std::fs::read(self.home.join("live.index")) {
            Ok(index) => Ok(String::from_utf8_lossy(&index).matches("\"view\":{").count()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a command has noted which sessions are in the archive.
    pub fn archive_is_listed(&self) -> Result<bool> {
        let names =
            std::fs::read_dir(self.archive())?.map(|entry| Ok(entry?.file_name())).collect::<Result<Vec<_>>>()?;
        Ok(names.iter().any(|name| name.to_string_lossy().ends_with(".list")))
    }

    pub fn archive(&self) -> PathBuf {
        self.home.join("archive")
    }

    /// Deletes every session: for rows whose output fills disks.
    pub fn empty_home(&self) -> Result<()> {
        std::fs::remove_dir_all(&self.home)?;
        Ok(std::fs::create_dir(&self.home)?)
    }
}

/// The id that `run -d` prints, alone on stdout.
pub fn printed_id(stdout: &str) -> Result<&str> {
    match stdout.split_whitespace().collect::<Vec<_>>().as_slice() {
        [id] => Ok(id),
        [] | [_, _, ..] => bail!("ostler run -d printed {stdout:?} instead of an id"),
    }
}

impl Session {
    fn from_json(session: &Value) -> Result<Self> {
        let truth = |key: &str| session.get(key).and_then(Value::as_bool).with_context(|| format!("no `{key}`"));
        let pid = |key: &str| session.get(key).and_then(Value::as_i64).and_then(|pid| i32::try_from(pid).ok());
        Ok(Self {
            id: session.get("id").and_then(Value::as_str).context("no `id`")?.to_owned(),
            alive: truth("alive")?,
            kept: truth("kept")?,
            holder_pid: pid("holder_pid"),
            keeper_pid: pid("keeper_pid"),
        })
    }
}

impl Drop for Ostler<'_> {
    fn drop(&mut self) {
        let living = self.sessions().map(|sessions| sessions.into_iter().filter(|session| session.alive));
        let ended = living.and_then(|mut living| living.try_for_each(|session| self.stop(&session.id)));
        if let Err(error) = ended {
            eprintln!("ostler's sessions were not ended by its own means: {error:#}");
        }
    }
}
