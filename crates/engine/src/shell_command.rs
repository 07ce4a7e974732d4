//! Checks a shell command that is to be run later, perhaps several times: whether it can be started at all is found out
//! now.

use crate::engine::Engine;
use crate::error::{Error, Result};
use std::path::Path;
use std::process::{Command, Stdio};

impl Engine {
    /// Refuses a command that the shell cannot read, or whose program does not exist. Nothing of it is run.
    pub fn check_shell_command(&self, command: &str, folder: &Path) -> Result<()> {
        self.refuse_command(command, folder, true)
    }

    /// The same for a command that runs in a folder that is made later: a program with a relative path may exist then.
    pub fn check_later_command(&self, command: &str) -> Result<()> {
        self.refuse_command(command, Path::new("/"), false)
    }

    fn refuse_command(&self, command: &str, folder: &Path, is_there: bool) -> Result<()> {
        let refused = |why: String| Error::CannotBeStarted { command: command.to_owned(), why };
        if command.trim().is_empty() {
            return Err(refused("it is empty".to_owned()));
        }
        let read = self.shell(&["-n", "-c", command], folder)?;
        if !read.status.success() {
            let said = String::from_utf8_lossy(&read.stderr);
            return Err(refused(said.lines().next().unwrap_or("the shell cannot read it").to_owned()));
        }
        if let Some(program) = program(command)
            && (is_there || program.starts_with('/') || !program.contains('/'))
            && !self.shell(&["-c", "command -v -- \"$1\"", "sh", program], folder)?.status.success()
        {
            return Err(refused(format!("there is no program {program:?}")));
        }
        Ok(())
    }

    fn shell(&self, arguments: &[&str], folder: &Path) -> Result<std::process::Output> {
        let mut shell = Command::new("sh");
        shell.args(arguments).current_dir(folder).stdin(Stdio::null()).env_clear();
        shell.envs(self.environment.variables().iter().map(|(name, value)| (name, value)));
        Ok(shell.output()?)
    }
}

/// The program that a command begins with; `None` when only the shell can say.
fn program(command: &str) -> Option<&str> {
    let is_assignment = |word: &&str| word.split_once('=').is_some_and(|(name, _)| !name.contains('/'));
    let word = command.split_whitespace().find(|word| !is_assignment(word))?;
    let plain = |character: char| character.is_alphanumeric() || "._-+/@%:,[".contains(character);
    // An assignment may have white space in its value.
    let whole = !command.contains(['"', '\'', '\\']) || command.trim_start().starts_with(word);
    (whole && word.chars().all(plain)).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_the_first_word_that_is_no_assignment() {
        assert_eq!(program("make test"), Some("make"));
        assert_eq!(program("RUST_LOG=x ./go --now"), Some("./go"));
        assert_eq!(program("test -f 'a b'"), Some("test"));
        for unknown in ["$X test", "(a; b)", "A='b c' d", "\"my program\"", ""] {
            assert_eq!(program(unknown), None, "{unknown}");
        }
    }
}
