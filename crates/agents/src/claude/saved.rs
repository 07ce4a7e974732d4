//! The proof that a turn in a terminal is saved. Headless we name our messages and are told claude's names for its own; in a
//! terminal there are only the turn's name (`promptId` in the transcript) and what was said last.

use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;

const PROMPT: &str = "prompt:";
const REPLY: &str = "reply:";

/// How much of a reply is looked for: its end, which is written last.
const CHARACTERS: usize = 200;

/// The mark of a prompt.
#[must_use]
pub fn prompt(id: &str) -> String {
    format!("{PROMPT}{id}")
}

/// The mark of the reply that ended a turn. Of its last line only: that one is in one block of the transcript.
#[must_use]
pub fn reply(prompt: &str, text: &str) -> String {
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let skipped = last.chars().count().saturating_sub(CHARACTERS);
    format!("{REPLY}{prompt}:{}", last.chars().skip(skipped).collect::<String>())
}

/// Whether this is a mark of ours and not one of claude's own names.
#[must_use]
pub fn is_mark(mark: &str) -> bool {
    mark.starts_with(PROMPT) || mark.starts_with(REPLY)
}

#[derive(Deserialize)]
struct Line {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    uuid: Option<String>,
    #[serde(default, rename = "parentUuid")]
    parent: Option<String>,
    #[serde(default, rename = "promptId")]
    prompt_id: Option<String>,
    #[serde(default)]
    message: Value,
}

/// Whether the prompt, or the reply to it, stands in whole lines of the transcript.
#[must_use]
pub fn holds(transcript: &[u8], mark: &str) -> bool {
    // Newest first: what is looked for is at the end.
    let lines = transcript.split_inclusive(|&byte| byte == b'\n').rev().filter(|line| line.ends_with(b"\n"));
    let mut lines = lines.filter_map(|line| serde_json::from_slice::<Line>(line).ok());
    match (mark.strip_prefix(PROMPT), mark.strip_prefix(REPLY).and_then(|rest| rest.split_once(':'))) {
        (Some(prompt), _) => lines.any(|line| line.prompt_id.as_deref() == Some(prompt)),
        (None, Some((prompt, said))) => holds_reply(lines, prompt, said),
        (None, None) => false,
    }
}

/// A reply is one to this prompt when the first line above it in the tree that names a prompt (the prompt itself, or what a
/// tool returned in that turn) names this one. The order of the lines tells nothing: the first turn's may be the other way
/// round.
fn holds_reply(lines: impl Iterator<Item = Line>, prompt: &str, said: &str) -> bool {
    let mut above = HashMap::new();
    let mut replies: Vec<String> = Vec::new();
    for line in lines {
        if line.kind.as_deref() == Some("assistant") && ends_with(&line.message, said) {
            replies.extend(line.parent.clone());
        }
        if let Some(uuid) = line.uuid {
            above.insert(uuid, Above { parent: line.parent, prompt_id: line.prompt_id });
        }
        let mut open = Vec::new();
        for reply in replies {
            match climb(reply, &above) {
                Climbed::To(found) if found == prompt => return true,
                Climbed::To(_) | Climbed::Nowhere => {}
                Climbed::Unread(place) => open.push(place),
            }
        }
        replies = open;
    }
    false
}

/// What a line says about what is above it.
struct Above {
    parent: Option<String>,
    prompt_id: Option<String>,
}

enum Climbed<'a> {
    /// A line that names this prompt.
    To(&'a str),
    /// A line that has not been read yet.
    Unread(String),
    Nowhere,
}

/// Up the tree from this line. A damaged one may go in circles, which end nowhere.
fn climb(mut place: String, above: &HashMap<String, Above>) -> Climbed<'_> {
    for _ in 0..=above.len() {
        match above.get(&place) {
            None => return Climbed::Unread(place),
            Some(Above { prompt_id: Some(found), .. }) => return Climbed::To(found),
            Some(Above { prompt_id: None, parent: Some(parent) }) => place.clone_from(parent),
            Some(Above { prompt_id: None, parent: None }) => return Climbed::Nowhere,
        }
    }
    Climbed::Nowhere
}

fn ends_with(message: &Value, said: &str) -> bool {
    let mut texts = message["content"].as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
    texts.any(|text| text.trim_end().ends_with(said))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT_LINE: &str =
        r#"{"type":"user","uuid":"a","promptId":"p","message":{"role":"user","content":"say it"}}"#;
    const NOTE_LINE: &str = r#"{"type":"attachment","uuid":"b","parentUuid":"a"}"#;
    const REPLY_LINE: &str = r#"{"type":"assistant","uuid":"c","parentUuid":"b","message":{"content":[{"type":"text","text":"first\nlast words\n"}]}}"#;

    #[test]
    fn a_reply_is_saved_when_it_stands_whole_below_its_prompt_in_whatever_order() {
        let mark = reply("p", "first\nlast words\n");
        assert!(holds(format!("{PROMPT_LINE}\n{NOTE_LINE}\n{REPLY_LINE}\n").as_bytes(), &mark));
        assert!(holds(format!("{REPLY_LINE}\n{PROMPT_LINE}\n{NOTE_LINE}\n").as_bytes(), &mark));
        assert!(!holds(format!("{PROMPT_LINE}\n{NOTE_LINE}\n{REPLY_LINE}").as_bytes(), &mark), "torn");
        assert!(!holds(format!("{PROMPT_LINE}\n{NOTE_LINE}\n").as_bytes(), &mark));
        let of_another = PROMPT_LINE.replace(r#""p""#, r#""q""#);
        assert!(!holds(format!("{of_another}\n{NOTE_LINE}\n{REPLY_LINE}\n").as_bytes(), &mark), "another turn's");
    }

    /// A damaged transcript must not keep anyone busy for ever.
    #[test]
    fn a_line_above_itself_proves_nothing() {
        let above_itself =
            r#"{"type":"assistant","uuid":"c","parentUuid":"c","message":{"content":[{"type":"text","text":"x"}]}}"#;
        assert!(!holds(format!("{above_itself}\n").as_bytes(), &reply("p", "x")));
    }

    #[test]
    fn a_prompt_is_saved_when_its_line_is_whole() {
        assert!(holds(format!("{PROMPT_LINE}\n").as_bytes(), &prompt("p")));
        assert!(!holds(PROMPT_LINE.as_bytes(), &prompt("p")));
        assert!(!holds(format!("{PROMPT_LINE}\n").as_bytes(), &prompt("q")));
    }
}
