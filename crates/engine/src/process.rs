//! What a face needs of its own process: its entry, its variables, its terminal, its signals.
//!
//! These functions are about the process that calls them, not about sessions. A verb of the engine uses none of them:
//! what it has to know about a process is passed in with an [`Environment`].

use crate::environment::Environment;
use rustix::fd::AsFd;
use rustix::process::Signal;

pub use ostler_sys::clock::now;
pub use ostler_sys::entry::output_has_no_reader;

/// How a keeper reads config.toml.
const SETTINGS: ostler_keeper::Settings = ostler_keeper::Settings {
    output: || crate::config::output_bounds(&Environment::of_process()),
    notify: || crate::config::notify_settings(&Environment::of_process()).map(|settings| settings.wanted),
    snapshots: || crate::config::takes_snapshots(&Environment::of_process()),
};

/// Helper processes, the demo agent and replays are the binary of ostler itself, started with arguments that no person
/// types. Runs such a process to its end and returns its exit code; `None` when the arguments are those of a person.
///
/// To be called first in `main`: before arguments are parsed, threads are started, or anything else makes the process
/// larger than a helper needs to be.
#[must_use]
pub fn enter(arguments: &[String]) -> Option<u8> {
    let word = arguments.get(1).map(String::as_str);
    let code = if word == Some(ostler_agents::demo::ENTRY) {
        // Its children must not inherit its lock: a tool that outlives the agent would look like the agent itself.
        ostler_sys::descriptors::keep_from_children();
        ostler_demo::main(arguments.iter().skip(2).map(Into::into))
    } else if word == Some(ostler_keeper::NOTIFY) {
        ostler_notify::sender::main(arguments.get(2..).unwrap_or_default(), || {
            crate::config::notify_settings(&Environment::of_process())
        })
    } else if word == Some(ostler_keeper::TURN) {
        crate::turns::helper::main(arguments.get(2..).unwrap_or_default())
    } else if word == Some(ostler_keeper::PREPARE) {
        crate::resume::by_itself::main(arguments.get(2..).unwrap_or_default())
    } else if word == Some(ostler_keeper::HANDOVER) {
        crate::handover::at_limit::main(arguments.get(2..).unwrap_or_default())
    } else if word == Some(ostler_agents::replay::ENTRY) {
        ostler_replay::main(arguments.iter().skip(2).cloned())
    } else {
        ostler_keeper::enter(arguments, SETTINGS)?
    };
    Some(u8::try_from(code).unwrap_or(125))
}

/// Signals as a command needs them: a closed pipe ends the process, and a write to a file that may not grow returns an
/// error.
pub fn settle_signals() {
    ostler_sys::signals::default_action(Signal::PIPE);
    ostler_sys::signals::ignore(Signal::XFSZ);
}

/// The same for the driver of a job, except that a closed pipe does not end it: its output is read by the helpers of
/// its session, and it outlives them.
pub fn settle_signals_of_driver() {
    ostler_sys::signals::ignore(Signal::PIPE);
    ostler_sys::signals::ignore(Signal::XFSZ);
}

/// A variable of this process, when it is text.
#[must_use]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Rows and columns of a terminal; `None` when it is not a terminal.
pub fn window(terminal: impl AsFd) -> Option<(u16, u16)> {
    ostler_sys::pty::size(terminal)
}

/// Lets this process open this many files at once, if the system allows it: waiting for a session takes two.
pub fn allow_descriptors(count: u64) {
    ostler_sys::descriptors::allow(count);
}

/// Requests to end, as a descriptor to poll: the driver of a job ends its children before it exits.
#[derive(Debug)]
pub struct Terminations(ostler_sys::signals::Signals);

impl Terminations {
    /// SIGTERM is read from a descriptor from now on. Call before any thread is started.
    pub fn take() -> std::io::Result<Terminations> {
        // Its children must not inherit its lock: a process that it has started would look like the driver itself.
        ostler_sys::descriptors::keep_from_children();
        Ok(Terminations(ostler_sys::signals::Signals::take(&[Signal::TERM])?))
    }

    /// Whether a SIGTERM has arrived since the last call.
    pub fn came(&self) -> std::io::Result<bool> {
        Ok(self.0.next()?.is_some())
    }
}

impl AsFd for Terminations {
    fn as_fd(&self) -> rustix::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The argument with which the binary of ostler is the driver of a job.
pub const JOB_ENTRY: &str = ostler_agents::job::ENTRY;
