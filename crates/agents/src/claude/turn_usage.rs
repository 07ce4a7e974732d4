//! What a turn in a terminal used. No hook reports it, but the transcript has each answer of the model with its usage.
//! The answers of a turn are those whose ancestors in the tree lead to its prompt. A subagent's answers are in a
//! separate file (or are marked) and are not counted, as in headless mode. The cost is known when the process has
//! exited.

use super::saved::{self, Above, Climbed, climb};
use crate::any_json::{AnyJson, tolerantly};
use crate::saved::Count;
use crate::stream_json::{Usage, tokens};
use ostler_core::fact::Tokens;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;

/// Lines are read backwards. When this many lines in a row have not named the prompt, it is above the lines read so
/// far. The margin is needed because in the first batch of a conversation a reply may be above its prompt.
const FAR_ABOVE: usize = 100;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    #[serde(borrow)]
    uuid: AnyJson<'a>,
    #[serde(rename = "parentUuid")]
    parent: AnyJson<'a>,
    #[serde(rename = "promptId")]
    prompt_id: AnyJson<'a>,
    #[serde(rename = "isSidechain")]
    is_sidechain: AnyJson<'a>,
    message: AnyJson<'a, Message<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message<'a> {
    #[serde(borrow)]
    id: AnyJson<'a>,
    usage: AnyJson<'a, Usage<'a>>,
}

pub struct Counted<'a> {
    prompt: &'a str,
    above: HashMap<String, Above>,
    answers: Vec<Answer>,
    /// How many lines ago the prompt was last named; `None` until it is named.
    named_ago: Option<usize>,
}

/// A line of an answer. An answer has one line for each of its parts, and all of them have the usage.
struct Answer {
    parent: String,
    id: String,
    tokens: Tokens,
}

impl<'a> Counted<'a> {
    /// For the turn with these marks; `None` when they name no prompt.
    pub fn new(marks: &'a [String]) -> Option<Counted<'a>> {
        let prompt = marks.iter().find_map(|mark| saved::prompt_in(mark))?;
        Some(Counted { prompt, above: HashMap::new(), answers: Vec::new(), named_ago: None })
    }

    fn take_in(&mut self, line: &Line<'_>) {
        self.named_ago = match line.prompt_id.text() {
            Some(found) if found == self.prompt => Some(0),
            Some(_) | None => self.named_ago.map(|lines| lines + 1),
        };
        if line.is_sidechain.flag() == Some(true) {
            return;
        }
        let text = |field: &AnyJson<'_>| field.text().map(str::to_owned);
        if let Some(uuid) = text(&line.uuid) {
            self.above.insert(uuid, Above { parent: text(&line.parent), prompt_id: text(&line.prompt_id) });
        }
        if let (Some(message), Some(parent)) = (line.message.object(), text(&line.parent))
            && let (Some(id), Some(tokens)) = (text(&message.id), message.usage.object().and_then(tokens))
        {
            self.answers.push(Answer { parent, id, tokens });
        }
    }
}

impl Count for Counted<'_> {
    fn line(&mut self, line: &[u8]) -> bool {
        tolerantly(line, |line| serde_json::from_slice(line).map(|line| self.take_in(&line)).is_ok());
        self.named_ago.is_some_and(|lines| lines >= FAR_ABOVE)
    }

    fn tokens(&self) -> Tokens {
        let is_of_turn = |answer: &&Answer| matches!(climb(answer.parent.clone(), &self.above), Climbed::To(prompt) if prompt == self.prompt);
        let mut each: HashMap<&str, Tokens> = HashMap::new();
        for answer in self.answers.iter().filter(is_of_turn) {
            // Lines that were written before the answer was complete may have lower counts.
            let known = each.entry(&answer.id).or_insert(answer.tokens);
            if answer.tokens.output > known.output {
                *known = answer.tokens;
            }
        }
        each.into_values().fold(Tokens::default(), |mut sum, tokens| {
            sum += tokens;
            sum
        })
    }
}

/// No transcript has the cost. When claude exits, it notes with the project what the conversation in it has cost, and a
/// resumed conversation adds to that. After a process was killed, the note is still the one of the process before it; a
/// field of the note shows that (`left`: accept only the note of an orderly exit).
pub fn cost(record: &[u8], cwd: &str, native_id: &str, left: bool) -> Option<f64> {
    #[derive(Deserialize)]
    struct Record {
        projects: HashMap<String, Project>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Project {
        last_cost: Value,
        last_session_id: Value,
        last_graceful_shutdown: Value,
    }
    let mut record: Record = serde_json::from_slice(record).ok()?;
    let project = record.projects.remove(cwd)?;
    let is_its = project.last_session_id == native_id && (!left || project.last_graceful_shutdown == true);
    project.last_cost.as_f64().filter(|_| is_its)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_note_of_this_conversation_says_what_it_has_cost() {
        let note = |graceful: bool| {
            format!(
                r#"{{"x":1,"projects":{{"/w":{{"lastCost":0.25,"lastSessionId":"s","lastGracefulShutdown":{graceful}}}}}}}"#
            )
        };
        assert_eq!(cost(note(true).as_bytes(), "/w", "s", true), Some(0.25));
        assert_eq!(cost(note(false).as_bytes(), "/w", "s", false), Some(0.25));
        assert_eq!(cost(note(false).as_bytes(), "/w", "s", true), None);
        assert_eq!(cost(note(true).as_bytes(), "/w", "other", true), None);
        assert_eq!(cost(note(true).as_bytes(), "/other", "s", true), None);
        assert_eq!(cost(b"{", "/w", "s", true), None);
    }

    fn answer(uuid: &str, parent: &str, id: &str, more: &str) -> String {
        format!(
            r#"{{"type":"assistant","uuid":"{uuid}","parentUuid":"{parent}"{more},"message":{{"id":"{id}","usage":{{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":2}}}}}}"#
        )
    }

    fn counted(lines: &[String]) -> Tokens {
        let marks = [saved::reply("p", "x"), saved::prompt("p")];
        let mut count = Counted::new(&marks).into_iter().next();
        for line in lines.iter().rev() {
            count.iter_mut().for_each(|count| {
                count.line(line.as_bytes());
            });
        }
        count.map(|count| count.tokens()).unwrap_or_default()
    }

    #[test]
    fn each_answer_of_the_turn_counts_once_and_no_other_does() {
        let lines = [
            r#"{"type":"user","uuid":"o","promptId":"before"}"#.to_owned(),
            answer("n", "o", "m0", ""),
            r#"{"type":"user","uuid":"a","parentUuid":"n","promptId":"p"}"#.to_owned(),
            answer("b", "a", "m1", ""),
            answer("c", "b", "m1", ""),
            answer("s", "c", "m2", r#","isSidechain":true"#),
            r#"{"type":"user","uuid":"d","parentUuid":"c","promptId":"p"}"#.to_owned(),
            answer("e", "d", "m3", ""),
        ];
        assert_eq!(counted(&lines), Tokens { input: 30, output: 4 });
    }

    #[test]
    fn marks_without_a_prompt_count_nothing() {
        assert!(Counted::new(&["a-uuid".to_owned()]).is_none());
    }
}
