//! Transcripts of gemini: records that add or replace a message, and `$set` records that replace fields of the whole
//! conversation, among them the list of messages.
//!
//! Measured with gemini 0.61.0: it skips lines that it cannot read, and appends to a torn last line. When it resumes,
//! it first sets the list of messages to its own preface and then to all messages: if the second record is lost, the
//! conversation is empty although the file contains everything. A tool call is written when it has finished, so a call
//! that was cut off leaves only an answer without text.

use super::Gemini;
use crate::repair::{Repair, Repairs, Source};
use ostler_transcript::edits::Edits;
use ostler_transcript::fields::{Items, Known, Name, Object, Words};
use ostler_transcript::finding::{CALL_IS_LOST, Finding};
use ostler_transcript::new_uuid;
use ostler_transcript::place::Placed;
use ostler_transcript::record_lines::{self, Records};
use ostler_transcript::{Branches, Examination};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// How a list of all messages begins.
const LIST: &[u8] = br#"{"$set":{"messages":"#;

const CUT_OFF: &str = "The session was cut off here, and what you were doing was lost. If you had called a tool, it was \
    started and may have run in part or in full. Check what it did before running it again.";

#[derive(Debug, Default)]
struct Chat {
    /// The messages that exist.
    names: HashSet<Name>,
    last: Option<Last>,
    calls: HashSet<Name>,
    results: Vec<(Name, u64)>,
    /// The position of a list that removed messages, if no message followed it.
    emptying: Option<u64>,
    /// Lists that removed messages, each followed by a lost list that was to restore them.
    undone: Vec<u64>,
}

#[derive(Debug)]
struct Last {
    name: Name,
    start: u64,
    /// An answer without text or calls.
    is_blank: bool,
}

#[derive(Default, Deserialize)]
struct Set {
    #[serde(default)]
    messages: Option<Items<Object<Message>>>,
}

/// A message, or the fields that a record sets.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    #[serde(default)]
    id: Name,
    #[serde(rename = "type", default)]
    kind: Known<Kind>,
    #[serde(default)]
    content: Items<Object<Part>>,
    #[serde(default)]
    tool_calls: Items<Object<Named>>,
    #[serde(rename = "$set", default)]
    set: Object<Set>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    #[serde(default)]
    function_response: Object<Named>,
}

#[derive(Default, Deserialize)]
struct Named {
    #[serde(default)]
    id: Name,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Answer,
    User,
}

impl Words for Kind {
    fn of(text: &str) -> Option<Kind> {
        match text {
            "gemini" => Some(Kind::Answer),
            "user" => Some(Kind::User),
            _ => None,
        }
    }
}

impl Chat {
    fn message(&mut self, start: u64, message: &Message, is_alone: bool) {
        for Object(call) in &message.tool_calls.items {
            self.calls.insert(call.id);
        }
        if is_alone {
            let answered = message.content.items.iter().map(|Object(part)| part.function_response.0.id);
            self.results.extend(answered.filter(|id| id.is_some()).map(|id| (id, start)));
        }
        let says = message.content.is_text || !message.content.items.is_empty() || !message.tool_calls.items.is_empty();
        let is_blank = message.kind.0 == Some(Kind::Answer) && !says;
        let is_new = self.names.insert(message.id);
        if is_new || self.last.as_ref().is_some_and(|last| last.name == message.id) {
            self.last = Some(Last { name: message.id, start, is_blank });
        }
    }
}

impl Records for Chat {
    const OPENINGS: &'static [&'static str] = &[r#"{"$set":"#, r#"{"id":"#, r#"{"sessionId":"#];

    fn take(&mut self, start: u64, bytes: &[u8]) -> bool {
        let Ok(record) = serde_json::from_slice::<Message>(bytes) else {
            return false;
        };
        if let Some(list) = &record.set.0.messages {
            let before = std::mem::take(&mut self.names);
            self.last = None;
            for Object(message) in &list.items {
                self.message(start, message, false);
            }
            self.emptying = (before.len() > self.names.len()).then_some(start);
        }
        if record.id.is_some() && record.kind.0.is_some() {
            self.emptying = None;
            self.message(start, &record, true);
        }
        true
    }

    fn broken(&mut self, _start: u64, bytes: &[u8]) {
        if bytes.starts_with(LIST) {
            self.undone.extend(self.emptying.take());
        }
    }
}

impl Repair for Gemini {
    fn repairs(&self) -> Option<&'static dyn Repairs> {
        Some(&Gemini)
    }
}

impl Repairs for Gemini {
    fn examine(&self, source: &mut dyn Source, _branches: Branches) -> io::Result<Examination> {
        examine(source)
    }

    fn is_record(&self, record: &Value) -> bool {
        record.get("$set").is_some() || record.get("projectHash").is_some()
    }

    fn is_name(&self, file: &Path, empty: bool) -> bool {
        let name = file.file_name().and_then(|name| name.to_str());
        let chats = || file.parent().and_then(Path::file_name).is_some_and(|folder| folder == "chats");
        name.is_some_and(|name| name.starts_with("session-")) && (empty || chats())
    }
}

fn examine<R: Read + Seek>(mut source: R) -> io::Result<Examination> {
    source.seek(SeekFrom::Start(0))?;
    let mut chat = Chat::default();
    let surface = record_lines::read(&mut source, &mut chat)?;
    let mut findings = surface.findings;
    let mut edits = Edits::default();
    for &start in chat.undone.iter().filter(|_| !surface.unseen) {
        let list = Placed::read(&mut source, start)?;
        edits.cut(list.start, list.line_end());
        findings.push(Finding::Emptied);
    }
    if !surface.unseen {
        let mut orphans: Vec<u64> =
            chat.results.iter().filter(|(name, _)| !chat.calls.contains(name)).map(|&(_, start)| start).collect();
        orphans.dedup();
        for start in orphans {
            results_as_text(&Placed::read(&mut source, start)?, &chat.calls, &mut edits)?;
            findings.push(Finding::ResultWithoutCall);
        }
    }
    if let Some(last) = chat.last.as_ref().filter(|last| last.is_blank && !surface.unseen) {
        let answer = Placed::read(&mut source, last.start)?;
        let value: Value = answer.fields()?;
        let id = new_uuid(&[b"note", &answer.text]);
        let note =
            json!({ "id": id, "timestamp": value["timestamp"], "type": "user", "content": [{ "text": CUT_OFF }] });
        edits.insert(answer.end(), format!("\n{note}"));
        findings.push(Finding::CutOff);
    }
    edits.then(surface.edits);
    Ok(Examination { findings, edits, moved: Vec::new(), messages: chat.names.len() })
}

fn results_as_text(message: &Placed, calls: &HashSet<Name>, edits: &mut Edits) -> io::Result<()> {
    #[derive(Deserialize)]
    struct Record<'a> {
        #[serde(borrow)]
        content: &'a RawValue,
    }
    let Record { content } = message.fields()?;
    let mut parts: Vec<Value> = serde_json::from_str(content.get()).unwrap_or_default();
    for part in &mut parts {
        let response = &part["functionResponse"];
        if response["id"].as_str().is_some_and(|id| !calls.contains(&Name::of(id))) {
            let text =
                response["response"]["output"].as_str().map_or_else(|| response["response"].to_string(), str::to_owned);
            *part = json!({ "text": format!("{CALL_IS_LOST}\n\n{text}") });
        }
    }
    let place = message.place_of(content);
    edits.replace(place.start, place.end, Value::Array(parts).to_string());
    Ok(())
}
