//! Exit codes, and errors as one line for a person: what is wrong; what to do.

mod adopting;
#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod every_error;
mod resuming;
mod starting;
mod worktrees;

use crate::commands::ls::tilde;
use ostler_core::outcome::{Kind, Outcome, Saved};
use ostler_engine::Error;
use ostler_engine::logs::LogRefusal;
use ostler_engine::moved::Moved;
use ostler_engine::{LaunchError, SearchError};
use ostler_engine::{NotFound, StoreError, is_full_disk, is_out_of_descriptors};
use std::fmt;

/// The exit codes of `run`, `wait`, `stop` and `resume`.
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

    /// The exit code for an outcome.
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
    /// Always one line: names and paths come from outside and may contain line breaks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = without_numbers(&self.words.replace('\n', " "));
        f.write_str(&ostler_screen::printable(&line))
    }
}

/// The system's errors contain a number that is useless to a person: " (os error 13)".
fn without_numbers(text: &str) -> String {
    match text.split_once(" (os error ") {
        Some((before, after)) => match after.split_once(')') {
            Some((_, rest)) => format!("{before}{}", without_numbers(rest)),
            None => text.to_owned(),
        },
        None => text.to_owned(),
    }
}

impl From<Error> for Failure {
    /// The one table that gives an error of the engine its exit code, and says what to do about it.
    fn from(error: Error) -> Failure {
        let (code, hint) = advice(&error);
        let what = in_options(&error).unwrap_or_else(|| error.to_string());
        Failure::new(code, if hint.is_empty() { what } else { format!("{what}; {hint}") })
    }
}

/// What is wrong, where the options of the command line describe it better than the engine, which does not know them.
fn in_options(error: &Error) -> Option<String> {
    match error {
        Error::Unlaunchable(refusal) => starting::in_options(refusal),
        Error::Unadoptable(refusal) => adopting::in_options(refusal),
        Error::NotRepaired { path, error } => {
            Some(format!("{} cannot be repaired: {error}", tilde(&path.to_string_lossy())))
        }
        _ => None,
    }
}

fn advice(error: &Error) -> (Code, String) {
    match error {
        Error::NoHome => (Code::Ours, "set one of them".to_owned()),
        Error::NoNotifications => (Code::Usage, "ostler help notify has an example".to_owned()),
        Error::Output(_) | Error::System(_) | Error::Unreadable { .. } | Error::CannotCompare { .. } => {
            (Code::Ours, String::new())
        }
        Error::NotFound { error, nearest } => not_found(error, nearest.as_deref()),
        Error::Store(error) => (Code::Ours, hint(error).to_owned()),
        Error::Launch(error) => launching(error),
        Error::Config(_) => (Code::Usage, "correct or remove it".to_owned()),
        Error::DiskFull => (Code::Ours, "free some space".to_owned()),
        Error::Limit(_) => (Code::Usage, String::new()),
        Error::Unlaunchable(refusal) => starting::advice(refusal),
        Error::Git(error) => worktrees::advice(error),
        Error::TreeInUse { session } => {
            (Code::Refused, format!("add --worktree, or stop it first: ostler stop {}", session.id))
        }
        Error::NoWorktree { .. } => {
            (Code::Usage, "start sessions with --worktree to keep their changes apart".to_owned())
        }
        Error::NothingChanged { session } => (Code::Failed, format!("read what it says: ostler logs {}", session.id)),
        Error::StillWorks { session } => {
            let id = session.id;
            (Code::Refused, format!("wait for it: ostler wait --until turn {id}, or stop it: ostler stop {id}"))
        }
        Error::CannotOnlyRead { .. } => (Code::Usage, "name another agent with --by".to_owned()),
        Error::NothingToHandOver { .. } => (Code::Usage, "see ostler handover --help".to_owned()),
        Error::NoTarget { .. } => (Code::Usage, "name a branch with --into".to_owned()),
        Error::IsTheGroup { members, .. } => (Code::Usage, format!("name one of its sessions: {}", members.join(", "))),
        Error::InNoGroup { session } => (Code::Usage, format!("land it alone: ostler land {}", session.id)),
        Error::Left => (Code::Stopped, "nothing has changed".to_owned()),
        Error::NoSnapshots { .. } => (
            Code::Usage,
            "they are taken of agents in a git repository, unless config.toml says snapshots = \"off\"".to_owned(),
        ),
        Error::NoSnapshot { turns, .. } => (Code::Usage, format!("there are some after these: {turns}")),
        Error::InTheWay { .. } => (Code::Failed, "nothing has changed; move them away first".to_owned()),
        Error::NoRewind { .. } => (Code::Usage, "nothing has changed".to_owned()),
        Error::CheckStopped { .. } => (Code::Stopped, "run it again".to_owned()),
        Error::NothingBeforeStart { turns, .. } => (Code::Usage, format!("it has had turns 1 to {turns}")),
        Error::NoSuchTurn { session, turn: 0, .. } => {
            (Code::Usage, format!("to put back only its files: ostler rewind {} --turn 0 --files", session.id))
        }
        Error::NoSuchTurn { turns, .. } => (Code::Usage, format!("it has had turns 1 to {turns}")),
        Error::TurnNotFound { session, .. } => {
            (Code::Failed, format!("only its files can go back: ostler rewind {} --turn N --files", session.id))
        }
        Error::BranchMoves { .. } => (Code::Failed, "try again later".to_owned()),
        Error::WouldLose { name, loss } => worktrees::about_loss(name, loss),
        Error::WorktreeInUse { session, .. } => (Code::Refused, format!("stop it first: ostler stop {}", session.id)),
        Error::Unresumable(refusal) => resuming::advice(refusal),
        Error::Unforkable(refusal) => resuming::about_copy(refusal),
        Error::Unadoptable(refusal) => adopting::advice(refusal),
        Error::NoLog(refusal) => no_log(refusal),
        Error::Search(error) => searching(error),
        Error::OwnerStays { .. } => (Code::Refused, "end it yourself".to_owned()),
        Error::EndedNotResumed { .. } => (Code::NotSaved, "run the command again to resume it".to_owned()),
        Error::EndedDamaged { .. } => (Code::NotSaved, "repair it first: ostler repair".to_owned()),
        Error::OtherUser { .. } => (Code::Ours, "run this command as that user".to_owned()),
        Error::NoKeeper { .. } => (Code::Ours, "see ostler doctor".to_owned()),
        Error::Refused { .. } | Error::OnlyInCopy(_) => (Code::Failed, String::new()),
        Error::StillRuns { session, .. } => (
            Code::Refused,
            format!(
                "send it a message: ostler send {0} \"…\", or end it first: ostler resume {0} --takeover",
                session.id
            ),
        ),
        Error::Moved { id, how: Moved::Archived | Moved::Restored } => (Code::Failed, format!("see ostler show {id}")),
        Error::Moved { how: Moved::Purged, .. } => (Code::Failed, String::new()),
        Error::FolderExists { .. } => (Code::Failed, "see ostler doctor".to_owned()),
        Error::SocketInUse { .. } | Error::GroupStays { .. } => (Code::Ours, String::new()),
        Error::CannotMove { .. } => (Code::Ours, String::new()),
        Error::HelperStays { .. } => (Code::Ours, "check it, then try again".to_owned()),
        Error::About { error, .. } => advice(error),
        Error::ArchivedWithName { session } => {
            (Code::Usage, format!("restore it first: ostler restore {}", session.id))
        }
        Error::Archived { session } => (Code::Failed, format!("restore it first: ostler restore {}", session.id)),
        Error::JobTakesNoMessages { running: Some(id), .. } => {
            (Code::Failed, format!("send it to the session that runs for it: ostler send {id} MESSAGE"))
        }
        Error::JobTakesNoMessages { session, running: None } => {
            (Code::Failed, format!("no session runs for it now; see how far it is: ostler show {}", session.id))
        }
        Error::TakesNoMessages { .. } => (Code::Failed, "to type into it, start it with: ostler run -t".to_owned()),
        Error::NoTerminal { .. } | Error::Withdrawn { .. } | Error::EndedAndAsksNothing { .. } => {
            (Code::Failed, String::new())
        }
        Error::NoTurnEnds { .. } => (Code::Usage, "send without --wait".to_owned()),
        Error::EndedForReply { session } => (Code::Usage, format!("continue it: ostler resume {} \"…\"", session.id)),
        Error::NoReply { session, outcome } => {
            // Even if an earlier turn succeeded, there was no reply to this message.
            let code = match outcome.as_deref().map(Code::of) {
                None | Some(Code::Succeeded | Code::NotSaved) => Code::Failed,
                Some(code) => code,
            };
            (code, format!("see ostler show {}", session.id))
        }
        Error::NotWaiting { session, .. } | Error::NotUnclear { session } => {
            (Code::Failed, format!("list them with: ostler send {} --list", session.id))
        }
        Error::NothingToInterrupt { .. } => (Code::Failed, "nothing to interrupt".to_owned()),
        Error::NoTurns { session, .. } => {
            (Code::Usage, format!("wait for its end: ostler wait {0}, or look: ostler attach {0}", session.id))
        }
        Error::HelpersDoNotEndIt { .. } | Error::ProcessLeft { .. } => (Code::Ours, "see ostler doctor".to_owned()),
        Error::AlreadyArchived { session } | Error::NotArchived { session } => {
            (Code::Failed, format!("see ostler show {}", session.id))
        }
        Error::AnotherIsArchived { .. } => (Code::Failed, "one of the two is a copy: move it away".to_owned()),
        Error::StartedAgain { id } => (Code::Failed, format!("stop it first: ostler stop {id}")),
        Error::DamagedForArchive { id, .. } => {
            (Code::Ours, format!("a damaged session cannot be archived, delete it with: ostler purge {id}"))
        }
        Error::InUse { .. } => (Code::Failed, "try again".to_owned()),
        Error::RunsForPurge { session } => (Code::Failed, format!("stop it first: ostler stop {}", session.id)),
        Error::DamagedForPurge { id, .. } => (Code::Ours, format!("it was kept, delete it with: ostler purge {id}")),
        Error::CannotDelete { .. } => (Code::Ours, "delete it by hand".to_owned()),
        Error::CannotLook { .. } => (Code::Ours, "see ostler doctor".to_owned()),
        Error::OldKeeperStays { id, .. } => (Code::Ours, format!("see ostler show {id}")),
        Error::KeeperStays { .. } => (Code::Ours, "try again later".to_owned()),
        Error::NoNewKeeper { .. } => (Code::Ours, "try again".to_owned()),
        Error::MeansSeveral { .. } => (Code::Usage, "name one of them".to_owned()),
        Error::NotInASession => (Code::Usage, "start it with the command of the job".to_owned()),
        Error::CannotBeStarted { .. } => (Code::Usage, "check how it is written".to_owned()),
        Error::NoJobSpec { .. } => (Code::Ours, "see ostler doctor".to_owned()),
        Error::NotAName { name } => (Code::Usage, name_rule(name)),
        Error::LooksLikeId { .. } => (
            Code::Usage,
            "choose a shorter or longer name, or one with a dash (an id has 8 letters and digits)".to_owned(),
        ),
        Error::NameTaken { id, .. } => {
            (Code::Usage, format!("choose another name, or stop that session: ostler stop {id}"))
        }
        Error::AmbiguousConversation { .. } => (Code::Usage, "type more characters".to_owned()),
        Error::NoConversation { .. } => {
            (Code::NoSession, "list them with: ostler ls -a, ostler ls --foreign".to_owned())
        }
        Error::Owned { .. } => (Code::Refused, "end it first; ostler resume --takeover ends it properly".to_owned()),
        Error::OwnedByServer { how_to_end, .. } => {
            (Code::Refused, format!("stop that server first (this ends all its work): {how_to_end}"))
        }
        Error::UnknownAgent { .. } => (Code::Ours, String::new()),
        Error::NotInstalled { package, .. } => (Code::Usage, format!("install it: npm install -g {package}")),
        Error::WorksInServer { agent, package, .. } => {
            (Code::Usage, format!("update {agent} (npm install -g {package}) or stop that server first"))
        }
        Error::StillWriting { session } => (Code::Refused, format!("stop it first: ostler stop {}", session.id)),
        Error::NoTranscript { .. } => (Code::NoSession, "list sessions with: ostler ls -a".to_owned()),
        Error::UnknownTranscript { .. } | Error::NoRepair { .. } | Error::NotATranscript { .. } => {
            (Code::Usage, String::new())
        }
        Error::TranscriptGone { id, .. } => {
            (Code::NoSession, format!("restore its last copy: ostler checkpoints restore {id} last"))
        }
        Error::NothingSaid { .. } => (Code::NoSession, String::new()),
        Error::NotRepaired { .. } => (Code::Ours, String::new()),
        Error::UsedBy { .. } => (Code::Refused, "end it first".to_owned()),
        Error::RunsForRepair { session, .. } => (Code::Refused, format!("stop it first: ostler stop {}", session.id)),
        Error::CannotRepair { .. } => (Code::Ours, "see ostler repair".to_owned()),
    }
}

fn no_log(refusal: &LogRefusal) -> (Code, String) {
    let hint = match refusal {
        LogRefusal::NeverRan { .. } => return (Code::Failed, String::new()),
        LogRefusal::NoScreen => "omit --screen",
        LogRefusal::CommandHasNone => "print its output with: ostler logs --raw",
        LogRefusal::ScreenIsNone => "print its text with: ostler logs --screen",
        LogRefusal::NoTimes(_) => "omit --since and --timestamps",
    };
    (Code::Usage, hint.to_owned())
}

/// The index is derived: it may always be deleted.
fn searching(error: &SearchError) -> (Code, String) {
    let advice = match error {
        SearchError::Full { .. } => "free some disk space",
        SearchError::Io { error, .. } if is_full_disk(error) => "free some disk space",
        SearchError::Io { .. } => "check who owns it, or set OSTLER_HOME",
        SearchError::Damaged { .. } | SearchError::Index { .. } => {
            "try again; if that does not help, delete the folder search in OSTLER_HOME"
        }
        SearchError::Store(error) => hint(error),
    };
    (Code::Ours, advice.to_owned())
}

/// The rule that a name breaks.
fn name_rule(name: &str) -> String {
    match name {
        "" => "it is empty".to_owned(),
        long if long.len() > 64 => format!("it has {} bytes, use at most 64", long.len()),
        name if name.starts_with([' ', '.', '-']) => "it must not begin with a space, a dot or a dash".to_owned(),
        name if name.ends_with(' ') => "it must not end with a space".to_owned(),
        _ => "use only letters, digits, spaces and these: . _ - + , # ( ) & ' ! ?".to_owned(),
    }
}

/// What to do about a file.
fn hint(error: &StoreError) -> &'static str {
    match error {
        StoreError::Of { error, .. } => hint(error),
        StoreError::Newer { .. } => "use that version of ostler or a newer one",
        StoreError::Io { error, .. } if is_full_disk(error) => "free some disk space",
        StoreError::Io { error, .. } if is_out_of_descriptors(error) => "raise the limit of open files: ulimit -n 1024",
        StoreError::Io { error, .. } if error.kind() == std::io::ErrorKind::PermissionDenied => {
            "check its owner, or set OSTLER_HOME"
        }
        StoreError::Io { .. } => "",
        StoreError::Damaged { .. } | StoreError::Missing { .. } | StoreError::Copy { .. } => "see ostler doctor",
    }
}

fn not_found(error: &NotFound, nearest: Option<&str>) -> (Code, String) {
    match error {
        NotFound::None(_) => match nearest {
            Some(name) => (Code::NoSession, format!("did you mean {name}?")),
            None => (Code::NoSession, "ostler ls -a lists all sessions".to_owned()),
        },
        NotFound::Ambiguous { .. } => (Code::Usage, "type more characters".to_owned()),
        NotFound::Store(error) => (Code::Ours, hint(error).to_owned()),
    }
}

fn launching(error: &LaunchError) -> (Code, String) {
    match error {
        LaunchError::Program(_) => (Code::Usage, String::new()),
        LaunchError::Store(error) => (Code::Ours, hint(error).to_owned()),
        LaunchError::Held(_)
        | LaunchError::NotStarted(_)
        | LaunchError::Killed
        | LaunchError::Holder(_)
        | LaunchError::System(_) => (Code::Ours, String::new()),
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Error::from(error).into()
    }
}

impl From<NotFound> for Failure {
    fn from(error: NotFound) -> Failure {
        Error::from(error).into()
    }
}

impl From<LaunchError> for Failure {
    fn from(error: LaunchError) -> Failure {
        Error::from(error).into()
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::ours(error.to_string())
    }
}

pub type Result<T> = std::result::Result<T, Failure>;
