//! The kinds of faults.

use std::path::PathBuf;

/// What can happen to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    KillAgent,
    KillKeeper,
    KillHolder,
    KillBothHelpers,
    KillEveryone,
    KillClient,
    StopAgent,
    StopKeeper,
    StopHolder,
    StopClient,
    PausePoint,
    FullDisk,
    NoDescriptors,
    NoProcesses,
    TornJournal,
    TornInbox,
    GarbageBeside,
    OtherBoot,
    ReusedPids,
    OlderBinary,
    OtherUser,
    ClockJump,
}

/// The cgroup in which the number of processes can be limited; the usual limit does not apply to root.
pub const PIDS: &str = "/sys/fs/cgroup/pids";

/// The programs that a run can use.
#[derive(Clone, Debug)]
pub struct Means {
    /// The built `ostler`.
    pub program: PathBuf,
    /// An `ostler` that was built earlier. Without it, a copy is used instead.
    pub older: Option<PathBuf>,
    /// The program that can be started again inside a pid namespace, as `PROGRAM --reused-pids OSTLER`.
    pub own: Option<PathBuf>,
}

impl Fault {
    pub const ALL: [Fault; 22] = [
        Fault::KillAgent,
        Fault::KillKeeper,
        Fault::KillHolder,
        Fault::KillBothHelpers,
        Fault::KillEveryone,
        Fault::KillClient,
        Fault::StopAgent,
        Fault::StopKeeper,
        Fault::StopHolder,
        Fault::StopClient,
        Fault::PausePoint,
        Fault::FullDisk,
        Fault::NoDescriptors,
        Fault::NoProcesses,
        Fault::TornJournal,
        Fault::TornInbox,
        Fault::GarbageBeside,
        Fault::OtherBoot,
        Fault::ReusedPids,
        Fault::OlderBinary,
        Fault::OtherUser,
        Fault::ClockJump,
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Fault::KillAgent => "SIGKILL of the agent",
            Fault::KillKeeper => "SIGKILL of the keeper",
            Fault::KillHolder => "SIGKILL of the holder",
            Fault::KillBothHelpers => "SIGKILL of both helpers at once",
            Fault::KillEveryone => "SIGKILL of agent and helpers at once",
            Fault::KillClient => "SIGKILL of a client",
            Fault::StopAgent => "SIGSTOP of the agent",
            Fault::StopKeeper => "SIGSTOP of the keeper",
            Fault::StopHolder => "SIGSTOP of the holder",
            Fault::StopClient => "SIGSTOP of a client",
            Fault::PausePoint => "SIGKILL at a pause point",
            Fault::FullDisk => "full disk",
            Fault::NoDescriptors => "no more descriptors",
            Fault::NoProcesses => "no more processes",
            Fault::TornJournal => "torn or garbage line in the journal",
            Fault::TornInbox => "torn or garbage line in the inbox",
            Fault::GarbageBeside => "garbage beside the session",
            Fault::OtherBoot => "copy of a record from another boot",
            Fault::ReusedPids => "reused pids",
            Fault::OlderBinary => "older binary beside a newer one",
            Fault::OtherUser => "another user",
            Fault::ClockJump => "clock jumps (hours back, days ahead)",
        }
    }

    /// Why the fault cannot be injected here, if it cannot.
    #[must_use]
    pub fn left_out(self, means: &Means) -> Option<&'static str> {
        let root = rustix::process::geteuid().is_root();
        match self {
            Fault::KillAgent
            | Fault::KillKeeper
            | Fault::KillHolder
            | Fault::KillBothHelpers
            | Fault::KillEveryone
            | Fault::KillClient
            | Fault::StopAgent
            | Fault::StopKeeper
            | Fault::StopHolder
            | Fault::StopClient
            | Fault::PausePoint
            | Fault::NoDescriptors
            | Fault::TornJournal
            | Fault::TornInbox
            | Fault::GarbageBeside
            | Fault::OtherBoot
            | Fault::OlderBinary
            | Fault::ClockJump => None,
            Fault::FullDisk | Fault::OtherUser => (!root).then_some("needs root"),
            Fault::NoProcesses => {
                let limited = root && std::path::Path::new(PIDS).join("cgroup.procs").exists();
                (!limited).then_some("needs root and a cgroup hierarchy for pids")
            }
            Fault::ReusedPids if means.own.is_none() => Some("needs a program that plays it in a pid namespace"),
            Fault::ReusedPids => (!root).then_some("needs root"),
        }
    }
}
