//! The proof that a turn in a terminal is saved. In headless mode we give our messages ids, and claude reports the ids
//! of its own. In a terminal there are only the id of the turn (`promptId` in the transcript) and the last text.

use crate::any_json::{AnyJson, tolerantly};
use crate::content::{self, Content};
use crate::saved::Search;
use crate::stream_json;
use serde::Deserialize;
use std::collections::HashMap;

const PROMPT: &str = "prompt:";
const REPLY: &str = "reply:";
const WORDS: &str = "words:";

/// How much of a reply is looked for: its end, which is written last.
const CHARACTERS: usize = 200;

/// The mark of a prompt.
#[must_use]
pub fn prompt(id: &str) -> String {
    format!("{PROMPT}{id}")
}

/// The mark of the reply that ended a turn. Only its last line: that is always within one block of the transcript.
#[must_use]
pub fn reply(prompt: &str, text: &str) -> String {
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let skipped = last.chars().count().saturating_sub(CHARACTERS);
    format!("{REPLY}{prompt}:{}", last.chars().skip(skipped).collect::<String>())
}

/// The mark of a prompt that came through a protocol, where it has no id of ours.
#[must_use]
pub fn words(text: &str) -> String {
    format!("{WORDS}{text}")
}

/// The prompt that a mark names.
#[must_use]
pub fn prompt_in(mark: &str) -> Option<&str> {
    mark.strip_prefix(PROMPT)
}

/// Whether this is a mark of ours and not one of claude's ids.
#[must_use]
pub fn is_mark(mark: &str) -> bool {
    mark.starts_with(PROMPT) || mark.starts_with(REPLY) || mark.starts_with(WORDS)
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: AnyJson<'a>,
    uuid: AnyJson<'a>,
    #[serde(rename = "parentUuid")]
    parent: AnyJson<'a>,
    #[serde(rename = "promptId")]
    prompt_id: AnyJson<'a>,
    message: AnyJson<'a, Message<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message<'a> {
    #[serde(borrow)]
    content: Content<'a>,
}

/// The search for such marks, and for claude's ids among them.
pub struct Saved<'a> {
    prompts: Vec<&'a str>,
    words: Vec<&'a str>,
    replies: Vec<Reply<'a>>,
    names: Vec<&'a str>,
    /// The part of the tree that is known, while a reply is searched for.
    above: HashMap<String, Above>,
}

/// A reply belongs to this prompt if the nearest ancestor that names a prompt (the prompt itself, or a tool's result in
/// that turn) names this one. The order of the lines proves nothing: in the first turn it may be reversed.
struct Reply<'a> {
    prompt: &'a str,
    said: &'a str,
    /// The ancestors reached so far from lines with this text; each is a line that has not been read yet.
    climbing: Vec<String>,
}

impl<'a> Saved<'a> {
    pub fn new(marks: &'a [String]) -> Saved<'a> {
        let (prompts, words, replies, names) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut saved = Saved { prompts, words, replies, names, above: HashMap::new() };
        for mark in marks {
            if let Some(words) = mark.strip_prefix(WORDS) {
                saved.words.push(words);
                continue;
            }
            let reply = mark.strip_prefix(REPLY).and_then(|rest| rest.split_once(':'));
            match (mark.strip_prefix(PROMPT), reply) {
                (Some(prompt), _) => saved.prompts.push(prompt),
                (None, Some((prompt, said))) => saved.replies.push(Reply { prompt, said, climbing: Vec::new() }),
                (None, None) => saved.names.push(mark),
            }
        }
        saved
    }

    fn take_in(&mut self, line: &Line<'_>) {
        let text = |field: &AnyJson<'_>| field.text().map(str::to_owned);
        if let Some(found) = line.prompt_id.text() {
            self.prompts.retain(|prompt| *prompt != found);
        }
        if line.kind.is("user")
            && let Some(message) = line.message.object()
        {
            content::remove_found(&message.content, &mut self.words);
        }
        if self.replies.is_empty() {
            return;
        }
        if let Some(uuid) = text(&line.uuid) {
            self.above.insert(uuid, Above { parent: text(&line.parent), prompt_id: text(&line.prompt_id) });
        }
        let above = &self.above;
        self.replies.retain_mut(|reply| {
            if line.kind.is("assistant") && ends_with(&line.message, reply.said) {
                reply.climbing.extend(text(&line.parent));
            }
            !reply.climbs_to_its_prompt(above)
        });
    }
}

impl Search for Saved<'_> {
    fn line(&mut self, line: &[u8]) -> bool {
        stream_json::remove_found(line, &mut self.names);
        tolerantly(line, |line| serde_json::from_slice(line).map(|line| self.take_in(&line)).is_ok());
        self.is_over()
    }

    fn is_over(&self) -> bool {
        self.prompts.is_empty() && self.words.is_empty() && self.replies.is_empty() && self.names.is_empty()
    }
}

impl Reply<'_> {
    fn climbs_to_its_prompt(&mut self, above: &HashMap<String, Above>) -> bool {
        let mut open = Vec::new();
        for place in std::mem::take(&mut self.climbing) {
            match climb(place, above) {
                Climbed::To(found) if found == self.prompt => return true,
                Climbed::To(_) | Climbed::Nowhere => {}
                Climbed::Unread(place) => open.push(place),
            }
        }
        self.climbing = open;
        false
    }
}

/// What a line says about its parent and its prompt.
pub struct Above {
    pub parent: Option<String>,
    pub prompt_id: Option<String>,
}

pub enum Climbed<'a> {
    /// A line that names this prompt.
    To(&'a str),
    /// A line that has not been read yet.
    Unread(String),
    Nowhere,
}

/// Walks up the tree from this line. A damaged tree may have cycles; the walk ends there with `Nowhere`.
pub fn climb(mut place: String, above: &HashMap<String, Above>) -> Climbed<'_> {
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

fn ends_with(message: &AnyJson<'_, Message<'_>>, said: &str) -> bool {
    let parts = message.object().map_or(&[][..], |message| message.content.list());
    parts.iter().filter_map(|part| part.text.text()).any(|text| text.trim_end().ends_with(said))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claude::Claude;
    use crate::saved::Saved;

    const PROMPT_LINE: &str =
        r#"{"type":"user","uuid":"a","promptId":"p","message":{"role":"user","content":"say it"}}"#;
    const NOTE_LINE: &str = r#"{"type":"attachment","uuid":"b","parentUuid":"a"}"#;
    const REPLY_LINE: &str = r#"{"type":"assistant","uuid":"c","parentUuid":"b","message":{"content":[{"type":"text","text":"first\nlast words\n"}]}}"#;

    fn holds(transcript: &[u8], mark: &str) -> bool {
        Claude.transcript_holds(transcript, &[mark.to_owned()])
    }

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

    /// A damaged transcript must not cause an endless loop.
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
