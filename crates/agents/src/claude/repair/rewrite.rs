//! The new bytes: changed parents, text in the place of results, results for calls.

use super::scan::Index;
use super::tree::{NONE, Tree};
use ostler_transcript::edits::Edits;
use ostler_transcript::fields::Name;
use ostler_transcript::finding::{CALL_IS_LOST, MAY_HAVE_RUN};
use ostler_transcript::new_uuid;
use ostler_transcript::place::Placed;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashSet};
use std::io::{self, Read, Seek};

/// The messages that get another parent.
#[derive(Debug, Default)]
pub struct Rewrite {
    /// The uuid of a new line, or `None` for the parent that is in the tree.
    parents: BTreeMap<Index, Option<String>>,
    end: Option<Index>,
}

#[derive(Deserialize)]
struct Ids<'a> {
    uuid: String,
    #[serde(rename = "parentUuid", borrow, default)]
    parent: Option<&'a RawValue>,
    #[serde(rename = "sessionId", default)]
    session: Option<String>,
}

impl Rewrite {
    /// The parent of this message is the one in the tree.
    pub fn parent(&mut self, of: Index) {
        self.parents.entry(of).or_default();
    }

    /// The parent of this message is a new line.
    pub fn parent_is(&mut self, of: Index, uuid: String) {
        self.parents.insert(of, Some(uuid));
    }

    pub fn forget(&mut self, of: Index) {
        self.parents.remove(&of);
    }

    /// The conversation is to continue at this message.
    pub fn end_at(&mut self, message: Index) {
        self.end = Some(message);
    }

    pub fn write(self, tree: &Tree<'_>, source: &mut (impl Read + Seek), edits: &mut Edits) -> io::Result<()> {
        let mut uuid_of = |index: Index| -> io::Result<Found> {
            let placed = Placed::read(&mut *source, tree.scan.start(index))?;
            let ids: Ids<'_> = placed.fields()?;
            let parent = ids.parent.map(|value| placed.place_of(value));
            Ok(Found { uuid: ids.uuid, session: ids.session, parent, start: placed.start, end: placed.end() })
        };
        for (index, uuid) in self.parents {
            let uuid = match (uuid, tree.up[index as usize]) {
                (Some(uuid), _) => uuid,
                (None, NONE) => continue,
                (None, up) => uuid_of(up)?.uuid,
            };
            let ids = uuid_of(index)?;
            match ids.parent {
                Some(place) => edits.replace(place.start, place.end, json!(uuid).to_string()),
                None => edits.insert(ids.start + 1, format!("\"parentUuid\":{},", json!(uuid))),
            }
        }
        if let Some(end) = self.end
            && let Some(last) = tree.scan.len().checked_sub(1)
        {
            let ids = uuid_of(end)?;
            let note = json!({ "type": "last-prompt", "leafUuid": ids.uuid, "sessionId": ids.session });
            edits.insert(uuid_of(last)?.end, format!("\n{note}"));
        }
        Ok(())
    }
}

/// The ids in a line, and where they are.
struct Found {
    uuid: String,
    session: Option<String>,
    parent: Option<std::ops::Range<u64>>,
    start: u64,
    end: u64,
}

/// A line with results for calls.
pub struct Note {
    pub line: Vec<u8>,
    pub uuid: String,
    pub tools: Vec<String>,
}

/// The fields that a new line copies from its neighbour.
const SHARED: [&str; 7] = ["userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch", "slug"];

/// The result for those calls of a message that have none among `results`.
pub fn note_for(call: &Placed, results: &HashSet<Name>) -> io::Result<Note> {
    let message: Map<String, Value> = call.fields()?;
    let mut tools = Vec::new();
    let mut content = Vec::new();
    for block in message.get("message").and_then(|body| body["content"].as_array()).into_iter().flatten() {
        if let (Some("tool_use"), Some(id)) = (block["type"].as_str(), block["id"].as_str())
            && !results.contains(&Name::of(id))
        {
            tools.push(block["name"].as_str().unwrap_or("a tool").to_owned());
            content
                .push(json!({ "tool_use_id": id, "type": "tool_result", "content": MAY_HAVE_RUN, "is_error": true }));
        }
    }
    let uuid = new_uuid(&[b"note", call.text.as_slice()]);
    let parent = message.get("uuid").cloned().unwrap_or_default();
    // Claude writes the parent first and reads a file faster when it is.
    let mut line = format!(r#"{{"parentUuid":{parent},"isSidechain":false,"type":"user""#);
    let mut field = |name: &str, value: &Value| line.push_str(&format!(",{}:{value}", json!(name)));
    field("message", &json!({ "role": "user", "content": content }));
    field("uuid", &json!(uuid));
    field("timestamp", message.get("timestamp").unwrap_or(&Value::Null));
    field("sourceToolAssistantUUID", &parent);
    for name in SHARED {
        if let Some(value) = message.get(name) {
            field(name, value);
        }
    }
    line.push('}');
    Ok(Note { line: line.into_bytes(), uuid, tools })
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    message: Body<'a>,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    content: &'a RawValue,
}

/// Whether two messages have the same content, whatever their ids are.
pub fn say_the_same(one: &Placed, other: &Placed) -> io::Result<bool> {
    let (one, other): (Message<'_>, Message<'_>) = (one.fields()?, other.fields()?);
    Ok(one.message.content.get() == other.message.content.get())
}

/// Turns into text those results of a message that cannot stay results. Real results come first, where the model
/// expects them.
pub fn results_as_text(message: &Placed, stays: impl Fn(Name) -> bool, edits: &mut Edits) -> io::Result<()> {
    let Message { message: Body { content } } = message.fields()?;
    let blocks: Vec<Value> = serde_json::from_str(content.get()).unwrap_or_default();
    let (kept, orphans): (Vec<Value>, Vec<Value>) = blocks.into_iter().partition(|block| {
        block["type"] != "tool_result" || block["tool_use_id"].as_str().is_some_and(|id| stays(Name::of(id)))
    });
    let mut blocks = kept;
    for orphan in orphans {
        match &orphan["content"] {
            Value::Array(parts) => {
                blocks.push(json!({ "type": "text", "text": CALL_IS_LOST }));
                blocks.extend(parts.iter().cloned());
            }
            Value::String(text) => blocks.push(json!({ "type": "text", "text": format!("{CALL_IS_LOST}\n\n{text}") })),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
                blocks.push(json!({ "type": "text", "text": format!("{CALL_IS_LOST}\n\n{orphan}") }));
            }
        }
    }
    let place = message.place_of(content);
    edits.replace(place.start, place.end, Value::Array(blocks).to_string());
    Ok(())
}
