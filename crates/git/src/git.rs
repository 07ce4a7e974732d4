//! The git program, and the environment that it gets.

use crate::{GitError, Result};
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;

/// Settings of every command. A file system monitor would be a process that outlives ours.
const SETTINGS: [&str; 4] = ["-c", "core.fsmonitor=false", "-c", "advice.detachedHead=false"];

/// Variables of git that are about the person and not about a repository: name and address, where the settings are,
/// which pager is used, and where git looks for a repository at all.
const PERSONAL: [&str; 10] = [
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_PAGER",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
];

/// Whether a variable tells git where its repository, index or objects are, as listed by
/// `git rev-parse --local-env-vars`.
#[must_use]
pub fn points_at_repository(name: &OsStr) -> bool {
    const NAMES: [&str; 12] = [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_COMMON_DIR",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_PREFIX",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_GRAFT_FILE",
        "GIT_SHALLOW_FILE",
        "GIT_CONFIG",
        "GIT_CONFIG_PARAMETERS",
    ];
    NAMES.iter().any(|known| name == *known)
}

/// How git is run: its variables, its process group and its lock.
#[derive(Clone, Debug)]
pub struct Git {
    variables: Vec<(OsString, OsString)>,
    /// In a process group of its own, so that the person's Ctrl-C does not end it.
    apart: bool,
    /// The lock under which git works. It is git's standard input.
    lock: Option<Arc<OwnedFd>>,
}

impl Git {
    /// With the variables of a person, except those that would point git at another repository or change what it
    /// prints.
    #[must_use]
    pub fn new(variables: &[(OsString, OsString)]) -> Git {
        let theirs = |name: &OsStr| PERSONAL.iter().any(|known| name == *known);
        let ours = |name: &OsStr| (name.as_encoded_bytes().starts_with(b"GIT_") && !theirs(name)) || name == "LC_ALL";
        let mut variables: Vec<_> = variables.iter().filter(|(name, _)| !ours(name)).cloned().collect();
        for (name, value) in [
            ("GIT_TERMINAL_PROMPT", "0"),
            // No person is there to answer or edit.
            ("GIT_ASKPASS", "true"),
            ("SSH_ASKPASS", "true"),
            ("GIT_EDITOR", "true"),
            // A command that only reads changes nothing, not even the file dates in the index.
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("LC_ALL", "C"),
        ] {
            variables.push((name.into(), value.into()));
        }
        Git { variables, apart: false, lock: None }
    }

    /// A copy with one more variable.
    #[must_use]
    pub fn with(&self, name: &str, value: impl Into<OsString>) -> Git {
        let mut git = self.clone();
        git.variables.push((name.into(), value.into()));
        git
    }

    /// A copy that Ctrl-C in a terminal does not end: for operations that must not stop halfway.
    pub(crate) fn apart(&self) -> Git {
        Git { apart: true, ..self.clone() }
    }

    /// A copy that works under a lock. Each git process has a copy of the lock's descriptor: when our process is
    /// killed, the git that it started goes on, and the lock stays held until that git has exited. The descriptor is
    /// git's standard input, because git passes that neither to hooks nor to its background processes.
    pub(crate) fn under(&self, lock: OwnedFd) -> Git {
        Git { lock: Some(Arc::new(lock)), ..self.clone() }
    }

    /// A copy that runs none of the repository's hooks: they are meant for what a person does.
    pub(crate) fn without_hooks(&self, more: &[(&str, &str)]) -> Git {
        let settings: Vec<(&str, &str)> =
            [("core.hooksPath", "/dev/null")].into_iter().chain(more.iter().copied()).collect();
        let git = self.with("GIT_CONFIG_COUNT", settings.len().to_string());
        settings.iter().enumerate().fold(git, |git, (number, (key, value))| {
            git.with(&format!("GIT_CONFIG_KEY_{number}"), key).with(&format!("GIT_CONFIG_VALUE_{number}"), value)
        })
    }

    /// A command in this folder.
    fn command(&self, folder: &Path) -> Result<Command> {
        let mut command = Command::new("git");
        command.env_clear().envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.arg("-C").arg(folder).args(SETTINGS);
        let input = match &self.lock {
            // The lock file is empty.
            Some(lock) => lock.try_clone().map_err(not_run)?.into(),
            None => Stdio::null(),
        };
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        if self.apart {
            command.process_group(0);
        }
        Ok(command)
    }

    /// What git prints. `None`: its exit code is not 0.
    pub fn ask<I: IntoIterator<Item: AsRef<OsStr>>>(&self, folder: &Path, arguments: I) -> Result<Option<Vec<u8>>> {
        let output = self.command(folder)?.args(arguments).output().map_err(not_run)?;
        Ok(output.status.success().then_some(output.stdout))
    }

    /// Runs git and returns what it prints, or an error with git's own message.
    pub fn run<I: IntoIterator<Item: AsRef<OsStr>>>(&self, folder: &Path, arguments: I) -> Result<Vec<u8>> {
        let arguments: Vec<OsString> = arguments.into_iter().map(|word| word.as_ref().to_owned()).collect();
        let output = self.command(folder)?.args(&arguments).output().map_err(not_run)?;
        done(&arguments, output)
    }

    /// Runs git with these bytes on its standard input.
    pub fn feed<I: IntoIterator<Item: AsRef<OsStr>>>(
        &self,
        folder: &Path,
        arguments: I,
        input: &[u8],
    ) -> Result<Output> {
        let mut command = self.command(folder)?;
        if !input.is_empty() {
            command.stdin(Stdio::piped());
        }
        let mut child = command.args(arguments).spawn().map_err(not_run)?;
        let stdin = child.stdin.take();
        // Writing and reading at the same time: git may print before it has read everything.
        let output = std::thread::scope(|scope| {
            scope.spawn(move || {
                if let Some(mut stdin) = stdin {
                    // When git stops reading, its exit code says why.
                    let _ = stdin.write_all(input);
                }
            });
            child.wait_with_output()
        });
        output.map_err(not_run)
    }

    /// Starts git with pipes at its input and outputs, for a command that gets questions and prints answers.
    pub(crate) fn start<I: IntoIterator<Item: AsRef<OsStr>>>(&self, folder: &Path, arguments: I) -> Result<Child> {
        self.command(folder)?.args(arguments).stdin(Stdio::piped()).spawn().map_err(not_run)
    }

    /// The file with what a person ignores in all repositories, where no setting of git names another file.
    pub(crate) fn default_excludes(&self) -> Option<PathBuf> {
        let set = |wanted: &str| {
            let found = self.variables.iter().find(|(name, value)| name == wanted && !value.is_empty());
            found.map(|(_, value)| PathBuf::from(value))
        };
        let folder = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))?;
        Some(folder.join("git/ignore"))
    }

    /// Prints git's output on the person's terminal, through the pager that the person has chosen. Returns git's exit
    /// code.
    pub fn show<I: IntoIterator<Item: AsRef<OsStr>>>(&self, folder: &Path, arguments: I) -> Result<i32> {
        let mut command = self.command(folder)?;
        command.args(arguments).stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
        let status = command.status().map_err(not_run)?;
        Ok(status.code().unwrap_or(1))
    }

    /// One line of text, such as a name or an id.
    pub fn line<I: IntoIterator<Item: AsRef<OsStr>>>(&self, folder: &Path, arguments: I) -> Result<Option<String>> {
        let answer = self.ask(folder, arguments)?;
        Ok(answer.and_then(|bytes| String::from_utf8(bytes).ok()).map(|text| text.trim_end_matches('\n').to_owned()))
    }

    /// One path.
    pub fn path<I: IntoIterator<Item: AsRef<OsStr>>>(&self, folder: &Path, arguments: I) -> Result<Option<PathBuf>> {
        let Some(mut bytes) = self.ask(folder, arguments)? else { return Ok(None) };
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        Ok((!bytes.is_empty()).then(|| PathBuf::from(OsString::from_vec(bytes))))
    }
}

fn not_run(error: io::Error) -> GitError {
    match error.kind() {
        io::ErrorKind::NotFound => GitError::NotInstalled,
        _ => GitError::Failed { what: "program".to_owned(), words: error.to_string() },
    }
}

/// What git printed, or an error with what it complained of.
pub(crate) fn done(arguments: &[OsString], output: Output) -> Result<Vec<u8>> {
    if output.status.success() {
        return Ok(output.stdout);
    }
    let what = arguments.iter().take(2).map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    Err(GitError::Failed { what, words: complaint(&output) })
}

/// The line that says why git failed, or else its last line with content, without the word that the line begins with.
pub(crate) fn complaint(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("hint:"));
    match lines().rfind(|line| line.starts_with("fatal: ")).or_else(|| lines().next_back()) {
        Some(line) => line.trim_start_matches("fatal: ").trim_start_matches("error: ").to_owned(),
        None => output.status.to_string(),
    }
}

/// The fields of output in which each field ends with a zero byte.
pub(crate) fn fields(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|&byte| byte == 0).filter(|field| !field.is_empty())
}
