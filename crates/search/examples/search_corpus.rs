//! Writes conversations in the formats of four agents, for the benchmarks of the search: `search_corpus HOME MESSAGES`.
//!
//! A turn is a prompt, four calls of tools with their output, and two answers. Words follow Zipf's law, and most words
//! of a conversation come from a small vocabulary of its own, as in real conversations. Lines have the other fields
//! that the agents write, because skipping them is part of the work. The output is the same every time.

use rusqlite::Connection;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Messages of one conversation; a million of them make more than 10,000 files.
const LENGTH: usize = 77;
const WORDS: usize = 60_000;
/// The size of a conversation's own vocabulary.
const OWN: usize = 600;

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let mut arguments = std::env::args().skip(1);
    let (Some(home), Some(messages)) = (arguments.next(), arguments.next()) else {
        return Err("search_corpus HOME MESSAGES".into());
    };
    let messages: usize = messages.parse()?;
    let home = Path::new(&home);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let vocabulary = vocabulary(&mut random);
    let mut rows = Rows::create(home)?;
    let conversations = messages.div_ceil(LENGTH);
    for number in 0..conversations {
        let mut source = Source::new(&mut random, &vocabulary, number);
        match number % 20 {
            0..8 => claude(home, &mut source)?,
            8..14 => codex(home, &mut source)?,
            14..17 => gemini(home, &mut source)?,
            _ => rows.conversation(&mut source)?,
        }
    }
    rows.finish()?;
    println!("{conversations} conversations, {} messages", conversations * LENGTH);
    Ok(())
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap_or(0)
    }

    /// An index into a list in which the first entries are far more frequent than the last.
    fn rank(&mut self, limit: usize) -> usize {
        #[expect(clippy::cast_precision_loss, reason = "random numbers")]
        let (share, limit) = ((self.next() % 1_000_000) as f64 / 1_000_000.0, limit as f64);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the limit")]
        let rank = limit.powf(share) as usize;
        rank.saturating_sub(1)
    }
}

fn vocabulary(random: &mut Random) -> Vec<String> {
    let word = |rank: usize, random: &mut Random| {
        let length = if rank < 200 { 2 + random.below(4) } else { 3 + random.below(9) };
        (0..length).map(|_| char::from(b'a' + u8::try_from(random.below(26)).unwrap_or(0))).collect()
    };
    (0..WORDS).map(|rank| word(rank, random)).collect()
}

/// What is said in one conversation.
struct Source<'a> {
    random: &'a mut Random,
    vocabulary: &'a [String],
    own: Vec<usize>,
    number: usize,
    second: usize,
}

impl<'a> Source<'a> {
    fn new(random: &'a mut Random, vocabulary: &'a [String], number: usize) -> Source<'a> {
        let own = (0..OWN).map(|_| random.rank(WORDS)).collect();
        Source { random, vocabulary, own, number, second: 0 }
    }

    fn text(&mut self, words: usize) -> String {
        let mut text = String::new();
        for place in 0..words {
            let rank =
                if self.random.below(10) < 7 { self.own[self.random.rank(OWN)] } else { self.random.rank(WORDS) };
            text.push_str(&self.vocabulary[rank]);
            text.push_str(match (place % 12, self.random.below(20)) {
                (11, _) => ".\n",
                (_, 0) => "_",
                (_, 1) => "/",
                (_, _) => " ",
            });
        }
        // Words to search for: one that is rare, two that are frequent, and these two together.
        match self.random.below(100_000) {
            0..4 => text.push_str(" needlework"),
            4..2000 => text.push_str(" connection was lost"),
            2000..4000 => text.push_str(" a timeout happened"),
            4000..4100 => text.push_str(" the connection timeout is short"),
            _ => {}
        }
        text
    }

    fn prompt(&mut self) -> String {
        let words = 10 + self.random.below(50);
        self.text(words)
    }

    fn answer(&mut self) -> String {
        let words = 20 + self.random.below(120);
        self.text(words)
    }

    fn output(&mut self) -> String {
        let words = match self.random.below(100) {
            0..60 => 4 + self.random.below(30),
            60..95 => 50 + self.random.below(300),
            _ => 1000 + self.random.below(2000),
        };
        self.text(words)
    }

    /// Over a year: a conversation every 45 minutes, a message every few seconds.
    fn at_ms(&mut self) -> u64 {
        self.second += 5 + self.random.below(20);
        1_763_000_000_000 + (self.number * 2700 + self.second) as u64 * 1000
    }

    fn at(&mut self) -> String {
        let ms = self.at_ms();
        jiff::Timestamp::from_millisecond(i64::try_from(ms).unwrap_or(0)).map(|at| at.to_string()).unwrap_or_default()
    }

    fn uuid(&mut self) -> String {
        let (one, two) = (self.random.next(), self.random.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            one >> 32,
            one & 0xffff,
            one >> 16 & 0xfff,
            two >> 48 & 0xfff,
            two & 0xffff_ffff_ffff
        )
    }

    fn folder(&self) -> String {
        format!("/home/me/src/project{}", self.number % 40)
    }

    fn turns(&self) -> usize {
        LENGTH / 11
    }
}

fn create(folder: &Path, name: &str) -> io::Result<BufWriter<File>> {
    fs::create_dir_all(folder)?;
    Ok(BufWriter::with_capacity(1 << 20, File::create(folder.join(name))?))
}

fn claude(home: &Path, source: &mut Source<'_>) -> io::Result<()> {
    let (id, cwd) = (source.uuid(), source.folder());
    let mut file = create(&home.join(".claude/projects").join(cwd.replace('/', "-")), &format!("{id}.jsonl"))?;
    let mut parent = Value::Null;
    let mut line = |source: &mut Source<'_>, mut value: Value| -> io::Result<()> {
        let uuid = source.uuid();
        let common = json!({ "parentUuid": parent, "isSidechain": false, "uuid": uuid, "timestamp": source.at(), "userType": "external",
            "entrypoint": "cli", "cwd": cwd, "sessionId": id, "version": "2.1.197", "gitBranch": "main", "promptId": source.uuid() });
        if let (Some(value), Some(common)) = (value.as_object_mut(), common.as_object()) {
            value.extend(common.clone());
        }
        parent = Value::from(uuid);
        writeln!(file, "{value}")
    };
    let usage = json!({ "input_tokens": 1000, "cache_creation_input_tokens": 4711, "cache_read_input_tokens": 81234, "output_tokens": 310,
        "server_tool_use": { "web_search_requests": 0, "web_fetch_requests": 0 }, "service_tier": "standard",
        "cache_creation": { "ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 4711 }, "inference_geo": "", "iterations": [], "speed": "standard" });
    let assistant = |content: Value, message: &str, reason: &str| {
        json!({ "type": "assistant", "requestId": "req_011CUxKp1yZ8w3", "message": { "content": [content], "id": message, "model": "claude-opus-4-8",
            "role": "assistant", "stop_reason": reason, "stop_sequence": null, "type": "message", "usage": usage, "stop_details": null } })
    };
    for _ in 0..source.turns() {
        let prompt = source.prompt();
        line(source, json!({ "type": "user", "message": { "role": "user", "content": prompt } }))?;
        for _ in 0..4 {
            let (call, command) = (format!("toolu_{:016x}", source.random.next()), source.text(8));
            line(
                source,
                assistant(
                    json!({ "type": "tool_use", "id": call, "name": "Bash", "input": { "command": command } }),
                    "msg_01",
                    "tool_use",
                ),
            )?;
            let output = source.output();
            line(
                source,
                json!({ "type": "user", "message": { "role": "user", "content": [{ "tool_use_id": call, "type": "tool_result", "content": output, "is_error": false }] },
                "toolUseResult": { "stdout": output, "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false } }),
            )?;
        }
        for _ in 0..2 {
            let answer = source.answer();
            line(source, assistant(json!({ "type": "text", "text": answer }), "msg_02", "end_turn"))?;
        }
    }
    file.flush()
}

fn codex(home: &Path, source: &mut Source<'_>) -> io::Result<()> {
    let (id, cwd) = (source.uuid(), source.folder());
    let day = format!(".codex/sessions/2026/{:02}/{:02}", 1 + source.number % 12, 1 + source.number % 28);
    let mut file = create(&home.join(day), &format!("rollout-2026-01-01T00-00-00-{id}.jsonl"))?;
    let mut ordinal = 0;
    let mut line = |source: &mut Source<'_>, kind: &str, payload: Value| -> io::Result<()> {
        ordinal += 1;
        writeln!(file, "{}", json!({ "timestamp": source.at(), "ordinal": ordinal, "type": kind, "payload": payload }))
    };
    let instructions = source.text(2500);
    line(
        source,
        "session_meta",
        json!({ "id": id, "cwd": cwd, "originator": "codex_exec", "cli_version": "0.166.0", "base_instructions": { "text": instructions } }),
    )?;
    let meta = |kind: &str| json!({ "turn_id": id, "create_time": 1_794_726_498.5, "content_item_metadata": [{ "provenance": { "type": kind } }] });
    for _ in 0..source.turns() {
        let prompt = source.prompt();
        line(
            source,
            "response_item",
            json!({ "type": "message", "id": "msg_1", "role": "user", "content": [{ "type": "input_text", "text": prompt }],
            "internal_chat_message_metadata_passthrough": meta("user") }),
        )?;
        line(
            source,
            "event_msg",
            json!({ "type": "user_message", "message": prompt, "images": [], "local_images": [], "text_elements": [] }),
        )?;
        for _ in 0..4 {
            let (call, command, output) =
                (format!("call_{:016x}", source.random.next()), source.text(8), source.output());
            let thinking: String = (0..12).map(|_| format!("{:016x}", source.random.next())).collect();
            line(
                source,
                "response_item",
                json!({ "type": "reasoning", "id": "rs_1", "summary": [], "content": null, "encrypted_content": thinking }),
            )?;
            let arguments = json!({ "cmd": command, "workdir": cwd, "yield_time_ms": 1000 }).to_string();
            line(
                source,
                "response_item",
                json!({ "type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": call }),
            )?;
            let told = format!(
                "Chunk ID: 1\nWall time: 0.05 seconds\nProcess exited with code 0\nOriginal token count: 99\nOutput:\n{output}"
            );
            line(source, "response_item", json!({ "type": "function_call_output", "call_id": call, "output": told }))?;
            let count = json!({ "input_tokens": 30210, "cached_input_tokens": 28000, "output_tokens": 310, "reasoning_output_tokens": 64, "total_tokens": 30520 });
            line(
                source,
                "event_msg",
                json!({ "type": "token_count", "info": { "total_token_usage": count, "last_token_usage": count, "model_context_window": 258_400 }, "rate_limits": null }),
            )?;
        }
        for _ in 0..2 {
            let answer = source.answer();
            line(source, "event_msg", json!({ "type": "agent_message", "message": answer, "phase": null }))?;
            line(
                source,
                "response_item",
                json!({ "type": "message", "id": "msg_2", "role": "assistant", "content": [{ "type": "output_text", "text": answer }] }),
            )?;
        }
    }
    file.flush()
}

fn gemini(home: &Path, source: &mut Source<'_>) -> io::Result<()> {
    let (id, cwd) = (source.uuid(), source.folder());
    let project = home.join(".gemini/tmp").join(format!("project{}", source.number % 40));
    let mut file = create(&project.join("chats"), &format!("session-2026-01-01T00-00-{id}.jsonl"))?;
    fs::write(project.join(".project_root"), format!("{cwd}\n"))?;
    writeln!(
        file,
        "{}",
        json!({ "sessionId": id, "projectHash": "0".repeat(64), "startTime": source.at(), "lastUpdated": source.at(), "kind": "main" })
    )?;
    for _ in 0..source.turns() {
        let prompt = source.prompt();
        writeln!(
            file,
            "{}",
            json!({ "id": source.uuid(), "timestamp": source.at(), "type": "user", "content": [{ "text": prompt }] })
        )?;
        for _ in 0..2 {
            let (answer, message, at) = (source.answer(), source.uuid(), source.at());
            let tokens = json!({ "input": 3000, "output": 30, "cached": 0, "thoughts": 0, "tool": 0, "total": 3030 });
            let said = json!({ "id": message, "timestamp": at, "type": "gemini", "content": answer, "thoughts": [], "tokens": tokens, "model": "gemini-3.8-flash" });
            writeln!(file, "{said}")?;
            let tools: Vec<Value> = (0..2)
                .map(|_| {
                    let (output, command) = (source.output(), source.text(8));
                    json!({ "id": source.uuid(), "name": "run_shell_command", "args": { "command": command, "description": "x" }, "status": "success", "timestamp": at,
                        "result": [{ "functionResponse": { "id": "1", "name": "run_shell_command", "response": { "output": output } } }], "resultDisplay": output,
                        "displayName": "Shell", "description": command, "renderOutputAsMarkdown": false })
                })
                .collect();
            writeln!(
                file,
                "{}",
                json!({ "id": message, "timestamp": at, "type": "gemini", "content": answer, "thoughts": [], "tokens": tokens, "toolCalls": tools })
            )?;
            writeln!(file, "{}", json!({ "$set": { "lastUpdated": at } }))?;
        }
    }
    file.flush()
}

/// The database of opencode.
struct Rows {
    database: Connection,
    parts: usize,
}

impl Rows {
    fn create(home: &Path) -> Result<Rows, Failed> {
        let folder = home.join(".local/share/opencode");
        fs::create_dir_all(&folder)?;
        let database = Connection::open(folder.join("opencode.db"))?;
        database.execute_batch(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
             CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text, time_updated integer);
             CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, data text);
             CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, data text);
             CREATE INDEX part_session ON part (session_id); CREATE INDEX part_message ON part (message_id); BEGIN;",
        )?;
        Ok(Rows { database, parts: 0 })
    }

    fn conversation(&mut self, source: &mut Source<'_>) -> Result<(), Failed> {
        let id = format!("ses_{:08}", source.number);
        for _ in 0..source.turns() {
            let text = source.prompt();
            self.message(source, &id, "user", vec![json!({ "type": "text", "text": text })])?;
            for _ in 0..2 {
                let answer = source.answer();
                let mut parts = vec![
                    json!({ "type": "step-start" }),
                    json!({ "type": "text", "text": answer, "time": { "start": source.at_ms(), "end": source.at_ms() } }),
                ];
                for _ in 0..2 {
                    let (output, command) = (source.output(), source.text(8));
                    parts.push(json!({ "type": "tool", "callID": "call_1", "tool": "bash", "state": { "status": "completed", "input": { "command": command, "description": "x" },
                        "output": output, "title": "x", "metadata": { "output": output, "exit": 0, "description": "x" }, "time": { "start": 1, "end": 2 } } }));
                }
                self.message(source, &id, "assistant", parts)?;
            }
        }
        self.database.execute(
            "INSERT INTO session VALUES (?1, NULL, ?2, ?3)",
            rusqlite::params![id, source.folder(), source.at_ms().cast_signed()],
        )?;
        Ok(())
    }

    fn message(&mut self, source: &mut Source<'_>, id: &str, role: &str, parts: Vec<Value>) -> Result<(), Failed> {
        let at = source.at_ms();
        let data = json!({ "role": role, "time": { "created": at, "completed": at }, "modelID": "scripted", "providerID": "mock", "mode": "build",
            "path": { "cwd": source.folder(), "root": "/" }, "cost": 0, "tokens": { "input": 1000, "output": 10, "reasoning": 0, "cache": { "read": 0, "write": 0 } } });
        let message = format!("msg_{:012}", self.parts);
        self.database.execute(
            "INSERT INTO message VALUES (?1, ?2, ?3, ?4)",
            rusqlite::params![message, id, at.cast_signed(), data.to_string()],
        )?;
        for part in parts {
            self.parts += 1;
            self.database.execute(
                "INSERT INTO part VALUES (?1, ?2, ?3, ?4)",
                [&format!("prt_{:012}", self.parts), &message, id, &part.to_string()],
            )?;
        }
        Ok(())
    }

    fn finish(self) -> Result<(), Failed> {
        Ok(self.database.execute_batch("COMMIT;")?)
    }
}
