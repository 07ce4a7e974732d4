//! What an agent tells, line by line, in a file of its run: facts, each with the position behind its line. Keeper and
//! readers read it through here, so that they understand the same.

use crate::StoreError;
use crate::look::read_from;
use ostler_agents::lines::{Line, Lines};
use ostler_agents::{Decoder, OwnRecord};
use ostler_core::fact::{Fact, TurnEnd};
use ostler_core::life::State;
use ostler_core::outcome::Exit;
use ostler_sys::dir::Dir;

pub struct Telling {
    name: &'static str,
    lines: Lines,
    decoder: Box<dyn Decoder>,
    position: u64,
    /// Facts up to here are known already.
    known: u64,
}

impl Telling {
    /// Reads `name` from this position on, which may be before what the state knows: what came before in the same turn helps
    /// to understand what comes.
    #[must_use]
    pub fn from(position: u64, name: &'static str, mut decoder: Box<dyn Decoder>, state: &State) -> Telling {
        decoder.used_before(state.tokens_before);
        Telling { name, lines: Lines::from(position), decoder, position, known: state.understood }
    }

    /// New facts, each with the position behind its line.
    pub fn read(&mut self, run: &Dir) -> Result<Vec<(u64, Fact)>, StoreError> {
        let mut found = Vec::new();
        let mut facts = Vec::new();
        let (lines, decoder, known) = (&mut self.lines, &mut self.decoder, self.known);
        read_from(run, self.name, &mut self.position, |bytes| {
            lines.feed(bytes, |line, end| {
                if let Line::Whole(line) = line {
                    decoder.line(line, &mut facts);
                }
                found.extend(facts.drain(..).filter(|_| end > known).map(|fact| (end, fact)));
            });
        })?;
        Ok(found)
    }

    /// How the turn went of an agent that has ended without saying so.
    pub fn turn_end_at_exit(&mut self, exit: Exit) -> TurnEnd {
        self.decoder.turn_end_at_exit(exit)
    }

    /// The agent's names for what it has said in a turn that is not over.
    #[must_use]
    pub fn messages_so_far(&self) -> Vec<String> {
        self.decoder.messages_so_far()
    }

    /// What the agent's record of its own process adds.
    pub fn own_record(&mut self, record: &[u8], now_ms: u64) -> OwnRecord {
        self.decoder.own_record(record, now_ms)
    }
}
