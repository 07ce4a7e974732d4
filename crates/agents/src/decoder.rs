//! Interprets what an agent prints: lines in, facts out.

use crate::Agent;
use ostler_core::fact::{Fact, Tokens, TurnEnd, Verdict};
use ostler_core::outcome::{Exit, signal_name};
use ostler_core::record::Speaks;
use serde_json::Value;

/// Interprets an agent's standard output, line by line.
pub trait Decoder {
    /// One line without its newline; its facts are added to `facts`.
    fn line(&mut self, line: &[u8], facts: &mut Vec<Fact>);

    /// What the conversation has used before this run, for agents that count from its beginning.
    fn used_before(&mut self, tokens: Tokens) {
        let _ = tokens;
    }

    /// The agent's ids for the messages of the turn that has not ended yet.
    fn messages_so_far(&self) -> Vec<String>;

    /// What the decoder remembers of the running turn, for another decoder that continues here. `None`: the other one
    /// has to begin where the turn begins.
    fn memory(&self) -> Option<Value> {
        None
    }

    /// Continues with what another decoder remembered. Returns false, and changes nothing, if it cannot.
    fn remember_all(&mut self, memory: &Value) -> bool {
        let _ = memory;
        false
    }

    /// How the turn ended when the process has exited without reporting it. `complaint`: what the agent printed at its
    /// exit outside the conversation.
    fn turn_end_at_exit(&mut self, exit: Exit, complaint: Option<&str>) -> TurnEnd {
        TurnEnd { messages: self.messages_so_far(), ..cut_off(exit, complaint) }
    }

    /// What the agent's record of its own process adds (see
    /// [`Ownership::own_record`](crate::ownership::Ownership::own_record)). `now_ms`: milliseconds since 1970.
    fn own_record(&mut self, record: &[u8], now_ms: u64) -> OwnRecord {
        let _ = (record, now_ms);
        OwnRecord::default()
    }
}

/// For a decoder that remembers all of its fields.
macro_rules! remembers_its_turn {
    () => {
        fn memory(&self) -> Option<serde_json::Value> {
            serde_json::to_value(self).ok()
        }

        fn remember_all(&mut self, memory: &serde_json::Value) -> bool {
            <Self as serde::Deserialize>::deserialize(memory).map(|other| *self = other).is_ok()
        }
    };
}
pub(crate) use remembers_its_turn;

/// Only the newest texts of a turn are passed on to another decoder: a transcript is written in order. Only a reader
/// that finds a turn ended continues with them, and the keeper has all texts of that turn.
pub(crate) fn newest<S: serde::Serializer>(said: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    const NEWEST: usize = 200;
    serializer.collect_seq(&said[said.len().saturating_sub(NEWEST)..])
}

/// What an agent's record of its own process shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnRecord {
    pub facts: Vec<Fact>,
    /// When to read the record again: it may show more then, although it has not changed.
    pub again_in_ms: Option<u64>,
}

/// The end of a turn that ended with its process.
pub(crate) fn cut_off(exit: Exit, complaint: Option<&str>) -> TurnEnd {
    let reason = match (exit.code, exit.signal) {
        (Some(code), _) => explained(format!("the agent exited with {code} before the end of its turn"), complaint),
        (None, Some(signal)) => format!("the agent was killed by {}", signal_name(signal)),
        (None, None) => "the agent has exited; how it ended is unknown".to_owned(),
    };
    TurnEnd {
        verdict: Verdict::Failed,
        text: None,
        reason: Some(reason),
        tokens: None,
        cost_usd: None,
        messages: Vec::new(),
    }
}

/// What happened, with the agent's own complaint as the reason.
pub(crate) fn explained(what: String, complaint: Option<&str>) -> String {
    complaint.map_or(what.clone(), |why| format!("{what}: {why}"))
}

/// The file below the folder of its run to which an agent reports, and a reader for it. `None`: it does not report.
#[must_use]
pub fn agent_feed(agent: &dyn Agent, speaks: Speaks) -> Option<(&'static str, Box<dyn Decoder>)> {
    match speaks {
        Speaks::Bytes => None,
        Speaks::Turns | Speaks::OneTurn => Some(("out", agent.decoder())),
        Speaks::Hooks => agent.hooks().map(|decoder| ("hooks", decoder)),
    }
}
