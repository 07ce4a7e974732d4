//! Gemini CLI. One process per turn: it takes the prompt from its input, and a further message resumes the conversation.

use crate::{Agent, Decoder, Launch, Launching, Whereabouts, named, one_turn, silent_terminal};
use ostler_core::fact::{Fact, Tokens, TurnEnd, Verdict};
use ostler_core::record::Mode;
use serde_json::Value;

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

    /// Its output carries no ids, so the text itself is looked for.
    fn mark(&self, _id: &str, text: &str) -> String {
        text.to_owned()
    }

    fn transcript_holds(&self, transcript: &[u8], marks: &[String]) -> bool {
        crate::holds_texts(transcript, marks, |line, each| {
            line["content"].as_str().map(&mut *each);
            for part in line["content"].as_array().into_iter().flatten() {
                part["text"].as_str().map(&mut *each);
            }
        })
    }
}

#[derive(Debug, Default)]
struct GeminiLines {
    text: String,
}

impl Decoder for GeminiLines {
    fn line(&mut self, line: &[u8], facts: &mut Vec<Fact>) {
        let Ok(line) = serde_json::from_slice::<Value>(line) else {
            return;
        };
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        match line["type"].as_str() {
            Some("init") => {
                facts.extend(line["session_id"].as_str().map(|id| Fact::Native { id: id.to_owned() }));
            }
            Some("message") if line["role"] == "assistant" => {
                self.text.push_str(&text("content"));
                facts.push(Fact::Saying { text: text("content") });
            }
            Some("message") => {}
            Some("tool_use") => {
                self.say(facts);
                facts.push(Fact::ToolCalled {
                    name: text("tool_name"),
                    detail: crate::stream_json::tool_detail(&line["parameters"]),
                });
            }
            Some("tool_result") => facts.push(Fact::ToolReturned {
                text: text("output"),
                failed: line["status"].as_str().is_some_and(|status| status != "success"),
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
    }

    fn messages_so_far(&self) -> Vec<String> {
        Some(self.text.clone()).filter(|text| !text.is_empty()).into_iter().collect()
    }
}

impl GeminiLines {
    /// What came in pieces, as a whole.
    fn say(&mut self, facts: &mut Vec<Fact>) {
        if !self.text.is_empty() {
            facts.push(Fact::Said { text: std::mem::take(&mut self.text) });
        }
    }

    fn turn_end(&self, line: &Value) -> TurnEnd {
        let succeeded = line["status"] == "success";
        let count = |name: &str| line["stats"][name].as_u64();
        let error = line["error"]["message"].as_str().or(line["error"].as_str()).unwrap_or("the turn failed");
        TurnEnd {
            verdict: if succeeded { Verdict::Succeeded } else { Verdict::Failed },
            text: Some(self.text.clone()).filter(|text| !text.is_empty()),
            reason: (!succeeded).then(|| error.lines().next().unwrap_or_default().to_owned()),
            tokens: count("output_tokens").map(|output| Tokens { input: count("input_tokens").unwrap_or(0), output }),
            cost_usd: None,
            messages: self.messages_so_far(),
        }
    }
}
