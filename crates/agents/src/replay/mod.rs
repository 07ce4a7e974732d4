//! A recording of a real agent, played by a child process of our own binary. Everything that is particular to the
//! recorded agent is asked of that agent, so ostler treats a replay exactly like the agent itself.
//!
//! Only the home differs: a replay never writes to the conversations of the real agent.

use crate::Agent;
use crate::acp::adapters::Behind;
use crate::decoder::Decoder;
use crate::installed::Installed;
use crate::launch::{Launch, Launcher, Launching};
use crate::ownership::Ownership;
use crate::repair::Repair;
use crate::saved::{Saved, Search};
use crate::speak::{Answer, Keys, Message, Speak};
use crate::stored::Stored;
use crate::transcript::{Location, Transcript};
use ostler_core::fact::Ask;
use ostler_core::record::Session;
use std::sync::LazyLock;

/// Plays a recording of an agent.
pub struct Replay {
    name: &'static str,
    of: &'static dyn Agent,
    /// Whether a recording can hold its transcript, which must be text for that.
    saves: bool,
}

/// The argument that makes our binary play a recording.
pub const ENTRY: &str = "__replay";

/// The prefix of the file on a person's command line, and of the recorded agent in the name of this one.
pub const PREFIX: &str = "replay:";

/// One for each agent that is a program; made once.
static REPLAYS: LazyLock<Vec<Replay>> = LazyLock::new(|| {
    let replay = |of: &'static dyn Agent| Replay {
        name: format!("{PREFIX}{}", of.name()).leak(),
        of,
        saves: of.queries().is_none(),
    };
    crate::installed::programs().map(replay).collect()
});

/// The replay agent of this name, which includes [`PREFIX`].
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Agent> {
    REPLAYS.iter().find(|replay| replay.name == name).map(|replay| replay as &dyn Agent)
}

impl Behind for Replay {}

impl Installed for Replay {}

impl Ownership for Replay {}

impl Stored for Replay {}

impl Repair for Replay {}

impl Agent for Replay {
    fn name(&self) -> &'static str {
        self.name
    }
}

impl Launcher for Replay {
    /// The session's first argument is the recording.
    fn launch(&self, request: &Launching<'_>) -> Launch {
        let session = Session { arguments: Vec::new(), model: None, ..request.session.clone() };
        let how = self.of.launch(&Launching { session: &session, ..*request });
        let mut words = request.session.arguments.iter().cloned();
        let mut argv = vec![request.own_binary.to_owned(), ENTRY.to_owned()];
        argv.extend(words.next());
        argv.extend(["--conversation".to_owned(), request.native_id.to_owned()]);
        argv.extend(home(request.variable).into_iter().flat_map(|home| ["--home".to_owned(), home]));
        if let Some(Location::At(path)) = self.transcript(request.native_id, &request.session.cwd, request.variable) {
            argv.extend(["--transcript".to_owned(), path]);
        }
        argv.extend(words);
        Launch { argv, variables: Vec::new(), ..how }
    }
}

impl Speak for Replay {
    fn decoder(&self) -> Box<dyn Decoder> {
        self.of.decoder()
    }

    fn message(&self, message: &Message<'_>) -> Vec<u8> {
        self.of.message(message)
    }

    fn keys(&self, text: &str) -> Keys {
        self.of.keys(text)
    }

    fn interrupt(&self, native_id: &str, id: &str) -> Option<Vec<u8>> {
        self.of.interrupt(native_id, id)
    }

    fn answer(&self, ask: &Ask, answer: &Answer) -> Option<Vec<u8>> {
        self.of.answer(ask, answer)
    }

    fn longer(&self, ask: &Ask) -> Option<String> {
        self.of.longer(ask)
    }
}

impl Transcript for Replay {
    fn conversations_folder(&self, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        home(variable)
    }

    fn transcript(&self, native_id: &str, cwd: &str, variable: &dyn Fn(&str) -> Option<String>) -> Option<Location> {
        let home = home(variable).filter(|_| self.saves)?;
        self.of.transcript(native_id, cwd, &|name| (name == "HOME").then(|| home.clone()))
    }
}

impl Saved for Replay {
    fn mark(&self, id: &str, text: &str) -> String {
        self.of.mark(id, text)
    }

    fn remove_found(&self, line: &[u8], wanted: &mut Vec<&str>) {
        self.of.remove_found(line, wanted);
    }

    fn search<'a>(&'a self, marks: &'a [String]) -> Box<dyn Search + 'a> {
        self.of.search(marks)
    }

    fn search_conversation<'a>(&'a self, marks: &'a [String]) -> Box<dyn Search + 'a> {
        self.of.search_conversation(marks)
    }
}

/// Where replayed agents keep their files.
fn home(variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let data = set("XDG_DATA_HOME").or_else(|| set("HOME").map(|home| format!("{home}/.local/share")))?;
    Some(format!("{data}/ostler-replay"))
}
