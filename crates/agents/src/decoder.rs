//! Understanding what an agent prints: lines in, facts out.

use crate::Agent;
use ostler_core::fact::{Fact, Tokens, TurnEnd, Verdict};
use ostler_core::outcome::{Exit, signal_name};
use ostler_core::record::Speaks;
use serde_json::Value;

/// Understands an agent's standard output, line by line.
pub trait Decoder {
    /// One line without its newline; what it means is added to `facts`.
    fn line(&mut self, line: &[u8], facts: &mut Vec<Fact>);

    /// What the conversation has used before this run, for agents who count from its beginning.
    fn used_before(&mut self, tokens: Tokens) {
        let _ = tokens;
    }

    /// The agent's names for the messages of the turn that is not over yet.
    fn messages_so_far(&self) -> Vec<String>;

    /// What it remembers of the running turn, for another decoder that goes on from here. `None`: that one has to begin where
    /// the turn begins.
    fn memory(&self) -> Option<Value> {
        None
    }

    /// Goes on with what another decoder remembered. False: it cannot, and is as it was.
    fn remember_all(&mut self, memory: &Value) -> bool {
        let _ = memory;
        false
    }

    /// How the turn went of an agent whose process has ended without saying so. `complaint`: what it said beside the
    /// conversation as it ended.
    fn turn_end_at_exit(&mut self, exit: Exit, complaint: Option<&str>) -> TurnEnd {
        TurnEnd { messages: self.messages_so_far(), ..cut_off(exit, complaint) }
    }

    /// What the agent's record of its own process adds (see [`Ownership::own_record`](crate::ownership::Ownership::own_record)). `now_ms`: milliseconds since 1970.
    fn own_record(&mut self, record: &[u8], now_ms: u64) -> OwnRecord {
        let _ = (record, now_ms);
        OwnRecord::default()
    }
}

/// For a decoder all of whose fields are what it remembers of the turn.
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

/// Of what a turn has said so far another decoder is told the newest: a transcript is written in order, and anyone who reads on
/// with it is a reader that finds a turn ended, of which the keeper knows all.
pub(crate) fn newest<S: serde::Serializer>(said: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    const NEWEST: usize = 200;
    serializer.collect_seq(&said[said.len().saturating_sub(NEWEST)..])
}

/// What an agent's record of its own process tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnRecord {
    pub facts: Vec<Fact>,
    /// It may tell more then, although it has not changed.
    pub again_in_ms: Option<u64>,
}

/// The end of a turn that ended with its process.
pub(crate) fn cut_off(exit: Exit, complaint: Option<&str>) -> TurnEnd {
    let reason = match (exit.code, exit.signal) {
        (Some(code), _) => explained(format!("the agent exited with {code} before the end of its turn"), complaint),
        (None, Some(signal)) => format!("the agent was killed by {}", signal_name(signal)),
        (None, None) => "the agent is gone; how it ended is unknown".to_owned(),
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

/// What happened, and why by the agent's own complaint.
pub(crate) fn explained(what: String, complaint: Option<&str>) -> String {
    complaint.map_or(what.clone(), |why| format!("{what}: {why}"))
}

/// Where an agent tells us what happens to it, below the folder of its run, and a reader for that. `None`: nowhere.
#[must_use]
pub fn agent_feed(agent: &dyn Agent, speaks: Speaks) -> Option<(&'static str, Box<dyn Decoder>)> {
    match speaks {
        Speaks::Bytes => None,
        Speaks::Turns | Speaks::OneTurn => Some(("out", agent.decoder())),
        Speaks::Hooks => agent.hooks().map(|decoder| ("hooks", decoder)),
    }
}
