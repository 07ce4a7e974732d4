//! Who writes to a conversation.
//!
//! Two agents that go on with one conversation each write their own branch of it, and finished turns of one of them
//! vanish (measured: only one of the agents that we know refuses the second). So there is one writer at a time:
//!
//! * [`lock`]: of all sessions of a user, in whatever home, one has a conversation. A kernel lock that the agent inherits,
//!   and beside it who that is, because a lock can be dropped by a launcher or leak into a tool that outlives everybody.
//! * [`conversation`]: what a conversation is to that lock: an agent, its config folder, and its own id.
//! * [`foreign processes()`]: processes that nobody of us started and that have the same conversation, from the agents' own
//!   registries and locks: cheap enough to be asked before every delivery.
//! * [`everywhere()`]: every process that holds any conversation, for people who want to see them all.
//! * [`processes`]: what the kernel tells about a process, for people to recognise it by.
//!
//! Read-only but for our own lock files. Nothing is found by a program's name or by its environment; a process is
//! believed to be who a record says only once the kernel confirms its start. What no file betrays is not guessed: an agent
//! may open its conversation for each write and close it again, or keep all of them in one database, so that its
//! processes are seen and their conversations are not. Where to look, the agent says ([`ostler_agents::ownership`]).

pub mod conversation;
mod conversation_locks;
mod conversation_owner;
pub mod lock;
mod open_files;
pub mod processes;
mod registry;

pub use conversation::Conversation;
pub use conversation_owner::{ConversationOwner, Evidence, Variable};
pub use open_files::conversation_in;
pub use registry::stale as stale_records;

use ostler_agents::Agent;
use ostler_sys::process_table;
use std::io;

/// Every process that holds a conversation below this home, each named once, with the best evidence there is.
pub fn everywhere(variable: Variable<'_>) -> io::Result<Vec<ConversationOwner>> {
    let mut found = Vec::new();
    for agent in ostler_agents::all() {
        found.extend(by_own_word(agent, variable, None)?);
    }
    found.extend(open_files::held(variable)?);
    Ok(conversation_owner::once_each(found))
}

/// The processes that an agent itself tells of, or only those at one conversation.
fn by_own_word(agent: &dyn Agent, variable: Variable<'_>, at: Option<&str>) -> io::Result<Vec<ConversationOwner>> {
    let mut found = registry::registered(agent, variable, at)?;
    found.extend(conversation_locks::locked(agent, variable, at)?);
    Ok(found)
}

/// Whether this agent's own locks tell which conversation a process of it is at.
#[must_use]
pub fn locks_tell(agent: &dyn Agent, variable: Variable<'_>) -> bool {
    agent.locks(variable).is_some()
}

/// The conversation that this process of the agent is at, where the agent's own locks tell. `known`: what it was at last.
pub fn conversation_of(
    agent: &dyn Agent,
    pid: i32,
    known: Option<&str>,
    variable: Variable<'_>,
) -> io::Result<Option<String>> {
    conversation_locks::conversation_of(agent, pid, known, variable)
}

/// The processes that hold this one conversation, but for `agent` and what it has started. Asks only what that one
/// agent writes down about itself: no walk through all processes.
pub fn foreign(
    conversation: &Conversation,
    agent: Option<i32>,
    variable: Variable<'_>,
) -> io::Result<Vec<ConversationOwner>> {
    let Some(keeps) = ostler_agents::find(&conversation.agent) else {
        return Ok(Vec::new());
    };
    let found = by_own_word(keeps, variable, Some(&conversation.native_id))?;
    let is_ours = |owner: &ConversationOwner| {
        agent.is_some_and(|agent| owner.pid == agent || process_table::descends_from(owner.pid, agent))
    };
    Ok(found.into_iter().filter(|owner| !is_ours(owner)).collect())
}

/// One test at a time: a process that another one is starting has all our descriptors, and locks, until its exec.
#[cfg(test)]
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
