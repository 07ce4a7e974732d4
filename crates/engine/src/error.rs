//! What can go wrong, with what a face needs to decide: which session, what kind, which process is concerned.
//!
//! The text of an error says what is wrong, in one sentence without a full stop. What to do about it depends on the
//! face, and is added there.

use crate::adopt::AdoptRefusal;
use crate::config::Mistake;
use crate::launch::LaunchRefusal;
use crate::logs::LogRefusal;
use crate::moved::Moved;
use crate::resume::{ForkRefusal, ResumeRefusal};
use crate::session_ref::SessionRef;
use ostler_core::id::SessionId;
use ostler_core::outcome::Outcome;
use ostler_core::record::Mode;
use ostler_git::GitError;
use ostler_git::loss::Loss;
use ostler_keeper::launch::LaunchError;
use ostler_store::StoreError;
use ostler_store::home::NotFound;
use std::io;
use std::path::PathBuf;

/// An error of the engine.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the text of each says what it is, with its fields")]
pub enum Error {
    /// The result cannot be written.
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
    #[error("neither OSTLER_HOME nor HOME is set")]
    NoHome,
    /// No notifications are configured.
    #[error("config.toml has no [notify]")]
    NoNotifications,
    /// The word names no session. `nearest`: the name that was probably meant.
    #[error("{error}")]
    NotFound { error: NotFound, nearest: Option<String> },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    System(#[from] io::Error),
    /// A session cannot be started.
    #[error(transparent)]
    Launch(LaunchError),
    #[error("the disk is full")]
    DiskFull,
    /// A setting that the command needs is wrong.
    #[error("{}", .0.place_and_words())]
    Config(Mistake),
    /// A limit of a session is not valid.
    #[error("{0}")]
    Limit(String),

    // Starting sessions.
    #[error(transparent)]
    Unlaunchable(#[from] LaunchRefusal),
    /// Git cannot do what was asked.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Another session works in the same tree.
    #[error("{session} is open in the same tree")]
    TreeInUse { session: SessionRef },
    /// The session has no tree of its own.
    #[error("{session} has no worktree of its own")]
    NoWorktree { session: SessionRef },
    /// Its worktree is as it was when the session began.
    #[error("{session} has changed nothing")]
    NothingChanged { session: SessionRef },
    /// The agent of a review cannot be prevented from writing.
    #[error("{agent} has no mode in which it can only read")]
    CannotOnlyRead { agent: String },
    /// There is no conversation to continue.
    #[error("{session} cannot be handed over, because commands and jobs have no conversation")]
    NothingToHandOver { session: SessionRef },
    /// Its turn is not over, or it asks a question.
    #[error("{session} is still working")]
    StillWorks { session: SessionRef },
    /// Its worktree was not made from a branch, so it is not known where its work belongs.
    #[error("{session} was not started from a branch")]
    NoTarget { session: SessionRef },
    /// It has started a group.
    #[error("{session} is a group")]
    IsTheGroup { session: SessionRef, members: Vec<String> },
    /// It was not started in a group.
    #[error("{session} is in no group")]
    InNoGroup { session: SessionRef },
    /// The caller interrupted the operation, and everything was put back.
    #[error("interrupted")]
    Left,
    /// Other processes change the branch faster than the work can be built on it.
    #[error("the branch {branch} keeps changing")]
    BranchMoves { branch: String },
    /// Work would be lost with a worktree.
    #[error("the worktree {name} {}", .loss.words())]
    WouldLose { name: String, loss: Loss },
    /// The session of a worktree has not ended.
    #[error("{session} works in the worktree {name}")]
    WorktreeInUse { name: String, session: SessionRef },
    /// There is no snapshot of its working tree.
    #[error("{session} has no snapshots of its files{}", .why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default())]
    NoSnapshots { session: SessionRef, why: Option<String> },
    /// Turn 0 is the start of the session, so it has changed nothing. `turns`: how many it has had.
    #[error("turn 0 is the start of {session}, before which nothing is known")]
    NothingBeforeStart { session: SessionRef, turns: u32 },
    /// There is no snapshot after this turn. `turns`: the turns that have one.
    #[error("{session} has no snapshot of its files after turn {turn}")]
    NoSnapshot { session: SessionRef, turn: u32, turns: String },
    /// Files that are in no snapshot would have to be replaced.
    #[error("{} would be replaced and cannot be brought back", .paths.join(", "))]
    InTheWay { paths: Vec<String> },
    /// There is nothing to undo.
    #[error("the files of {session} were not put back before")]
    NoRewind { session: SessionRef },
    /// A check ended without a result.
    #[error("the check was stopped, so nothing is known about {session}")]
    CheckStopped { session: SessionRef },
    /// The session has only `turns` turns.
    #[error("{}", match .turn {
        0 => format!("the conversation of {session} has nothing before turn 1"),
        turn => format!("{session} has no turn {turn}"),
    })]
    NoSuchTurn { session: SessionRef, turn: u32, turns: u32 },
    /// Its transcript does not show where a turn begins.
    #[error("the beginning of turn {turn} is not in the transcript of {session}")]
    TurnNotFound { session: SessionRef, turn: u32 },
    #[error(transparent)]
    Unresumable(#[from] ResumeRefusal),
    #[error(transparent)]
    Unforkable(#[from] ForkRefusal),
    /// Conversations cannot be searched.
    #[error(transparent)]
    Search(#[from] ostler_search::SearchError),
    /// There is no such log.
    #[error(transparent)]
    NoLog(#[from] LogRefusal),
    #[error(transparent)]
    Unadoptable(#[from] AdoptRefusal),
    /// A process that has the conversation was asked to exit, and does not.
    #[error("{owner} is using the conversation and does not exit")]
    OwnerStays { owner: String },
    /// A takeover ended the session, whose last turn is not proven saved.
    #[error("{session} was ended but not resumed")]
    EndedNotResumed { session: SessionRef },
    #[error("{owner} was ended, and the end of its transcript is damaged")]
    EndedDamaged { owner: String },

    // The session cannot do it now.
    #[error("session {id} belongs to another user")]
    OtherUser { id: SessionId },
    #[error("session {id} has no keeper, and none can be started")]
    NoKeeper { id: SessionId },
    /// Its keeper has refused the request; `why` is the keeper's text.
    #[error("{session}: {why}")]
    Refused { session: SessionRef, why: String },
    /// It has not ended.
    #[error("{session} is still running: {} is using the conversation", owner.as_deref().unwrap_or("another process"))]
    StillRuns { session: SessionRef, owner: Option<String> },
    #[error("{id} was just {how} by another command")]
    Moved { id: SessionId, how: Moved },
    #[error("{id}: a folder with that name already exists")]
    FolderExists { id: SessionId },
    #[error("{id} cannot be moved: {error}")]
    CannotMove { id: SessionId, error: io::Error },
    #[error("process {pid}, a helper of the session, does not exit")]
    HelperStays { pid: i32 },

    /// What is wrong with one of several sessions.
    #[error("{session}: {error}")]
    About { session: SessionRef, error: Box<Error> },

    // Messages, answers and waiting.
    #[error("{session} is archived")]
    Archived { session: SessionRef },
    /// It is archived, so it cannot be renamed.
    #[error("{session} is archived")]
    ArchivedWithName { session: SessionRef },
    #[error("{session} is a command and takes no messages")]
    TakesNoMessages { session: SessionRef },
    #[error("{session} is a job and takes no messages")]
    JobTakesNoMessages {
        session: SessionRef,
        /// A session of the job that takes messages.
        running: Option<SessionId>,
    },
    #[error("{session} has ended, so there is no terminal to type into")]
    NoTerminal { session: SessionRef },
    #[error("{session} does not report the end of its turns")]
    NoTurnEnds { session: SessionRef },
    /// It has ended, so there will be no reply.
    #[error("{session} has ended")]
    EndedForReply { session: SessionRef },
    #[error("{session}: the message was withdrawn")]
    Withdrawn { session: SessionRef },
    #[error("{session} ended before it replied")]
    NoReply { session: SessionRef, outcome: Option<Box<Outcome>> },
    #[error("{session}: message {n} is not waiting")]
    NotWaiting { session: SessionRef, n: u64 },
    #[error("{session}: --again is for messages that may have been delivered")]
    NotUnclear { session: SessionRef },
    #[error("{session} has ended and is not asking anything")]
    EndedAndAsksNothing { session: SessionRef },
    #[error("{}", match .why { Some(why) => format!("{session}: {why}"), None => format!("{session} has ended") })]
    NothingToInterrupt { session: SessionRef, why: Option<String> },
    /// Its turns are not reported, so their end cannot be waited for.
    #[error("{}", match .mode {
        _ if .agent == "command" => format!("{session} is a command and has no turns"),
        Mode::Terminal => format!("{agent} does not report its turns in a terminal"),
        Mode::Headless => format!("{agent} does not report its turns"),
    })]
    NoTurns { session: SessionRef, agent: String, mode: Mode },

    // Ending, archiving, deleting, replacing keepers.
    #[error("{id}: its helpers do not end it, and its folder is damaged ({damage})")]
    HelpersDoNotEndIt { id: SessionId, damage: String },
    #[error("{id}: its helpers are gone, one of its processes still runs, and its folder is damaged ({damage})")]
    ProcessLeft { id: SessionId, damage: String },
    #[error("{session} is already archived")]
    AlreadyArchived { session: SessionRef },
    #[error("the archive contains another session with the id {id}: {}", .archived.display())]
    AnotherIsArchived { id: SessionId, archived: PathBuf },
    #[error("{session} is not archived")]
    NotArchived { session: SessionRef },
    #[error("{id} was just started again")]
    StartedAgain { id: SessionId },
    #[error("{id}: {damage}")]
    DamagedForArchive { id: SessionId, damage: String },
    #[error("another command is working on {id}")]
    InUse { id: SessionId },
    #[error("{session} is still running")]
    RunsForPurge { session: SessionRef },
    #[error("{id}: {damage}")]
    DamagedForPurge { id: SessionId, damage: String },
    #[error("{}: {error}", .folder.display())]
    CannotDelete { folder: PathBuf, error: io::Error },
    #[error("{id}: {error}")]
    CannotLook { id: SessionId, error: StoreError },
    #[error("{id} still has its keeper of version {version}, because that of {new} does not stay alive")]
    OldKeeperStays { id: SessionId, version: String, new: &'static str },
    #[error("{session}: its keeper cannot be replaced now: {why}")]
    KeeperStays { session: SessionRef, why: String },
    #[error("{session}: no new keeper after {seconds} s")]
    NoNewKeeper { session: SessionRef, seconds: u64 },

    #[error("a process is using the socket of {id} after all")]
    SocketInUse { id: SessionId },
    #[error("{} cannot be removed", .group.display())]
    GroupStays { group: PathBuf },

    #[error("{word:?} means {count} sessions: {}", .named.join(", "))]
    MeansSeveral { word: String, count: usize, named: Vec<String> },

    // Jobs.
    #[error("the driver of a job runs only in its own session")]
    NotInASession,
    #[error("{session} has no description of its job")]
    NoJobSpec { session: SessionRef },
    #[error("the command {command:?} cannot be started: {why}")]
    CannotBeStarted { command: String, why: String },

    // Names.
    #[error("{:?} is not a valid name", beginning(.name))]
    NotAName { name: String },
    #[error("{name:?} looks like a session id")]
    LooksLikeId { name: String },
    #[error("the name {name:?} is in use by session {id}")]
    NameTaken { name: String, id: SessionId },

    #[error("{word:?} is ambiguous: {one}, {other}")]
    AmbiguousConversation { word: String, one: String, other: String },
    #[error("{word:?} is neither a session nor a running conversation")]
    NoConversation { word: String },

    // Another process has the conversation.
    #[error("{owner} is using the conversation")]
    Owned { owner: String },
    /// A server that works for other conversations as well.
    #[error("{owner}, the shared server of {agent}, is using the conversation")]
    OwnedByServer { owner: String, agent: String, how_to_end: String },

    // Agents.
    #[error("this version of ostler does not know the agent {agent:?}")]
    UnknownAgent { agent: String },
    #[error("{agent} is not installed")]
    NotInstalled { agent: String, package: String },
    #[error("this version of {agent} would run its work in the server behind {socket}, where ostler cannot stop it")]
    WorksInServer { agent: String, package: String, socket: String },

    // Transcripts.
    /// Its agent still writes the transcript.
    #[error("{session} is still running and writing its transcript")]
    StillWriting { session: SessionRef },
    #[error("{word:?} is not a session, a transcript or a conversation")]
    NoTranscript { word: String },
    #[error("{agent} keeps no transcript that ostler can read")]
    UnknownTranscript { agent: String },
    #[error("ostler cannot repair transcripts of {agent}")]
    NoRepair { agent: String },
    #[error("{path} is gone")]
    TranscriptGone { path: String, id: SessionId },
    #[error("{id} has no transcript, because nothing was said")]
    NothingSaid { id: SessionId },
    #[error("{} is not a transcript of an agent whose transcripts ostler can repair", .path.display())]
    NotATranscript { path: PathBuf },
    #[error("{} cannot be read: {error}", .path.display())]
    Unreadable { path: PathBuf, error: String },
    #[error("{} cannot be repaired: {error}", .path.display())]
    CannotRepair { path: PathBuf, error: io::Error },
    /// The same when the user asked for the repair.
    #[error("{} cannot be repaired: {error}", .path.display())]
    NotRepaired { path: PathBuf, error: io::Error },
    /// A process that ostler did not start has the conversation open.
    #[error("process {pid}{} is using the conversation ({})", .terminal.as_ref().map(|name| format!(" on {name}")).unwrap_or_default(), .program.as_deref().unwrap_or("a program"))]
    UsedBy { pid: i32, terminal: Option<String>, program: Option<String> },
    #[error("{session} is running: {} is using the conversation", .pid.map_or("a process".to_owned(), |pid| format!("process {pid}")))]
    RunsForRepair { session: SessionRef, pid: Option<i32> },
    #[error("{} cannot be compared with its copies: {error}", .path.display())]
    CannotCompare { path: PathBuf, error: io::Error },
    /// A part of the conversation is only in a copy of the transcript, and cannot be put back.
    #[error("{0}")]
    OnlyInCopy(String),
}

/// As much of a name as fits into a sentence.
fn beginning(name: &str) -> String {
    match name.char_indices().nth(32) {
        Some(_) => name.chars().take(31).chain(['…']).collect(),
        None => name.to_owned(),
    }
}

/// A result of the engine.
pub type Result<T> = std::result::Result<T, Error>;

impl From<NotFound> for Error {
    fn from(error: NotFound) -> Error {
        Error::NotFound { error, nearest: None }
    }
}

impl From<LaunchError> for Error {
    fn from(error: LaunchError) -> Error {
        match error {
            LaunchError::Store(error) => Error::Store(error),
            LaunchError::System(error) if ostler_store::is_full_disk(&error) => Error::DiskFull,
            LaunchError::Held(owner) => Error::Owned { owner },
            error @ (LaunchError::Program(_)
            | LaunchError::NotStarted(_)
            | LaunchError::Killed
            | LaunchError::Holder(_)
            | LaunchError::System(_)) => Error::Launch(error),
        }
    }
}
