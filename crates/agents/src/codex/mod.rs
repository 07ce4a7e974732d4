//! Codex. One process per turn: `codex exec` takes the prompt from its input, and a further message resumes the thread.

mod installed;
mod limits;
mod output;
mod ownership;
mod recorded;
mod repair;
mod screen;
mod server;
mod stored;

use crate::any_json::{AnyJson, tolerantly};
use crate::content::{self, Content};
use crate::decoder::Decoder;
use crate::launch::{Launch, Launcher, Launching, one_turn, silent_terminal};
use crate::recorded::Recording;
use crate::saved::Saved;
use crate::speak::Speak;
use crate::transcript::{Location, Transcript};
use crate::{Agent, conversation_arguments, prompt};
use ostler_core::fact::Tokens;
use ostler_core::record::Mode;
use serde::Deserialize;

pub(crate) use output::reason;

pub struct Codex;

/// As settings, because further turns (`exec resume`) have no option for it.
const READ_ONLY: [&str; 4] = ["-c", "sandbox_mode=\"read-only\"", "-c", "approval_policy=\"never\""];

impl Agent for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }
}

impl Launcher for Codex {
    fn launch(&self, request: &Launching<'_>) -> Launch {
        let session = request.session;
        let mut argv = vec!["codex".to_owned()];
        let terminal = session.mode == Mode::Terminal;
        if terminal && (request.knows)(server::NOT_USED) {
            argv.push(server::NOT_USED.to_owned());
        }
        let model = session.model.iter().flat_map(|model| ["--model".to_owned(), model.clone()]);
        if terminal {
            if request.resume {
                argv.extend(["resume".to_owned(), request.native_id.to_owned()]);
            } else if let Some(origin) = request.forks() {
                argv.extend(["fork".to_owned(), origin.native_id.clone()]);
            }
            argv.extend(model.chain(server::without_the_option(&session.arguments)));
            return silent_terminal(argv, request);
        }
        argv.push("exec".to_owned());
        let known = match request.forks() {
            Some(origin) => Some(("fork", origin.native_id.as_str())),
            None => request.resume.then_some(("resume", request.native_id)),
        };
        argv.extend(known.map(|(word, _)| word.to_owned()));
        argv.extend(["--json".to_owned(), "--skip-git-repo-check".to_owned()]);
        if session.read_only {
            argv.extend(READ_ONLY.map(str::to_owned));
        }
        argv.extend(model.chain(session.arguments.iter().cloned()));
        argv.extend(known.map(|(_, id)| id.to_owned()));
        // The prompt comes over standard input: the length of an argument is limited.
        argv.push("-".to_owned());
        one_turn(argv, request)
    }

    fn can_only_read(&self) -> bool {
        true
    }

    fn named_conversation(&self, arguments: &[String]) -> Option<(String, Vec<String>)> {
        conversation_arguments::behind(arguments, &["resume"], "fork", conversation_arguments::is_uuid)
    }

    fn conflicts(&self, arguments: &[String]) -> Option<&'static str> {
        let newest = arguments.iter().any(|word| word == "resume") && arguments.iter().any(|word| word == "--last");
        let which = "which conversation? For one of ostler: ostler resume ID; for another: -- resume ID with another";
        server::conflict(arguments).or_else(|| newest.then_some(which))
    }

    fn in_force(&self, argv: &[String]) -> Option<&'static str> {
        server::in_force(argv)
    }
}

impl Speak for Codex {
    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(output::CodexLines::default())
    }

    fn message(&self, message: &crate::speak::Message<'_>) -> Vec<u8> {
        message.text.as_bytes().to_vec()
    }

    fn prompt(&self) -> Option<fn(&prompt::Screen<'_>) -> prompt::Seen> {
        Some(screen::look)
    }

    /// Escape. A signal would end the process.
    fn interrupt_keys(&self) -> Option<Vec<u8>> {
        Some(b"\x1b".to_vec())
    }
}

impl Transcript for Codex {
    fn conversations_folder(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        set("CODEX_HOME").or_else(|| set("HOME").map(|home| format!("{home}/.codex")))
    }

    fn transcript(&self, native_id: &str, _cwd: &str, variable: &dyn Fn(&str) -> Option<String>) -> Option<Location> {
        let home = self.conversations_folder(variable)?;
        Some(Location::UnderFolder {
            folder: format!("{home}/sessions"),
            name_ends_with: format!("-{native_id}.jsonl"),
        })
    }

    fn recording(&self) -> Option<Box<dyn Recording>> {
        Some(Box::new(recorded::Transcript))
    }

    fn said_in(&self, line: &[u8]) -> Option<String> {
        let line = serde_json::from_slice::<Recorded<'_>>(line).ok()?;
        let payload = line.payload.object().filter(|payload| payload.role.is("assistant"))?;
        Some(content::texts(&payload.content).collect::<Vec<_>>().join("\n")).filter(|text| !text.trim().is_empty())
    }
}

impl Saved for Codex {
    /// Codex's own ids for messages are not in its output, so the text itself is searched for.
    fn mark(&self, _id: &str, text: &str) -> String {
        text.to_owned()
    }

    fn remove_found(&self, line: &[u8], wanted: &mut Vec<&str>) {
        tolerantly(line, |line| {
            let Ok(line) = serde_json::from_slice::<Recorded<'_>>(line) else {
                return false;
            };
            if let Some(payload) = line.payload.object() {
                content::remove_found(&payload.content, wanted);
            }
            true
        });
    }
}

/// What the thread has used so far, if this line of its transcript contains it.
#[must_use]
pub fn used_by_thread(line: &[u8]) -> Option<Tokens> {
    memchr::memmem::find(line, b"total_token_usage")?;
    let record: serde_json::Value = serde_json::from_slice(line).ok()?;
    let used = &record["payload"]["info"]["total_token_usage"];
    Some(Tokens { input: used["input_tokens"].as_u64()?, output: used["output_tokens"].as_u64()? })
}

/// A line of the transcript.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Recorded<'a> {
    #[serde(borrow)]
    payload: AnyJson<'a, Payload<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Payload<'a> {
    #[serde(borrow)]
    role: AnyJson<'a>,
    content: Content<'a>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_said_is_read_from_its_transcript() {
        let line = |role: &str| {
            format!(
                r#"{{"type":"response_item","payload":{{"type":"message","role":"{role}",
                    "content":[{{"type":"output_text","text":"the end"}}]}}}}"#
            )
        };
        assert_eq!(Codex.said_in(line("assistant").as_bytes()).as_deref(), Some("the end"));
        assert_eq!(Codex.said_in(line("user").as_bytes()), None);
    }
}
