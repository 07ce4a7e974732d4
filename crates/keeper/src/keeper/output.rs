//! What the agent said, line by line, as events for the life cycle.

use ostler_agents::Agent;
use ostler_agents::reading::Reading;
use ostler_core::fact::{Fact, TurnEnd};
use ostler_core::life::State;
use ostler_core::outcome::Exit;
use ostler_store::StoreError;
use ostler_store::pieces::Pieces;
use ostler_sys::dir::Dir;

/// Reads `out` from the beginning of the running turn, so that a new keeper knows as much about it as the old one did.
pub struct Output {
    reading: Reading,
    position: u64,
    /// Facts up to here are in the journal.
    known: u64,
}

impl Output {
    pub fn new(agent: &dyn Agent, state: &State) -> Output {
        let mut decoder = agent.decoder();
        decoder.used_before(state.tokens_before());
        let reading = Reading::from(state.turn_out, decoder);
        Output { reading, position: state.turn_out, known: state.understood }
    }

    /// What there is to read now.
    pub fn pieces(&self, run: &Dir) -> Result<Option<Pieces>, StoreError> {
        Pieces::open(run, "out", self.position)
    }

    /// New facts of the next piece, each with the position behind its line; `None` when there is no further piece.
    pub fn read(&mut self, pieces: &mut Pieces) -> Result<Option<Vec<(u64, Fact)>>, StoreError> {
        let Some(bytes) = pieces.next(&mut self.position)? else {
            return Ok(None);
        };
        let mut found = Vec::new();
        self.reading.feed(bytes, |place, fact| {
            if place.end > self.known {
                found.push((place.end, fact));
            }
        });
        Ok(Some(found))
    }

    /// How the turn went of an agent that has ended without saying so.
    pub fn turn_end_at_exit(&mut self, exit: Exit) -> TurnEnd {
        self.reading.decoder.turn_end_at_exit(exit)
    }

    /// The agent's names for what it has said in a turn that is not over.
    pub fn messages_so_far(&self) -> Vec<String> {
        self.reading.decoder.messages_so_far()
    }
}
