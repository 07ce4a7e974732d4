//! Claude Code. In headless mode it speaks [`crate::stream_json`] in both directions, and accepts further messages in
//! one process. In a terminal it draws, and [`hooks`] report what happens.

mod arguments;
pub mod hooks;
mod installed;
mod limits;
mod ownership;
mod repair;
pub(crate) mod saved;
mod stored;
mod turn_usage;

use crate::decoder::Decoder;
use crate::launch::{Launch, Launcher, Launching};
use crate::recorded::Recording;
use crate::saved::{Count, LineSearch, Saved, Search};
use crate::speak::{Answer, Doing, Speak};
use crate::stored::Stored;
use crate::stream_json::{self, StreamJson};
use crate::transcript::{Location, Transcript};
use crate::{Agent, conversation_arguments};
use ostler_core::fact::Ask;
use ostler_core::record::{Channel, Ending, Lines, Mode, Plan, Tty};
use std::path::Path;

pub struct Claude;

/// What headless mode needs. Claude asks for permissions over the same lines, so that a person can be asked. Text comes
/// as it is written, for clients that follow the session.
const HEADLESS: [&str; 9] = [
    "-p",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--verbose",
    "--include-partial-messages",
    "--permission-prompt-tool",
    "stdio",
];

/// Only tools that read, and no tools of other programs. Plan mode is not used: it ends with a plan that needs
/// approval.
const READ_ONLY: [&str; 5] =
    ["--tools", "Read,Grep,Glob", "--disallowedTools", "Bash,Edit,Write,NotebookEdit", "--strict-mcp-config"];

impl Agent for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }
}

impl Launcher for Claude {
    fn launch(&self, request: &Launching<'_>) -> Launch {
        let session = request.session;
        let mut argv = vec!["claude".to_owned()];
        let mut arguments = session.arguments.clone();
        let (channel, ending) = match session.mode {
            Mode::Headless => {
                argv.extend(HEADLESS.map(str::to_owned));
                (Channel::Lines(Lines::Turns), Ending::EndOfInput)
            }
            Mode::Terminal => match settings(request) {
                Some(_) => {
                    arguments::take_settings(&mut arguments);
                    argv.extend(["--settings".to_owned(), format!("{}/{SETTINGS}", request.folder)]);
                    (Channel::Tty(Tty::Hooks), Ending::Hangup)
                }
                None => (Channel::Tty(Tty::Nothing), Ending::Hangup),
            },
        };
        if let Some(origin) = request.forks() {
            // By its id a conversation is found only from the folder in which it began; by its file, from any folder.
            let elsewhere = |file: &&String| !self.was_begun_in(Path::new(file), &session.cwd);
            let name = origin.transcript.as_ref().filter(elsewhere).unwrap_or(&origin.native_id);
            argv.extend(["--resume".to_owned(), name.clone(), "--fork-session".to_owned()]);
        }
        argv.push(if request.resume { "--resume" } else { "--session-id" }.to_owned());
        argv.push(request.native_id.to_owned());
        if let Some(model) = &session.model {
            argv.extend(["--model".to_owned(), model.clone()]);
        }
        if session.read_only {
            argv.extend(READ_ONLY.map(str::to_owned));
        }
        argv.extend(arguments);
        Launch {
            argv,
            plan: Plan {
                channel,
                keep: session.keep,
                ending,
                linger_ms: request.linger_ms,
                rules: ostler_core::rules::Rules::default(),
            },
            native_id: Some(request.native_id.to_owned()),
            variables: Vec::new(),
        }
    }

    fn reports_cost(&self, mode: Mode) -> bool {
        mode == Mode::Headless
    }

    // In a terminal through the hooks that we add for the run.
    fn reports_turns(&self, _mode: Mode) -> bool {
        true
    }

    fn can_only_read(&self) -> bool {
        true
    }

    fn named_conversation(&self, arguments: &[String]) -> Option<(String, Vec<String>)> {
        conversation_arguments::behind(
            arguments,
            &["--resume", "-r"],
            "--fork-session",
            conversation_arguments::is_uuid,
        )
    }

    fn conflicts(&self, arguments: &[String]) -> Option<&'static str> {
        let given = |word: &str| arguments.iter().any(|argument| argument.split('=').next() == Some(word));
        if given("--session-id") {
            return Some("ostler sets the id of the conversation itself; remove --session-id");
        }
        let newest = given("--continue") || given("-c");
        newest.then_some(
            "which conversation? For one of ostler: ostler resume ID; for another: -- --resume ID with another",
        )
    }

    fn files(&self, request: &Launching<'_>) -> Vec<(&'static str, Vec<u8>)> {
        let settings = settings(request).filter(|_| request.session.mode == Mode::Terminal);
        settings.map(|settings| (SETTINGS, settings.to_string().into_bytes())).into_iter().collect()
    }
}

impl Speak for Claude {
    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(StreamJson::default())
    }

    fn hooks(&self) -> Option<Box<dyn Decoder>> {
        Some(Box::new(hooks::Hooks::default()))
    }

    fn message(&self, message: &crate::speak::Message<'_>) -> Vec<u8> {
        stream_json::message(message.id, message.text)
    }

    fn interrupt(&self, _native_id: &str, id: &str) -> Option<Vec<u8>> {
        Some(stream_json::interrupt(id))
    }

    /// Escape, which also closes a question.
    fn interrupt_keys(&self) -> Option<Vec<u8>> {
        Some(b"\x1b".to_vec())
    }

    /// The key that interrupts a turn also closes a dialog.
    fn close_dialog_keys(&self) -> Option<Vec<u8>> {
        self.interrupt_keys()
    }

    fn doing(&self, record: &[u8]) -> Option<Doing> {
        hooks::doing(record)
    }

    fn answer(&self, ask: &Ask, answer: &Answer) -> Option<Vec<u8>> {
        Some(stream_json::answer(ask, answer))
    }

    fn longer(&self, ask: &Ask) -> Option<String> {
        stream_json::longer(ask)
    }
}

impl Transcript for Claude {
    fn costs_record(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        set("CLAUDE_CONFIG_DIR").or_else(|| set("HOME")).map(|folder| format!("{folder}/.claude.json"))
    }

    fn cost_in(&self, record: &[u8], cwd: &str, native_id: &str, left: bool) -> Option<f64> {
        turn_usage::cost(record, cwd, native_id, left)
    }

    fn conversations_folder(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        config_folder(variable)
    }

    fn transcript(&self, native_id: &str, cwd: &str, variable: &dyn Fn(&str) -> Option<String>) -> Option<Location> {
        config_folder(variable).map(|folder| Location::At(stream_json::transcript(&folder, cwd, native_id)))
    }

    fn begins_with(&self, line: &[u8]) -> bool {
        stream_json::is_message(line)
    }

    fn recording(&self) -> Option<Box<dyn Recording>> {
        Some(Box::new(stream_json::recorded::Transcript::default()))
    }

    fn said_in(&self, line: &[u8]) -> Option<String> {
        stream_json::recorded::said_in(line)
    }
}

impl Saved for Claude {
    fn count<'a>(&self, marks: &'a [String]) -> Option<Box<dyn Count + 'a>> {
        turn_usage::Counted::new(marks).map(|count| Box::new(count) as Box<dyn Count>)
    }

    fn mark_of_words(&self, text: &str) -> String {
        saved::words(text)
    }

    fn remove_found(&self, line: &[u8], wanted: &mut Vec<&str>) {
        stream_json::remove_found(line, wanted);
    }

    /// In a terminal our messages have no ids; one line is not enough to recognise their marks.
    fn search<'a>(&'a self, marks: &'a [String]) -> Box<dyn Search + 'a> {
        if marks.iter().any(|mark| saved::is_mark(mark)) {
            Box::new(saved::Saved::new(marks))
        } else {
            Box::new(LineSearch::new(self, marks))
        }
    }
}

/// The name of the settings file in the folder of a run. A file and not an argument: the person's own settings may
/// contain secrets, and every user who can list processes sees arguments.
const SETTINGS: &str = "settings.json";

/// The settings of a run in a terminal: the person's and our hooks. If the person gave several, claude uses the last.
fn settings(request: &Launching<'_>) -> Option<serde_json::Value> {
    let theirs = arguments::take_settings(&mut request.session.arguments.clone());
    let text = match &theirs {
        Some(text) if text.trim_start().starts_with('{') => theirs,
        Some(path) => Some((request.file)(path)?),
        None => None,
    };
    hooks::settings(text.as_deref(), request.own_binary, request.folder)
}

/// Where claude keeps its conversations.
fn config_folder(variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    set("CLAUDE_CONFIG_DIR").or_else(|| set("HOME").map(|home| format!("{home}/.claude")))
}
