//! A home of its own for one test, and the built program in a clean environment.

use crate::leftovers;
use crate::output::{Output, Started};
use crate::patience;
use crate::session::Session;
use crate::shown::Shown;
use ostler_sys::clock;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Everything that a test needs. When dropped it ends every session of its home and checks that nothing is left.
#[derive(Debug)]
pub struct Harness {
    program: PathBuf,
    root: TempDir,
    /// Where the sessions are when they are not below `root`.
    sessions_elsewhere: Option<PathBuf>,
    environment: BTreeMap<OsString, OsString>,
}

impl Harness {
    /// `program` is the built `ostler`: `env!("CARGO_BIN_EXE_ostler")`.
    #[must_use]
    pub fn new(program: &str) -> Harness {
        let root = tempfile::Builder::new().prefix("ostler-test-").tempdir().expect("a temporary folder");
        let mut harness =
            Harness { program: PathBuf::from(program), root, sessions_elsewhere: None, environment: BTreeMap::new() };
        for (name, folder) in [
            ("HOME", "home"),
            ("OSTLER_HOME", "ostler"),
            ("OSTLER_DEMO_HOME", "demo"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_DATA_HOME", "data"),
        ] {
            let path = harness.root().join(folder);
            // The program makes its own home.
            if name != "OSTLER_HOME" {
                std::fs::create_dir(&path).expect("a folder");
            }
            harness.set(name, path);
        }
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        harness.set("PATH", path);
        harness.set("OSTLER_DEMO_PACE", "0");
        harness.set("TERM", "xterm-256color");
        harness.set("LANG", "C.UTF-8");
        harness.set("USER", "tester");
        harness
    }

    /// Changes the environment of everything that is started from now on.
    pub fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.environment.insert(name.into(), value.into());
    }

    /// Keeps the sessions below this folder, which only this test uses and which must be dropped after this harness.
    pub fn keep_sessions_below(&mut self, folder: &Path) {
        self.sessions_elsewhere = Some(folder.to_owned());
        self.set("OSTLER_HOME", folder.join("ostler"));
    }

    /// The whole environment, for a test that calls the engine itself.
    #[must_use]
    pub fn variables(&self) -> Vec<(OsString, OsString)> {
        self.environment.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The value of a variable of that environment.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<OsString> {
        self.environment.get(OsStr::new(name)).cloned()
    }

    /// Gives everything that is started from now on a clock that [`Harness::shift_clock`] sets.
    pub fn has_own_clock(&mut self) {
        let file = self.root().join("clock");
        self.set(clock::VARIABLE, file);
    }

    /// From now on that clock is off by this many seconds.
    pub fn shift_clock(&self, seconds: i64) {
        let file = self.root().join("clock");
        let (new, text) = (file.with_extension("new"), seconds.to_string());
        // A process that reads it meanwhile must not see half a number.
        std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &file)).expect("a file");
    }

    /// Writes `config.toml`.
    pub fn configure(&self, text: &str) {
        let folder = self.root().join("config/ostler");
        std::fs::create_dir_all(&folder).expect("a folder");
        let (new, file) = (folder.join("config.toml.new"), folder.join("config.toml"));
        // A process that reads it meanwhile must not see an empty file.
        std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &file)).expect("config.toml");
    }

    /// A folder for files of the test.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// `$OSTLER_HOME`.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        PathBuf::from(&self.environment[OsStr::new("OSTLER_HOME")])
    }

    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// A copy of the program, made by another process. If this process had the file open for writing, a process that
    /// another test starts at that moment would inherit the descriptor, and the file could not be executed.
    #[must_use]
    pub fn copied_program(&self, name: &str) -> PathBuf {
        self.copied(&self.program, name)
    }

    /// A copy of another program.
    #[must_use]
    pub fn copied(&self, program: &Path, name: &str) -> PathBuf {
        let copy = self.root().join(name);
        let made = self.command("cp").arg(program).arg(&copy).status().expect("cp");
        assert!(made.success(), "no copy of the program");
        copy
    }

    /// Makes a program with this text. Another process writes it, for the same reason as in
    /// [`Harness::copied_program`].
    pub fn write_program(&self, file: &Path, text: &str) {
        // The shell writes the file with a built-in command, so it does not depend on the PATH that the test has set.
        let mut shell = self.command("/bin/sh");
        let written = shell.args(["-c", "printf %s \"$2\" >\"$1\"", "sh"]).arg(file).arg(text).status().expect("sh");
        assert!(written.success(), "{} is not written", file.display());
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).expect("its permissions");
    }

    /// The fake agent, which cargo builds next to the program.
    #[must_use]
    pub fn misbehave(&self) -> String {
        let path = self.program.with_file_name("examples").join("misbehave");
        assert!(path.exists(), "{} is missing: cargo build -p ostler --example misbehave", path.display());
        path.to_string_lossy().into_owned()
    }

    /// A program in this test's environment.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(&self.environment).current_dir(self.root().join("home"));
        command
    }

    /// Copies a folder of sessions, also while it is used: a file that is replaced in the meantime cannot be copied.
    #[track_caller]
    pub fn copy(&self, from: &Path, to: &Path) {
        patience::until("the folder is copied", &[from], || {
            let copied = self.command("cp").arg("-a").args([from, to]).status().expect("cp");
            if !copied.success() {
                std::fs::remove_dir_all(to).expect("what was copied");
            }
            copied.success().then_some(())
        });
    }

    /// `ostler` with these arguments, running.
    #[must_use]
    pub fn start(&self, arguments: &[&str]) -> Started {
        let mut command = self.command(&self.program);
        command.args(arguments);
        Started::new(command, None)
    }

    /// `ostler` with these arguments, to its end.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.start(arguments).finish()
    }

    /// `ostler` with something piped in.
    #[track_caller]
    pub fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Output {
        let mut command = self.command(&self.program);
        command.args(arguments);
        Started::new(command, Some(input.to_vec())).finish()
    }

    /// `ostler run -d` with these arguments. Returns the session.
    #[track_caller]
    pub fn detach(&self, arguments: &[&str]) -> Session<'_> {
        let output = self.run(&[&["run", "-d"], arguments].concat()).exits(0);
        self.session(output.stdout.trim_end())
    }

    /// Like [`Harness::detach`], where no cgroup can be made: in a mount namespace without them. Needs root.
    #[track_caller]
    pub fn detach_without_cgroup(&self, arguments: &[&str]) -> Session<'_> {
        let mut command = self.command("unshare");
        command.args(["--mount", "sh", "-c", "umount -R /sys/fs/cgroup 2>/dev/null; exec \"$@\"", "sh"]);
        command.arg(&self.program).args(["run", "-d"]).args(arguments);
        let output = Started::new(command, None).finish().exits(0);
        let session = self.session(output.stdout.trim_end());
        let record = std::fs::read_to_string(session.run_file("run.json")).expect("run.json");
        assert!(record.contains("\"cgroup\":null"), "there was a cgroup after all: {record}");
        session
    }

    #[must_use]
    pub fn session(&self, id: &str) -> Session<'_> {
        Session::new(self, id)
    }

    /// The output of `ostler ls --json`.
    #[track_caller]
    #[must_use]
    pub fn ls(&self) -> Vec<Shown> {
        let output = self.run(&["ls", "--json"]).exits(0);
        serde_json::from_value(output.json()).unwrap_or_else(|error| panic!("{error} in {output:?}"))
    }

    /// All living processes of this test.
    #[must_use]
    pub fn alive(&self) -> Vec<ostler_sys::process::Identity> {
        leftovers::alive(&self.folders())
    }

    /// Fails the test unless all processes of it have exited, or exit within a moment.
    #[track_caller]
    pub fn nothing_is_left(&self) {
        let left = leftovers::settle(&self.folders());
        assert!(left.is_empty(), "still alive (ended now): {left:#?}");
    }

    /// All folders in which processes of this test can work.
    fn folders(&self) -> Vec<&Path> {
        [Some(self.root()), self.sessions_elsewhere.as_deref()].into_iter().flatten().collect()
    }

    fn end_sessions(&self) {
        let names = std::fs::read_dir(self.home().join("sessions")).into_iter().flatten().flatten();
        let ids: Vec<String> = names
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| ostler_core::id::SessionId::parse(name).is_some())
            .collect();
        for id in ids {
            // A session that is damaged on purpose cannot be stopped; the check below shows what is left of it.
            let _ = self.run(&["stop", "--kill", &id]);
        }
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // The test has failed already: end everything, print what it was, and do not hide the failure.
            for process in self.alive() {
                eprintln!(
                    "ended after the failure: {} {:?}",
                    process.pid(),
                    ostler_sys::process::command_line(process.pid())
                );
            }
            leftovers::end(&self.folders());
            return;
        }
        self.end_sessions();
        self.nothing_is_left();
    }
}
