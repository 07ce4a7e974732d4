//! Arguments and environment of the agent. They are checked once, so that no later code finds a mistake in them.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;
use uuid::Uuid;

pub struct Options {
    pub conversation: Conversation,
    pub mode: Mode,
    /// Whether it asks before it changes a file.
    pub ask: bool,
    /// Whether it refuses to run commands and to change files.
    pub read_only: bool,
    pub pace: Pace,
    /// The delay until a line is written to the transcript.
    pub late: Duration,
    pub home: PathBuf,
    pub cwd: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conversation {
    New(Uuid),
    Resumed(Uuid),
    /// A new conversation that begins as a copy of another.
    Forked {
        session: Uuid,
        origin: Uuid,
    },
}

impl Conversation {
    pub fn session(self) -> Uuid {
        match self {
            Conversation::New(session) | Conversation::Resumed(session) | Conversation::Forked { session, .. } => {
                session
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Headless { partial: bool },
    Screen,
}

/// The length of the pauses for people who watch, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace(u32);

impl Pace {
    pub fn of(self, pause: Duration) -> Duration {
        pause.saturating_mul(self.0) / 100
    }
}

#[derive(Debug, Error)]
pub enum WrongUsage {
    #[error("unknown argument {0}")]
    UnknownArgument(String),
    #[error("{0} needs a UUID after it")]
    NoUuid(&'static str),
    #[error("--session-id and --resume exclude each other, and come once")]
    TwoConversations,
    #[error("--fork goes with --session-id: a copy is a new conversation")]
    ForkOfNothing,
    #[error("--partial is for headless mode, --screen is not")]
    PartialScreen,
    #[error("{name} is a number, not {value}")]
    NoNumber { name: &'static str, value: String },
    #[error("no home folder: set OSTLER_DEMO_HOME, XDG_DATA_HOME or HOME")]
    NoHome,
    #[error("the working directory is gone: {0}")]
    NoWorkingDirectory(#[source] io::Error),
}

impl Options {
    /// Reads `args` (without the program's name) and the variables that `variable` returns.
    pub fn read(
        args: impl Iterator<Item = OsString>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Options, WrongUsage> {
        let mut conversation = None;
        let mut origin = None;
        let (mut ask, mut screen, mut partial, mut read_only) = (false, false, false, false);
        let mut args = args;
        while let Some(argument) = args.next() {
            match argument.to_str() {
                Some("--session-id") => {
                    let session = uuid("--session-id", args.next())?;
                    once(&mut conversation, Conversation::New(session))?;
                }
                Some("--resume") => {
                    let session = uuid("--resume", args.next())?;
                    once(&mut conversation, Conversation::Resumed(session))?;
                }
                Some("--fork") => origin = Some(uuid("--fork", args.next())?),
                Some("--ask") => ask = true,
                Some("--screen") => screen = true,
                Some("--read-only") => read_only = true,
                Some("--partial") => partial = true,
                Some(_) | None => return Err(WrongUsage::UnknownArgument(argument.display().to_string())),
            }
        }
        let mode = match (screen, partial) {
            (true, true) => return Err(WrongUsage::PartialScreen),
            (true, false) => Mode::Screen,
            (false, partial) => Mode::Headless { partial },
        };
        if let Some(origin) = origin {
            conversation = match conversation {
                Some(Conversation::New(session)) => Some(Conversation::Forked { session, origin }),
                Some(_) | None => return Err(WrongUsage::ForkOfNothing),
            };
        }
        Ok(Options {
            conversation: conversation.unwrap_or_else(|| Conversation::New(Uuid::new_v4())),
            mode,
            ask,
            read_only,
            pace: Pace(number("OSTLER_DEMO_PACE", &variable)?.unwrap_or(100)),
            late: Duration::from_millis(number("OSTLER_DEMO_LATE", &variable)?.unwrap_or(100).into()),
            home: home(&variable).ok_or(WrongUsage::NoHome)?,
            cwd: std::env::current_dir().map_err(WrongUsage::NoWorkingDirectory)?,
        })
    }
}

fn once(conversation: &mut Option<Conversation>, asked: Conversation) -> Result<(), WrongUsage> {
    match conversation.replace(asked) {
        None => Ok(()),
        Some(_) => Err(WrongUsage::TwoConversations),
    }
}

fn uuid(name: &'static str, value: Option<OsString>) -> Result<Uuid, WrongUsage> {
    value.as_deref().and_then(OsStr::to_str).and_then(|text| text.parse().ok()).ok_or(WrongUsage::NoUuid(name))
}

fn number(name: &'static str, variable: impl Fn(&str) -> Option<OsString>) -> Result<Option<u32>, WrongUsage> {
    let Some(value) = variable(name) else { return Ok(None) };
    match value.to_str().and_then(|text| text.parse().ok()) {
        Some(number) => Ok(Some(number)),
        None => Err(WrongUsage::NoNumber { name, value: value.display().to_string() }),
    }
}

fn home(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("OSTLER_DEMO_HOME")
        .or_else(|| Some(set("XDG_DATA_HOME")?.join("ostler-demo")))
        .or_else(|| Some(set("HOME")?.join(".local/share/ostler-demo")))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that finds no value has failed")]
mod tests {
    use super::*;

    const ID: &str = "6a4d7b8e-2f3c-4d5e-8f60-718293a4b5c6";

    fn read(args: &[&str], variables: &[(&str, &str)]) -> Result<Options, WrongUsage> {
        Options::read(args.iter().map(OsString::from), |name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn a_conversation_is_new_or_resumed_and_never_both() {
        let home = [("HOME", "/h")];
        let id: Uuid = ID.parse().unwrap();
        assert_eq!(read(&["--session-id", ID], &home).unwrap().conversation, Conversation::New(id));
        assert_eq!(read(&["--resume", ID], &home).unwrap().conversation, Conversation::Resumed(id));
        assert!(matches!(read(&["--resume", ID, "--session-id", ID], &home), Err(WrongUsage::TwoConversations)));
        let forked = read(&["--fork", ID, "--session-id", ID], &home).unwrap().conversation;
        assert_eq!(forked, Conversation::Forked { session: id, origin: id });
        assert!(matches!(read(&["--fork", ID, "--resume", ID], &home), Err(WrongUsage::ForkOfNothing)));
        assert!(matches!(read(&["--resume"], &home), Err(WrongUsage::NoUuid("--resume"))));
        assert!(matches!(read(&["--resume", "../../etc"], &home), Err(WrongUsage::NoUuid("--resume"))));
    }

    #[test]
    fn the_home_folder_is_the_most_particular_one_named() {
        let all = [("OSTLER_DEMO_HOME", "/demo"), ("XDG_DATA_HOME", "/data"), ("HOME", "/h")];
        assert_eq!(read(&[], &all).unwrap().home, PathBuf::from("/demo"));
        assert_eq!(read(&[], &all[1..]).unwrap().home, PathBuf::from("/data/ostler-demo"));
        assert_eq!(read(&[], &all[2..]).unwrap().home, PathBuf::from("/h/.local/share/ostler-demo"));
        assert!(matches!(read(&[], &[]), Err(WrongUsage::NoHome)));
    }

    #[test]
    fn a_pace_that_is_no_number_is_refused_rather_than_guessed() {
        let options = read(&[], &[("HOME", "/h"), ("OSTLER_DEMO_PACE", "50")]).unwrap();
        assert_eq!(options.pace.of(Duration::from_secs(1)), Duration::from_millis(500));
        assert!(matches!(
            read(&[], &[("HOME", "/h"), ("OSTLER_DEMO_PACE", "fast")]),
            Err(WrongUsage::NoNumber { name: "OSTLER_DEMO_PACE", .. })
        ));
    }
}
