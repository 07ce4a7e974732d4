//! Which process writes to a conversation.
//!
//! If two agents continue one conversation, each writes its own branch of it, and finished turns of one of them are
//! lost (measured: only one of the agents that we know refuses the second). So there is one writer at a time:
//!
//! * [`lock`]: of all sessions of a user, in all homes, one has a conversation. A kernel lock that the agent inherits,
//!   and in its file a record of the owner, because a lock can be dropped by a launcher or inherited by a tool that
//!   outlives all others.
//! * [`conversation`]: what identifies a conversation for that lock: an agent, its config folder, and its own id.
//! * [`foreign()`]: processes that ostler did not start and that have the same conversation, from the agents' own
//!   registries and locks: cheap enough to be asked before every delivery.
//! * [`everywhere()`]: every process that holds any conversation, for people who want to see them all.
//! * [`processes`]: what the kernel reports about a process, so that people can recognise it.
//!
//! Nothing is written except our own lock files. Nothing is found by a program's name or by its environment. A record
//! of a process is trusted only if the kernel confirms the start of that process. What no file shows is not guessed: an
//! agent may open its conversation for each write and close it again, or keep all of them in one database, so that its
//! processes are found and their conversations are not. The agent says where to look ([`ostler_agents::ownership`]).

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
        found.extend(by_own_records(agent, variable, None)?);
    }
    found.extend(open_files::held(variable)?);
    Ok(conversation_owner::once_each(found))
}

/// The processes that an agent itself reports, or only those of one conversation.
fn by_own_records(agent: &dyn Agent, variable: Variable<'_>, at: Option<&str>) -> io::Result<Vec<ConversationOwner>> {
    let mut found = registry::registered(agent, variable, at)?;
    found.extend(conversation_locks::locked(agent, variable, at)?);
    Ok(found)
}

/// Whether this agent's own locks show which conversation a process of it is using.
#[must_use]
pub fn locks_tell(agent: &dyn Agent, variable: Variable<'_>) -> bool {
    agent.locks(variable).is_some()
}

/// The conversation that this process of the agent is using, if the agent's own locks show it. `known`: the
/// conversation that was found last.
pub fn conversation_of(
    agent: &dyn Agent,
    pid: i32,
    known: Option<&str>,
    variable: Variable<'_>,
) -> io::Result<Option<String>> {
    conversation_locks::conversation_of(agent, pid, known, variable)
}

/// The processes that hold this one conversation, except `agent` and its descendants. Reads only the records of that
/// one agent, and does not search all processes.
pub fn foreign(
    conversation: &Conversation,
    agent: Option<i32>,
    variable: Variable<'_>,
) -> io::Result<Vec<ConversationOwner>> {
    let Some(keeps) = ostler_agents::find(&conversation.agent) else {
        return Ok(Vec::new());
    };
    let found = by_own_records(keeps, variable, Some(&conversation.native_id))?;
    let is_ours = |owner: &ConversationOwner| {
        agent.is_some_and(|agent| owner.pid == agent || process_table::descends_from(owner.pid, agent))
    };
    Ok(found.into_iter().filter(|owner| !is_ours(owner)).collect())
}

/// One test at a time: a process that another test is starting has all our descriptors, and locks, until its exec.
#[cfg(test)]
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
