//! The environment that a face passes in: its variables and its working folder, as they were when the engine was
//! opened.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// Variables and the working folder.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: Vec<(OsString, OsString)>,
    /// `None` when it was deleted.
    folder: Option<PathBuf>,
    /// Rows and columns of the user's terminal, for sessions that are started from it.
    pub window: Option<(u16, u16)>,
}

impl Environment {
    /// The environment of this process.
    #[must_use]
    pub fn of_process() -> Environment {
        Environment { variables: std::env::vars_os().collect(), folder: std::env::current_dir().ok(), window: None }
    }

    /// An environment with these variables and this working folder, for tests and for a face that serves other
    /// processes.
    #[must_use]
    pub fn new(variables: Vec<(OsString, OsString)>, folder: Option<PathBuf>) -> Environment {
        Environment { variables, folder, window: None }
    }

    /// A variable, if its value is valid UTF-8.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<String> {
        let found = self.variables.iter().find(|(known, _)| known == OsStr::new(name));
        found.and_then(|(_, value)| value.to_str()).map(str::to_owned)
    }

    /// The same as a function, for the crates below the engine.
    pub fn lookup(&self) -> impl Fn(&str) -> Option<String> + '_ {
        |name| self.variable(name)
    }

    /// All variables.
    #[must_use]
    pub fn variables(&self) -> &[(OsString, OsString)] {
        &self.variables
    }

    /// The working folder.
    pub fn folder(&self) -> io::Result<&Path> {
        self.folder.as_deref().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}
