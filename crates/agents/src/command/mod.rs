//! Any command. Its output is not interpreted: its process is its turn, and its exit code decides.

use crate::Agent;
use crate::acp::adapters::Behind;
use crate::decoder::Decoder;
use crate::installed::Installed;
use crate::launch::{Launch, Launcher, Launching};
use crate::ownership::Ownership;
use crate::repair::Repair;
use crate::saved::Saved;
use crate::speak::{Keys, Speak};
use crate::stored::Stored;
use crate::transcript::Transcript;
use ostler_core::fact::Fact;
use ostler_core::record::{Channel, Ending, Mode, Plan};

pub struct Command;

impl Behind for Command {}

impl Installed for Command {}

impl Ownership for Command {}

impl Stored for Command {}

impl Repair for Command {}

impl Agent for Command {
    fn name(&self) -> &'static str {
        "command"
    }
}

impl Launcher for Command {
    fn launch(&self, request: &Launching<'_>) -> Launch {
        let mode = request.session.mode;
        Launch {
            argv: request.session.arguments.clone(),
            plan: Plan {
                channel: Channel::of_program(mode),
                keep: false,
                // An interactive shell ignores SIGTERM, but exits when its terminal is closed.
                ending: match mode {
                    Mode::Headless => Ending::Terminate,
                    Mode::Terminal => Ending::Hangup,
                },
                linger_ms: request.linger_ms,
                rules: ostler_core::rules::Rules::default(),
            },
            native_id: None,
            variables: Vec::new(),
        }
    }
}

impl Speak for Command {
    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Silent)
    }

    /// Typed as a person would: the line and the return key.
    fn message(&self, message: &crate::speak::Message<'_>) -> Vec<u8> {
        typed(message.text)
    }

    fn keys(&self, text: &str) -> Keys {
        Keys { at_once: typed(text), after_a_pause: Vec::new() }
    }
}

impl Transcript for Command {}

impl Saved for Command {}

/// A line as a keyboard gives it: return is CR, and so are the line breaks inside.
#[must_use]
pub fn typed(text: &str) -> Vec<u8> {
    let mut keys = text.replace("\r\n", "\r").replace('\n', "\r").into_bytes();
    keys.push(b'\r');
    keys
}

/// A decoder for output that is not interpreted.
pub struct Silent;

impl Decoder for Silent {
    fn line(&mut self, _line: &[u8], _facts: &mut Vec<Fact>) {}

    fn messages_so_far(&self) -> Vec<String> {
        Vec::new()
    }
}
