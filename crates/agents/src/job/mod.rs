//! A job: our own program, which drives other sessions. It is kept like a command: its process is its turn, and its
//! exit code decides. A person cannot name it as an agent, and it is not listed.

use crate::Agent;
use crate::acp::adapters::Behind;
use crate::command::{Silent, typed};
use crate::decoder::Decoder;
use crate::installed::Installed;
use crate::launch::{Launch, Launcher, Launching};
use crate::ownership::Ownership;
use crate::repair::Repair;
use crate::saved::Saved;
use crate::speak::Speak;
use crate::stored::Stored;
use crate::transcript::Transcript;
use ostler_core::record::{Channel, Ending, Plan};

/// The name of a job where other sessions have the name of their agent.
pub const NAME: &str = "job";

/// The argument that makes our binary the driver of a job.
pub const ENTRY: &str = "__job";

/// The file in the session's folder with the steps of a job, one JSON object per line.
pub const STEPS: &str = "job.jsonl";

/// The driver of a job.
pub struct Job;

/// The agent, by its name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Agent> {
    (name == NAME).then_some(&Job)
}

impl Behind for Job {}

impl Installed for Job {}

impl Ownership for Job {}

impl Stored for Job {}

impl Repair for Job {}

impl Transcript for Job {}

impl Saved for Job {}

impl Agent for Job {
    fn name(&self) -> &'static str {
        NAME
    }
}

impl Launcher for Job {
    /// Everything else that the driver needs is in the folder of its session, where a restarted driver finds it as
    /// well.
    fn launch(&self, request: &Launching<'_>) -> Launch {
        let kind = request.session.job.clone().unwrap_or_default();
        Launch {
            argv: vec![request.own_binary.to_owned(), ENTRY.to_owned(), kind, request.session.id.to_string()],
            plan: Plan {
                channel: Channel::Command,
                keep: false,
                ending: Ending::Terminate,
                linger_ms: request.linger_ms,
                rules: ostler_core::rules::Rules::default(),
            },
            native_id: None,
            variables: Vec::new(),
        }
    }
}

impl Speak for Job {
    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Silent)
    }

    fn message(&self, message: &crate::speak::Message<'_>) -> Vec<u8> {
        typed(message.text)
    }
}
