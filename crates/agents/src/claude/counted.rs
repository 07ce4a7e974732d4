//! What a turn in a terminal used: no hook tells, but each answer of the model stands in the transcript with its usage. The
//! answers of a turn are those whose way up the tree leads to its prompt; a subagent's stand in a file of their own (or are
//! marked), as they are in nobody's turn headless either. What it cost is known when the process has left.

use super::saved::{self, Above, Climbed, climb};
use crate::any_json::{AnyJson, tolerantly};
use crate::saved::Count;
use crate::stream_json::{Usage, tokens};
use ostler_core::fact::Tokens;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;

/// Lines are read backwards. When so many in a row have not named the prompt, it is above us; in the first batch of a
/// conversation a reply may stand above its prompt.
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
    /// How many lines ago the prompt was last named; `None` before that.
    named_ago: Option<usize>,
}

/// A line of an answer: it has one for each of its parts, with the usage in all of them.
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
            // While an answer is being written its lines may have counted less.
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

/// Money is in no transcript. As it leaves, claude notes what the conversation has cost with the project that it was in, and a
/// resumed one counts on from there; a process that was killed leaves the note of the one before it, which shows (`left`).
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
    fn each_answer_of_the_turn_counts_once_whatever_its_parts_and_nobody_elses() {
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
