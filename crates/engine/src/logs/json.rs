//! One thing in a conversation, as an object for programs: the same in `logs --json`, in streams and for other faces.

use ostler_core::fact::Fact;
use ostler_view::conversation::Item;
use serde_json::json;

/// The object. Its field `kind` says what it is.
#[must_use]
pub fn to_json(item: &Item) -> serde_json::Value {
    match item {
        Item::Told { n, text } => json!({ "kind": "told", "n": n, "text": text }),
        Item::Answered { by, allowed, always, .. } => {
            json!({ "kind": "answered", "by": by, "allowed": allowed, "always": always })
        }
        Item::Agent(fact) => fact_to_json(fact),
    }
}

fn fact_to_json(fact: &Fact) -> serde_json::Value {
    match fact {
        Fact::Native { id } => json!({ "kind": "conversation", "native_id": id }),
        Fact::Transcript { path } => json!({ "kind": "transcript", "path": path }),
        Fact::Behind { agent } => json!({ "kind": "behind", "agent": agent }),
        Fact::Recalled { last, times } => json!({ "kind": "recalled", "last": last, "times": times }),
        Fact::Opened { native_id } => json!({ "kind": "opened", "native_id": native_id }),
        Fact::NotOpened { reason } => json!({ "kind": "not_opened", "reason": reason }),
        Fact::ReplyDue { name, .. } => json!({ "kind": "owed", "name": name }),
        Fact::Ready => json!({ "kind": "ready" }),
        Fact::TurnStarted => json!({ "kind": "turn_started" }),
        Fact::Saying { text } => json!({ "kind": "saying", "text": text }),
        Fact::Said { text } => json!({ "kind": "said", "text": text }),
        Fact::Thought { text } => json!({ "kind": "thought", "text": text }),
        Fact::Model { name } => json!({ "kind": "model", "name": name }),
        Fact::ToolCalled { name, detail, call } => {
            json!({ "kind": "tool_called", "name": name, "detail": detail, "call": call.id })
        }
        Fact::ToolReturned { text, failed, call } => {
            json!({ "kind": "tool_returned", "text": text, "failed": failed, "call": call })
        }
        Fact::Asked(ask) => json!({ "kind": "asked", "ask": ask }),
        Fact::AskClosed { request } => json!({ "kind": "ask_closed", "request": request }),
        Fact::Retrying(retry) => json!({ "kind": "retrying", "reason": retry.reason, "attempt": retry.attempt }),
        Fact::Background { task, runs } => json!({ "kind": "background", "task": task, "runs": runs }),
        Fact::TurnEnded(end) => json!({ "kind": "turn_ended", "end": end }),
        Fact::Unknown { kind } => json!({ "kind": "unknown", "name": kind }),
        Fact::LineTooLong { bytes } => json!({ "kind": "passed_over", "bytes": bytes }),
        Fact::Subagent(fact) => json!({ "kind": "subagent", "item": fact_to_json(fact) }),
    }
}
