//! Exit codes, and errors as one line for a person: what is wrong; what to do.

use crate::context::variable;
use crate::ui::suggest::nearest;
use ostler_core::outcome::{Kind, Outcome, Saved};
use ostler_keeper::launch::LaunchError;
use ostler_store::StoreError;
use ostler_store::home::{Home, NotFound};
use std::fmt;

/// What `run`, `wait`, `stop` and `resume` say with their exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Succeeded,
    Failed,
    Usage,
    NoSession,
    Asks,
    Lost,
    Stopped,
    Refused,
    NotSaved,
    TimedOut,
    Ours,
}

impl Code {
    pub fn number(self) -> u8 {
        match self {
            Code::Succeeded => 0,
            Code::Failed => 1,
            Code::Usage => 2,
            Code::NoSession => 3,
            Code::Asks => 4,
            Code::Lost => 5,
            Code::Stopped => 6,
            Code::Refused => 7,
            Code::NotSaved => 8,
            Code::TimedOut => 124,
            Code::Ours => 125,
        }
    }

    /// What an outcome means to a script.
    pub fn of(outcome: &Outcome) -> Code {
        match outcome.kind {
            Kind::Succeeded if outcome.saved == Saved::Unverified => Code::NotSaved,
            Kind::Succeeded => Code::Succeeded,
            Kind::Failed => Code::Failed,
            Kind::Interrupted | Kind::Stopped => Code::Stopped,
            Kind::Lost => Code::Lost,
        }
    }
}

/// An error that ends a command.
#[derive(Debug)]
pub struct Failure {
    pub code: Code,
    pub words: String,
}

impl Failure {
    pub fn new(code: Code, words: impl Into<String>) -> Failure {
        Failure { code, words: words.into() }
    }

    pub fn usage(words: impl Into<String>) -> Failure {
        Failure::new(Code::Usage, words)
    }

    pub fn ours(words: impl Into<String>) -> Failure {
        Failure::new(Code::Ours, words)
    }
}

impl fmt::Display for Failure {
    /// One line, whatever was put in: names and paths come from outside.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = without_numbers(&self.words.replace('\n', " "));
        f.write_str(&ostler_screen::printable(&line))
    }
}

/// The system's errors carry a number that tells a person nothing: " (os error 13)".
fn without_numbers(text: &str) -> String {
    match text.split_once(" (os error ") {
        Some((before, after)) => match after.split_once(')') {
            Some((_, rest)) => format!("{before}{}", without_numbers(rest)),
            None => text.to_owned(),
        },
        None => text.to_owned(),
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::ours(format!("{error}{}", hint(&error)))
    }
}

/// What to do about it.
fn hint(error: &StoreError) -> &'static str {
    match error {
        StoreError::Of { error, .. } => hint(error),
        StoreError::Newer { .. } => "; use that version of ostler or a newer one",
        StoreError::Io { error, .. } if ostler_store::is_full_disk(error) => "; free some disk space",
        StoreError::Io { error, .. } if error.kind() == std::io::ErrorKind::PermissionDenied => {
            "; check its owner, or set OSTLER_HOME"
        }
        StoreError::Io { .. } => "",
        StoreError::Damaged { .. } | StoreError::Missing { .. } => "; see ostler doctor",
        StoreError::Copy { .. } => "; delete the copy",
    }
}

/// The name of a session that was probably meant. Looked up only here, when there is none of that name.
fn nearest_name(word: &str) -> Option<String> {
    let places = Home::find(&variable)?.live_places().ok()?;
    let names: Vec<String> =
        places.iter().filter_map(|place| place.open().and_then(|folder| folder.session()).ok()?.name).collect();
    nearest(word, names.iter().map(String::as_str)).map(str::to_owned)
}

impl From<NotFound> for Failure {
    fn from(error: NotFound) -> Failure {
        match error {
            NotFound::None(ref word) => {
                let hint = match nearest_name(word) {
                    Some(name) => format!("did you mean {name}?"),
                    None => "ostler ls -a lists all sessions".to_owned(),
                };
                Failure::new(Code::NoSession, format!("{error}; {hint}"))
            }
            NotFound::Ambiguous { .. } => Failure::usage(format!("{error}; type more characters")),
            NotFound::Store(error) => error.into(),
        }
    }
}

impl From<LaunchError> for Failure {
    fn from(error: LaunchError) -> Failure {
        match error {
            LaunchError::Store(error) => error.into(),
            LaunchError::Program(words) => Failure::usage(words),
            LaunchError::Held(words) => crate::one_writer::held(&words),
            LaunchError::NotStarted(words) => Failure::ours(words),
            LaunchError::System(error) if ostler_store::is_full_disk(&error) => {
                Failure::ours("the disk is full; free some space")
            }
            other @ (LaunchError::Killed | LaunchError::Holder(_) | LaunchError::System(_)) => {
                Failure::ours(other.to_string())
            }
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::ours(error.to_string())
    }
}

pub type Result<T> = std::result::Result<T, Failure>;
