//! Gemini CLI. One process per turn: it reads the prompt from its input, and a further message resumes the
//! conversation.

mod installed;
mod limits;
mod output;
mod ownership;
mod recorded;
mod repair;
mod replaced_messages;
mod retries;
mod screen;
mod stored;
mod terminal_codes;

use crate::any_json::{AnyJson, tolerantly};
use crate::content::{self, Content};
use crate::decoder::Decoder;
use crate::launch::{Launch, Launcher, Launching, one_turn, silent_terminal};
use crate::recorded::Recording;
use crate::saved::{Saved, Search};
use crate::speak::Speak;
use crate::transcript::{Location, Transcript};
use crate::{Agent, conversation_arguments, prompt};
use ostler_core::record::Mode;
use output::GeminiLines;
use serde::Deserialize;

pub struct Gemini;

/// The program starts itself a second time and continues in the child. This variable keeps it in one process, whose
/// identity, lock and signals we have.
const ONE_PROCESS: (&str, &str) = ("GEMINI_CLI_NO_RELAUNCH", "true");

impl Agent for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }
}

impl Launcher for Gemini {
    fn launch(&self, request: &Launching<'_>) -> Launch {
        let session = request.session;
        let mut argv = vec!["gemini".to_owned()];
        if session.mode == Mode::Headless {
            argv.extend(["--output-format".to_owned(), "stream-json".to_owned()]);
        }
        // For a copy, gemini reads the file of the original. It chooses the new name itself and reports it.
        let origin = request.forks().and_then(|origin| origin.transcript.as_deref());
        let named = origin.is_none();
        argv.extend(match origin {
            Some(file) => ["--session-file".to_owned(), file.to_owned()],
            None if request.resume => ["--resume".to_owned(), request.native_id.to_owned()],
            None => ["--session-id".to_owned(), request.native_id.to_owned()],
        });
        if session.read_only {
            argv.extend(["--approval-mode".to_owned(), "plan".to_owned()]);
        }
        argv.extend(session.model.iter().flat_map(|model| ["--model".to_owned(), model.clone()]));
        argv.extend(session.arguments.iter().cloned());
        let variables = vec![(ONE_PROCESS.0.to_owned(), ONE_PROCESS.1.to_owned())];
        let native_id = named.then(|| request.native_id.to_owned());
        if session.mode == Mode::Terminal {
            return Launch { variables, native_id, ..silent_terminal(argv, request) };
        }
        Launch { variables, native_id, ..one_turn(argv, request) }
    }

    fn can_only_read(&self) -> bool {
        true
    }

    fn named_conversation(&self, arguments: &[String]) -> Option<(String, Vec<String>)> {
        conversation_arguments::behind(
            arguments,
            &["--resume", "-r"],
            "--session-file",
            conversation_arguments::is_uuid,
        )
    }

    fn conflicts(&self, arguments: &[String]) -> Option<&'static str> {
        let given = |word: &str| arguments.iter().any(|argument| argument.split('=').next() == Some(word));
        let resumes = (given("--resume") || given("-r")) && !given("--session-file");
        // Gemini does not accept a name of ours together with `latest` or a number.
        (resumes && self.named_conversation(arguments).is_none()).then_some(
            "which conversation? For one of ostler: ostler resume ID; for another: -- --resume ID with another",
        )
    }
}

impl Speak for Gemini {
    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(GeminiLines::default())
    }

    fn error_reader(&self) -> Option<Box<dyn Decoder>> {
        Some(Box::new(retries::ErrorLines))
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

impl Transcript for Gemini {
    fn conversations_folder(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        variable("HOME").filter(|home| !home.is_empty()).map(|home| format!("{home}/.gemini"))
    }

    fn transcript(&self, native_id: &str, _cwd: &str, variable: &dyn Fn(&str) -> Option<String>) -> Option<Location> {
        let folder = self.conversations_folder(variable)?;
        let short = native_id.get(..8)?;
        Some(Location::UnderFolder { folder: format!("{folder}/tmp"), name_ends_with: format!("-{short}.jsonl") })
    }

    /// The message with which gemini sets up the context does not begin a conversation.
    fn begins_with(&self, line: &[u8]) -> bool {
        serde_json::from_slice::<Recorded<'_>>(line).is_ok_and(|line| line.kind.text().is_some())
    }

    /// Gemini takes back a prompt that the model's server refused.
    fn begins(&self, lines: &mut dyn Iterator<Item = Vec<u8>>) -> bool {
        let mut begun = false;
        for line in lines {
            begun = match replaced_messages::messages(&line) {
                Some(all) => all.has_conversation(),
                None => begun || self.begins_with(&line),
            };
        }
        begun
    }

    fn recording(&self) -> Option<Box<dyn Recording>> {
        Some(Box::new(recorded::Transcript::default()))
    }

    fn said_in(&self, line: &[u8]) -> Option<String> {
        let line = serde_json::from_slice::<Recorded<'_>>(line).ok().filter(|line| line.kind.is("gemini"))?;
        Some(content::texts(&line.content).collect::<Vec<_>>().join("\n")).filter(|text| !text.trim().is_empty())
    }
}

impl Saved for Gemini {
    /// Gemini's output has no ids, so the text itself is searched for.
    fn mark(&self, _id: &str, text: &str) -> String {
        text.to_owned()
    }

    fn search_conversation<'a>(&'a self, marks: &'a [String]) -> Box<dyn Search + 'a> {
        Box::new(replaced_messages::Newest::new(self, marks))
    }

    fn remove_found(&self, line: &[u8], wanted: &mut Vec<&str>) {
        tolerantly(line, |line| {
            let Ok(line) = serde_json::from_slice::<Recorded<'_>>(line) else {
                return false;
            };
            for text in content::texts(&line.content) {
                // The transcript keeps the terminal codes in a text, the output does not.
                let text = terminal_codes::without(text);
                if let Some(found) = wanted.iter().position(|mark| terminal_codes::without(mark).trim() == text.trim())
                {
                    wanted.remove(found);
                }
            }
            true
        });
    }
}

/// A line of the transcript.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Recorded<'a> {
    #[serde(rename = "type", borrow)]
    kind: AnyJson<'a>,
    content: Content<'a>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As measured at a usage limit (0.61.0): the prompt is written, and then all messages again without it.
    #[test]
    fn a_prompt_that_was_refused_is_in_no_conversation() {
        let context = r#"{"type":"user","content":[{"text":"<session_context>\nhello"}]}"#;
        let prompt = r#"{"type":"user","content":[{"text":"do it"}]}"#;
        let set = |messages: &str| format!(r#"{{"$set":{{"messages":[{messages}]}}}}"#);
        let begins = |lines: &[&str]| Gemini.begins(&mut lines.iter().map(|line| line.as_bytes().to_vec()));
        let holds = |lines: &[&str]| {
            let marks = ["do it".to_owned()];
            let mut search = Gemini.search_conversation(&marks);
            lines.iter().rev().any(|line| search.line(line.as_bytes())) || search.is_over()
        };
        let head = r#"{"sessionId":"x","kind":"main"}"#;
        let taken_back = [head, &set(context), prompt, &set(context)];
        assert!(!begins(&taken_back) && !holds(&taken_back));
        let kept = [head, &set(context), prompt, r#"{"$set":{"lastUpdated":"x"}}"#];
        assert!(begins(&kept) && holds(&kept));
        let replaced = [head, prompt, &set(&format!("{context},{prompt}"))];
        assert!(begins(&replaced) && holds(&replaced));
    }

    #[test]
    fn what_it_said_is_read_from_its_transcript() {
        let said = |line: &str| Gemini.said_in(line.as_bytes());
        assert_eq!(said(r#"{"type":"gemini","content":"the end"}"#).as_deref(), Some("the end"));
        assert_eq!(said(r#"{"type":"gemini","content":"","toolCalls":[]}"#), None);
        assert_eq!(said(r#"{"type":"user","content":[{"text":"go on"}]}"#), None);
    }

    #[test]
    fn a_text_is_found_in_the_transcript_with_its_terminal_codes() {
        let line = br#"{"type":"gemini","content":"\u001b[31mred\u001b[0m and plain"}"#;
        let holds = |mark: &str| Gemini.transcript_holds(&[line, &b"\n"[..]].concat(), &[mark.to_owned()]);
        assert!(holds("red and plain"));
        assert!(holds("\u{1b}[31mred\u{1b}[0m and plain"));
        assert!(!holds("red and plainer"));
    }
}
