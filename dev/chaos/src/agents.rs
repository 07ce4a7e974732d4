//! The agents that the faults are tried on. Each has its own way of starting, of getting messages and of storing them.

use crate::witness::Writers;
use ostler_mock_llm::Server;
use ostler_mock_llm::agents::{Agent, Missing, folder};
use ostler_testkit::Harness;
use ostler_testkit::misbehave::checksum;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// An agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agents {
    /// Any number of messages in one process; writes its transcript late.
    Demo,
    /// One process per message: a script in the place of codex.
    Turns,
    /// The real agent, with a scripted model.
    Claude,
}

/// One process per message, in codex's own format.
const TURNS: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then echo codex-cli 9.9.9; exit; fi
prompt=$(cat)
if [ -z "$prompt" ]; then echo 'No prompt provided via stdin.' >&2; exit 1; fi
id=00000000-0000-4000-8000-00000000c0de
mkdir -p "$HOME/.codex/sessions"
file="$HOME/.codex/sessions/rollout-$id.jsonl"
keep() { printf '{"payload":{"role":"%s","content":[{"text":"%s"}]}}\n' "$1" "$2" >> "$file"; }
echo "{\"type\":\"thread.started\",\"thread_id\":\"$id\"}"
echo '{"type":"turn.started"}'
keep user "$prompt"
echo "{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"did $prompt\"}}"
keep assistant "did $prompt"
echo '{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}'
"#;

impl Agents {
    /// The name of the agent for `ostler run`.
    #[must_use]
    pub fn agent(self) -> &'static str {
        match self {
            Agents::Demo => "demo",
            Agents::Turns => "codex",
            Agents::Claude => "claude",
        }
    }

    /// Whether all messages go to one process.
    #[must_use]
    pub fn is_one_process(self) -> bool {
        match self {
            Agents::Demo | Agents::Claude => true,
            Agents::Turns => false,
        }
    }

    /// Prepares a home for it, and a model where it needs one.
    pub fn furnish(self, harness: &mut Harness) -> Result<Option<Server>, Missing> {
        match self {
            Agents::Demo => Ok(None),
            Agents::Turns => {
                let bin = harness.root().join("bin");
                std::fs::create_dir(&bin).expect("a folder");
                let program = bin.join("codex");
                std::fs::write(&program, TURNS).expect("a script");
                std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("a script");
                put_first(harness, &bin);
                Ok(None)
            }
            Agents::Claude => {
                let program = Agent::Claude.program()?;
                let server = Server::start().expect("a port on loopback");
                let home = harness.root().join("home");
                for (name, value) in Agent::Claude.furnish(&home, &server.url()).expect("a home") {
                    harness.set(name, value);
                }
                let launchers = folder().join("node_modules/.bin").canonicalize().expect("installed agents");
                put_first(harness, &launchers);
                if let Some(beside) = program.last().and_then(|program| program.parent()) {
                    put_first(harness, beside);
                }
                Ok(Some(server))
            }
        }
    }

    /// The n-th message to it. Some are longer than a pipe, so that a kill can hit them half-way.
    #[must_use]
    pub fn message(self, n: u32) -> String {
        match self {
            Agents::Demo if n % 3 == 2 => format!("echo-length n{n} {}", "0123456789abcdef".repeat(12_000)),
            Agents::Demo | Agents::Claude => format!("say n{n}"),
            Agents::Turns => format!("n{n}"),
        }
    }

    /// Its answer to that message, as it is in its output.
    #[must_use]
    pub fn answer(self, message: &str) -> String {
        match message.split_once(' ') {
            Some(("echo-length", _)) => {
                format!("\"{} bytes, checksum {:016x}\"", message.len(), checksum(message.as_bytes()))
            }
            Some((_, text)) => format!("\"{text}\""),
            None => format!("\"did {message}\""),
        }
    }

    /// Which processes write the conversation.
    #[must_use]
    pub fn writers(self) -> Writers {
        Writers(match self {
            Agents::Demo => |words| words.get(1).is_some_and(|word| word == ostler_agents::demo::ENTRY),
            Agents::Turns => {
                |words| words.iter().any(|word| word.ends_with("/codex")) && words.iter().any(|w| w == "exec")
            }
            Agents::Claude => |words| words.iter().any(|word| word == "--session-id" || word == "--resume"),
        })
    }

    /// The messages that it got, by its own transcript.
    #[must_use]
    pub fn told(self, transcript: &Path) -> Vec<String> {
        let text = std::fs::read_to_string(transcript).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter_map(|line| self.told_by(&line)).collect()
    }

    fn told_by(self, line: &Value) -> Option<String> {
        let content = match self {
            Agents::Turns => (line["payload"]["role"] == "user").then(|| &line["payload"]["content"])?,
            Agents::Demo | Agents::Claude => (line["type"] == "user").then(|| &line["message"]["content"])?,
        };
        let text = content.as_str().or_else(|| content[0]["text"].as_str())?;
        // Claude's own notes about an interruption are not messages.
        (!text.starts_with('[') && !text.starts_with('<')).then(|| text.to_owned())
    }
}

fn put_first(harness: &mut Harness, folder: &Path) {
    let before = harness.variable("PATH").unwrap_or_default();
    harness.set("PATH", format!("{}:{}", folder.display(), before.to_string_lossy()));
}
