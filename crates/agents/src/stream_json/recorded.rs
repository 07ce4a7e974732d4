//! The conversation in a transcript of Claude Code (and of the demo agent, which keeps it in the same way).

use super::{Message, blocks, results};
use crate::any_json::{AnyJson, tolerantly};
use crate::recorded::{Items, Recorded, Recording, time};
use ostler_core::fact::Fact;
use serde::Deserialize;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: AnyJson<'a>,
    timestamp: AnyJson<'a>,
    uuid: AnyJson<'a>,
    #[serde(rename = "parentUuid")]
    parent: AnyJson<'a>,
    /// Text of claude for itself: not shown in its terminal either.
    #[serde(rename = "isMeta")]
    is_meta: AnyJson<'a>,
    /// The summary that replaces everything before it, after claude has compacted the conversation.
    #[serde(rename = "isCompactSummary")]
    is_summary: AnyJson<'a>,
    #[serde(rename = "isSidechain")]
    is_sidechain: AnyJson<'a>,
    message: AnyJson<'a, Message<'a>>,
}

/// What claude writes as a user's message when a turn is interrupted.
const INTERRUPTED: &str = "[Request interrupted by user";

/// Each line names the line that it follows. In the first batch of a conversation the answer may be above its prompt:
/// it is held back until the line comes that it follows.
#[derive(Debug)]
pub struct Transcript {
    /// The lines that have come. `None`: not every line before this one is known, so no line is held back.
    seen: Option<HashSet<u64>>,
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    line: Understood,
    /// How many more lines it is held back: the line that it follows may be lost.
    left: usize,
}

const PATIENCE: usize = 32;

/// The items of one line, and its place in the order.
#[derive(Debug, Default)]
struct Understood {
    name: Option<u64>,
    follows: Option<u64>,
    items: Vec<Recorded>,
}

impl Default for Transcript {
    fn default() -> Transcript {
        Transcript { seen: Some(HashSet::new()), waiting: Vec::new() }
    }
}

impl Recording for Transcript {
    fn begin_in_the_middle(&mut self) {
        self.seen = None;
    }

    fn finish(&mut self, items: &mut Vec<Recorded>) {
        for waiting in std::mem::take(&mut self.waiting) {
            self.take(waiting.line, items);
        }
    }

    fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn line(&mut self, line: &[u8], items: &mut Vec<Recorded>) {
        let mut understood = Understood::default();
        tolerantly(line, |line| understand(line, &mut understood));
        if !self.has_come(understood.follows) {
            self.waiting.push(Waiting { line: understood, left: PATIENCE });
        } else {
            self.take(understood, items);
        }
        while let Some(place) = self.waiting.iter().position(|waiting| self.has_come(waiting.line.follows)) {
            let waiting = self.waiting.remove(place);
            self.take(waiting.line, items);
        }
        self.waiting.iter_mut().for_each(|waiting| waiting.left = waiting.left.saturating_sub(1));
        if self.waiting.iter().any(|waiting| waiting.left == 0) {
            // The line that it follows is lost, and others may be too: from here on only the order of the file counts.
            self.seen = None;
            self.finish(items);
        }
    }
}

impl Transcript {
    fn has_come(&self, line: Option<u64>) -> bool {
        match (&self.seen, line) {
            (Some(seen), Some(line)) => seen.contains(&line),
            (None, _) | (_, None) => true,
        }
    }

    fn take(&mut self, line: Understood, items: &mut Vec<Recorded>) {
        if let (Some(seen), Some(name)) = (&mut self.seen, line.name) {
            seen.insert(name);
        }
        items.extend(line.items);
    }
}

/// A number for the id of a line: there are many, and all are remembered.
fn numbered(name: &AnyJson<'_>) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    name.text()?.hash(&mut hasher);
    Some(hasher.finish())
}

/// Returns false when the line is not a JSON object.
fn understand(line: &[u8], understood: &mut Understood) -> bool {
    let Ok(line) = serde_json::from_slice::<Line<'_>>(line) else {
        return false;
    };
    (understood.name, understood.follows) = (numbered(&line.uuid), numbered(&line.parent));
    let mut items = Items { at: time(&line.timestamp), items: &mut understood.items };
    let mut facts = Vec::new();
    match line.kind.text() {
        Some("assistant") => blocks(&line.message, &mut facts),
        Some("user") if line.is_meta.flag() == Some(true) => {}
        Some("user") if line.is_summary.flag() == Some(true) => {
            items.thought("the conversation was compacted here; the agent continues with a summary");
        }
        Some("user") => {
            results(&line.message, &mut facts);
            if facts.is_empty() && line.is_sidechain.flag() != Some(true) {
                told(&line.message, &mut items);
            }
        }
        Some(_) | None => {}
    }
    let is_below = line.is_sidechain.flag() == Some(true);
    for fact in facts {
        items.fact(if is_below { Fact::Subagent(Box::new(fact)) } else { fact });
    }
    true
}

fn told(message: &AnyJson<'_, Message<'_>>, items: &mut Items<'_>) {
    let Some(message) = message.object() else {
        return;
    };
    let parts = message.content.list().iter().filter(|block| block.kind.is("text"));
    let parts = parts.filter_map(|block| block.text.text());
    let text = message.content.text().into_iter().chain(parts).collect::<Vec<_>>().join("\n");
    if text.starts_with(INTERRUPTED) {
        items.interrupted();
    } else if let Some(name) = between(&text, "command-name") {
        items.told(format!("{name} {}", between(&text, "command-args").unwrap_or_default()).trim_end());
    } else if let Some(command) = between(&text, "bash-input") {
        items.told(&format!("! {command}"));
    } else if ["<local-command-stdout>", "<bash-stdout>"].iter().any(|tag| text.starts_with(tag)) {
        let printed = ["local-command-stdout", "bash-stdout", "bash-stderr"].map(|tag| between(&text, tag));
        items.thought(&printed.into_iter().flatten().collect::<Vec<_>>().join("\n"));
    } else {
        items.told(&text);
    }
}

/// The text between two tags in a message that claude made itself.
fn between<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{tag}>"))?;
    rest.split_once(&format!("</{tag}>")).map(|(inside, _)| inside.trim())
}

/// Only the texts of a line's message, for callers that need nothing else.
#[must_use]
pub fn said_in(line: &[u8]) -> Option<String> {
    let line = serde_json::from_slice::<Line<'_>>(line).ok().filter(|line| line.kind.is("assistant"))?;
    if line.is_sidechain.flag() == Some(true) {
        return None;
    }
    let mut facts = Vec::new();
    blocks(&line.message, &mut facts);
    facts.into_iter().rev().find_map(|fact| if let Fact::Said { text } = fact { Some(text) } else { None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::What;

    fn read(lines: &[&str]) -> Vec<What> {
        let mut items = Vec::new();
        let mut transcript = Transcript::default();
        for line in lines {
            transcript.line(line.as_bytes(), &mut items);
        }
        transcript.finish(&mut items);
        items.into_iter().map(|item| item.what).collect()
    }

    #[test]
    fn a_turn_is_read_as_it_was_said() {
        let mut items = Vec::new();
        let mut transcript = Transcript::default();
        for line in [
            r#"{"type":"ai-title","aiTitle":"x"}"#,
            r#"{"type":"user","message":{"role":"user","content":"fix it"},"timestamp":"2026-11-16T06:07:46.287Z"}"#,
            r#"{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash","input":{"command":"ls"}}]},"timestamp":"2026-11-16T06:07:47Z"}"#,
            r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"a.rs","is_error":false}]}}"#,
            r#"{"type":"assistant","message":{"content":[{"type":"text","text":"done"}]}}"#,
        ] {
            transcript.line(line.as_bytes(), &mut items);
        }
        assert_eq!(items[0].at.map(|at| at.to_string()).as_deref(), Some("2026-11-16T06:07:46.287Z"));
        let whats: Vec<What> = items.into_iter().map(|item| item.what).collect();
        let [
            What::Told { text: told },
            What::Agent(Fact::ToolCalled { name, detail, .. }),
            What::Agent(Fact::ToolReturned { text: returned, failed: false, .. }),
            What::Agent(Fact::Said { text: said }),
        ] = &whats[..]
        else {
            unreachable!("{whats:?}")
        };
        assert_eq!([told, name, detail, returned, said], ["fix it", "Bash", "ls", "a.rs", "done"]);
    }

    #[test]
    fn an_answer_that_stands_above_its_prompt_follows_it_and_one_whose_prompt_is_lost_is_shown() {
        let line = |uuid: &str, parent: &str, kind: &str, text: &str| {
            format!(
                r#"{{"type":"{kind}","uuid":"{uuid}","parentUuid":{parent},"message":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
            )
        };
        let lines = [
            line("c", r#""b""#, "assistant", "first answer"),
            line("a", "null", "user", "first prompt"),
            r#"{"type":"attachment","uuid":"b","parentUuid":"a"}"#.to_owned(),
            line("d", r#""lost""#, "assistant", "second answer"),
            line("e", r#""c""#, "user", "third prompt"),
        ];
        let words = |what: What| match what {
            What::Told { text } | What::Agent(Fact::Said { text }) => text,
            other => unreachable!("{other:?}"),
        };
        let read_words = |lines: Vec<&str>| read(&lines).into_iter().map(words).collect::<Vec<_>>();
        let whole: Vec<&str> = lines.iter().map(String::as_str).collect();
        let (first, rest) = (["first prompt", "first answer"], ["third prompt", "second answer"]);
        assert_eq!(read_words(whole.clone()), [first, rest].concat());

        // A lost line does not hold others back for long.
        let (mut items, mut transcript) = (Vec::new(), Transcript::default());
        transcript.line(lines[3].as_bytes(), &mut items);
        assert!(transcript.waits() && items.is_empty());
        for _ in 0..PATIENCE {
            transcript.line(br#"{"type":"mode"}"#, &mut items);
        }
        assert!(!transcript.waits() && items.len() == 1, "{items:?}");

        let (mut items, mut transcript) = (Vec::new(), Transcript::default());
        transcript.begin_in_the_middle();
        transcript.line(lines[0].as_bytes(), &mut items);
        assert_eq!(items.len(), 1);
    }

    #[test]
    fn claudes_own_notes_are_not_user_messages() {
        let user = |content: &str| {
            format!(r#"{{"type":"user","message":{{"content":{}}}}}"#, serde_json::Value::from(content))
        };
        let lines = [
            r#"{"type":"user","isMeta":true,"message":{"content":"caveat"}}"#.to_owned(),
            user(
                "<command-name>/model</command-name>\n<command-message>model</command-message>\n<command-args>opus</command-args>",
            ),
            user("<local-command-stdout>Set model</local-command-stdout>"),
            r#"{"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#
                .to_owned(),
            r#"{"type":"assistant","isSidechain":true,"message":{"content":[{"type":"text","text":"below"}]}}"#
                .to_owned(),
        ];
        let whats = read(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        let [
            What::Told { text },
            What::Agent(Fact::Thought { .. }),
            What::Agent(Fact::TurnEnded(_)),
            What::Agent(Fact::Subagent(_)),
        ] = &whats[..]
        else {
            unreachable!("{whats:?}")
        };
        assert_eq!(text, "/model opus");
    }
}
