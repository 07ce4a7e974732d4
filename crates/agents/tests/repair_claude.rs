//! Transcripts of claude, damaged in every way: the repaired ones are complete, and a second repair changes nothing.
//!
//! The conversations are made here in the shape that claude 2.1.197 writes: the blocks of one answer on separate lines,
//! results below the line of their call, notes of where to continue. How claude reads them is implemented here a second
//! time, simply and without regard for memory, so that the two implementations can disagree.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that finds no value has failed")]

use ostler_agents::repair::{Format, examine};
use ostler_transcript::{Branches, Finding, MAY_HAVE_RUN, Remedy};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::io::Cursor;

fn format(agent: &str) -> Format {
    Format::of_agent(agent).unwrap()
}

/// Ids that a single wrong byte does not turn into one another.
fn uuid(number: usize) -> String {
    let spread = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("{:08x}-0000-4000-8000-{:012x}", spread >> 32, spread & 0xffff_ffff)
}

/// Writes conversations.
#[derive(Default)]
struct Writer {
    lines: Vec<String>,
    count: usize,
    ms: usize,
}

impl Writer {
    fn line(&mut self, kind: &str, parent: Option<&str>, message: Value) -> String {
        self.ms += 1000;
        self.count += 1;
        let uuid = uuid(self.count);
        let time = format!(
            "2026-11-15T{:02}:{:02}:{:02}.000Z",
            self.ms / 3_600_000,
            self.ms / 60_000 % 60,
            self.ms / 1000 % 60
        );
        let rest = json!({
            "isSidechain": false, "type": kind, "message": message, "uuid": uuid, "timestamp": time,
            "sessionId": "s", "cwd": "/w", "version": "2.1.197",
        });
        let parent = json!(parent);
        self.lines.push(format!("{{\"parentUuid\":{parent},{}", &rest.to_string()[1..]));
        uuid
    }

    fn prompt(&mut self, parent: Option<&str>, text: &str) -> String {
        self.line("user", parent, json!({ "role": "user", "content": text }))
    }

    fn answer(&mut self, parent: &str, text: &str) -> String {
        let id = format!("msg_{}", self.count);
        self.line("assistant", Some(parent), json!({ "id": id, "content": [{ "type": "text", "text": text }] }))
    }

    /// Calls in one answer; returns their lines.
    fn calls(&mut self, parent: &str, names: &[&str]) -> Vec<String> {
        let id = format!("msg_{}", self.count);
        let mut parent = parent.to_owned();
        let mut lines = Vec::new();
        for name in names {
            let call = json!([{ "type": "tool_use", "id": name, "name": "Bash", "input": {} }]);
            parent = self.line("assistant", Some(&parent), json!({ "id": id, "content": call }));
            lines.push(parent.clone());
        }
        lines
    }

    fn result(&mut self, call_line: &str, name: &str) -> String {
        let text = format!("result of {name}");
        let result = json!([{ "type": "tool_result", "tool_use_id": name, "content": text }]);
        self.line("user", Some(call_line), json!({ "role": "user", "content": result }))
    }

    fn last_prompt(&mut self, leaf: &str, explicit: bool) {
        self.lines.push(
            json!({ "type": "last-prompt", "leafUuid": leaf, "explicit": explicit, "sessionId": "s" }).to_string(),
        );
    }

    /// A turn with parallel tools, as claude writes it when nothing is wrong.
    fn turn(&mut self, parent: Option<&str>, number: usize, tools: usize) -> String {
        let mut at = self.prompt(parent, &format!("prompt {number}"));
        let names: Vec<String> = (0..tools).map(|tool| format!("tool_{number}_{tool}")).collect();
        if tools > 0 {
            let lines = self.calls(&at, &names.iter().map(String::as_str).collect::<Vec<_>>());
            for index in (0..tools).rev() {
                at = self.result(&lines[index], &names[index]);
            }
        }
        let leaf = self.answer(&at, &format!("reply {number}"));
        self.last_prompt(&leaf, false);
        leaf
    }

    fn bytes(&self) -> Vec<u8> {
        self.lines.iter().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect()
    }
}

fn conversation(turns: &[usize]) -> Writer {
    let mut writer = Writer::default();
    let mut leaf = None;
    for (number, &tools) in turns.iter().enumerate() {
        leaf = Some(writer.turn(leaf.as_deref(), number, tools));
    }
    writer
}

/// Repairs until nothing is left to repair, as the program does.
fn repair_as(bytes: &[u8], branches: Branches) -> (Vec<u8>, Vec<Finding>) {
    let mut file = bytes.to_vec();
    let mut findings = Vec::new();
    for _ in 0..4 {
        let examination = examine(format("claude"), Cursor::new(&file), branches).unwrap();
        let mut out = Vec::new();
        examination.edits.apply(Cursor::new(&file), &mut out).unwrap();
        file = out;
        let repairs = examination.repairs();
        findings.extend(examination.findings);
        if !repairs {
            break;
        }
        findings.retain(|finding| finding.remedy() == Remedy::Repair);
    }
    (file, findings)
}

fn repair(bytes: &[u8]) -> (Vec<u8>, Vec<Finding>) {
    repair_as(bytes, Branches::Join)
}

fn records(bytes: &[u8]) -> Vec<Value> {
    bytes.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// What claude would send to the model: the messages from the beginning to the leaf, with the arms of their answers.
fn shown(bytes: &[u8]) -> Vec<Value> {
    let text = |value: &Value, name: &str| value[name].as_str().map(str::to_owned);
    let mut messages: HashMap<String, Value> = HashMap::new();
    let (mut named, mut chosen, mut last) = (None, false, None);
    for record in records(bytes) {
        match record["type"].as_str() {
            Some("user" | "assistant" | "attachment" | "system") => {
                if let Some(uuid) = text(&record, "uuid") {
                    messages.insert(uuid.clone(), record);
                    (last, chosen) = (Some(uuid), false);
                }
            }
            Some("last-prompt") => {
                if let Some(leaf) = text(&record, "leafUuid") {
                    (named, chosen) = (Some(leaf), record["explicit"] == true);
                }
            }
            // A record of a kind that claude does not know: claude shows nothing of it, and continues above it.
            _ => {
                if let Some(uuid) = text(&record, "uuid") {
                    messages.entry(uuid).or_insert_with(|| json!({ "parentUuid": record["parentUuid"] }));
                }
            }
        }
    }
    let path = |from: &str| {
        let mut path = Vec::new();
        let mut next = Some(from.to_owned());
        while let Some(uuid) = next.filter(|uuid| messages.contains_key(uuid) && !path.contains(uuid)) {
            next = text(&messages[&uuid], "parentUuid");
            path.push(uuid);
        }
        path
    };
    let named = named.filter(|named| messages.contains_key(named));
    let leaf = match (named, last) {
        (Some(named), Some(last)) if !chosen && path(&last).contains(&named) => last,
        (Some(named), _) => named,
        (None, Some(last)) => last,
        (None, None) => return Vec::new(),
    };
    let chain: HashSet<String> = path(&leaf).into_iter().collect();
    let answers: HashSet<String> = chain.iter().filter_map(|uuid| text(&messages[uuid]["message"], "id")).collect();
    let of_answer = |uuid: &str| text(&messages[uuid]["message"], "id").is_some_and(|id| answers.contains(&id));
    let mut shown: Vec<&String> = messages
        .keys()
        .filter(|uuid| {
            let parent = text(&messages[*uuid], "parentUuid").filter(|parent| messages.contains_key(parent));
            let is_result = messages[*uuid]["message"]["content"][0]["type"] == "tool_result";
            chain.contains(*uuid) || of_answer(uuid) || is_result && parent.is_some_and(|parent| of_answer(&parent))
        })
        .collect();
    shown.sort();
    shown.into_iter().map(|uuid| messages[uuid].clone()).collect()
}

fn blocks(messages: &[Value], kind: &str, name: &str) -> Vec<String> {
    let blocks = messages.iter().flat_map(|message| message["message"]["content"].as_array().into_iter().flatten());
    let mut found: Vec<String> = blocks
        .filter(|block| block["type"] == kind)
        .filter_map(|block| block[name].as_str().map(str::to_owned))
        .collect();
    found.sort();
    found
}

#[track_caller]
fn is_well_formed(bytes: &[u8]) {
    let messages = shown(bytes);
    let (calls, results) = (blocks(&messages, "tool_use", "id"), blocks(&messages, "tool_result", "tool_use_id"));
    assert_eq!(calls, results, "{}", String::from_utf8_lossy(bytes));
}

#[track_caller]
fn is_left_alone(writer: &Writer) -> Vec<Finding> {
    let bytes = writer.bytes();
    let (repaired, findings) = repair(&bytes);
    assert_eq!(String::from_utf8_lossy(&repaired), String::from_utf8_lossy(&bytes), "{findings:?}");
    assert!(findings.iter().all(|finding| finding.remedy() == Remedy::Note), "{findings:?}");
    findings
}

#[test]
fn parallel_tools_are_healthy() {
    assert_eq!(is_left_alone(&conversation(&[0, 3, 1, 2])), []);
}

#[test]
fn a_prompt_that_was_taken_back_is_healthy_and_said() {
    let mut writer = conversation(&[1]);
    let fork = uuid(writer.count);
    writer.turn(Some(&fork), 1, 2);
    writer.last_prompt(&fork, true);
    writer.turn(Some(&fork), 2, 1);
    assert_eq!(is_left_alone(&writer), [Finding::LeftAside { messages: 6 }]);
}

#[test]
fn an_interrupt_among_parallel_tools_is_healthy() {
    let mut writer = conversation(&[0]);
    let fork = uuid(writer.count);
    let prompt = writer.prompt(Some(&fork), "go");
    let calls = writer.calls(&prompt, &["a", "b"]);
    let first = writer.result(&calls[0], "a");
    writer.last_prompt(&first, false);
    let second = writer.result(&calls[1], "b");
    writer.prompt(Some(&second), "[Request interrupted by user for tool use]");
    assert_eq!(is_left_alone(&writer), []);
    writer.turn(Some(&first), 9, 1);
    assert_eq!(is_left_alone(&writer), []);
}

#[test]
fn messages_that_hang_on_records_of_an_unknown_kind_are_healthy() {
    let mut writer = conversation(&[1]);
    let progress = writer.line("progress", Some(&uuid(writer.count)), json!(null));
    writer.turn(Some(&progress), 1, 2);
    assert_eq!(is_left_alone(&writer), []);
}

#[test]
fn what_stands_before_a_compaction_is_history() {
    let mut writer = conversation(&[0]);
    let prompt = writer.prompt(Some(&uuid(2)), "go");
    writer.calls(&prompt, &["lost"]);
    let boundary = writer.line("system", None, json!(null));
    let line = writer.lines.pop().unwrap().replacen(
        "\"type\":\"system\"",
        "\"type\":\"system\",\"subtype\":\"compact_boundary\"",
        1,
    );
    writer.lines.push(line);
    writer.turn(Some(&boundary), 5, 2);
    assert_eq!(is_left_alone(&writer), []);
}

#[test]
fn a_cut_off_call_gets_a_result_and_the_conversation_ends_with_it() {
    let mut writer = conversation(&[1]);
    let prompt = writer.prompt(Some(&uuid(writer.count)), "go");
    let calls = writer.calls(&prompt, &["a", "b", "c"]);
    writer.result(&calls[0], "a");
    let (repaired, findings) = repair(&writer.bytes());
    let told = || Finding::CallWithoutResult { tool: "Bash".to_owned() };
    assert_eq!(findings, [told(), told()]);
    is_well_formed(&repaired);
    assert_eq!(
        blocks(&shown(&repaired), "tool_result", "content").iter().filter(|text| *text == MAY_HAVE_RUN).count(),
        2
    );
}

#[test]
fn a_call_that_an_earlier_resume_left_out_is_brought_back() {
    let mut writer = conversation(&[1]);
    let prompt = writer.prompt(Some(&uuid(writer.count)), "go");
    writer.calls(&prompt, &["a"]);
    let answer = writer.answer(&prompt, "No response requested.");
    writer.turn(Some(&answer), 3, 1);
    let (repaired, findings) = repair(&writer.bytes());
    assert_eq!(findings, [Finding::CallWithoutResult { tool: "Bash".to_owned() }]);
    is_well_formed(&repaired);
    assert!(blocks(&shown(&repaired), "tool_use", "id").contains(&"a".to_owned()));
}

/// Two turns after one message, written at the same time.
fn two_writers() -> Writer {
    let mut writer = conversation(&[1]);
    let fork = uuid(writer.count);
    let prompts = [writer.prompt(Some(&fork), "one"), writer.prompt(Some(&fork), "two")];
    let calls = [writer.calls(&prompts[0], &["a"]), writer.calls(&prompts[1], &["b"])];
    let results = [writer.result(&calls[0][0], "a"), writer.result(&calls[1][0], "b")];
    let second = writer.answer(&results[1], "reply two");
    writer.last_prompt(&second, false);
    let first = writer.answer(&results[0], "reply one");
    writer.last_prompt(&first, false);
    writer
}

#[test]
fn what_two_processes_wrote_at_once_is_joined_into_one_conversation() {
    let (repaired, findings) = repair(&two_writers().bytes());
    assert_eq!(findings, [Finding::Joined { messages: 4 }]);
    is_well_formed(&repaired);
    let texts = blocks(&shown(&repaired), "text", "text");
    assert!(texts.contains(&"reply one".to_owned()) && texts.contains(&"reply two".to_owned()), "{texts:?}");
}

/// Each process writes its lines from time to time, so the prompt that came first may be below the other.
#[test]
fn it_does_not_matter_whose_prompt_reached_the_file_first() {
    let mut writer = two_writers();
    let prompt =
        |text: &str| writer.lines.iter().position(|line| line.contains(&format!(r#""content":"{text}""#))).unwrap();
    let (one, two) = (prompt("one"), prompt("two"));
    writer.lines.swap(one, two);
    assert_eq!(repair(&writer.bytes()).1, [Finding::Joined { messages: 4 }]);
}

/// The second process had received a message and answered it before the first one got its answer from the model.
#[test]
fn an_answer_that_comes_after_a_whole_turn_of_another_process_is_joined_in() {
    let mut writer = conversation(&[1]);
    let slow = writer.prompt(Some(&uuid(writer.count)), "slow");
    let instead = writer.answer(&slow, "No response requested.");
    writer.turn(Some(&instead), 7, 1);
    let answer = writer.answer(&slow, "at last");
    writer.last_prompt(&answer, false);
    let (repaired, findings) = repair(&writer.bytes());
    assert!(matches!(findings[..], [Finding::Joined { .. }]), "{findings:?}");
    is_well_formed(&repaired);
    let texts = blocks(&shown(&repaired), "text", "text");
    assert!(texts.contains(&"reply 7".to_owned()) && texts.contains(&"at last".to_owned()), "{texts:?}");
}

#[test]
fn split_makes_two_conversations_of_them() {
    let bytes = two_writers().bytes();
    let (repaired, findings) = repair_as(&bytes, Branches::Split);
    let [Finding::Split { messages: 4, into }] = &findings[..] else { panic!("{findings:?}") };
    let examination = examine(format("claude"), Cursor::new(&bytes), Branches::Split).unwrap();
    let mut other = Vec::new();
    examination.moved[0].write(Cursor::new(&bytes), &mut other).unwrap();
    for (file, has, lacks) in [(&repaired, "reply one", "reply two"), (&other, "reply two", "reply one")] {
        is_well_formed(file);
        let texts = blocks(&shown(file), "text", "text");
        assert!(texts.contains(&has.to_owned()) && !texts.contains(&lacks.to_owned()), "{texts:?}");
        assert_eq!(repair(file).1, [], "{}", String::from_utf8_lossy(file));
    }
    assert!(records(&other).iter().all(|record| record["sessionId"] == into.as_str()));
}

#[test]
fn a_record_behind_a_torn_one_is_saved() {
    let writer = conversation(&[1, 1]);
    let mut lines = writer.lines.clone();
    let torn = lines.remove(4);
    lines[4] = format!("{}{}", &torn[..torn.len() / 2], lines[4]);
    let (repaired, findings) =
        repair(lines.iter().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect::<Vec<_>>().as_slice());
    assert!(findings.contains(&Finding::Freed { line: 5, records: 1 }), "{findings:?}");
    assert!(records(&repaired).iter().any(|record| record["message"]["content"] == "prompt 1"));
}

#[test]
fn an_empty_file_cannot_be_repaired_and_nothing_is_invented() {
    for bytes in [&b""[..], b"\n\n"] {
        let (repaired, findings) = repair(bytes);
        assert_eq!((repaired.as_slice(), findings), (bytes, vec![Finding::Empty]));
    }
}

#[derive(Clone, Debug)]
enum Damage {
    Truncate(prop::sample::Index),
    Flip(prop::sample::Index, u8),
    Delete(prop::sample::Index),
    Duplicate(prop::sample::Index),
    Swap(prop::sample::Index, prop::sample::Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        at().prop_map(Damage::Truncate),
        (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Flip(at, byte)),
        at().prop_map(Damage::Delete),
        at().prop_map(Damage::Duplicate),
        (at(), at()).prop_map(|(one, other)| Damage::Swap(one, other)),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &Damage) {
    if bytes.is_empty() {
        return;
    }
    let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    match damage {
        Damage::Truncate(at) => bytes.truncate(at.index(bytes.len())),
        Damage::Flip(at, byte) => {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        Damage::Delete(at) => {
            lines.remove(at.index(lines.len()));
            *bytes = lines.concat();
        }
        Damage::Duplicate(at) => {
            let at = at.index(lines.len());
            lines.insert(at, lines[at].clone());
            *bytes = lines.concat();
        }
        Damage::Swap(one, other) => {
            let (one, other) = (one.index(lines.len()), other.index(lines.len()));
            lines.swap(one, other);
            *bytes = lines.concat();
        }
    }
}

/// The content of every complete message, whatever its id and its parent are. No two of them are equal.
fn said(bytes: &[u8]) -> HashSet<String> {
    records(bytes)
        .into_iter()
        .filter(|record| record["uuid"].is_string())
        .map(|record| {
            let content = &record["message"]["content"];
            match &content[0]["content"] {
                Value::String(text) => text.clone(),
                // A result whose field has another name after the damage is compared as a whole.
                _ if content[0]["type"] == "tool_result" => content[0].to_string(),
                _ => content.to_string(),
            }
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn whatever_happened_to_a_file_it_is_repaired_once_and_loses_nothing(
        turns in prop::collection::vec(0..4usize, 1..5),
        both in any::<bool>(),
        damages in prop::collection::vec(damage(), 0..4),
    ) {
        let mut bytes = if both { two_writers().bytes() } else { conversation(&turns).bytes() };
        for damage in &damages {
            apply(&mut bytes, damage);
        }
        let (repaired, findings) = repair(&bytes);
        is_well_formed(&repaired);
        let (again, more) = repair(&repaired);
        prop_assert!(more.iter().all(|finding| finding.remedy() != Remedy::Repair), "{more:?} after {findings:?}");
        prop_assert_eq!(&again, &repaired);
        let text = String::from_utf8_lossy(&repaired).into_owned();
        let kept = said(&repaired);
        for says in said(&bytes) {
            let as_text = text.contains(&says.replace('\\', "\\\\").replace('"', "\\\""));
            prop_assert!(kept.contains(&says) || as_text, "lost {says}");
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'{'), Just(b'"'), any::<u8>()], 0..300)) {
        for format in Format::all() {
            let examination = examine(format, Cursor::new(&bytes), Branches::Split).unwrap();
            examination.edits.apply(Cursor::new(&bytes), Vec::new()).unwrap();
            Format::detect(Cursor::new(&bytes)).unwrap();
        }
    }
}
