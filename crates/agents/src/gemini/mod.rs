//! Gemini CLI. One process per turn: it takes the prompt from its input, and a further message resumes the conversation.

use crate::codex;
use crate::content::{self, Content};
use crate::lines::LINE_LIMIT;
use crate::loose::{Loose, tolerantly};
use crate::shapes::{Problem, Usage};
use crate::stream_json::{ToolInput, tool_detail};
use crate::{Agent, Decoder, Launch, Launching, Whereabouts, named, one_turn, silent_terminal};
use ostler_core::fact::{Fact, TurnEnd, Verdict};
use ostler_core::record::Mode;
use serde::Deserialize;

pub struct Gemini;

/// The program starts itself a second time and goes on in the child; this keeps it in one process, which is then the one
/// whose identity, lock and signals we have.
const ONE_PROCESS: (&str, &str) = ("GEMINI_CLI_NO_RELAUNCH", "true");

impl Agent for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn launch(&self, request: &Launching<'_>) -> Launch {
        let session = request.session;
        let mut argv = vec!["gemini".to_owned()];
        if session.mode == Mode::Headless {
            argv.extend(["--output-format".to_owned(), "stream-json".to_owned()]);
        }
        // It reads a copy from the original's file, and chooses and tells the name itself.
        let origin = request.forks().and_then(|origin| origin.transcript.as_deref());
        let named = origin.is_none();
        argv.extend(match origin {
            Some(file) => ["--session-file".to_owned(), file.to_owned()],
            None if request.resume => ["--resume".to_owned(), request.native_id.to_owned()],
            None => ["--session-id".to_owned(), request.native_id.to_owned()],
        });
        argv.extend(session.model.iter().flat_map(|model| ["--model".to_owned(), model.clone()]));
        argv.extend(session.arguments.iter().cloned());
        let variables = vec![(ONE_PROCESS.0.to_owned(), ONE_PROCESS.1.to_owned())];
        let native_id = named.then(|| request.native_id.to_owned());
        if session.mode == Mode::Terminal {
            return Launch { variables, native_id, ..silent_terminal(argv, request) };
        }
        Launch { variables, native_id, ..one_turn(argv, request) }
    }

    fn named_conversation(&self, arguments: &[String]) -> Option<(String, Vec<String>)> {
        named::behind(arguments, &["--resume", "-r"], "--session-file", named::is_uuid)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(GeminiLines::default())
    }

    fn message(&self, message: &crate::Message<'_>) -> Vec<u8> {
        message.text.as_bytes().to_vec()
    }
    fn conversations_folder(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        variable("HOME").filter(|home| !home.is_empty()).map(|home| format!("{home}/.gemini"))
    }

    /// Escape. A signal would end it.
    fn interrupt_keys(&self) -> Option<Vec<u8>> {
        Some(b"\x1b".to_vec())
    }

    fn transcript(
        &self,
        native_id: &str,
        _cwd: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Option<Whereabouts> {
        let folder = self.conversations_folder(variable)?;
        let short = native_id.get(..8)?;
        Some(Whereabouts::Below { folder: format!("{folder}/tmp"), name_ends_with: format!("-{short}.jsonl") })
    }

    /// What it sets up the context with is no message to it.
    fn begins_with(&self, line: &[u8]) -> bool {
        serde_json::from_slice::<Recorded<'_>>(line).is_ok_and(|line| line.kind.text().is_some())
    }

    /// Its output carries no ids, so the text itself is looked for.
    fn mark(&self, _id: &str, text: &str) -> String {
        text.to_owned()
    }

    fn strike(&self, line: &[u8], wanted: &mut Vec<&str>) {
        tolerantly(line, |line| {
            let Ok(line) = serde_json::from_slice::<Recorded<'_>>(line) else {
                return false;
            };
            content::strike(&line.content, wanted);
            true
        });
    }
}

/// A line of the transcript.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Recorded<'a> {
    #[serde(rename = "type", borrow)]
    kind: Loose<'a>,
    content: Content<'a>,
}

/// A line of the output.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Loose<'a>,
    session_id: Loose<'a>,
    role: Loose<'a>,
    content: Loose<'a>,
    tool_name: Loose<'a>,
    parameters: Loose<'a, ToolInput<'a>>,
    output: Loose<'a>,
    status: Loose<'a>,
    stats: Loose<'a, Usage<'a>>,
    error: Loose<'a, Problem<'a>>,
}

#[derive(Debug, Default)]
struct GeminiLines {
    /// What it has said since the last tool; no more than a line may have.
    text: String,
}

impl Decoder for GeminiLines {
    fn line(&mut self, line: &[u8], facts: &mut Vec<Fact>) {
        tolerantly(line, |line| self.understand(line, facts));
    }

    fn messages_so_far(&self) -> Vec<String> {
        Some(self.text.clone()).filter(|text| !text.is_empty()).into_iter().collect()
    }
}

impl GeminiLines {
    /// False when it is no JSON object.
    fn understand(&mut self, line: &[u8], facts: &mut Vec<Fact>) -> bool {
        let Ok(line) = serde_json::from_slice::<Line<'_>>(line) else {
            return false;
        };
        match line.kind.text() {
            Some("init") => {
                facts.extend(line.session_id.text().map(|id| Fact::Native { id: id.to_owned() }));
            }
            Some("message") if line.role.is("assistant") => {
                let text = line.content.text_or_empty();
                if self.text.len() + text.len() > LINE_LIMIT {
                    // Whoever never comes to an end is shown in parts.
                    self.say(facts);
                }
                self.text.push_str(&text);
                facts.push(Fact::Saying { text });
            }
            Some("message") => {}
            Some("tool_use") => {
                self.say(facts);
                facts.push(Fact::ToolCalled {
                    name: line.tool_name.text_or_empty(),
                    detail: tool_detail(&line.parameters),
                });
            }
            Some("tool_result") => facts.push(Fact::ToolReturned {
                text: line.output.text_or_empty(),
                failed: line.status.text().is_some_and(|status| status != "success"),
            }),
            Some("error") => {}
            Some("result") => {
                let end = self.turn_end(&line);
                self.say(facts);
                facts.push(Fact::TurnEnded(end));
            }
            Some(other) => facts.push(Fact::Unknown { kind: other.to_owned() }),
            None => {}
        }
        true
    }

    /// What came in pieces, as a whole.
    fn say(&mut self, facts: &mut Vec<Fact>) {
        if !self.text.is_empty() {
            facts.push(Fact::Said { text: std::mem::take(&mut self.text) });
        }
    }

    fn turn_end(&self, line: &Line<'_>) -> TurnEnd {
        let succeeded = line.status.is("success");
        let error = line.error.object().and_then(|error| error.message.text()).or(line.error.text());
        let tokens = line.stats.object().and_then(Usage::tokens);
        TurnEnd {
            verdict: if succeeded { Verdict::Succeeded } else { Verdict::Failed },
            text: Some(self.text.clone()).filter(|text| !text.is_empty()),
            reason: (!succeeded).then(|| reason(error.unwrap_or("the turn failed"))),
            tokens,
            cost_usd: None,
            messages: self.messages_so_far(),
        }
    }
}

/// An API error arrives as JSON between brackets; a person wants the sentence in it.
fn reason(message: &str) -> String {
    let inner = message.strip_prefix("[API Error: ").and_then(|rest| rest.trim_end().strip_suffix(']'));
    inner
        .map_or_else(|| crate::stream_json::first_line(message), |inner| format!("API error: {}", codex::reason(inner)))
}
