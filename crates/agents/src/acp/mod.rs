//! Any agent that speaks the Agent Client Protocol over its standard input and output: JSON-RPC, one message per line.
//!
//! The conversation is opened with two requests that are written at once (all four agents that we know accept that):
//! `initialize`, then `session/new` or `session/load`. After the answer messages are sent, each as a `session/prompt`
//! whose answer is the end of its turn. We offer agents only questions to people: every other request of theirs is
//! declined.
//!
//! `wire` is the syntax of the lines, `lines` their meaning, [`adapters`] which agent is behind a program.

pub mod adapters;
mod lines;
mod wire;

use crate::Agent;
use crate::decoder::Decoder;
use crate::installed::Installed;
use crate::launch::{Launch, Launcher, Launching};
use crate::ownership::Ownership;
use crate::repair::Repair;
use crate::saved::Saved;
use crate::speak::{Answer, Message, Opening, Speak};
use crate::stored::Stored;
use crate::transcript::Transcript;
use adapters::Behind;
use ostler_core::fact::Ask;
use ostler_core::record::{Channel, Ending, Lines, Plan};
use serde_json::Value;
use std::path::Path;

/// A command that speaks the protocol, for examples.
pub const EXAMPLE: &str = "gemini --acp";

pub struct Acp;

/// The agent's name where it is not known which agent is behind the program.
pub const NAME: &str = "acp";

impl Behind for Acp {}

impl Installed for Acp {}

impl Ownership for Acp {}

impl Stored for Acp {}

impl Repair for Acp {}

impl Agent for Acp {
    fn name(&self) -> &'static str {
        NAME
    }
}

impl Launcher for Acp {
    /// The program and its arguments come from the person. A program that we know by its name gets the arguments that
    /// it always needs.
    fn launch(&self, request: &Launching<'_>) -> Launch {
        let session = request.session;
        let known = adapters::of_command(&session.arguments);
        let mut argv = session.arguments.clone();
        if request.resume && known.is_some_and(|agent| agent.name() == "gemini") {
            // 0.61 creates an empty copy whenever it loads a conversation. When it starts, it deletes the conversations
            // that have such a copy, except the one that it is told to resume.
            argv.extend(["--resume".to_owned(), request.native_id.to_owned()]);
        }
        Launch {
            argv,
            plan: Plan {
                channel: Channel::Lines(Lines::OpenedTurns),
                keep: session.keep,
                ending: Ending::EndOfInput,
                linger_ms: request.linger_ms,
                rules: ostler_core::rules::Rules::default(),
            },
            native_id: request.resume.then(|| request.native_id.to_owned()),
            variables: known.map(|agent| agent.launch(request).variables).unwrap_or_default(),
        }
    }
}

impl Speak for Acp {
    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(lines::AcpLines::default())
    }

    fn opening(&self, request: &Opening<'_>) -> Option<Vec<u8>> {
        Some(wire::opening(request.cwd, request.resume))
    }

    fn message(&self, message: &Message<'_>) -> Vec<u8> {
        wire::prompt(message.native_id, message.id, message.text)
    }

    fn interrupt(&self, native_id: &str, _id: &str) -> Option<Vec<u8>> {
        Some(wire::cancel(native_id))
    }

    fn withdraw(&self, ask: &Ask) -> Option<Vec<u8>> {
        Some(wire::permission(&request_of(ask), None))
    }

    /// Agents offer answers and identify them by their kind. A permission for one time is never turned into a permanent
    /// one. An answer has no field for a person's text.
    fn answer(&self, ask: &Ask, answer: &Answer) -> Option<Vec<u8>> {
        if answer.text.is_some() {
            return None;
        }
        let chosen = if answer.allow {
            Some(offered(ask, if answer.always { "allow_always" } else { "allow_once" })?)
        } else {
            offered(ask, "reject_once").or_else(|| offered(ask, "reject_always"))
        };
        Some(wire::permission(&request_of(ask), chosen.map(|option| &option["optionId"])))
    }

    fn longer(&self, ask: &Ask) -> Option<String> {
        let option = offered(ask, "allow_always")?;
        Some(option["name"].as_str().unwrap_or("always").to_owned())
    }
}

impl Transcript for Acp {
    /// Each agent has its own folder; the names of conversations are unique without it.
    fn conversations_folder(&self, _: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        Some("/".to_owned())
    }
}

impl Saved for Acp {}

/// The agent that has the name of this program.
#[must_use]
pub fn behind(program: &str) -> Option<&'static dyn Agent> {
    let name = Path::new(program).file_name()?.to_str()?;
    crate::all().find(|agent| agent.name() == name && !["acp", "command", "demo"].contains(&name))
}

/// The answer of this kind that comes with a question.
fn offered<'a>(ask: &'a Ask, kind: &str) -> Option<&'a Value> {
    ask.suggestions.as_array()?.iter().find(|option| option["kind"] == kind)
}

/// A question is identified by the JSON of its request's id (a number or a text), which the answer must contain.
fn request_of(ask: &Ask) -> Value {
    serde_json::from_str(&ask.request).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn chosen(options: &Value, allow: bool, always: bool) -> Value {
        let (request, text) = ("\"q\"".to_owned(), String::new());
        let (input, details) = (Value::Null, Value::Null);
        let ask = Ask { request, tool: None, input, text, suggestions: options.clone(), details };
        let line = Acp.answer(&ask, &Answer { allow, always, text: None }).unwrap_or_default();
        serde_json::from_slice::<Value>(&line).unwrap_or_default()["result"]["outcome"].clone()
    }

    #[test]
    fn an_answer_is_the_offered_one_of_its_kind_and_never_allows_more_than_was_said() {
        let option = |kind: &str| json!({ "optionId": format!("id of {kind}"), "name": "", "kind": kind });
        let all = json!([option("allow_always"), option("allow_once"), option("reject_always"), option("reject_once")]);
        assert_eq!(chosen(&all, true, false), json!({ "outcome": "selected", "optionId": "id of allow_once" }));
        assert_eq!(chosen(&all, false, false), json!({ "outcome": "selected", "optionId": "id of reject_once" }));
        assert_eq!(chosen(&all, true, true), json!({ "outcome": "selected", "optionId": "id of allow_always" }));
        let always = json!([option("allow_always")]);
        assert_eq!(chosen(&always, true, false), Value::Null, "there is no such answer");
        assert_eq!(chosen(&always, false, false), json!({ "outcome": "cancelled" }));
    }
}
