//! One process that holds one conversation, and the evidence for it.

use crate::processes::Process;
use jiff::Timestamp;
use ostler_core::id::SessionId;
use ostler_sys::process::Identity;
use serde::Serialize;

/// Looks up a variable of the environment.
pub type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The evidence that a process holds a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// It is the agent of one of our sessions.
    Session,
    /// The agent's own list of its processes.
    Registry,
    /// A lock that it holds, by the kernel's list.
    Lock,
    /// It has the conversation's file open, and could write to it at any moment.
    OpenFile,
}

impl Evidence {
    pub fn words(self) -> &'static str {
        match self {
            Evidence::Session => "session of ostler",
            Evidence::Registry => "the agent's registry",
            Evidence::Lock => "lock",
            Evidence::OpenFile => "open file",
        }
    }
}

/// One process that holds one conversation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConversationOwner {
    pub agent: String,
    /// `None` where the agent keeps all conversations in one file.
    pub native_id: Option<String>,
    pub pid: i32,
    pub since: Timestamp,
    pub cwd: Option<String>,
    /// The terminal on which it can be found.
    pub terminal: Option<String>,
    /// The agent's own report of what the process does.
    pub status: Option<String>,
    pub command: Vec<String>,
    pub ours: bool,
    /// The session of ours that it belongs to.
    pub session: Option<SessionId>,
    pub known_by: Evidence,
    #[serde(skip)]
    pub identity: Identity,
}

impl ConversationOwner {
    pub fn new(agent: &str, native_id: Option<String>, known_by: Evidence, process: Process) -> ConversationOwner {
        ConversationOwner {
            agent: agent.to_owned(),
            native_id,
            pid: process.identity.pid(),
            since: process.since,
            cwd: process.cwd,
            terminal: process.terminal,
            status: None,
            command: process.command,
            ours: false,
            session: None,
            known_by,
            identity: process.identity,
        }
    }

    /// Text with which a person can find the process.
    pub fn words(&self) -> String {
        crate::processes::named(self.pid, self.terminal.as_deref(), self.since)
    }
}

/// The first evidence for a process and a conversation is the best one. If one entry names the conversation of a
/// process, another entry without a name adds nothing.
pub fn once_each(found: Vec<ConversationOwner>) -> Vec<ConversationOwner> {
    let mut kept: Vec<ConversationOwner> = Vec::new();
    for owner in found {
        let known = kept.iter().any(|other| {
            other.identity == owner.identity
                && other.agent == owner.agent
                && (owner.native_id.is_none() || other.native_id == owner.native_id)
        });
        if !known {
            kept.push(owner);
        }
    }
    kept
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn owner(native_id: Option<&str>, known_by: Evidence) -> ConversationOwner {
        let me = crate::processes::describe(&Identity::me().unwrap()).unwrap();
        ConversationOwner::new("codex", native_id.map(str::to_owned), known_by, me)
    }

    #[test]
    fn a_process_is_named_once_for_each_conversation_and_with_the_best_evidence() {
        let found = once_each(vec![
            owner(Some("a"), Evidence::Lock),
            owner(Some("a"), Evidence::OpenFile),
            owner(Some("b"), Evidence::OpenFile),
            owner(None, Evidence::OpenFile),
        ]);
        let kept: Vec<_> = found.iter().map(|owner| (owner.native_id.as_deref(), owner.known_by)).collect();
        assert_eq!(kept, [(Some("a"), Evidence::Lock), (Some("b"), Evidence::OpenFile)]);
    }
}
