//! One thing in a conversation, as an object for programs: the same in `logs --json`, in streams and for other faces.

use ostler_core::fact::{Ask, Fact, TurnEnd};
use ostler_view::conversation::Item;
use schemars::JsonSchema;
use serde::Serialize;

/// One thing in a conversation. The field `kind` says what it is; `logs --json` adds `at`, the time, where that is known.
#[derive(Debug, JsonSchema, Serialize)]
#[expect(missing_docs, reason = "what is said of a variant says what its fields are")]
#[schemars(title = "Item")]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ItemObject<'a> {
    /// A person or another program told the agent this; its number among the messages of the session.
    Told { n: u64, text: &'a str },
    /// A question was answered.
    Answered { by: &'a str, allowed: bool, always: Option<&'a str> },
    /// The agent's own name for the conversation.
    Conversation { native_id: &'a str },
    /// Where the agent writes the conversation.
    Transcript { path: &'a str },
    /// The agent behind a program that speaks a protocol.
    Behind { agent: &'a str },
    /// The agent told its conversation again, which ended with these words of a person, so many times in a row.
    Recalled { last: &'a str, times: u64 },
    /// The conversation is open. A new one has its name from the agent.
    Opened { native_id: Option<&'a str> },
    /// The conversation cannot be opened.
    NotOpened { reason: &'a str },
    /// The agent waits for this reply of its protocol.
    #[serde(rename = "owed")]
    ReplyDue { name: &'a str },
    /// The agent takes messages.
    Ready,
    /// A turn has begun.
    TurnStarted,
    /// Text as it is being written; the whole follows as `said`.
    Saying { text: &'a str },
    /// A whole text of the agent.
    Said { text: &'a str },
    /// What the agent thinks, which is never part of the answer.
    Thought { text: &'a str },
    /// The model that answers from now on.
    Model { name: &'a str },
    /// A tool was called; `call` is the agent's name of the call.
    ToolCalled { name: &'a str, detail: &'a str, call: Option<&'a str> },
    /// A tool came back.
    ToolReturned { text: &'a str, failed: bool, call: Option<&'a str> },
    /// The agent asks for a permission or an answer.
    Asked { ask: &'a Ask },
    /// The agent no longer waits for the answer to this.
    AskClosed { request: &'a str },
    /// The model's server did not answer, and the agent tries again.
    Retrying { reason: &'a str, attempt: Option<u32> },
    /// The agent has reached a usage limit, which ends its turn; when it is reset, in seconds since 1970, where it says so.
    Limited { limit: &'a str, resets_at: Option<i64> },
    /// A task beside the turns runs, or has ended.
    Background { task: &'a str, runs: bool },
    /// The turn is over.
    TurnEnded { end: &'a TurnEnd },
    /// Something that this version does not know, by the agent's name for it.
    Unknown { name: &'a str },
    /// A line that is too long to be read.
    #[serde(rename = "passed_over")]
    LineTooLong { bytes: u64 },
    /// A subagent said or did this.
    Subagent { item: Box<ItemObject<'a>> },
}

/// The item as a JSON value that can be changed.
pub fn to_json(item: &Item) -> std::io::Result<serde_json::Value> {
    Ok(serde_json::to_value(ItemObject::from(item))?)
}

impl<'a> From<&'a Item> for ItemObject<'a> {
    fn from(item: &'a Item) -> Self {
        match item {
            Item::Told { n, text } => ItemObject::Told { n: *n, text },
            Item::Answered { by, allowed, always, .. } => {
                ItemObject::Answered { by, allowed: *allowed, always: always.as_deref() }
            }
            Item::Agent(fact) => fact.into(),
        }
    }
}

impl<'a> From<&'a Fact> for ItemObject<'a> {
    fn from(fact: &'a Fact) -> Self {
        match fact {
            Fact::Native { id } => ItemObject::Conversation { native_id: id },
            Fact::Transcript { path } => ItemObject::Transcript { path },
            Fact::Behind { agent } => ItemObject::Behind { agent },
            Fact::Recalled { last, times } => ItemObject::Recalled { last, times: *times },
            Fact::Opened { native_id } => ItemObject::Opened { native_id: native_id.as_deref() },
            Fact::NotOpened { reason } => ItemObject::NotOpened { reason },
            Fact::ReplyDue { name, .. } => ItemObject::ReplyDue { name },
            Fact::Ready => ItemObject::Ready,
            Fact::TurnStarted => ItemObject::TurnStarted,
            Fact::Saying { text } => ItemObject::Saying { text },
            Fact::Said { text } => ItemObject::Said { text },
            Fact::Thought { text } => ItemObject::Thought { text },
            Fact::Model { name } => ItemObject::Model { name },
            Fact::ToolCalled { name, detail, call } => {
                ItemObject::ToolCalled { name, detail, call: call.id.as_deref() }
            }
            Fact::ToolReturned { text, failed, call } => {
                ItemObject::ToolReturned { text, failed: *failed, call: call.as_deref() }
            }
            Fact::Asked(ask) => ItemObject::Asked { ask },
            Fact::AskClosed { request } => ItemObject::AskClosed { request },
            Fact::Retrying(retry) => ItemObject::Retrying { reason: &retry.reason, attempt: retry.attempt },
            Fact::Limited(limit) => ItemObject::Limited { limit: &limit.what, resets_at: limit.resets_at },
            Fact::Background { task, runs } => ItemObject::Background { task, runs: *runs },
            Fact::TurnEnded(end) => ItemObject::TurnEnded { end },
            Fact::Unknown { kind } => ItemObject::Unknown { name: kind },
            Fact::LineTooLong { bytes } => ItemObject::LineTooLong { bytes: *bytes },
            Fact::Subagent(fact) => ItemObject::Subagent { item: Box::new(fact.as_ref().into()) },
        }
    }
}
