//! The built-in demo agent: a child process of our own binary that speaks the same lines as Claude Code.

use crate::acp::adapters::Behind;
use crate::claude::saved;
use crate::command::typed;
use crate::decoder::Decoder;
use crate::installed::Installed;
use crate::launch::{Launch, Launcher, Launching};
use crate::ownership::Ownership;
use crate::recorded::Recording;
use crate::repair::Repair;
use crate::saved::{LineSearch, Saved, Search};
use crate::speak::{Answer, Keys, Speak};
use crate::stored::Stored;
use crate::stream_json::{self, StreamJson};
use crate::transcript::{Location, Transcript};
use crate::{Agent, conversation_arguments};
use ostler_core::fact::Ask;
use ostler_core::record::{Channel, Ending, Lines, Mode, Plan, Tty};

pub struct Demo;

/// The argument that makes our binary the demo agent.
pub const ENTRY: &str = "__demo";

impl Behind for Demo {}

impl Installed for Demo {}

impl Ownership for Demo {}

impl Stored for Demo {
    fn copies_elsewhere(&self) -> bool {
        true
    }

    fn copies_are_files(&self) -> bool {
        true
    }
}

impl Repair for Demo {}

impl Agent for Demo {
    fn name(&self) -> &'static str {
        "demo"
    }
}

impl Launcher for Demo {
    fn launch(&self, request: &Launching<'_>) -> Launch {
        let session = request.session;
        let mut argv = vec![request.own_binary.to_owned(), ENTRY.to_owned()];
        argv.push(if request.resume { "--resume" } else { "--session-id" }.to_owned());
        argv.push(request.native_id.to_owned());
        if let Some(origin) = request.forks() {
            argv.extend(["--fork".to_owned(), origin.native_id.clone()]);
        }
        match session.mode {
            Mode::Terminal => argv.push("--screen".to_owned()),
            Mode::Headless => argv.push("--partial".to_owned()),
        }
        if session.attended && session.mode == Mode::Headless {
            argv.push("--ask".to_owned());
        }
        if session.read_only {
            argv.push("--read-only".to_owned());
        }
        argv.extend(session.arguments.iter().cloned());
        let (channel, ending) = match session.mode {
            Mode::Headless => (Channel::Lines(Lines::Turns), Ending::EndOfInput),
            Mode::Terminal => (Channel::Tty(Tty::Nothing), Ending::Hangup),
        };
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

    fn can_only_read(&self) -> bool {
        true
    }

    fn named_conversation(&self, arguments: &[String]) -> Option<(String, Vec<String>)> {
        conversation_arguments::behind(arguments, &["--resume"], "--session-id", conversation_arguments::is_uuid)
    }
}

impl Speak for Demo {
    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(StreamJson::default())
    }

    fn message(&self, message: &crate::speak::Message<'_>) -> Vec<u8> {
        stream_json::message(message.id, message.text)
    }

    fn keys(&self, text: &str) -> Keys {
        Keys { at_once: typed(text), after_a_pause: Vec::new() }
    }

    fn interrupt(&self, _native_id: &str, id: &str) -> Option<Vec<u8>> {
        Some(stream_json::interrupt(id))
    }

    fn answer(&self, ask: &Ask, answer: &Answer) -> Option<Vec<u8>> {
        Some(stream_json::answer(ask, answer))
    }

    fn longer(&self, ask: &Ask) -> Option<String> {
        stream_json::longer(ask)
    }
}

impl Transcript for Demo {
    fn conversations_folder(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        home(variable)
    }

    fn transcript(&self, native_id: &str, cwd: &str, variable: &dyn Fn(&str) -> Option<String>) -> Option<Location> {
        home(variable).map(|home| Location::At(stream_json::transcript(&home, cwd, native_id)))
    }

    fn recording(&self) -> Option<Box<dyn Recording>> {
        Some(Box::new(stream_json::recorded::Transcript::default()))
    }

    fn said_in(&self, line: &[u8]) -> Option<String> {
        stream_json::recorded::said_in(line)
    }
}

impl Saved for Demo {
    fn mark_of_words(&self, text: &str) -> String {
        saved::words(text)
    }

    fn remove_found(&self, line: &[u8], wanted: &mut Vec<&str>) {
        stream_json::remove_found(line, wanted);
    }

    /// Its transcript is like claude's; messages that were typed have no id of ours in it.
    fn search<'a>(&'a self, marks: &'a [String]) -> Box<dyn Search + 'a> {
        if marks.iter().any(|mark| saved::is_mark(mark)) {
            Box::new(saved::Saved::new(marks))
        } else {
            Box::new(LineSearch::new(self, marks))
        }
    }
}

/// Where the demo agent keeps its own files.
fn home(variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    set("OSTLER_DEMO_HOME")
        .or_else(|| set("XDG_DATA_HOME").map(|data| format!("{data}/ostler-demo")))
        .or_else(|| set("HOME").map(|home| format!("{home}/.local/share/ostler-demo")))
}
