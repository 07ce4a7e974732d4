//! The JSON lines of Claude Code ("stream-json"), both ways. The demo agent speaks them too.
//!
//! A decoder tolerates what it does not know: an unknown event is a [`Fact::Unknown`], an unknown field is ignored, a
//! line that is no JSON is skipped. Agents change monthly; what we rely on is checked against the real ones.

use crate::{Answer, Decoder};
use ostler_core::fact::{Ask, Fact, Tokens, TurnEnd, Verdict};
use serde::Deserialize;
use serde_json::{Value, json};

/// Reads the lines. Remembers the messages of the running turn, because the line that ends it does not name them.
#[derive(Debug, Default)]
pub struct StreamJson {
    messages: Vec<String>,
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    subtype: Option<String>,
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    uuid: Option<String>,
    /// Set on what a subagent says, which is not the main conversation.
    #[serde(default)]
    parent_tool_use_id: Option<String>,
    #[serde(default)]
    message: Value,
    #[serde(default)]
    request_id: Option<String>,
    #[serde(default)]
    request: Value,
    #[serde(default)]
    event: Value,
    #[serde(default)]
    is_error: Option<bool>,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    total_cost_usd: Option<f64>,
    #[serde(default)]
    usage: Value,
    #[serde(default)]
    api_error_status: Value,
}

impl Decoder for StreamJson {
    fn line(&mut self, line: &[u8], facts: &mut Vec<Fact>) {
        let Ok(line) = serde_json::from_slice::<Line>(line) else {
            if !line.iter().all(u8::is_ascii_whitespace) {
                facts.push(Fact::Unknown { kind: "a line that is no JSON object".to_owned() });
            }
            return;
        };
        let main = line.parent_tool_use_id.is_none();
        match line.kind.as_str() {
            "system" if line.subtype.as_deref() == Some("init") => {
                facts.extend(line.session_id.map(|id| Fact::Native { id }));
            }
            "assistant" if main => {
                self.messages.extend(line.uuid);
                blocks(&line.message, facts);
            }
            "user" if main => {
                self.messages.extend(line.uuid);
                results(&line.message, facts);
            }
            "stream_event" if main => {
                let delta = &line.event["delta"];
                if let Some(text) = delta["text"].as_str() {
                    facts.push(Fact::Saying { text: text.to_owned() });
                }
            }
            "control_request" => facts.extend(asked(line.request_id, &line.request)),
            "control_cancel_request" => {
                facts.extend(line.request_id.map(|request| Fact::AskClosed { request }));
            }
            "assistant" => below(&line.message, blocks, facts),
            "user" => below(&line.message, results, facts),
            "result" => facts.push(Fact::TurnEnded(self.turn_end(&line))),
            "stream_event" | "system" | "control_response" => {}
            other => facts.push(Fact::Unknown { kind: other.to_owned() }),
        }
    }

    fn messages_so_far(&self) -> Vec<String> {
        self.messages.clone()
    }
}

impl StreamJson {
    /// An API error arrives as "success" with `is_error`, so the subtype alone proves nothing.
    fn turn_end(&mut self, line: &Line) -> TurnEnd {
        let text = line.result.as_str().map(str::to_owned);
        let subtype = line.subtype.as_deref().unwrap_or("");
        let verdict = match (subtype, line.is_error) {
            ("success", None | Some(false)) => Verdict::Succeeded,
            ("error_during_execution", _) => Verdict::Interrupted,
            _ => Verdict::Failed,
        };
        let reason = match verdict {
            Verdict::Succeeded => None,
            Verdict::Interrupted => Some("the turn was interrupted".to_owned()),
            Verdict::Failed => Some(match (&line.api_error_status, text.as_deref().filter(|text| !text.is_empty())) {
                (Value::Null, Some(text)) => first_line(text),
                (status, Some(text)) => format!("API error {status}: {}", first_line(text)),
                (Value::Null, None) => subtype.to_owned(),
                (status, None) => format!("API error {status}"),
            }),
        };
        let count = |name: &str| line.usage[name].as_u64();
        let tokens = count("output_tokens").map(|output| Tokens {
            input: count("input_tokens").unwrap_or(0)
                + count("cache_creation_input_tokens").unwrap_or(0)
                + count("cache_read_input_tokens").unwrap_or(0),
            output,
        });
        TurnEnd {
            verdict,
            text,
            reason,
            tokens,
            cost_usd: line.total_cost_usd,
            messages: std::mem::take(&mut self.messages),
        }
    }
}

pub(crate) fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// The parts of an assistant's message.
fn blocks(message: &Value, facts: &mut Vec<Fact>) {
    for block in message["content"].as_array().into_iter().flatten() {
        match block["type"].as_str() {
            Some("text") => facts.extend(block["text"].as_str().map(|text| Fact::Said { text: text.to_owned() })),
            Some("thinking") => {
                facts.extend(block["thinking"].as_str().map(|text| Fact::Thought { text: text.to_owned() }));
            }
            Some("tool_use") => facts.push(Fact::ToolCalled {
                name: block["name"].as_str().unwrap_or("tool").to_owned(),
                detail: tool_detail(&block["input"]),
            }),
            Some(_) | None => {}
        }
    }
}

/// The same of a subagent.
fn below(message: &Value, read: fn(&Value, &mut Vec<Fact>), facts: &mut Vec<Fact>) {
    let mut found = Vec::new();
    read(message, &mut found);
    facts.extend(found.into_iter().map(|fact| Fact::Below(Box::new(fact))));
}

/// What came back from tools.
fn results(message: &Value, facts: &mut Vec<Fact>) {
    for block in message["content"].as_array().into_iter().flatten() {
        if block["type"] == "tool_result" {
            facts.push(Fact::ToolReturned {
                text: plain_text(&block["content"]),
                failed: block["is_error"].as_bool().unwrap_or(false),
            });
        }
    }
}

/// Content is a text, or a list of blocks with texts in them.
fn plain_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// The one argument that tells a person what a tool call does.
#[must_use]
pub fn tool_detail(input: &Value) -> String {
    ["command", "file_path", "path", "pattern", "query", "url", "description", "prompt"]
        .iter()
        .find_map(|name| input[name].as_str())
        .or_else(|| input["questions"][0]["question"].as_str())
        .map(first_line)
        .unwrap_or_default()
}

fn asked(request_id: Option<String>, request: &Value) -> Option<Fact> {
    if request["subtype"] != "can_use_tool" {
        return None;
    }
    let tool = request["tool_name"].as_str().map(str::to_owned);
    let detail = tool_detail(&request["input"]);
    let text = request["description"].as_str().filter(|text| !text.is_empty()).map_or(detail, str::to_owned);
    Some(Fact::Asked(Ask {
        request: request_id?,
        tool,
        input: request["input"].clone(),
        text,
        suggestions: request["permission_suggestions"].clone(),
    }))
}

/// A message for the agent's input.
#[must_use]
pub fn message(id: &str, text: &str) -> Vec<u8> {
    line(&json!({ "type": "user", "uuid": id, "message": { "role": "user", "content": text } }))
}

#[must_use]
pub fn interrupt(id: &str) -> Vec<u8> {
    line(&json!({ "type": "control_request", "request_id": id, "request": { "subtype": "interrupt" } }))
}

#[must_use]
pub fn answer(ask: &Ask, answer: &Answer) -> Vec<u8> {
    let response = if answer.allow {
        let mut response = json!({ "behavior": "allow", "updatedInput": ask.input });
        if answer.always {
            response["updatedPermissions"] = for_this_process(&ask.suggestions);
        }
        response
    } else {
        json!({ "behavior": "deny", "message": answer.text.as_deref().unwrap_or("The user said no.") })
    };
    line(&json!({
        "type": "control_response",
        "response": { "subtype": "success", "request_id": ask.request, "response": response },
    }))
}

/// What an agent proposes to allow for longer, but whatever it proposes only for its own process: nothing of it is written
/// down, and the next process asks again.
fn for_this_process(suggestions: &Value) -> Value {
    let mut suggestions = suggestions.clone();
    for suggestion in suggestions.as_array_mut().into_iter().flatten() {
        suggestion["destination"] = json!("session");
    }
    suggestions
}

/// That in words; `None` when it proposes nothing.
#[must_use]
pub fn longer(ask: &Ask) -> Option<String> {
    let words: Vec<String> = ask.suggestions.as_array()?.iter().filter_map(suggested).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn suggested(suggestion: &Value) -> Option<String> {
    let list = |name: &str| suggestion[name].as_array().into_iter().flatten();
    match suggestion["type"].as_str()? {
        "addRules" => {
            let rules = list("rules").filter_map(|rule| {
                let tool = rule["toolName"].as_str()?;
                Some(rule["ruleContent"].as_str().map_or(tool.to_owned(), |content| format!("{tool}({content})")))
            });
            Some(rules.collect::<Vec<_>>().join(", ")).filter(|rules| !rules.is_empty())
        }
        "addDirectories" => {
            let folders: Vec<&str> = list("directories").filter_map(Value::as_str).collect();
            Some(format!("work in {}", folders.join(", ")))
        }
        "setMode" if suggestion["mode"] == "acceptEdits" => Some("every edit in the working directory".to_owned()),
        "setMode" => Some(format!("permission mode {}", suggestion["mode"].as_str().unwrap_or("unknown"))),
        other => Some(other.to_owned()),
    }
}

fn line(value: &Value) -> Vec<u8> {
    let mut bytes = value.to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}

/// The transcript of a conversation, below the agent's own folder.
#[must_use]
pub fn transcript(folder: &str, cwd: &str, native_id: &str) -> String {
    format!("{folder}/projects/{}/{native_id}.jsonl", folder_name(cwd))
}

/// The folder of a working directory below `projects`: everything that is no letter or digit becomes `-`, counted as
/// JavaScript counts characters.
#[must_use]
pub fn folder_name(cwd: &str) -> String {
    cwd.encode_utf16()
        .map(|unit| u8::try_from(unit).ok().filter(u8::is_ascii_alphanumeric).map_or('-', char::from))
        .collect()
}

/// Whether each of these ids is the `uuid` of a whole line. The last line is often not the reply, and a torn one is none.
#[must_use]
pub fn transcript_holds(transcript: &[u8], messages: &[String]) -> bool {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow, default)]
        uuid: Option<&'a str>,
    }
    let mut wanted: Vec<&str> = messages.iter().map(String::as_str).collect();
    // Newest first: what is looked for is at the end.
    for line in transcript.split_inclusive(|&byte| byte == b'\n').rev() {
        if wanted.is_empty() {
            break;
        }
        if line.ends_with(b"\n")
            && let Ok(Named { uuid: Some(uuid) }) = serde_json::from_slice::<Named<'_>>(line)
        {
            wanted.retain(|id| *id != uuid);
        }
    }
    wanted.is_empty()
}

/// Whether the newest message of a transcript is the agent's; `None` when it holds no message.
#[must_use]
pub fn ends_with_answer(transcript: &[u8]) -> Option<bool> {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(borrow, rename = "type", default)]
        kind: Option<&'a str>,
    }
    transcript.split(|&byte| byte == b'\n').rev().find_map(|line| {
        let kind = serde_json::from_slice::<Kind<'_>>(line).ok()?.kind?;
        matches!(kind, "user" | "assistant").then_some(kind == "assistant")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_transcript_ends_with_an_answer_whatever_else_stands_behind_it() {
        let (user, assistant) = ("{\"type\":\"user\"}\n", "{\"type\":\"assistant\",\"message\":{}}\n");
        let other = "{\"type\":\"last-prompt\"}\n{\"torn";
        assert_eq!(ends_with_answer(format!("{user}{assistant}{other}").as_bytes()), Some(true));
        assert_eq!(ends_with_answer(format!("{user}{assistant}{user}{other}").as_bytes()), Some(false));
        assert_eq!(ends_with_answer(other.as_bytes()), None);
    }

    fn facts_of(lines: &[&str]) -> Vec<Fact> {
        let mut decoder = StreamJson::default();
        let mut facts = Vec::new();
        for line in lines {
            decoder.line(line.as_bytes(), &mut facts);
        }
        facts
    }

    #[test]
    fn an_api_error_reported_as_success_is_a_failure() {
        let facts = facts_of(&[
            r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":529,"result":"Overloaded"}"#,
        ]);
        let [Fact::TurnEnded(end)] = &facts[..] else { unreachable!("{facts:?}") };
        assert_eq!(end.verdict, Verdict::Failed);
        assert_eq!(end.reason.as_deref(), Some("API error 529: Overloaded"));
    }

    #[test]
    fn the_end_of_a_turn_names_the_messages_that_must_be_saved_and_no_others() {
        let facts = facts_of(&[
            r#"{"type":"assistant","uuid":"a","message":{"content":[{"type":"text","text":"hi"}]}}"#,
            r#"{"type":"assistant","uuid":"sub","parent_tool_use_id":"t","message":{"content":[]}}"#,
            r#"{"type":"result","subtype":"success","is_error":false,"result":"hi"}"#,
            r#"{"type":"result","subtype":"success","is_error":false,"result":"again"}"#,
        ]);
        let ends: Vec<_> = facts
            .iter()
            .filter_map(|fact| match fact {
                Fact::TurnEnded(end) => Some(end.messages.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(ends, [vec!["a".to_owned()], vec![]]);
    }

    #[test]
    fn always_is_what_was_proposed_and_never_outlives_the_process() {
        let suggestions = json!([
            {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "touch *"}], "behavior": "allow", "destination": "localSettings"},
            {"type": "setMode", "mode": "acceptEdits", "destination": "userSettings"},
        ]);
        let mut ask = Ask { request: "r".to_owned(), tool: None, input: json!({}), text: String::new(), suggestions };
        assert_eq!(longer(&ask).as_deref(), Some("Bash(touch *), every edit in the working directory"));
        let said = |always| {
            let line = answer(&ask, &Answer { allow: true, always, text: None });
            serde_json::from_slice::<Value>(&line).unwrap_or_default()["response"]["response"].take()
        };
        assert_eq!(said(false).get("updatedPermissions"), None);
        let allowed = &said(true)["updatedPermissions"];
        assert_eq!((&allowed[0]["destination"], &allowed[1]["destination"]), (&json!("session"), &json!("session")));
        assert_eq!(allowed[0]["rules"][0]["ruleContent"], "touch *");
        ask.suggestions = json!([]);
        assert_eq!(longer(&ask), None);
    }

    #[test]
    fn what_a_subagent_says_and_does_is_told_apart() {
        let facts = facts_of(&[
            r#"{"type":"assistant","parent_tool_use_id":"t","message":{"content":[{"type":"text","text":"hi"},{"type":"tool_use","name":"Bash","input":{"command":"id"}}]}}"#,
            r#"{"type":"user","parent_tool_use_id":"t","message":{"content":[{"type":"tool_result","content":"root"}]}}"#,
        ]);
        let said = Fact::Said { text: "hi".to_owned() };
        let called = Fact::ToolCalled { name: "Bash".to_owned(), detail: "id".to_owned() };
        let returned = Fact::ToolReturned { text: "root".to_owned(), failed: false };
        assert_eq!(facts, [said, called, returned].map(|fact| Fact::Below(Box::new(fact))));
    }

    #[test]
    fn a_reply_in_a_torn_line_is_not_saved() {
        let wanted = ["a".to_owned(), "b".to_owned()];
        assert!(transcript_holds(b"{\"uuid\":\"b\"}\n{\"uuid\":\"a\"}\n{\"uuid\":\"c\"}\n", &wanted));
        assert!(!transcript_holds(b"{\"uuid\":\"b\"}\n{\"uuid\":\"a\"}", &wanted));
        assert!(!transcript_holds(b"{\"uuid\":\"b\"}\n{\"text\":\"\\\"uuid\\\":\\\"a\\\"\"}\n", &wanted));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(line in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut facts = Vec::new();
            StreamJson::default().line(&line, &mut facts);
        }

        #[test]
        fn fields_of_the_wrong_type_do_no_harm(kind in "(system|assistant|user|result|control_request|stream_event)", field in "(message|request|event|usage|result|uuid|subtype)", value in "(1|\"x\"|\\[\\]|\\{\\}|null|true)") {
            let line = format!(r#"{{"type":"{kind}","{field}":{value}}}"#);
            let mut facts = Vec::new();
            StreamJson::default().line(line.as_bytes(), &mut facts);
        }
    }
}
