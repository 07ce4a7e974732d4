//! The two processes of a session.
//!
//! ```text
//! ostler run ──starts──► holder ──parent of──► agent ──► its tools …
//!                          │  ▲
//!               parent of  ▼  │ hands over the same descriptors after a crash or an upgrade
//!                        keeper ◄──socket── clients
//! ```
//!
//! The race this solves: a process between an agent and the outside can be killed at any moment. What it had in memory,
//! what it was just moving, and its rights as a parent are then lost. So there are two of them, and each can be
//! replaced:
//!
//! * The [`holder`] decides nothing. It keeps every descriptor open, collects exits and restarts the keeper.
//! * The [`keeper`] owns nothing. Everything it decides follows from files, so its replacement decides the same.
//! * Bytes never pass through the memory of either: the kernel moves them. The positions of the open files, which both
//!   share, show how far.
//! * A keeper whose holder died starts a replacement with the same descriptors. A command that finds an agent with
//!   neither helper starts a replacement with the descriptors that can still be opened.
//!
//! [`handles`] is the contract between the two, by name, so that either may be of another version. [`launch`] is the
//! client's side of starting a session, [`wire`] has the messages between clients and keeper.

use ostler_core::limits::OutputBounds;
use ostler_core::moment::Wanted;

mod abandoned;
pub mod agent_program;
mod begin_run;
mod contain;
mod control;
pub mod create_ended;
mod files;
mod handles;
pub mod holder;
mod hook;
pub mod keeper;
mod later;
pub mod launch;
pub mod launcher_process;
mod replacement_holder;
pub mod scope;
mod start_agent;
pub mod wire;
mod writer_lock;

/// The word on the command line that makes our binary a holder, a keeper, or a process that takes one snapshot, looks
/// into one database, or looks at one screen. (The word for the command that an agent runs as a hook is defined with
/// the agents.)
pub const HOLDER: &str = "__holder";
pub const KEEPER: &str = "__keeper";
pub const SNAPSHOT: &str = "__snapshot";
pub const INQUIRY: &str = "__inquiry";
pub const SCREEN: &str = "__screen";
/// The word for a process that sends notifications.
pub const NOTIFY: &str = "__notify";
/// The word for a process that takes a snapshot of the working tree.
pub const TURN: &str = "__turn";
/// The word for a process that prepares a run which begins by itself ([`keeper::preparing`]).
pub const PREPARE: &str = "__prepare";
/// The word for a process that has another agent continue ([`keeper::handing_over`]).
pub const HANDOVER: &str = "__handover";
/// The word for a process that launches a session for another one ([`launcher`]).
pub const LAUNCH: &str = "__launch";

/// The version of this ostler.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Reads what config.toml says about output now; `None` when it cannot be read.
pub type ReadBounds = fn() -> Option<OutputBounds>;

/// What a keeper reads from config.toml while its session runs. Each value is read when it is needed, so that a change
/// takes effect at once.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Read only while output is held, so that a limit can be raised while a session runs.
    pub output: ReadBounds,
    /// Of which moments a person is to be notified; `None` when of none. Read only when there is a moment.
    pub notify: fn() -> Option<Wanted>,
    /// Whether snapshots of the working tree are to be taken. Read when one is due.
    pub snapshots: fn() -> bool,
}

/// Enters a helper process if these arguments ask for one. Called first in `main`, before argument parsing, threads or
/// any runtime: a helper should be as small as possible.
#[must_use]
pub fn enter(arguments: &[String], settings: Settings) -> Option<i32> {
    let rest = arguments.get(2..).unwrap_or_default();
    match arguments.get(1).map(String::as_str) {
        Some(HOLDER) => Some(holder::main(rest)),
        Some(KEEPER) => Some(keeper::main(rest, settings)),
        Some(ostler_agents::hook::ENTRY) => Some(hook::main(rest)),
        Some(SNAPSHOT) => Some(keeper::screen_snapshots::main(rest)),
        Some(INQUIRY) => Some(keeper::database_query::main(rest)),
        Some(SCREEN) => Some(keeper::prompt_screen::main(rest)),
        Some(LAUNCH) => Some(launcher_process::main(rest)),
        Some(later::LATER) => Some(later::main(rest)),
        Some(_) | None => None,
    }
}
