//! Every error of the engine as a person sees it: its exit code and its one line. Read the snapshot aloud when it
//! changes.

use super::Failure;
use ostler_core::id::SessionId;
use ostler_core::record::Mode;
use ostler_engine::adopt::AdoptRefusal;
use ostler_engine::launch::{LaunchRefusal, OnlyForAgents};
use ostler_engine::logs::{LogRefusal, Untimed};
use ostler_engine::moved::Moved;
use ostler_engine::resume::{ForkRefusal, ResumeRefusal};
use ostler_engine::worktrees::{GitError, Loss};
use ostler_engine::{Error, LaunchError, NotFound, SearchError, SessionRef, StoreError};
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

fn id() -> SessionId {
    SessionId::parse("k3v9p2qa").unwrap()
}

fn session() -> SessionRef {
    SessionRef { id: id(), name: Some("tests".to_owned()) }
}

fn denied() -> io::Error {
    io::Error::from_raw_os_error(13)
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn owner() -> String {
    text("process 4711 (pts/3, since 2026-11-16 07:11:02)")
}

fn file() -> PathBuf {
    PathBuf::from("/work/notes.jsonl")
}

fn conversation() -> String {
    text("6f1c2b7e")
}

fn of_the_store() -> Vec<StoreError> {
    let file = || text("session.json");
    vec![
        StoreError::Io { file: file(), error: denied() },
        StoreError::Io { file: file(), error: io::Error::from_raw_os_error(28) },
        StoreError::Damaged { file: file(), reason: text("expected value at line 1 column 1") },
        StoreError::Newer { file: file(), schema: 9 },
        StoreError::Missing { file: file() },
        StoreError::Copy { file: file(), id: id() },
        StoreError::Of { id: id(), error: Box::new(StoreError::Missing { file: file() }) },
    ]
}

fn of_launching() -> Vec<Error> {
    let refusals = [
        LaunchRefusal::PromptEmpty,
        LaunchRefusal::NoSuchQueue { name: text("bulid"), known: vec![text("build")] },
        LaunchRefusal::PromptTooLong,
        LaunchRefusal::NeedsPrompt { agent: text("demo"), has_terminal: true },
        LaunchRefusal::NeedsPrompt { agent: text("acp"), has_terminal: false },
        LaunchRefusal::TakesNoPrompt { agent: text("build") },
        LaunchRefusal::OnlyForAgents { what: OnlyForAgents::Prompt },
        LaunchRefusal::OnlyForAgents { what: OnlyForAgents::Keep },
        LaunchRefusal::OnlyForAgents { what: OnlyForAgents::Model },
        LaunchRefusal::NotAJob,
        LaunchRefusal::EmptyCommand,
        LaunchRefusal::NeedsProgram { agent: text("acp") },
        LaunchRefusal::NoTerminal { agent: text("acp") },
        LaunchRefusal::NoModel { agent: text("acp") },
        LaunchRefusal::Conflict("-p is chosen by ostler; remove it"),
        LaunchRefusal::Folder { folder: file(), error: denied() },
        LaunchRefusal::CurrentFolder(denied()),
        LaunchRefusal::NotAFolder { folder: file() },
        LaunchRefusal::FolderNotText { folder: file() },
        LaunchRefusal::DefaultTakesNoPrompt { name: text("build") },
        LaunchRefusal::DefaultUnknown { name: text("demmo") },
        LaunchRefusal::NoneInstalled { packages: vec!["one", "two"] },
        LaunchRefusal::SeveralInstalled { names: vec!["one", "two"] },
        LaunchRefusal::NotARecording { file: text("notes.txt"), why: text("it has no first line") },
        LaunchRefusal::PlayerArgument(text("--speed needs a number")),
    ];
    let launches = [
        LaunchError::Program(text("/work/tool: permission denied")),
        LaunchError::Held(owner()),
        LaunchError::NotStarted(text("its folder is gone")),
        LaunchError::Killed,
        LaunchError::Store(StoreError::Missing { file: text("session.json") }),
        LaunchError::System(denied()),
        LaunchError::System(io::Error::from_raw_os_error(28)),
    ];
    refusals.into_iter().map(Error::from).chain(launches.into_iter().map(Error::from)).collect()
}

fn of_conversations() -> Vec<Error> {
    let resume = [
        ResumeRefusal::Archived { session: session() },
        ResumeRefusal::Command { session: session() },
        ResumeRefusal::NeverBegun { session: session() },
        ResumeRefusal::MaybeDelivered { id: id(), n: 3 },
        ResumeRefusal::MessageMissing { id: id() },
        ResumeRefusal::DoesNotWait { session: session() },
        ResumeRefusal::Queued { session: session(), command: false },
        ResumeRefusal::Queued { session: session(), command: true },
        ResumeRefusal::SameFolder { agent: text("demo"), id: id(), copies: true },
        ResumeRefusal::SameFolder { agent: text("demo"), id: id(), copies: false },
    ];
    let fork = [
        ForkRefusal::Command { session: session() },
        ForkRefusal::NotBegun { session: session() },
        ForkRefusal::TranscriptLost { session: session(), copied: true },
        ForkRefusal::TranscriptLost { session: session(), copied: false },
        ForkRefusal::CannotCopy { agent: text("acp"), id: id() },
        ForkRefusal::MessageMissing { id: id() },
        ForkRefusal::TranscriptGone { agent: text("demo") },
        ForkRefusal::SameFolder { agent: text("demo"), id: id() },
    ];
    let adopt = [
        AdoptRefusal::NoFile { word: text("./notes") },
        AdoptRefusal::NotWhereAgentsLook { file: file(), searched: vec![PathBuf::from("/work/agents")] },
        AdoptRefusal::Ambiguous { word: text("6f"), named: text("6f1c2b7e, 6f99aa01") },
        AdoptRefusal::Unknown { word: text("7a"), searched: vec![PathBuf::from("/work/agents")] },
        AdoptRefusal::OlderForm {
            agent: "demo",
            native_id: conversation(),
            resume: text("demo --resume 6f1c2b7e"),
            cwd: Some(text("/work")),
        },
        AdoptRefusal::AlreadyKept { session: session(), archived: true, alive: false },
        AdoptRefusal::AlreadyKept { session: session(), archived: false, alive: true },
        AdoptRefusal::AlreadyKept { session: session(), archived: false, alive: false },
        AdoptRefusal::KeptElsewhere { owner: owner() },
        AdoptRefusal::Open { owner: owner(), native_id: conversation() },
        AdoptRefusal::PerhapsOpen { owner: owner(), other: text("6f99aa01"), agent: text("demo") },
        AdoptRefusal::Taken { owner: owner() },
        AdoptRefusal::Unreadable { file: file(), error: denied() },
        AdoptRefusal::NoMessages { native_id: conversation(), agent: "demo" },
        AdoptRefusal::NoFolder { native_id: conversation(), agent: "demo" },
        AdoptRefusal::FolderGone { native_id: conversation(), agent: "demo", folder: text("/work/old") },
        AdoptRefusal::CannotRepair { native_id: conversation(), error: denied() },
        AdoptRefusal::Damaged { native_id: conversation() },
        AdoptRefusal::Conflict("-p is chosen by ostler; remove it"),
        AdoptRefusal::NamedTwice,
    ];
    let logs = [
        LogRefusal::NeverRan { id: id() },
        LogRefusal::NoScreen,
        LogRefusal::CommandHasNone,
        LogRefusal::ScreenIsNone,
        LogRefusal::NoTimes(Untimed::Screen),
        LogRefusal::NoTimes(Untimed::OlderVersion),
    ];
    let resume = resume.into_iter().map(Error::from).chain(fork.into_iter().map(Error::from));
    resume.chain(adopt.into_iter().map(Error::from)).chain(logs.into_iter().map(Error::from)).collect()
}

/// All errors except those that only pass on another error.
fn of_the_engine() -> Vec<Error> {
    vec![
        Error::Output(io::Error::from_raw_os_error(28)),
        Error::NoHome,
        Error::NoNotifications,
        Error::NotFound { error: NotFound::None(text("tesst")), nearest: Some(text("tests")) },
        Error::NotFound { error: NotFound::None(text("k9")), nearest: None },
        Error::NotFound {
            error: NotFound::Ambiguous { word: text("k"), candidates: vec![text("k3v9p2qa"), text("kz77h2mm")] },
            nearest: None,
        },
        Error::System(denied()),
        Error::DiskFull,
        Error::Limit(text("\"lots\" is not a size")),
        Error::OwnerStays { owner: owner() },
        Error::EndedNotResumed { session: session() },
        Error::EndedDamaged { owner: owner() },
        Error::OtherUser { id: id() },
        Error::NoKeeper { id: id() },
        Error::Refused { session: session(), why: text("the inbox is full") },
        Error::StillRuns { session: session(), owner: Some(owner()) },
        Error::StillRuns { session: session(), owner: None },
        Error::Moved { id: id(), how: Moved::Archived },
        Error::Moved { id: id(), how: Moved::Purged },
        Error::FolderExists { id: id() },
        Error::CannotMove { id: id(), error: denied() },
        Error::HelperStays { pid: 4711 },
        Error::About { session: session(), error: Box::new(Error::Archived { session: session() }) },
        Error::Archived { session: session() },
        Error::ArchivedWithName { session: session() },
        Error::TakesNoMessages { session: session() },
        Error::JobTakesNoMessages { session: session(), running: Some(id()) },
        Error::JobTakesNoMessages { session: session(), running: None },
        Error::NoTerminal { session: session() },
        Error::NoTurnEnds { session: session() },
        Error::EndedForReply { session: session() },
        Error::Withdrawn { session: session() },
        Error::NoReply { session: session(), outcome: None },
        Error::NotWaiting { session: session(), n: 3 },
        Error::NotUnclear { session: session() },
        Error::EndedAndAsksNothing { session: session() },
        Error::NothingToInterrupt { session: session(), why: None },
        Error::NothingToInterrupt { session: session(), why: Some(text("no turn is running")) },
        Error::NoTurns { session: session(), agent: text("command"), mode: Mode::Headless },
        Error::NoTurns { session: session(), agent: text("demo"), mode: Mode::Terminal },
        Error::HelpersDoNotEndIt { id: id(), damage: text("session.json is missing") },
        Error::ProcessLeft { id: id(), damage: text("session.json is missing") },
        Error::AlreadyArchived { session: session() },
        Error::AnotherIsArchived {
            id: id(),
            archived: "/home/ada/.local/state/ostler/archive/2026-11/k3v9p2qa".into(),
        },
        Error::NotArchived { session: session() },
        Error::StartedAgain { id: id() },
        Error::DamagedForArchive { id: id(), damage: text("session.json is missing") },
        Error::InUse { id: id() },
        Error::RunsForPurge { session: session() },
        Error::DamagedForPurge { id: id(), damage: text("session.json is missing") },
        Error::CannotDelete { folder: file(), error: denied() },
        Error::CannotLook { id: id(), error: StoreError::Missing { file: text("session.json") } },
        Error::OldKeeperStays { id: id(), version: text("0.1.0"), new: "0.2.0" },
        Error::KeeperStays { session: session(), why: text("the disk is full") },
        Error::NoNewKeeper { session: session(), seconds: 10 },
        Error::SocketInUse { id: id() },
        Error::GroupStays { group: PathBuf::from("/groups/ostler-k3v9p2qa-1") },
        Error::MeansSeveral {
            word: text("group:fix"),
            count: 2,
            named: vec![text("k3v9p2qa"), text("tests (m3v9p2qb)")],
        },
        Error::NotInASession,
        Error::CannotBeStarted { command: text("tset"), why: text("there is no program \"tset\"") },
        Error::NoJobSpec { session: session() },
        Error::NotAName { name: text("-x") },
        Error::NotAName { name: text("a/b") },
        Error::LooksLikeId { name: text("k3v9p2qa") },
        Error::NameTaken { name: text("tests"), id: id() },
        Error::AmbiguousConversation { word: text("6f"), one: text("6f1c2b7e"), other: text("6f99aa01") },
        Error::NoConversation { word: text("6f") },
        Error::Owned { owner: owner() },
        Error::OwnedByServer { owner: owner(), agent: text("demo"), how_to_end: text("demo server stop") },
        Error::UnknownAgent { agent: text("demmo") },
        Error::NotInstalled { agent: text("demo"), package: text("demo-agent") },
        Error::WorksInServer { agent: text("demo"), package: text("demo-agent"), socket: text("/work/demo.sock") },
        Error::StillWriting { session: session() },
        Error::Git(GitError::NotInstalled),
        Error::Git(GitError::NotARepository { folder: file() }),
        Error::Git(GitError::NoCommit { root: file() }),
        Error::Git(GitError::UnknownBase { base: text("v9") }),
        Error::Git(GitError::NoBranch { branch: text("release") }),
        Error::Git(GitError::BadName { name: text("a/b") }),
        Error::Git(GitError::BranchExists { branch: text("ostler/tests") }),
        Error::Git(GitError::FolderExists { path: file() }),
        Error::Git(GitError::NoWorktree { name: text("tests") }),
        Error::Git(GitError::OddPath { path: file() }),
        Error::Git(GitError::FolderGone { name: text("tests"), path: file(), branch: text("ostler/tests") }),
        Error::Git(GitError::NotATree { path: file() }),
        Error::Git(GitError::InProgress { what: "a merge", path: file() }),
        Error::Git(GitError::RepositoryInside { path: file() }),
        Error::Git(GitError::InSubmodule { path: file() }),
        Error::Git(GitError::ChangedInSubmodule { path: file() }),
        Error::Git(GitError::Failed { what: text("worktree add"), words: text("unable to write new index file") }),
        Error::Git(GitError::Io { path: file(), error: denied() }),
        Error::Git(GitError::OnlyInSubmodule { path: file(), commit: text("0123456789abcdef") }),
        Error::Git(GitError::NoIdentity),
        Error::Git(GitError::NotSigned { words: text("gpg failed to sign the data") }),
        Error::Git(GitError::BranchInTheWay { branch: text("ostler"), wanted: text("ostler/tests") }),
        Error::Git(GitError::TookTooLong),
        Error::Git(GitError::ChangedMeanwhile { path: file() }),
        Error::Git(GitError::Left { path: file() }),
        Error::NoSnapshots { session: session(), why: None },
        Error::NoSnapshots { session: session(), why: Some(text("a snapshot took longer than 10 s")) },
        Error::NoSnapshot { session: session(), turn: 4, turns: text("0–3, 7") },
        Error::InTheWay { paths: vec![text("build/a"), text("build/b")] },
        Error::NoRewind { session: session() },
        Error::CheckStopped { session: session() },
        Error::NoSuchTurn { session: session(), turn: 9, turns: 3 },
        Error::NoSuchTurn { session: session(), turn: 0, turns: 3 },
        Error::NothingBeforeStart { session: session(), turns: 3 },
        Error::TurnNotFound { session: session(), turn: 2 },
        Error::Git(GitError::Hook { words: text("no licence") }),
        Error::Git(GitError::HalfRemoved { name: text("tests"), words: text("Device or resource busy") }),
        Error::InNoGroup { session: session() },
        Error::IsTheGroup { session: session(), members: vec![text("tests-demo-1"), text("tests-demo-2")] },
        Error::Left,
        Error::TreeInUse { session: session() },
        Error::NoWorktree { session: session() },
        Error::NothingChanged { session: session() },
        Error::StillWorks { session: session() },
        Error::NothingToHandOver { session: session() },
        Error::CannotOnlyRead { agent: text("acp") },
        Error::NoTarget { session: session() },
        Error::BranchMoves { branch: text("main") },
        Error::WouldLose { name: text("tests"), loss: Loss { uncommitted: 2, commits: 1, ..Loss::default() } },
        Error::WouldLose { name: text("tests"), loss: Loss { processes: vec![4711], ..Loss::default() } },
        Error::WorktreeInUse { name: text("tests"), session: session() },
        Error::NoTranscript { word: text("./notes") },
        Error::UnknownTranscript { agent: text("acp") },
        Error::NoRepair { agent: text("demo") },
        Error::TranscriptGone { path: text("/work/notes.jsonl"), id: id() },
        Error::NothingSaid { id: id() },
        Error::NotATranscript { path: file() },
        Error::Unreadable { path: file(), error: text("Permission denied") },
        Error::CannotRepair { path: file(), error: denied() },
        Error::NotRepaired { path: file(), error: denied() },
        Error::UsedBy { pid: 4711, terminal: Some(text("pts/3")), program: Some(text("demo")) },
        Error::UsedBy { pid: 4711, terminal: None, program: None },
        Error::RunsForRepair { session: session(), pid: Some(4711) },
        Error::CannotCompare { path: file(), error: denied() },
        Error::Search(SearchError::Io { path: PathBuf::from("/work/search/lock"), error: denied() }),
        Error::Search(SearchError::Io { path: file(), error: io::Error::from_raw_os_error(28) }),
        Error::Search(SearchError::Damaged { error: text("file is not a database") }),
        Error::Search(SearchError::Full { error: text("database or disk is full") }),
        Error::Search(SearchError::Index { error: text("database is locked") }),
        Error::Search(SearchError::Store(StoreError::Missing { file: text("session.json") })),
        Error::OnlyInCopy(text("2 messages are only in the copy of 07:11")),
    ]
}

#[test]
fn every_error_says_what_is_wrong_and_what_to_do() {
    let mut errors = of_the_engine();
    errors.extend(of_the_store().into_iter().map(Error::from));
    errors.extend(of_launching());
    errors.extend(of_conversations());
    let shown: BTreeSet<String> = errors.iter().map(variant).collect();
    // `Config` is only made when a file cannot be read, so it has no example here.
    let missing: Vec<&str> = variants().filter(|name| *name != "Config" && !shown.contains(*name)).collect();
    assert!(missing.is_empty(), "no example of {missing:?}");

    let lines: Vec<String> = errors
        .into_iter()
        .map(|error| {
            let failure = Failure::from(error);
            format!("{:>3}  {failure}", failure.code.number())
        })
        .collect();
    for line in &lines {
        assert!(!line.ends_with(['.', ';', ' ']) && !line.contains('\n'), "{line}");
    }
    insta::assert_snapshot!(lines.join("\n"));
}

/// The name of this error in the source.
fn variant(error: &Error) -> String {
    format!("{error:?}").chars().take_while(char::is_ascii_alphanumeric).collect()
}

/// The names of all errors of the engine, from its source.
fn variants() -> impl Iterator<Item = &'static str> {
    let source = include_str!("../../../engine/src/error.rs");
    let all = source.split("pub enum Error {").nth(1).and_then(|rest| rest.split("\n}").next()).unwrap();
    let lines = all.lines().filter_map(|line| line.strip_prefix("    "));
    lines
        .filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()))
        .map(|line| line.split([' ', '(', ',']).next().unwrap_or_default())
}
