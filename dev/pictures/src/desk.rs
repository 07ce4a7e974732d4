//! A simulated person's environment: a home folder, a project, and a terminal in which commands are typed one after the
//! other.

use crate::steady;
use anyhow::{Context, Result, bail};
use ostler_screen::{Screen, Size};
use ostler_sys::pty::Pty;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// In every picture it is two minutes past ten, so that the times in a list are the same each time.
const TIME: u64 = 10 * 3600 + 2 * 60;
const DAY: u64 = 24 * 3600;
/// What has not come after this time has failed.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Desk {
    program: PathBuf,
    root: TempDir,
    pty: Pty,
    pub screen: Screen,
    /// How many seconds ago it was the time of the picture.
    back: u64,
    /// What was on the screen before a session was detached, where that is the picture.
    pub attached: Option<Screen>,
    /// The ids of all sessions so far, including archived ones.
    ids: Vec<String>,
}

/// Detaches from a session.
pub const DETACH: &str = "\x1c";
/// Types nothing: the picture is what the screen shows.
pub const SHOT: &str = "";

impl Desk {
    pub fn new(program: &Path, size: Size) -> Result<Desk> {
        // As long as the path that the picture shows instead, so that what follows it stays in its column.
        let root = tempfile::Builder::new().prefix("o").rand_bytes(3).tempdir_in("/tmp")?;
        let git = root.path().join("src/shop/.git");
        std::fs::create_dir_all(&git)?;
        std::fs::write(git.join("HEAD"), "ref: refs/heads/main\n")?;
        let pty = Pty::open(size.rows, size.columns)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let back = (now + DAY - TIME) % DAY;
        Ok(Desk {
            program: program.to_owned(),
            root,
            pty,
            screen: Screen::new(size),
            back,
            attached: None,
            ids: Vec::new(),
        })
    }

    pub fn root(&self) -> &Path {
        self.root.path()
    }

    pub fn sessions(&self) -> PathBuf {
        self.root().join(".local/state/ostler/sessions")
    }

    /// Sets the clock to this many seconds before the time of the picture.
    pub fn set_clock_back(&self, seconds: u64) -> Result<()> {
        let (file, new) = (self.root().join(".clock"), self.root().join(".clock.new"));
        std::fs::write(&new, format!("-{}", self.back + seconds))?;
        Ok(std::fs::rename(new, file)?)
    }

    /// A program in the project, without the environment of the person who makes the picture.
    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let home = self.root();
        let mut command = Command::new(program);
        command.env_clear().current_dir(home.join("src/shop")).env("TZ", "UTC");
        command.env("HOME", home).env("OSTLER_CLOCK", self.root().join(".clock")).env("TERM", "xterm-256color");
        command
            .env("OSTLER_DEMO_HOME", home.join("demo"))
            .env("USER", "ann")
            .env("LANG", "C.UTF-8")
            .env("OSTLER_DEMO_PACE", "0");
        command.env("PATH", std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()));
        command
    }

    /// Makes the project a repository with these files and one commit.
    pub fn has_repository(&self, files: &[(&str, &str)]) -> Result<()> {
        let folder = self.root().join("src/shop");
        std::fs::remove_dir_all(folder.join(".git"))?;
        for (name, text) in files {
            std::fs::write(folder.join(name), text)?;
        }
        for words in [
            &["config", "--global", "user.name", "Ann"][..],
            &["config", "--global", "user.email", "ann@example.com"],
            &["init", "--quiet", "--initial-branch", "main"],
            &["add", "--all"],
            &["commit", "--quiet", "--message", "A greeting"],
        ] {
            let output = self.command("git").args(words).output()?;
            if !output.status.success() {
                bail!("git {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
            }
        }
        Ok(())
    }

    /// Runs a command that the picture does not show, and returns what it printed.
    pub fn unseen(&self, words: &[&str]) -> Result<String> {
        let output = self.command(&self.program).args(words).stdin(Stdio::null()).output()?;
        // The scene decides what a session's outcome means; wrong usage and failures of the program itself are errors.
        if matches!(output.status.code(), None | Some(2 | 3 | 125)) {
            bail!("ostler {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Types a command and shows its output. `keys`: what is typed once the screen shows a text.
    pub fn types(&mut self, typed: &str, words: &[&str], keys: &[(&str, &str)]) -> Result<()> {
        self.screen.feed(format!("\x1b[1;32m$\x1b[0m \x1b[1m{typed}\x1b[0m\r\n").as_bytes());
        let theirs = &self.pty.theirs;
        // The terminal has to be the controlling terminal of the program, as with a shell.
        let mut command = self.command("setsid");
        command.args(["--ctty", "--wait"]).arg(&self.program).args(words);
        command.stdin(theirs.try_clone()?).stdout(theirs.try_clone()?).stderr(theirs.try_clone()?);
        let mut child = command.spawn().context("setsid (util-linux) is needed")?;
        let deadline = Instant::now() + PATIENCE;
        // The screen after earlier commands, and what this command has written so far.
        let (before, mut written) = (self.screen.clone(), Vec::new());
        let mut keys = keys.iter();
        let mut next = keys.next();
        loop {
            let came = self.reads(&mut written)?;
            if let Some((text, typed)) = next
                && !came
                && self.screen.text().join("\n").contains(text)
            {
                if [DETACH, SHOT].contains(typed) {
                    self.attached = Some(self.screen.clone());
                }
                rustix::io::write(&self.pty.ours, typed.as_bytes())?;
                next = keys.next();
            }
            if came {
                // From the beginning: a text that has to be replaced may have come in two pieces.
                self.screen = before.clone();
                let steady = self.steady(&written)?;
                self.screen.feed(&steady);
            } else if child.try_wait()?.is_some() {
                return Ok(());
            }
            if Instant::now() > deadline {
                child.kill()?;
                child.wait()?;
                bail!("{typed:?} does not end; the screen:\n{}", self.screen.text().join("\n"));
            }
        }
    }

    /// Reads what was written. `false`: nothing came for a moment.
    fn reads(&self, written: &mut Vec<u8>) -> Result<bool> {
        let moment = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        poll(&mut [PollFd::new(&self.pty.ours, PollFlags::IN)], Some(&moment))?;
        let mut buffer = [0; 65536];
        match rustix::io::read(&self.pty.ours, &mut buffer) {
            Ok(count) => {
                written.extend_from_slice(&buffer[..count]);
                Ok(count > 0)
            }
            Err(Errno::AGAIN | Errno::IO) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes the output independent of the person who makes the picture, of the place and of the time.
    fn steady(&mut self, written: &[u8]) -> Result<Vec<u8>> {
        let home = self.root().to_string_lossy().into_owned();
        // Agents name folders of their own after the path of the project.
        let encoded = home.replace(['/', '.'], "-");
        let text = String::from_utf8_lossy(written).replace(&home, "/home/ann").replace(&encoded, "-home-ann");
        let found = steady::ids(&self.sessions())?;
        self.ids.extend(found.into_iter().filter(|id| !self.ids.contains(id)).collect::<Vec<_>>());
        Ok(steady::steady(&text, &self.ids).into_bytes())
    }

    /// Waits until a session's record has this text.
    pub fn until_shown(&self, id: &str, text: &str) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !self.unseen(&["show", "--json", id])?.contains(text) {
            if Instant::now() > deadline {
                bail!("{id} never has {text}");
            }
        }
        Ok(())
    }

    /// Ends every session, so that nothing of a picture stays behind.
    pub fn clears_up(&self) -> Result<()> {
        self.unseen(&["stop", "--all", "--kill"]).map(drop)
    }
}
