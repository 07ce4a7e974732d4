//! opencode. One process per turn, and no event that ends it: the end of the process is the end of the turn.

use crate::{Agent, Decoder, Launch, Launching, Whereabouts, named, one_turn, silent_terminal};
use ostler_core::fact::{Fact, Tokens, TurnEnd, Verdict};
use ostler_core::outcome::Exit;
use ostler_core::record::Mode;
use serde_json::Value;

pub struct Opencode;

impl Agent for Opencode {
    fn name(&self) -> &'static str {
        "opencode"
    }

    /// The npm package's `opencode` is a script that starts the real program.
    fn beside_its_launcher(&self) -> Vec<String> {
        let short = if std::env::consts::ARCH == "aarch64" { "arm64" } else { "x64" };
        vec![format!("../opencode-linux-{short}/bin/opencode")]
    }

    fn launch(&self, request: &Launching<'_>) -> Launch {
        let session = request.session;
        let mut argv = vec!["opencode".to_owned()];
        if session.mode == Mode::Headless {
            argv.extend(["run".to_owned(), "--format".to_owned(), "json".to_owned()]);
        }
        if request.resume {
            argv.extend(["--session".to_owned(), request.native_id.to_owned()]);
        } else if let Some(origin) = request.forks() {
            argv.extend(["--session".to_owned(), origin.native_id.clone(), "--fork".to_owned()]);
        }
        argv.extend(session.model.iter().flat_map(|model| ["--model".to_owned(), model.clone()]));
        argv.extend(session.arguments.iter().cloned());
        if session.mode == Mode::Terminal {
            return silent_terminal(argv, request);
        }
        one_turn(argv, request)
    }

    fn named_conversation(&self, arguments: &[String]) -> Option<(String, Vec<String>)> {
        named::behind(arguments, &["--session", "-s"], "--fork", |id| id.starts_with("ses_"))
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(OpencodeLines::default())
    }

    fn message(&self, message: &crate::Message<'_>) -> Vec<u8> {
        message.text.as_bytes().to_vec()
    }
    fn conversations_folder(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let data = set("XDG_DATA_HOME").or_else(|| set("HOME").map(|home| format!("{home}/.local/share")));
        data.map(|data| format!("{data}/opencode"))
    }

    /// It chooses the name itself, and tells it when the conversation is in its database.
    fn keeps_what_it_names(&self) -> bool {
        true
    }

    /// A database, which is not read yet; nothing is claimed about what it holds.
    fn transcript(&self, _: &str, _: &str, _: &dyn Fn(&str) -> Option<String>) -> Option<Whereabouts> {
        None
    }

    fn transcript_holds(&self, _transcript: &[u8], _marks: &[String]) -> bool {
        false
    }
}

#[derive(Debug, Default)]
struct OpencodeLines {
    text: Option<String>,
    tokens: Option<Tokens>,
    cost_usd: Option<f64>,
    error: Option<String>,
}

impl Decoder for OpencodeLines {
    fn line(&mut self, line: &[u8], facts: &mut Vec<Fact>) {
        let Ok(line) = serde_json::from_slice::<Value>(line) else {
            return;
        };
        let Some(kind) = line["type"].as_str() else {
            return;
        };
        facts.extend(line["sessionID"].as_str().map(|id| Fact::Native { id: id.to_owned() }));
        let part = &line["part"];
        match kind {
            "step_start" => facts.push(Fact::TurnStarted),
            "text" => {
                let text = part["text"].as_str().unwrap_or_default().to_owned();
                self.text = Some(text.clone());
                facts.push(Fact::Said { text });
            }
            "tool_use" => {
                let state = &part["state"];
                facts.push(Fact::ToolCalled {
                    name: part["tool"].as_str().unwrap_or("tool").to_owned(),
                    detail: crate::stream_json::tool_detail(&state["input"]),
                });
                facts.push(Fact::ToolReturned {
                    text: state["output"].as_str().or(state["error"].as_str()).unwrap_or_default().to_owned(),
                    failed: state["status"] == "error",
                });
            }
            "step_finish" => {
                let count = |name: &str| part["tokens"][name].as_u64().unwrap_or(0);
                *self.tokens.get_or_insert_default() += Tokens { input: count("input"), output: count("output") };
                self.cost_usd = Some(self.cost_usd.unwrap_or(0.0) + part["cost"].as_f64().unwrap_or(0.0));
            }
            "error" => {
                let error = &line["error"];
                let words = error["data"]["message"].as_str().or(error["message"].as_str()).or(error["name"].as_str());
                self.error = Some(words.unwrap_or("the turn failed").to_owned());
            }
            other => facts.push(Fact::Unknown { kind: other.to_owned() }),
        }
    }

    fn messages_so_far(&self) -> Vec<String> {
        Vec::new()
    }

    /// It says nothing at the end, so a clean exit after an answer is the report.
    fn turn_end_at_exit(&mut self, exit: Exit) -> TurnEnd {
        let clean = exit.code == Some(0) && self.error.is_none() && self.text.is_some();
        let reason = self.error.take().unwrap_or_else(|| match (exit.code, exit.signal) {
            (Some(0), _) => "the agent ended without an answer".to_owned(),
            (Some(code), _) => format!("the agent exited with {code}"),
            (None, _) => "the agent was killed in the middle of its turn".to_owned(),
        });
        TurnEnd {
            verdict: if clean { Verdict::Succeeded } else { Verdict::Failed },
            text: self.text.take(),
            reason: (!clean).then(|| reason.lines().next().unwrap_or_default().to_owned()),
            tokens: self.tokens.take(),
            cost_usd: self.cost_usd.take(),
            messages: Vec::new(),
        }
    }
}
