//! What opencode reports from a terminal, where its output is a drawing: our plugin (`agent_feed.js`) writes what
//! happens to lines of a file, in the shape of its headless output, and here those lines become facts.

use super::output::OpencodeLines;
use super::saved;
use crate::any_json::{AnyJson, tolerantly};
use crate::decoder::Decoder;
use crate::stream_json::detail_of;
use ostler_core::fact::{Ask, Fact, TurnEnd, Verdict};
use ostler_core::outcome::Exit;
use serde::Deserialize;
use serde_json::Value;

/// Fields that only the reports from a terminal have.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Told<'a> {
    #[serde(rename = "type", borrow)]
    kind: AnyJson<'a>,
    #[serde(rename = "sessionID")]
    session_id: AnyJson<'a>,
    part: AnyJson<'a, Prompted<'a>>,
    ask: AnyJson<'a, Asked<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Prompted<'a> {
    #[serde(borrow)]
    id: AnyJson<'a>,
    length: AnyJson<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Asked<'a> {
    #[serde(borrow)]
    id: AnyJson<'a>,
    tool: AnyJson<'a>,
    input: Value,
}

#[derive(Debug, Default)]
pub struct Hooks {
    /// The conversation whose turn is running.
    turn: Option<String>,
    lines: OpencodeLines,
    aborted: bool,
}

impl Decoder for Hooks {
    fn line(&mut self, line: &[u8], facts: &mut Vec<Fact>) {
        tolerantly(line, |line| self.understand(line, facts));
    }

    fn messages_so_far(&self) -> Vec<String> {
        self.lines.messages_so_far()
    }

    /// The process outlives its turns: if it exits in the middle of a turn, it has interrupted the turn.
    fn turn_end_at_exit(&mut self, exit: Exit, complaint: Option<&str>) -> TurnEnd {
        self.turn = None;
        let messages = self.messages_so_far();
        match (exit.code, exit.signal) {
            (Some(_), _) => broken_off("exited before the end of its turn", messages),
            (None, _) => TurnEnd { messages, ..crate::decoder::cut_off(exit, complaint) },
        }
    }
}

impl Hooks {
    /// Returns false when the line is not a JSON object.
    fn understand(&mut self, line: &[u8], facts: &mut Vec<Fact>) -> bool {
        let Ok(told) = serde_json::from_slice::<Told<'_>>(line) else {
            return false;
        };
        let session = told.session_id.text().unwrap_or_default();
        match told.kind.text() {
            Some("prompt") => {
                facts.push(Fact::Native { id: session.to_owned() });
                facts.push(Fact::TurnStarted);
                if self.turn.as_deref() != Some(session) {
                    *self = Hooks { turn: Some(session.to_owned()), ..Hooks::default() };
                }
            }
            // Lines that come late, or from a conversation that is no longer shown, belong to no turn.
            _ if self.turn.as_deref() != Some(session) => {}
            Some("prompted") => {
                let part = told.part.object();
                let mark = part.and_then(|part| Some(saved::part_of(part.id.text()?, part.length.count()?)));
                self.lines.remember(mark);
            }
            Some("asked") => facts.extend(told.ask.object().and_then(asked).map(Fact::Asked)),
            Some("answered") => {
                let request = told.ask.object().and_then(|ask| ask.id.text());
                facts.extend(request.map(|request| Fact::AskClosed { request: request.to_owned() }));
            }
            Some("aborted") => self.aborted = true,
            Some("idle") => {
                self.turn = None;
                facts.push(Fact::TurnEnded(self.turn_end()));
            }
            Some(_) | None => return self.lines.understand(line, facts),
        }
        true
    }

    fn turn_end(&mut self) -> TurnEnd {
        let aborted = std::mem::take(&mut self.aborted);
        let end = self.lines.turn_end_at_exit(Exit { code: Some(0), signal: None }, None);
        if aborted {
            TurnEnd {
                tokens: end.tokens,
                cost_usd: end.cost_usd,
                ..broken_off("interrupted in its terminal", end.messages)
            }
        } else {
            end
        }
    }
}

fn asked(ask: &Asked<'_>) -> Option<Ask> {
    Some(Ask {
        request: ask.id.text()?.to_owned(),
        tool: ask.tool.text().map(str::to_owned),
        text: detail_of(&ask.input),
        input: ask.input.clone(),
        suggestions: Value::Null,
        details: Value::Null,
    })
}

fn broken_off(reason: &str, messages: Vec<String>) -> TurnEnd {
    TurnEnd {
        verdict: Verdict::Interrupted,
        text: None,
        reason: Some(reason.to_owned()),
        tokens: None,
        cost_usd: None,
        messages,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(hooks: &mut Hooks, lines: &[Value]) -> Vec<Fact> {
        let mut facts = Vec::new();
        for line in lines {
            hooks.line(&serde_json::to_vec(line).unwrap(), &mut facts);
        }
        facts
    }

    fn ended(facts: &[Fact]) -> Vec<&TurnEnd> {
        facts.iter().filter_map(|fact| if let Fact::TurnEnded(end) = fact { Some(end) } else { None }).collect()
    }

    #[test]
    fn a_prompt_begins_a_turn_and_the_first_idle_ends_it() {
        let facts = told(
            &mut Hooks::default(),
            &[
                json!({"type": "prompt", "sessionID": "ses_1"}),
                json!({"type": "prompted", "sessionID": "ses_1", "part": {"id": "prt_0", "length": 3}}),
                json!({"type": "text", "sessionID": "ses_1", "part": {"id": "prt_1", "text": "done"}}),
                json!({"type": "step_finish", "sessionID": "ses_1", "part": {"id": "prt_2", "cost": 0.5, "tokens": {"input": 7, "output": 2}}}),
                json!({"type": "idle", "sessionID": "ses_1"}),
                json!({"type": "idle", "sessionID": "ses_1"}),
            ],
        );
        assert_eq!(facts[..2], [Fact::Native { id: "ses_1".to_owned() }, Fact::TurnStarted]);
        let [end] = ended(&facts)[..] else { unreachable!("{facts:?}") };
        assert_eq!((end.verdict, end.text.as_deref()), (Verdict::Succeeded, Some("done")));
        let marks = [saved::part_of("prt_0", 3), saved::text("prt_1", "done"), saved::part("prt_2")];
        assert_eq!((&end.messages[..], end.tokens.unwrap().input), (&marks[..], 7));
    }

    #[test]
    fn an_aborted_turn_is_interrupted_and_a_failed_one_has_its_reason() {
        let begin = json!({"type": "prompt", "sessionID": "ses_1"});
        let idle = json!({"type": "idle", "sessionID": "ses_1"});
        let aborted = json!({"type": "aborted", "sessionID": "ses_1", "error": {"name": "MessageAbortedError"}});
        let late = json!({"type": "text", "sessionID": "ses_1", "part": {"id": "prt_1", "text": "half"}});
        let mut hooks = Hooks::default();
        let facts = told(&mut hooks, &[begin.clone(), aborted, idle.clone(), late]);
        assert_eq!(ended(&facts)[0].verdict, Verdict::Interrupted);
        assert_eq!(hooks.messages_so_far(), Vec::<String>::new(), "what comes late is not in the next turn");
        let failed =
            json!({"type": "error", "sessionID": "ses_1", "error": {"name": "APIError", "data": {"message": "no"}}});
        let facts = told(&mut hooks, &[begin, failed, idle]);
        let end = ended(&facts)[0];
        assert_eq!((end.verdict, end.reason.as_deref()), (Verdict::Failed, Some("no")));
    }

    #[test]
    fn a_question_is_told_with_its_whole_input_and_its_answer_closes_it() {
        let facts = told(
            &mut Hooks::default(),
            &[
                json!({"type": "prompt", "sessionID": "ses_1"}),
                json!({"type": "asked", "sessionID": "ses_1", "ask": {"id": "per_1", "tool": "bash", "input": {"command": "id"}}}),
                json!({"type": "answered", "sessionID": "ses_1", "ask": {"id": "per_1"}}),
            ],
        );
        let Fact::Asked(ask) = &facts[2] else { unreachable!("{facts:?}") };
        assert_eq!((ask.tool.as_deref(), &ask.input), (Some("bash"), &json!({"command": "id"})));
        assert_eq!(facts[3], Fact::AskClosed { request: "per_1".to_owned() });
    }
}
