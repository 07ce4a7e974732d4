//! Lines of a transcript that replace all messages before them (`$set`). A message that such a line does not contain is
//! no longer in the conversation: this is how gemini takes back a prompt that the model's server refused for a usage
//! limit.

use super::Gemini;
use crate::any_json::AnyJson;
use crate::content::{Content, texts};
use crate::saved::{Saved, Search};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The beginning of the message with which gemini sets up the context, as a message of the user.
const CONTEXT: &str = "<session_context>";

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "$set", borrow)]
    set: Set<'a>,
}

#[derive(Deserialize)]
struct Set<'a> {
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message<'a> {
    #[serde(rename = "type", borrow)]
    kind: AnyJson<'a>,
    content: Content<'a>,
}

/// All messages of a conversation.
pub struct Messages<'a>(Vec<&'a RawValue>);

/// The messages of a line that replaces all before it; `None` for any other line.
pub fn messages(line: &[u8]) -> Option<Messages<'_>> {
    serde_json::from_slice::<Line<'_>>(line).ok().map(|line| Messages(line.set.messages))
}

impl Messages<'_> {
    /// Whether there is a message other than the context: the context alone is not a conversation.
    pub fn has_conversation(&self) -> bool {
        self.0.iter().filter_map(|message| serde_json::from_str::<Message<'_>>(message.get()).ok()).any(|message| {
            let context = texts(&message.content).next().is_some_and(|text| text.trim_start().starts_with(CONTEXT));
            message.kind.text().is_some() && !context
        })
    }
}

/// Searches for marks in the present conversation.
pub struct Newest<'a> {
    agent: &'a Gemini,
    wanted: Vec<&'a str>,
    /// A line was read that replaces all messages before it.
    over: bool,
}

impl<'a> Newest<'a> {
    pub fn new(agent: &'a Gemini, marks: &'a [String]) -> Newest<'a> {
        Newest { agent, wanted: marks.iter().map(String::as_str).collect(), over: false }
    }
}

impl Search for Newest<'_> {
    fn line(&mut self, line: &[u8]) -> bool {
        if self.over {
            return self.is_over();
        }
        match messages(line) {
            Some(all) => {
                self.over = true;
                all.0
                    .iter()
                    .rev()
                    .for_each(|message| self.agent.remove_found(message.get().as_bytes(), &mut self.wanted));
            }
            None => self.agent.remove_found(line, &mut self.wanted),
        }
        self.is_over()
    }

    fn is_over(&self) -> bool {
        self.wanted.is_empty()
    }
}
