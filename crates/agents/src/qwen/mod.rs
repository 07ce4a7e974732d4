//! Qwen Code. In headless mode it accepts further messages in one process, in the lines of [`crate::stream_json`]; in a
//! terminal it draws.
//!
//! Measured with 0.15.10, on a loaded machine:
//!
//! * Without an `initialize` request before the first message it reads only messages, and a tool that needs permission
//!   waits forever; end of input and SIGTERM do not end it then. A second `initialize` is answered like the first, so
//!   one is sent before each message, and it does not matter whether one was sent earlier.
//! * The reply was on disk at the end of the turn in 4 of 8 turns, and 75 ms later at the worst. SIGKILL at the end of
//!   the turn lost the reply 6 of 6 times, and 5 times the prompt. End of input saves both, and qwen exits with 0
//!   within a second.
//! * While it waits for a message, SIGINT and SIGTERM do not end it. In a turn it exits with 130 and keeps what it has
//!   said.
//! * Two processes can continue one conversation; messages to one of them are missing when the conversation is resumed.
//!   `--session-id` of a conversation that exists is refused. No file is held open between writes.

mod installed;
mod output;
mod recorded;
mod screen;
mod stored;

use crate::decoder::Decoder;
use crate::launch::{Launch, Launcher, Launching, silent_terminal};
use crate::recorded::Recording;
use crate::saved::Saved;
use crate::speak::{Answer, Speak};
use crate::stream_json::{self, folder_name};
use crate::transcript::{Location, Transcript};
use crate::{Agent, conversation_arguments, prompt};
use ostler_core::fact::Ask;
use ostler_core::record::{Channel, Ending, Lines, Mode, Plan};
use output::QwenLines;
use serde_json::json;

pub struct Qwen;

/// The program may start itself a second time and continue in the child. This variable keeps it in one process, whose
/// identity, lock and signals we have.
const ONE_PROCESS: (&str, &str) = ("QWEN_CODE_NO_RELAUNCH", "true");

const HEADLESS: [&str; 5] =
    ["--input-format", "stream-json", "--output-format", "stream-json", "--include-partial-messages"];

/// Plan mode is not used: it would end with a plan that needs approval.
const READ_ONLY: [&str; 4] =
    ["--approval-mode", "default", "--exclude-tools", "run_shell_command,edit,write_file,replace"];

impl Agent for Qwen {
    fn name(&self) -> &'static str {
        "qwen"
    }
}

impl Launcher for Qwen {
    fn launch(&self, request: &Launching<'_>) -> Launch {
        let session = request.session;
        let mut argv = vec!["qwen".to_owned()];
        if session.mode == Mode::Headless {
            argv.extend(HEADLESS.map(str::to_owned));
        }
        argv.push(if request.resume { "--resume" } else { "--session-id" }.to_owned());
        argv.push(request.native_id.to_owned());
        if session.read_only {
            argv.extend(READ_ONLY.map(str::to_owned));
        }
        argv.extend(session.model.iter().flat_map(|model| ["--model".to_owned(), model.clone()]));
        argv.extend(session.arguments.iter().cloned());
        let variables = vec![(ONE_PROCESS.0.to_owned(), ONE_PROCESS.1.to_owned())];
        let native_id = Some(request.native_id.to_owned());
        if session.mode == Mode::Terminal {
            return Launch { variables, native_id, ..silent_terminal(argv, request) };
        }
        let plan = Plan {
            channel: Channel::Lines(Lines::Turns),
            keep: session.keep,
            ending: Ending::EndOfInput,
            linger_ms: request.linger_ms,
            rules: ostler_core::rules::Rules::default(),
        };
        Launch { argv, plan, native_id, variables }
    }

    fn can_only_read(&self) -> bool {
        true
    }

    fn named_conversation(&self, arguments: &[String]) -> Option<(String, Vec<String>)> {
        conversation_arguments::behind(arguments, &["--resume", "-r"], "--session-id", conversation_arguments::is_uuid)
    }

    fn conflicts(&self, arguments: &[String]) -> Option<&'static str> {
        let given = |words: [&str; 2]| {
            arguments.iter().any(|argument| words.contains(&argument.split('=').next().unwrap_or_default()))
        };
        let newest = given(["--continue", "-c"]);
        let unnamed = given(["--resume", "-r"]) && self.named_conversation(arguments).is_none();
        (newest || unnamed).then_some(
            "which conversation? For one of ostler: ostler resume ID; for another: -- --resume ID with another",
        )
    }
}

impl Speak for Qwen {
    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(QwenLines::default())
    }

    fn message(&self, message: &crate::speak::Message<'_>) -> Vec<u8> {
        let request = json!({ "subtype": "initialize" });
        let opening =
            json!({ "type": "control_request", "request_id": format!("open-{}", message.id), "request": request });
        [format!("{opening}\n").into_bytes(), stream_json::message(message.id, message.text)].concat()
    }

    fn interrupt(&self, _native_id: &str, id: &str) -> Option<Vec<u8>> {
        Some(stream_json::interrupt(id))
    }

    fn prompt(&self) -> Option<fn(&prompt::Screen<'_>) -> prompt::Seen> {
        Some(screen::look)
    }

    /// Escape. A signal would end the process.
    fn interrupt_keys(&self) -> Option<Vec<u8>> {
        Some(b"\x1b".to_vec())
    }

    fn answer(&self, ask: &Ask, answer: &Answer) -> Option<Vec<u8>> {
        Some(stream_json::answer(ask, answer))
    }
}

impl Transcript for Qwen {
    fn conversations_folder(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        set("QWEN_RUNTIME_DIR").or_else(|| set("QWEN_HOME")).or_else(|| set("HOME").map(|home| format!("{home}/.qwen")))
    }

    fn transcript(&self, native_id: &str, cwd: &str, variable: &dyn Fn(&str) -> Option<String>) -> Option<Location> {
        let home = self.conversations_folder(variable)?;
        let project = folder_name(cwd);
        Some(Location::At(format!("{home}/projects/{project}/{}/{native_id}.jsonl", stored::CHATS)))
    }

    fn begins_with(&self, line: &[u8]) -> bool {
        recorded::is_message(line)
    }

    fn recording(&self) -> Option<Box<dyn Recording>> {
        Some(Box::new(recorded::Transcript))
    }

    fn said_in(&self, line: &[u8]) -> Option<String> {
        recorded::said_in(line)
    }
}

impl Saved for Qwen {
    /// Its transcript has other ids for messages, so the text itself is searched for.
    fn mark(&self, _id: &str, text: &str) -> String {
        text.to_owned()
    }

    fn remove_found(&self, line: &[u8], wanted: &mut Vec<&str>) {
        recorded::remove_found(line, wanted);
    }
}
