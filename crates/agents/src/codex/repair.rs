//! Transcripts of codex ("rollouts"): one line after another, no tree.
//!
//! Measured with codex 0.166.0: when it resumes, it skips lines that it cannot read. It gives a call without a result
//! the result "aborted", which does not say that the command may have run. It ends a torn line before it appends. It
//! cannot resume without the first line. It loses results without a call, and repeats copies. If a rollout begins a
//! second time, it shows the model nothing of what came before.

use super::Codex;
use crate::repair::{Repair, Repairs, Source};
use ostler_transcript::edits::Edits;
use ostler_transcript::fields::{Known, Name, Object, Words, number};
use ostler_transcript::finding::{CALL_IS_LOST, Finding, MAY_HAVE_RUN, count_copy};
use ostler_transcript::place::Placed;
use ostler_transcript::record_lines::{self, Records};
use ostler_transcript::{Branches, Examination, new_uuid};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

#[derive(Debug, Default)]
struct Rollout {
    /// Whether the first record is the one that codex expects there.
    begins_well: Option<bool>,
    /// The record that codex writes in every turn, from which a lost beginning can be made.
    context: Option<u64>,
    thread: Option<u64>,
    calls: HashMap<Name, u64>,
    /// Results of functions.
    results: Vec<(Name, u64)>,
    /// Results in another form.
    others: HashSet<Name>,
    /// Items of the conversation and records that begin one, by their bytes.
    told: Vec<(u64, u64)>,
    messages: usize,
    first: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Beginning,
    Item,
    Context,
    Usage,
}

impl Words for Kind {
    fn of(text: &str) -> Option<Kind> {
        match text {
            "session_meta" => Some(Kind::Beginning),
            "response_item" => Some(Kind::Item),
            "turn_context" => Some(Kind::Context),
            "token_usage_record" => Some(Kind::Usage),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemKind {
    /// The result of a function.
    Returned,
    /// The result of something else, in a form of its own.
    ReturnedOtherwise,
    Said,
}

impl Words for ItemKind {
    fn of(text: &str) -> Option<ItemKind> {
        Some(match text {
            "function_call_output" => ItemKind::Returned,
            other if other.ends_with("_output") => ItemKind::ReturnedOtherwise,
            _ => ItemKind::Said,
        })
    }
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type", default)]
    kind: Known<Kind>,
    #[serde(default)]
    payload: Object<Payload>,
}

#[derive(Default, Deserialize)]
struct Payload {
    #[serde(rename = "type", default)]
    kind: Known<ItemKind>,
    #[serde(default)]
    call_id: Name,
}

impl Records for Rollout {
    const OPENINGS: &'static [&'static str] = &[r#"{"timestamp":"#];

    fn take(&mut self, start: u64, bytes: &[u8]) -> bool {
        let Ok(Line { kind, payload: Object(payload) }) = serde_json::from_slice::<Line>(bytes) else {
            return false;
        };
        if self.begins_well.is_none() {
            self.begins_well = Some(kind.0 == Some(Kind::Beginning));
            self.first = start;
        }
        match kind.0 {
            Some(Kind::Item) => {
                self.told.push((number(bytes), start));
                self.messages += 1;
                match payload.kind.0 {
                    Some(ItemKind::Returned) if payload.call_id.is_some() => {
                        self.results.push((payload.call_id, start));
                    }
                    Some(ItemKind::ReturnedOtherwise) if payload.call_id.is_some() => {
                        self.others.insert(payload.call_id);
                    }
                    Some(ItemKind::Said) if payload.call_id.is_some() => {
                        // The first call: in a doubled file the second copy is removed.
                        self.calls.entry(payload.call_id).or_insert(start);
                    }
                    Some(ItemKind::Returned | ItemKind::ReturnedOtherwise | ItemKind::Said) | None => {}
                }
            }
            Some(Kind::Context) => self.context = self.context.or(Some(start)),
            Some(Kind::Usage) => self.thread = self.thread.or(Some(start)),
            Some(Kind::Beginning) => self.told.push((number(bytes), start)),
            None => {}
        }
        true
    }
}

impl Repair for Codex {
    fn repairs(&self) -> Option<&'static dyn Repairs> {
        Some(&Codex)
    }
}

impl Repairs for Codex {
    fn examine(&self, source: &mut dyn Source, _branches: Branches) -> io::Result<Examination> {
        examine(source)
    }

    fn is_record(&self, record: &Value) -> bool {
        record.get("payload").is_some() && record.get("timestamp").is_some()
    }

    fn is_name(&self, file: &Path, _empty: bool) -> bool {
        file.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("rollout-"))
    }
}

fn examine<R: Read + Seek>(mut source: R) -> io::Result<Examination> {
    source.seek(SeekFrom::Start(0))?;
    let mut rollout = Rollout::default();
    let surface = record_lines::read(&mut source, &mut rollout)?;
    let mut findings = surface.findings;
    let mut edits = Edits::default();
    if !surface.unseen {
        let copies = copies(&mut rollout, &mut source)?;
        for copy in &copies {
            let copy = Placed::read(&mut source, *copy)?;
            edits.cut(copy.start, copy.line_end());
            count_copy(&mut findings);
        }
        for (name, start) in &rollout.results {
            if !rollout.calls.contains_key(name) && !copies.contains(start) {
                result_as_text(&Placed::read(&mut source, *start)?, &mut edits)?;
                findings.push(Finding::ResultWithoutCall);
            }
        }
        answer_open_calls(&rollout, &mut source, &mut edits, &mut findings)?;
    }
    if rollout.begins_well == Some(false) && !surface.unseen {
        findings.push(match beginning(&rollout, &mut source)? {
            Some(line) => {
                edits.insert(rollout.first, line);
                Finding::BeginningMade
            }
            None => Finding::NoBeginning,
        });
    }
    edits.then(surface.edits);
    Ok(Examination { findings, edits, moved: Vec::new(), messages: rollout.messages })
}

/// Every record of a file, by its bytes.
#[derive(Debug, Default)]
struct Everything(Vec<(u64, u64)>);

impl Records for Everything {
    const OPENINGS: &'static [&'static str] = Rollout::OPENINGS;

    fn take(&mut self, start: u64, bytes: &[u8]) -> bool {
        let is_record = serde_json::from_slice::<Line>(bytes).is_ok();
        if is_record {
            self.0.push((number(bytes), start));
        }
        is_record
    }
}

/// The positions of records that repeat an earlier one to the byte, including time and number, which codex never
/// repeats in items of the conversation. Other records are compared only if such an item occurs twice, since two notes
/// of one moment may be equal.
fn copies(rollout: &mut Rollout, source: &mut (impl Read + Seek)) -> io::Result<BTreeSet<u64>> {
    let told = same(&mut rollout.told, source)?;
    if told.is_empty() {
        return Ok(told);
    }
    source.seek(SeekFrom::Start(0))?;
    let mut all = Everything::default();
    record_lines::read(&mut *source, &mut all)?;
    same(&mut all.0, source)
}

fn same(records: &mut [(u64, u64)], source: &mut (impl Read + Seek)) -> io::Result<BTreeSet<u64>> {
    records.sort_unstable();
    let mut copies = BTreeSet::new();
    for two in records.windows(2).filter(|two| two[0].0 == two[1].0) {
        let copy = Placed::read(&mut *source, two[1].1)?;
        if copy.text == Placed::read(&mut *source, two[0].1)?.text {
            copies.insert(copy.start);
        }
    }
    Ok(copies)
}

/// Adds a result after each call of a function that has none.
fn answer_open_calls(
    rollout: &Rollout,
    source: &mut (impl Read + Seek),
    edits: &mut Edits,
    findings: &mut Vec<Finding>,
) -> io::Result<()> {
    #[derive(Deserialize)]
    struct Record<'a> {
        timestamp: Value,
        #[serde(borrow)]
        payload: Call<'a>,
    }
    #[derive(Deserialize)]
    struct Call<'a> {
        #[serde(rename = "type", borrow)]
        kind: std::borrow::Cow<'a, str>,
        name: Option<String>,
        call_id: String,
    }
    let returned: HashSet<Name> = rollout.results.iter().map(|(name, _)| *name).collect();
    let is_open = |name: &Name| !returned.contains(name) && !rollout.others.contains(name);
    let mut open: Vec<u64> = rollout.calls.iter().filter(|(name, _)| is_open(name)).map(|(_, start)| *start).collect();
    open.sort_unstable();
    for start in open {
        let placed = Placed::read(&mut *source, start)?;
        // Codex handles the other items with a call id itself.
        let Ok(Record { timestamp, payload }) = placed.fields::<Record<'_>>() else { continue };
        let returns = match payload.kind.as_ref() {
            "function_call" => "function_call_output",
            "custom_tool_call" => "custom_tool_call_output",
            _ => continue,
        };
        let result = json!({ "type": returns, "call_id": payload.call_id, "output": MAY_HAVE_RUN });
        let line = json!({ "timestamp": timestamp, "type": "response_item", "payload": result });
        edits.insert(placed.end(), format!("\n{line}"));
        findings.push(Finding::CallWithoutResult { tool: payload.name.unwrap_or_else(|| "a tool".to_owned()) });
    }
    Ok(())
}

fn result_as_text(result: &Placed, edits: &mut Edits) -> io::Result<()> {
    #[derive(Deserialize)]
    struct Record<'a> {
        #[serde(borrow)]
        payload: &'a RawValue,
    }
    let Record { payload } = result.fields()?;
    let value: Value = serde_json::from_str(payload.get()).unwrap_or_default();
    let text = match &value["output"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => other.to_string(),
    };
    let content = json!([{ "type": "input_text", "text": format!("{CALL_IS_LOST}\n\n{text}") }]);
    let message = json!({ "type": "message", "role": "user", "content": content });
    let place = result.place_of(payload);
    edits.replace(place.start, place.end, message.to_string());
    Ok(())
}

/// A first record, made from the others: the thread's id, when it began, and its folder.
fn beginning(rollout: &Rollout, source: &mut (impl Read + Seek)) -> io::Result<Option<Vec<u8>>> {
    let (Some(context), Some(thread)) = (rollout.context, rollout.thread) else {
        return Ok(None);
    };
    let mut read = |start: u64| -> io::Result<Value> { Placed::read(&mut *source, start)?.fields() };
    let (context, thread) = (read(context)?, read(thread)?);
    let (Some(id), Some(cwd)) = (thread["payload"]["thread_id"].as_str(), context["payload"]["cwd"].as_str()) else {
        return Ok(None);
    };
    let payload = json!({
        "id": id, "session_id": thread["payload"]["session_id"], "timestamp": context["timestamp"], "cwd": cwd,
        "originator": "codex_exec", "cli_version": "0.0.0", "source": "exec",
        "window_id": new_uuid(&[b"window", id.as_bytes()]),
    });
    let line = json!({ "timestamp": context["timestamp"], "type": "session_meta", "payload": payload });
    Ok(Some(format!("{line}\n").into_bytes()))
}
