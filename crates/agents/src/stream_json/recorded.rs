//! The conversation in a transcript of Claude Code (and of the demo agent, which keeps it in the same way).

use super::{Message, blocks, results};
use crate::loose::{Loose, tolerantly};
use crate::recorded::{Items, Recorded, Recording, time};
use ostler_core::fact::Fact;
use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Loose<'a>,
    timestamp: Loose<'a>,
    #[serde(rename = "parentUuid")]
    parent: Loose<'a>,
    /// Said by claude to itself: not shown in its terminal either.
    #[serde(rename = "isMeta")]
    is_meta: Loose<'a>,
    /// What stands for everything before it, after claude has made the conversation shorter.
    #[serde(rename = "isCompactSummary")]
    is_summary: Loose<'a>,
    #[serde(rename = "isSidechain")]
    is_sidechain: Loose<'a>,
    message: Loose<'a, Message<'a>>,
}

/// What claude writes as a user's message when a turn is interrupted.
const INTERRUPTED: &str = "[Request interrupted by user";

/// So much may stand before the first prompt that belongs behind it.
const HELD: usize = 64;

/// Claude may write the first lines of a conversation the other way round, the answer before its prompt: until the prompt has
/// come, which has nothing above it, what stands before is held.
#[derive(Debug)]
pub struct Transcript {
    /// `None` once the first prompt has come.
    held: Option<Vec<Recorded>>,
}

impl Default for Transcript {
    fn default() -> Transcript {
        Transcript { held: Some(Vec::new()) }
    }
}

impl Recording for Transcript {
    fn begin_in_the_middle(&mut self) {
        self.held = None;
    }

    fn finish(&mut self, items: &mut Vec<Recorded>) {
        items.extend(self.held.take().into_iter().flatten());
    }

    fn line(&mut self, line: &[u8], items: &mut Vec<Recorded>) {
        let mut is_first = false;
        let mut found = Vec::new();
        tolerantly(line, |line| understand(line, &mut found, &mut is_first));
        match &mut self.held {
            Some(held) if !is_first && held.len() < HELD => held.append(&mut found),
            Some(_) | None => {
                if is_first {
                    items.append(&mut found);
                }
                self.finish(items);
                items.append(&mut found);
            }
        }
    }
}

/// False when it is not a JSON object. `is_first`: whether it is a prompt with nothing above it.
fn understand(line: &[u8], items: &mut Vec<Recorded>, is_first: &mut bool) -> bool {
    let Ok(line) = serde_json::from_slice::<Line<'_>>(line) else {
        return false;
    };
    *is_first = line.kind.is("user") && line.parent == Loose::Nothing;
    let mut items = Items { at: time(&line.timestamp), items };
    let mut facts = Vec::new();
    match line.kind.text() {
        Some("assistant") => blocks(&line.message, &mut facts),
        Some("user") if line.is_meta.flag() == Some(true) => {}
        Some("user") if line.is_summary.flag() == Some(true) => {
            items.thought("the conversation was made shorter here; a summary of it follows for the agent");
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
        items.fact(if is_below { Fact::Below(Box::new(fact)) } else { fact });
    }
    true
}

fn told(message: &Loose<'_, Message<'_>>, items: &mut Items<'_>) {
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

/// What claude has put between tags in a message of its own making.
fn between<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{tag}>"))?;
    rest.split_once(&format!("</{tag}>")).map(|(inside, _)| inside.trim())
}

/// Only the texts of a line's message, for whoever asks for nothing else.
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
    fn an_answer_that_was_written_before_its_prompt_comes_behind_it() {
        let answer = r#"{"type":"assistant","parentUuid":"u1","message":{"content":[{"type":"text","text":"yes"}]}}"#;
        let prompt = r#"{"type":"user","parentUuid":null,"uuid":"u1","message":{"content":"sure?"}}"#;
        let told = What::Told { text: "sure?".to_owned() };
        let said = What::Agent(Fact::Said { text: "yes".to_owned() });
        assert_eq!(read(&[answer, prompt, answer]), [told, said.clone(), said.clone()]);
        assert_eq!(read(&[answer]), std::slice::from_ref(&said));
        let (mut items, mut transcript) = (Vec::new(), Transcript::default());
        transcript.begin_in_the_middle();
        transcript.line(answer.as_bytes(), &mut items);
        assert_eq!(items[0].what, said);
    }

    #[test]
    fn what_claude_writes_by_itself_is_not_somebodys_message() {
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
            What::Agent(Fact::Below(_)),
        ] = &whats[..]
        else {
            unreachable!("{whats:?}")
        };
        assert_eq!(text, "/model opus");
    }
}
