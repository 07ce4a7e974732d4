//! Transcripts in the agents' formats, with the words that a test needs.

use ostler_testkit::Harness;
use rusqlite::Connection;
use serde_json::json;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

pub const CLAUDE: &str = "11111111-408d-4262-88d9-97e7e2d532f0";
pub const CODEX: &str = "22222222-408d-7262-88d9-97e7e2d532f0";
pub const GEMINI: &str = "33333333-2696-4262-88d9-97e7e2d532f0";
pub const OPENCODE: &str = "ses_44444444";

/// Where claude keeps a conversation of this folder.
pub fn claude_file(harness: &Harness, id: &str) -> PathBuf {
    let folder = harness.root().join("home/.claude/projects/-work-app");
    fs::create_dir_all(&folder).unwrap();
    folder.join(format!("{id}.jsonl"))
}

pub fn claude_user(text: &str, at: &str) -> String {
    let line =
        json!({ "type": "user", "cwd": "/work/app", "timestamp": at, "message": { "role": "user", "content": text } });
    format!("{line}\n")
}

pub fn claude_agent(text: &str, at: &str) -> String {
    let content = json!([{ "type": "text", "text": text }]);
    format!(
        "{}\n",
        json!({ "type": "assistant", "cwd": "/work/app", "timestamp": at, "message": { "content": content } })
    )
}

pub fn claude_tool(output: &str, at: &str) -> String {
    let content = json!([{ "type": "tool_result", "tool_use_id": "t", "content": output }]);
    format!("{}\n", json!({ "type": "user", "cwd": "/work/app", "timestamp": at, "message": { "content": content } }))
}

/// A claude conversation with a prompt, an answer and a tool's output.
pub fn claude(harness: &Harness, id: &str, words: [&str; 3]) -> PathBuf {
    let file = claude_file(harness, id);
    let lines = [
        claude_user(words[0], "2026-11-10T08:00:00Z"),
        claude_tool(words[1], "2026-11-10T08:00:01Z"),
        claude_agent(words[2], "2026-11-10T08:00:02Z"),
    ];
    fs::write(&file, lines.concat()).unwrap();
    file
}

pub fn codex(harness: &Harness, prompt: &str, answer: &str) {
    let folder = harness.root().join("home/.codex/sessions/2026/11/12");
    fs::create_dir_all(&folder).unwrap();
    let said = |role: &str, text: &str, at: &str| {
        let payload = json!({ "type": "message", "role": role, "content": [{ "text": text }] });
        format!("{}\n", json!({ "timestamp": at, "type": "response_item", "payload": payload }))
    };
    let lines = [
        format!(
            "{}\n",
            json!({ "timestamp": "2026-11-12T08:00:00Z", "type": "session_meta", "payload": { "id": CODEX, "cwd": "/work/codex" } })
        ),
        said("user", prompt, "2026-11-12T08:00:00Z"),
        said("assistant", answer, "2026-11-12T08:00:05Z"),
    ];
    fs::write(folder.join(format!("rollout-2026-11-12T08-00-00-{CODEX}.jsonl")), lines.concat()).unwrap();
}

pub fn gemini(harness: &Harness, prompt: &str, answer: &str) {
    let folder = harness.root().join("home/.gemini/tmp/project/chats");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.parent().unwrap().join(".project_root"), "/work/gemini\n").unwrap();
    let tool = json!([{ "id": "t", "name": "run_shell_command", "args": { "command": "ls" }, "status": "success", "resultDisplay": "listed" }]);
    let lines = [
        json!({ "sessionId": GEMINI }),
        json!({ "id": "1", "timestamp": "2026-11-13T08:00:00Z", "type": "user", "content": [{ "text": prompt }] }),
        json!({ "id": "2", "timestamp": "2026-11-13T08:00:04Z", "type": "gemini", "content": answer }),
        // Gemini writes the message again when its tools have run.
        json!({ "id": "2", "timestamp": "2026-11-13T08:00:04Z", "type": "gemini", "content": answer, "toolCalls": tool }),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(folder.join("session-2026-11-13T08-00-33333333.jsonl"), text).unwrap();
}

/// A database of opencode with this conversation.
pub fn opencode(harness: &Harness, prompt: &str, answer: &str) -> Connection {
    let folder = harness.root().join("data/opencode");
    fs::create_dir_all(&folder).unwrap();
    let database = Connection::open(folder.join("opencode.db")).unwrap();
    database
        .execute_batch(
            "PRAGMA journal_mode = WAL;
             CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text, time_updated integer);
             CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, data text);
             CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, data text);",
        )
        .unwrap();
    database.execute("INSERT INTO session VALUES (?1, NULL, '/work/opencode', 1794700000000)", [OPENCODE]).unwrap();
    opencode_part(&database, 1, "user", &json!({ "type": "text", "text": prompt }));
    opencode_part(
        &database,
        2,
        "assistant",
        &json!({ "type": "text", "text": answer, "time": { "start": 1, "end": 2 } }),
    );
    database
}

pub fn opencode_part(database: &Connection, number: i64, role: &str, part: &serde_json::Value) {
    let at = 1_794_700_000_000 + number;
    let message = json!({ "role": role, "time": { "created": at } }).to_string();
    let (message_id, part_id) = (format!("msg_{number}"), format!("prt_{number}"));
    database
        .execute("INSERT INTO message VALUES (?1, ?2, ?3, ?4)", rusqlite::params![message_id, OPENCODE, at, message])
        .unwrap();
    database
        .execute("INSERT INTO part VALUES (?1, ?2, ?3, ?4)", [&part_id, &message_id, OPENCODE, &part.to_string()])
        .unwrap();
    database.execute("UPDATE session SET time_updated = ?1", [at]).unwrap();
}

pub fn append(file: &PathBuf, text: &str) {
    OpenOptions::new().append(true).open(file).unwrap().write_all(text.as_bytes()).unwrap();
}
