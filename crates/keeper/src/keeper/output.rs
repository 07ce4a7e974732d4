//! What the agent said, line by line, as events for the life cycle.

use ostler_agents::lines::{Line, Lines};
use ostler_agents::{Agent, Decoder};
use ostler_core::fact::{Fact, TurnEnd};
use ostler_core::life::State;
use ostler_core::outcome::Exit;
use ostler_store::StoreError;
use ostler_store::look::read_from;
use ostler_sys::dir::Dir;

/// Reads `out` from the beginning of the running turn, so that a new keeper knows as much about it as the old one did.
pub struct Output {
    lines: Lines,
    decoder: Box<dyn Decoder>,
    position: u64,
    /// Facts up to here are in the journal.
    known: u64,
}

impl Output {
    pub fn new(agent: &dyn Agent, state: &State) -> Output {
        let mut decoder = agent.decoder();
        decoder.used_before(state.tokens_before);
        Output { lines: Lines::from(state.turn_out), decoder, position: state.turn_out, known: state.understood }
    }

    /// New facts, each with the position behind its line.
    pub fn read(&mut self, run: &Dir) -> Result<Vec<(u64, Fact)>, StoreError> {
        let mut found = Vec::new();
        let mut facts = Vec::new();
        let (lines, decoder, known) = (&mut self.lines, &mut self.decoder, self.known);
        read_from(run, "out", &mut self.position, |bytes| {
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
    pub fn messages_so_far(&self) -> Vec<String> {
        self.decoder.messages_so_far()
    }
}
