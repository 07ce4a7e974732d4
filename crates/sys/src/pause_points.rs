//! Named points at which a test can kill or stop a process of ours.
//!
//! The question this answers: is there any moment at which a death loses something? Killing at random hits the long
//! intervals often and the short ones never. So each step after which the work must continue even if the process is
//! killed has a name here, and the tests kill at every one of them in turn.
//!
//! In ordinary use a point costs one look at a value in memory. A test sets `OSTLER_PAUSE` to a folder of its own and
//! puts a file there, called `<role>.<point>.kill` (or `.stop`: SIGSTOP, until SIGCONT is sent). Each process that
//! passes the point removes one byte from that file; the process that takes the last byte removes the file and is
//! killed or stopped. So a file of n bytes takes effect at the n-th passing, once: the process that replaces the killed
//! one has the same environment and must get past the same point. When the file is gone, the point was reached.

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags};
use rustix::process::{Signal, getpid, kill_process};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

/// The variable that names the folder.
pub const VARIABLE: &str = "OSTLER_PAUSE";

/// The role of a process in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    /// A command that a person typed.
    Client,
    /// The copy of a launcher that starts the agent, and the agent before it runs its program.
    Beginner,
    Holder,
    Keeper,
    /// The process that sends notifications.
    Sender,
    /// The process that waits to become its program.
    Waiter,
    /// The process that takes a snapshot of the working tree.
    Snapshot,
    /// The process that prepares a run which begins by itself.
    Preparer,
}

impl Role {
    const ALL: [Role; 8] = [
        Role::Client,
        Role::Beginner,
        Role::Holder,
        Role::Keeper,
        Role::Sender,
        Role::Waiter,
        Role::Snapshot,
        Role::Preparer,
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Role::Client => "client",
            Role::Beginner => "beginner",
            Role::Holder => "holder",
            Role::Keeper => "keeper",
            Role::Sender => "sender",
            Role::Waiter => "waiter",
            Role::Snapshot => "snapshot",
            Role::Preparer => "preparer",
        }
    }
}

macro_rules! points {
    ($($(#[$about:meta])* $point:ident $name:literal $roles:tt,)+) => {
        /// A step after which the work must continue even if the process is killed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Point {
            $($(#[$about])* $point,)+
        }

        impl Point {
            /// Every point there is.
            pub const ALL: &[Point] = &[$(Point::$point,)+];

            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Point::$point => $name,)+
                }
            }

            /// Which roles pass it during the life of a session.
            #[must_use]
            pub fn passed_by(self) -> &'static [Role] {
                use Role::{Beginner, Client, Holder, Keeper};
                match self {
                    $(Point::$point => &$roles,)+
                }
            }
        }
    };
}

points! {
    // A launch.
    FolderMade "folder-made" [Client],
    SessionWritten "session-written" [Client],
    PromptKept "prompt-kept" [Client],
    CopyMade "copy-made" [Client],
    HolderNoted "holder-noted" [Beginner],
    AgentNoted "agent-noted" [Beginner, Holder],
    AgentShown "agent-shown" [Beginner],
    AgentStarted "agent-started" [Beginner],
    KeeperStarted "keeper-started" [Beginner],
    LauncherTold "launcher-told" [Beginner],
    // A session that is created as an ended one.
    EndedFilled "ended-filled" [Client],
    EndedShown "ended-shown" [Client],
    // A further run.
    RunBegun "run-begun" [Client],
    NextRunMade "next-run-made" [Keeper],
    NextRunPublished "next-run-published" [Keeper],
    NextRunOrdered "next-run-ordered" [Keeper],
    NextKeeperStarted "next-keeper-started" [Holder],
    RunStarted "run-started" [Holder],
    // Holding.
    HolderEntered "holder-entered" [Holder],
    ReplacementEntered "replacement-entered" [Holder],
    ExitSeen "exit-seen" [Holder],
    ExitWritten "exit-written" [Holder],
    AgentCollected "agent-collected" [Holder],
    KeeperDied "keeper-died" [Holder],
    KeeperReplaced "keeper-replaced" [Holder],
    InputClosed "input-closed" [Holder],
    FinishHeard "finish-heard" [Holder],
    // Keeping.
    KeeperLocked "keeper-locked" [Keeper],
    KeeperSigned "keeper-signed" [Keeper],
    LaunchSynced "launch-synced" [Keeper],
    KeeperReady "keeper-ready" [Keeper],
    HolderReplaced "holder-replaced" [Keeper],
    RequestGranted "request-granted" [Keeper],
    StopSynced "stop-synced" [Keeper],
    FeedingNoted "feeding-noted" [Keeper],
    MessageFed "message-fed" [Keeper],
    MessageTaken "message-taken" [Keeper],
    InputEnded "input-ended" [Keeper],
    InterruptSent "interrupt-sent" [Keeper],
    LeaveAsked "leave-asked" [Keeper],
    AgentSignalled "agent-signalled" [Keeper],
    TreeCleared "tree-cleared" [Keeper],
    TurnProved "turn-proved" [Keeper],
    TreeEmpty "tree-empty" [Keeper],
    OutcomePublished "outcome-published" [Keeper],
    EndNoted "end-noted" [Keeper],
    SocketRemoved "socket-removed" [Keeper],
    HolderFinished "holder-finished" [Keeper],
    // Archiving and restoring.
    ArchiveNoted "archive-noted" [Client],
    ArchiveMoved "archive-moved" [Client],
    PackWritten "pack-written" [Client],
    PackExchanged "pack-exchanged" [Client],
    Unpacked "unpacked" [Client],
    UnpackExchanged "unpack-exchanged" [Client],
    RestoreMoved "restore-moved" [Client],
    // Requests.
    RequestWritten "request-written" [Client],
    // Files.
    ReplacementWritten "replacement-written" [Beginner, Holder, Keeper],
    ReplacementNamed "replacement-named" [Beginner, Holder, Keeper],
    PublicationWritten "publication-written" [Client, Keeper],
    PublicationLinked "publication-linked" [Client, Keeper],
    JournalAppended "journal-appended" [Client, Keeper],
    JournalSynced "journal-synced" [Keeper],
    InboxLocked "inbox-locked" [Client],
    InboxWritten "inbox-written" [Client],
    InboxSynced "inbox-synced" [Client],
    PieceNoted "piece-noted" [Keeper],
    PiecePut "piece-put" [Keeper],
    // Notifications. These points are passed only when notifications are configured; tests/notify kills there.
    MomentNoted "moment-noted" [],
    SenderStarted "sender-started" [],
    SenderEntered "sender-entered" [],
    MomentSpooled "moment-spooled" [],
    MomentSent "moment-sent" [],
    MomentSettled "moment-settled" [],
    SenderUnlocked "sender-unlocked" [],
    // After a usage limit; tests/limits kills there.
    ContinuationWritten "continuation-written" [],
    // Before a run that begins by itself after one that did not end well; tests/limits kills there.
    PreparingStarted "preparing-started" [],
    Prepared "prepared" [],
    // At a usage limit at which another agent continues; tests/limits kills there.
    HandoverReserved "handover-reserved" [],
    HandoverStarted "handover-started" [],
    HandoverMade "handover-made" [],
    // Queued sessions; tests/queue stops and kills there.
    SlotTaken "slot-taken" [],
    ProgramClaimed "program-claimed" [],
    SlotReceived "slot-received" [],
    ProgramWithdrawn "program-withdrawn" [],
    BeginNoted "begin-noted" [],
    // Turn snapshots and rewinding, for sessions in a git repository; tests/turns kills there.
    SnapshotStarted "snapshot-started" [],
    SnapshotEntered "snapshot-entered" [],
    TreeWalked "tree-walked" [],
    ObjectsLinked "objects-linked" [],
    SnapshotWritten "snapshot-written" [],
    SnapshotNoted "snapshot-noted" [],
    KnownWritten "known-written" [],
    RewindNoted "rewind-noted" [],
    FileExchanged "file-exchanged" [],
    FilePutBack "file-put-back" [],
    RewindDone "rewind-done" [],
    // The search index, which is not part of a session's life.
    IndexFilled "index-filled" [],
    IndexWritten "index-written" [],
}

static ROLE: AtomicU8 = AtomicU8::new(Role::Client as u8);

/// Sets the role of this process from here on.
pub fn act_as(role: Role) {
    ROLE.store(role as u8, Ordering::Relaxed);
}

fn role() -> Role {
    let now = ROLE.load(Ordering::Relaxed);
    Role::ALL.into_iter().find(|&role| role as u8 == now).unwrap_or(Role::Client)
}

/// The name of the file that stops the process of this role that passes this point.
#[must_use]
pub fn token(role: Role, point: Point) -> String {
    format!("{}.{}", role.name(), point.name())
}

/// Passes a point.
pub fn at(point: Point) {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    if let Some(folder) = FOLDER.get_or_init(|| std::env::var_os(VARIABLE).map(PathBuf::from)) {
        let token = token(role(), point);
        for (ending, signal) in [("kill", Signal::KILL), ("stop", Signal::STOP)] {
            if takes_effect(&folder.join(format!("{token}.{ending}"))) {
                // A process may always signal itself.
                let _ = kill_process(getpid(), signal);
            }
        }
    }
}

/// Removes a byte from the file; true when it was the last. Without a file, or when it cannot be opened, nothing
/// happens.
fn takes_effect(file: &Path) -> bool {
    let take = || -> rustix::io::Result<bool> {
        let token = rustix::fs::openat(CWD, file, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        rustix::fs::flock(&token, FlockOperation::LockExclusive)?;
        let left = u64::try_from(rustix::fs::fstat(&token)?.st_size).unwrap_or(0);
        if left > 1 {
            rustix::fs::ftruncate(&token, left - 1)?;
            return Ok(false);
        }
        // A process that opened it before us and waited for the lock finds that it is gone.
        rustix::fs::unlinkat(CWD, file, AtFlags::empty()).map(|()| true)
    };
    take().unwrap_or(false)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_three_bytes_strikes_at_the_third_passing_and_never_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(token(Role::Keeper, Point::PiecePut));
        std::fs::write(&file, "123").unwrap();
        let effects: Vec<bool> = (0..5).map(|_| takes_effect(&file)).collect();
        assert_eq!(effects, [false, false, true, false, false]);
        assert!(!file.exists());
    }

    #[test]
    fn every_point_has_a_name_of_its_own_and_a_process_that_passes_it() {
        let mut names: Vec<&str> = Point::ALL.iter().map(|point| point.name()).collect();
        // Points of queued sessions are passed when something is queued; tests/queue stops and kills there. An update
        // of the search index is not part of a session's life; tests/search kills there. Points of notifications are
        // passed when some are configured; tests/notify kills there.
        let elsewhere = [
            Point::IndexFilled,
            Point::IndexWritten,
            Point::MomentNoted,
            Point::SenderStarted,
            Point::SenderEntered,
            Point::MomentSpooled,
            Point::MomentSent,
            Point::MomentSettled,
            Point::SenderUnlocked,
            Point::ContinuationWritten,
            Point::PreparingStarted,
            Point::Prepared,
            Point::HandoverReserved,
            Point::HandoverStarted,
            Point::HandoverMade,
            Point::SlotTaken,
            Point::ProgramClaimed,
            Point::SlotReceived,
            Point::ProgramWithdrawn,
            Point::BeginNoted,
        ];
        // Points of snapshots are passed in a git repository; tests/turns kills there.
        let of_turns = [
            Point::SnapshotStarted,
            Point::SnapshotEntered,
            Point::TreeWalked,
            Point::ObjectsLinked,
            Point::SnapshotWritten,
            Point::SnapshotNoted,
            Point::KnownWritten,
            Point::RewindNoted,
            Point::FileExchanged,
            Point::FilePutBack,
            Point::RewindDone,
        ];
        let elsewhere = [&elsewhere[..], &of_turns].concat();
        assert!(Point::ALL.iter().all(|point| point.passed_by().is_empty() == elsewhere.contains(point)));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Point::ALL.len());
    }
}
