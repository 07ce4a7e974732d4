//! Who writes to a conversation.
//!
//! Two agents that go on with one conversation each write their own branch of it, and finished turns of one of them
//! vanish (measured for claude, gemini and opencode; only codex refuses). So there is one writer at a time:
//!
//! * [`lock`]: of all sessions of a user, in whatever home, one has a conversation. A kernel lock that the agent inherits,
//!   and beside it who that is, because a lock can be dropped by a launcher or leak into a tool that outlives everybody.
//! * [`conversation`]: what a conversation is to that lock: an agent, its config folder, and its own id.
//! * [`strangers()`]: processes that nobody of us started and that have the same conversation, from the agents' own
//!   registries and locks: cheap enough to be asked before every delivery.
//! * [`everywhere()`]: every process that holds any conversation, for people who want to see them all.
//! * [`processes`]: what the kernel tells about a process, for people to recognise it by.
//!
//! Read-only but for our own lock files. Nothing is found by a program's name or by its environment; a process is
//! believed to be who a record says only once the kernel confirms its start. What no file betrays is not guessed: gemini
//! opens its conversation for each write and closes it again, and opencode keeps all of them in one database, so that
//! its processes are seen and their conversations are not.

mod claude;
mod codex;
pub mod conversation;
mod holder;
pub mod lock;
mod locks;
mod open_files;
pub mod processes;

pub use claude::stale as stale_claude_records;
pub use conversation::Conversation;
pub use holder::{Evidence, Holder, Variable};
pub use open_files::conversation_in;

use std::io;

/// Every process that holds a conversation below this home, each named once, with the best evidence there is.
pub fn everywhere(variable: Variable<'_>) -> io::Result<Vec<Holder>> {
    let mut found = claude::registered(variable, None)?;
    found.extend(codex::locked(variable, None)?);
    found.extend(open_files::held(variable)?);
    Ok(holder::once_each(found))
}

/// Whether this agent's own locks tell which conversation a process of it is at.
#[must_use]
pub fn locks_tell(agent: &str) -> bool {
    agent == "codex"
}

/// The conversation that this process of the agent is at, where the agent's own locks tell. `known`: what it was at last.
pub fn conversation_of(
    agent: &str,
    pid: i32,
    known: Option<&str>,
    variable: Variable<'_>,
) -> io::Result<Option<String>> {
    if !locks_tell(agent) {
        return Ok(None);
    }
    codex::conversation_of(pid, known, variable)
}

/// The processes that hold this one conversation, but for `agent` and what it has started. Asks only what that one
/// agent writes down about itself: no walk through all processes.
pub fn strangers(conversation: &Conversation, agent: Option<i32>, variable: Variable<'_>) -> io::Result<Vec<Holder>> {
    let found = match conversation.agent.as_str() {
        "claude" => claude::registered(variable, Some(&conversation.native_id))?,
        "codex" => codex::locked(variable, Some(&conversation.native_id))?,
        _ => Vec::new(),
    };
    let is_ours =
        |holder: &Holder| agent.is_some_and(|agent| holder.pid == agent || processes::descends_from(holder.pid, agent));
    Ok(found.into_iter().filter(|holder| !is_ours(holder)).collect())
}

/// One test at a time: a process that another one is starting has all our descriptors, and locks, until its exec.
#[cfg(test)]
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
