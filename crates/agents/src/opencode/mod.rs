//! opencode. One process per turn, and no event at its end: the exit of the process is the end of the turn.

mod agent_feed;
mod hooks;
mod installed;
mod output;
mod ownership;
mod recorded;
mod saved;
mod screen;
mod stored;

use crate::decoder::Decoder;
use crate::launch::{Launch, Launcher, Launching, one_turn, silent_terminal};
use crate::recorded::Recording;
use crate::repair::Repair;
use crate::saved::{Row, Saved};
use crate::speak::Speak;
use crate::transcript::Transcript;
use crate::{Agent, conversation_arguments, prompt};
use ostler_core::record::{Channel, Mode, Tty};

pub struct Opencode;

/// The permissions, which override all settings of the person and of the folder.
const PERMISSIONS: &str = "OPENCODE_PERMISSION";
const READ_ONLY: &str = r#"{"*":"deny","read":"allow","grep":"allow","glob":"allow","list":"allow"}"#;

impl Repair for Opencode {}

impl Agent for Opencode {
    fn name(&self) -> &'static str {
        "opencode"
    }
}

impl Launcher for Opencode {
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
        let mut variable: Vec<_> = agent_feed::variable(request).into_iter().collect();
        let feeds = !variable.is_empty();
        if session.read_only {
            variable.push((PERMISSIONS.to_owned(), READ_ONLY.to_owned()));
        }
        if session.mode == Mode::Terminal {
            let mut how = silent_terminal(argv, request);
            if feeds {
                how.plan.channel = Channel::Tty(Tty::Hooks);
            }
            return Launch { variables: variable, ..how };
        }
        Launch { variables: variable, ..one_turn(argv, request) }
    }

    fn files(&self, request: &Launching<'_>) -> Vec<(&'static str, Vec<u8>)> {
        match request.session.mode {
            // The file that the plugin writes to exists from the beginning, so that it can be watched.
            Mode::Terminal => {
                vec![
                    (agent_feed::PLUGIN_FILE, agent_feed::PLUGIN.as_bytes().to_vec()),
                    (agent_feed::TOLD_FILE, Vec::new()),
                ]
            }
            Mode::Headless => vec![(agent_feed::PLUGIN_FILE, agent_feed::NATIVE_ID_PLUGIN.as_bytes().to_vec())],
        }
    }

    fn reports_cost(&self, mode: Mode) -> bool {
        mode == Mode::Headless
    }

    // In a terminal through the plugin that we add for the run.
    fn reports_turns(&self, _mode: Mode) -> bool {
        true
    }

    fn can_only_read(&self) -> bool {
        true
    }

    fn named_conversation(&self, arguments: &[String]) -> Option<(String, Vec<String>)> {
        conversation_arguments::behind(arguments, &["--session", "-s"], "--fork", |id| id.starts_with("ses_"))
    }

    fn conflicts(&self, arguments: &[String]) -> Option<&'static str> {
        let given = |words: &[&str]| arguments.iter().any(|argument| words.contains(&argument.as_str()));
        // opencode chooses the conversation when it runs, and another session may use it.
        (given(&["--continue", "-c"]) && !given(&["--fork"])).then_some(
            "which conversation? For one of ostler: ostler resume ID; for another: -- --session ID with another",
        )
    }
}

impl Speak for Opencode {
    fn hooks(&self) -> Option<Box<dyn Decoder>> {
        Some(Box::new(hooks::Hooks::default()))
    }

    fn reports_in_a_file(&self) -> bool {
        true
    }

    fn prompt(&self) -> Option<fn(&prompt::Screen<'_>) -> prompt::Seen> {
        Some(screen::look)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(output::OpencodeLines::default())
    }

    fn message(&self, message: &crate::speak::Message<'_>) -> Vec<u8> {
        message.text.as_bytes().to_vec()
    }

    /// Escape, twice: after the first, opencode asks for the second. Sent as codes that are not the beginning of
    /// another key.
    fn interrupt_keys(&self) -> Option<Vec<u8>> {
        Some(b"\x1b[27u\x1b[27u".to_vec())
    }
}

impl Transcript for Opencode {
    fn conversations_folder(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let data = set("XDG_DATA_HOME").or_else(|| set("HOME").map(|home| format!("{home}/.local/share")));
        data.map(|data| format!("{data}/opencode"))
    }

    /// It chooses the id itself, and reports it when the conversation is in its database.
    fn keeps_what_it_names(&self) -> bool {
        true
    }

    fn database(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let data = set("XDG_DATA_HOME").or_else(|| set("HOME").map(|home| format!("{home}/.local/share")))?;
        match set("OPENCODE_DB") {
            None => Some(format!("{data}/opencode/opencode.db")),
            Some(memory) if memory == ":memory:" => None,
            Some(absolute) if absolute.starts_with('/') => Some(absolute),
            Some(name) => Some(format!("{data}/opencode/{name}")),
        }
    }

    fn recording(&self) -> Option<Box<dyn Recording>> {
        Some(Box::new(recorded::Rows))
    }
}

impl Saved for Opencode {
    /// The text itself: opencode's own id of a prompt is not in its output.
    fn mark(&self, _id: &str, text: &str) -> String {
        saved::prompt(text)
    }

    fn remove_found_in_row(&self, row: &Row<'_>, wanted: &mut Vec<&str>) {
        saved::remove_found(row, wanted);
    }
}
