//! The user's own agents: `[agents.NAME]` in config.toml says which command it is, whether it draws on a terminal or
//! speaks a protocol, and how it is asked to exit. Without a protocol it is kept like a command; only its name and the
//! way to end it are its own.

use crate::rules;
use ostler_core::id::is_name;
use ostler_core::record::{Ending, Mode};
use ostler_core::rules::Rules;
use serde::Deserialize;
use std::collections::BTreeMap;

/// One of the user's own agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnAgent {
    /// The program and its first arguments; never empty.
    pub command: Vec<String>,
    /// With a terminal or without.
    pub mode: Mode,
    /// How ostler speaks with it.
    pub protocol: Protocol,
    end: Way,
}

/// What its input and output mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// ostler does not interpret them.
    None,
    /// The Agent Client Protocol: it takes prompts, asks, and says when it is done.
    Acp,
}

impl Protocol {
    /// The built-in agent that is used for it.
    pub fn agent(self) -> &'static str {
        match self {
            Protocol::None => "command",
            Protocol::Acp => "acp",
        }
    }
}

/// How it is asked to exit, as configured: independent of whether it has a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Way {
    /// As any command.
    Usual,
    Signal(Ending),
    EndOfInput,
    Text(String),
}

/// The section as it is written in the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    command: Option<Vec<String>>,
    mode: Option<Mode>,
    protocol: Option<ProtocolWord>,
    end: Option<EndWord>,
    end_text: Option<String>,
    restart: Option<String>,
    timeout: Option<String>,
    turn_timeout: Option<String>,
    budget: Option<f64>,
    max_turns: Option<u32>,
    on_limit: Option<String>,
}

impl Written {
    /// The rules of its sessions.
    fn rules(&self) -> rules::Written {
        let Written { restart, timeout, turn_timeout, budget, max_turns, on_limit, .. } = self.clone();
        rules::Written { restart, timeout, turn_timeout, budget, max_turns, on_limit }
    }

    /// Whether only rules are set, as for an agent that ostler knows.
    fn has_only_rules(&self) -> bool {
        self.command.is_none()
            && self.mode.is_none()
            && self.protocol.is_none()
            && self.end.is_none()
            && self.end_text.is_none()
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
enum ProtocolWord {
    #[serde(rename = "acp")]
    Acp,
}

#[derive(Clone, Copy, Debug, Deserialize)]
enum EndWord {
    #[serde(rename = "SIGTERM")]
    Terminate,
    #[serde(rename = "SIGINT")]
    Interrupt,
    #[serde(rename = "SIGHUP")]
    Hangup,
    #[serde(rename = "stdin")]
    EndOfInput,
}

impl OwnAgent {
    /// How to ask it to exit in this mode; `None`: as any command.
    pub fn ending(&self, mode: Mode) -> Option<Ending> {
        match (&self.end, mode) {
            (Way::Usual, _) => None,
            (Way::Signal(ending), _) => Some(ending.clone()),
            (Way::EndOfInput, Mode::Headless) => Some(Ending::EndOfInput),
            // A terminal cannot be closed in one direction only; this key (Ctrl-D) is what a person would press.
            (Way::EndOfInput, Mode::Terminal) => Some(Ending::Typed { keys: "\u{4}".to_owned() }),
            (Way::Text(text), Mode::Headless) => Some(Ending::Typed { keys: format!("{text}\n") }),
            (Way::Text(text), Mode::Terminal) => Some(Ending::Typed { keys: format!("{text}\r") }),
        }
    }
}

/// The user's own agents, and the rules of these and of other agents, by name.
#[derive(Debug, Default)]
pub struct Agents {
    /// The user's own agents.
    pub own: BTreeMap<String, OwnAgent>,
    /// The rules of an agent's sessions.
    pub rules: BTreeMap<String, Rules>,
}

/// Checks what was written; the error is a text for the user.
pub fn check(written: BTreeMap<String, Written>) -> Result<Agents, String> {
    let mut agents = Agents::default();
    for (name, written) in written {
        let rules = written.rules().check().map_err(|words| format!("[agents.{name}] {words}"))?;
        if !rules.is_none() {
            agents.rules.insert(name.clone(), rules);
        }
        if !(written.has_only_rules() && ostler_agents::find(&name).is_some()) {
            let own = check_one(&name, written)?;
            agents.own.insert(name, own);
        }
    }
    Ok(agents)
}

fn check_one(name: &str, written: Written) -> Result<OwnAgent, String> {
    let wrong = |words: &str| Err(format!("[agents.{name}] {words}"));
    // A session's name may contain spaces; an agent is one word of a command line.
    if !is_name(name) || name.contains(' ') {
        return wrong("is not a valid name; use letters, digits, dots, dashes and underscores");
    }
    if ostler_agents::find(name).is_some() {
        return wrong(
            "is the name of a built-in agent; choose another name, or set only its rules (timeout, budget, …)",
        );
    }
    let command = written.command.unwrap_or_default();
    if command.first().is_none_or(String::is_empty) {
        return wrong("has no program (example: command = [\"prog\", \"argument\"])");
    }
    let protocol = match written.protocol {
        None => Protocol::None,
        Some(ProtocolWord::Acp) if written.mode == Some(Mode::Terminal) => {
            return wrong("uses a protocol and has no terminal; remove mode");
        }
        Some(ProtocolWord::Acp) if written.end_text.is_some() => {
            return wrong("uses a protocol; remove end_text");
        }
        Some(ProtocolWord::Acp) => Protocol::Acp,
    };
    let end = match (written.end, written.end_text) {
        (Some(_), Some(_)) => return wrong("has both end and end_text; remove one of them"),
        (None, Some(text)) if text.is_empty() => {
            return wrong("has an empty end_text; set it to the text that ends the agent");
        }
        (None, Some(text)) => Way::Text(text),
        (None, None) => Way::Usual,
        (Some(EndWord::Terminate), None) => Way::Signal(Ending::Terminate),
        (Some(EndWord::Interrupt), None) => Way::Signal(Ending::Interrupt),
        (Some(EndWord::Hangup), None) => Way::Signal(Ending::Hangup),
        (Some(EndWord::EndOfInput), None) => Way::EndOfInput,
    };
    Ok(OwnAgent { command, mode: written.mode.unwrap_or(Mode::Headless), protocol, end })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<OwnAgent, String> {
        let written: Written = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        check_one("mine", written)
    }

    #[test]
    fn an_ending_is_what_its_mode_can_do() {
        let typed = |keys: &str| Some(Ending::Typed { keys: keys.to_owned() });
        let agent = read("command = ['aider']\nend_text = '/quit'").unwrap();
        assert_eq!(agent.mode, Mode::Headless);
        assert_eq!((agent.ending(Mode::Headless), agent.ending(Mode::Terminal)), (typed("/quit\n"), typed("/quit\r")));
        let agent = read("command = ['aider']\nmode = 'terminal'\nend = 'stdin'").unwrap();
        assert_eq!(agent.mode, Mode::Terminal);
        assert_eq!(
            (agent.ending(Mode::Headless), agent.ending(Mode::Terminal)),
            (Some(Ending::EndOfInput), typed("\u{4}"))
        );
        assert_eq!(read("command = ['x']\nend = 'SIGINT'").unwrap().ending(Mode::Terminal), Some(Ending::Interrupt));
        assert_eq!(read("command = ['x']").unwrap().ending(Mode::Terminal), None);
    }

    #[test]
    fn invalid_arguments_are_refused_with_a_reason() {
        for (text, words) in [
            ("command = []", "has no program"),
            ("command = ['']", "has no program"),
            ("command = ['x']\nend = 'stdin'\nend_text = 'q'", "both end and end_text"),
            ("command = ['x']\nend_text = ''", "empty end_text"),
            ("command = ['x']\nend = 'SIGKILL'", "SIGKILL"),
            ("command = ['x']\ncomand = 'y'", "comand"),
            ("command = ['x']\nprotocol = 'mcp'", "mcp"),
            ("command = ['x']\nprotocol = 'acp'\nmode = 'terminal'", "remove mode"),
            ("command = ['x']\nprotocol = 'acp'\nend_text = 'q'", "end_text"),
        ] {
            let refused = read(text).unwrap_err();
            assert!(refused.contains(words), "{text:?}: {refused}");
        }
        let own = |name: &str| check_one(name, toml::from_str("command = ['x']").unwrap());
        assert!(own("claude").is_err() && own("command").is_err() && own("a b").is_err());
    }
}
