//! Claude Code. Headless it speaks [`crate::stream_json`] both ways, and takes further messages in one process; in a
//! terminal it is a program like any other.

use crate::stream_json::{self, StreamJson};
use crate::{Agent, Answer, Decoder, Launch, Launching, Whereabouts};
use ostler_core::fact::Ask;
use ostler_core::record::{Ending, Mode, Plan, Speaks};

pub struct Claude;

/// What headless mode needs. Permissions are asked over the same lines, so that whoever can answer is found by us; text
/// comes as it is written, so that whoever follows sees it.
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

impl Agent for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    /// Installed without its scripts, the npm package's `claude` only says so; the program is in a package beside it.
    fn beside_its_launcher(&self) -> Vec<String> {
        let short = if std::env::consts::ARCH == "aarch64" { "arm64" } else { "x64" };
        vec![format!("../claude-code-linux-{short}/claude")]
    }

    fn launch(&self, request: &Launching<'_>) -> Launch {
        let session = request.session;
        let mut argv = vec!["claude".to_owned()];
        let (speaks, ending) = match session.mode {
            Mode::Headless => {
                argv.extend(HEADLESS.map(str::to_owned));
                (Speaks::Turns, Ending::EndOfInput)
            }
            Mode::Terminal => (Speaks::Bytes, Ending::Hangup),
        };
        argv.push(if request.resume { "--resume" } else { "--session-id" }.to_owned());
        argv.push(request.native_id.to_owned());
        if let Some(model) = &session.model {
            argv.extend(["--model".to_owned(), model.clone()]);
        }
        argv.extend(session.arguments.iter().cloned());
        Launch {
            argv,
            plan: Plan { mode: session.mode, keep: session.keep, speaks, ending, linger_ms: request.linger_ms },
            native_id: Some(request.native_id.to_owned()),
            variables: Vec::new(),
        }
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(StreamJson::default())
    }

    fn message(&self, id: &str, text: &str) -> Vec<u8> {
        stream_json::message(id, text)
    }

    fn interrupt(&self, id: &str) -> Option<Vec<u8>> {
        Some(stream_json::interrupt(id))
    }

    fn answer(&self, ask: &Ask, answer: &Answer) -> Option<Vec<u8>> {
        Some(stream_json::answer(ask, answer))
    }

    fn transcript(&self, native_id: &str, cwd: &str, variable: &dyn Fn(&str) -> Option<String>) -> Option<Whereabouts> {
        config_folder(variable).map(|folder| Whereabouts::At(stream_json::transcript(&folder, cwd, native_id)))
    }

    fn strike(&self, line: &[u8], wanted: &mut Vec<&str>) {
        stream_json::strike(line, wanted);
    }
}

/// Where claude keeps its conversations.
fn config_folder(variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    set("CLAUDE_CONFIG_DIR").or_else(|| set("HOME").map(|home| format!("{home}/.claude")))
}
