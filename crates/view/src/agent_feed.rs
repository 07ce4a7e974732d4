//! What an agent reports, line by line, in a file of its run: facts, each with the position after its line. Keeper and
//! readers use this code, so that they decode the same facts.

use ostler_agents::decoder::{Decoder, OwnRecord};
use ostler_agents::output_facts::Reading;
use ostler_core::fact::{Fact, TurnEnd};
use ostler_core::life::{LongLine, State};
use ostler_core::outcome::Exit;
use ostler_core::record::Session;
use ostler_store::StoreError;
use ostler_store::growing_file::Pieces;
use ostler_store::progress::Heard;
use ostler_sys::dir::Dir;

pub struct AgentFeed {
    name: &'static str,
    reading: Reading,
    position: u64,
    /// Facts up to here are known already.
    known: u64,
    /// The conversation that this session is a copy of.
    origin: Option<String>,
}

impl AgentFeed {
    /// Reads `name` from this position on, which may be before what the state knows: earlier lines of the same turn
    /// help to decode later ones.
    #[must_use]
    pub fn from(
        position: u64,
        (name, mut decoder): (&'static str, Box<dyn Decoder>),
        state: &State,
        session: &Session,
    ) -> AgentFeed {
        let mut used = state.tokens_before();
        used += session.fork.as_ref().map(|fork| fork.tokens).unwrap_or_default();
        used += session.adopted.as_ref().map(|adopted| adopted.tokens).unwrap_or_default();
        decoder.used_before(used);
        let origin = session.fork.as_ref().map(|fork| fork.native_id.clone());
        AgentFeed { name, reading: Reading::from(position, decoder), position, known: state.output.understood, origin }
    }

    /// Continues where another reader has stopped. If its memory cannot be used, reads from `begins` on.
    #[must_use]
    pub fn going_on(
        heard: &Heard,
        begins: u64,
        (name, mut decoder): (&'static str, Box<dyn Decoder>),
        state: &State,
        session: &Session,
    ) -> AgentFeed {
        let position = if decoder.remember_all(&heard.memory) { heard.position } else { begins };
        AgentFeed::from(position, (name, decoder), state, session)
    }

    /// How far it has read.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// How far it has read, in whole lines, and the memory of the decoder there.
    #[must_use]
    pub fn heard(&self, run: u32) -> Option<Heard> {
        let memory = self.reading.decoder.memory()?;
        Some(Heard { run, position: self.reading.end(), memory })
    }

    /// Reads its standard error from this position on.
    #[must_use]
    pub fn of_errors(position: u64, decoder: Box<dyn Decoder>) -> AgentFeed {
        AgentFeed { name: "err", reading: Reading::from(position, decoder), position, known: position, origin: None }
    }

    /// Reads from what the state knows on. The known part of a line that is too long and has no end yet is not read
    /// again.
    #[must_use]
    pub fn behind(state: &State, (name, decoder): (&'static str, Box<dyn Decoder>), session: &Session) -> AgentFeed {
        match state.within_line() {
            None => AgentFeed::from(state.output.understood, (name, decoder), state, session),
            Some(line) => {
                let mut agent_feed = AgentFeed::from(line.to, (name, decoder), state, session);
                agent_feed.reading.skip_within(line.start, line.to);
                agent_feed
            }
        }
    }

    /// A line that is too long and has no end yet: where it begins, and how far it has been read.
    #[must_use]
    pub fn long_line(&self) -> Option<LongLine> {
        self.reading.long_line().map(|(start, to)| LongLine { start, to })
    }

    /// What there is to read now.
    pub fn pieces(&self, run: &Dir) -> Result<Option<Pieces>, StoreError> {
        Pieces::open(run, self.name, self.position)
    }

    /// New facts of the next piece, each with the position after its line; `None` when there is no further piece.
    pub fn read(&mut self, pieces: &mut Pieces) -> Result<Option<Vec<(u64, Fact)>>, StoreError> {
        let Some(bytes) = pieces.next(&mut self.position)? else {
            return Ok(None);
        };
        let mut found = Vec::new();
        let origin = self.origin.as_deref();
        self.reading.feed(bytes, |place, fact| {
            // An agent may name the original conversation when it starts in a terminal, and the copy only with its
            // first prompt.
            let is_origin = place.start == 0 && origin.is_some_and(|origin| names(&fact, origin));
            if place.end > self.known && !is_origin {
                found.push((place.end, fact));
            }
        });
        Ok(Some(found))
    }

    /// How the turn of an agent went that has ended without reporting it.
    pub fn turn_end_at_exit(&mut self, exit: Exit, complaint: Option<&str>) -> TurnEnd {
        self.reading.decoder.turn_end_at_exit(exit, complaint)
    }

    /// The agent's ids of what it has said in a turn that is not over.
    #[must_use]
    pub fn messages_so_far(&self) -> Vec<String> {
        self.reading.decoder.messages_so_far()
    }

    /// What the agent's record of its own process adds.
    pub fn own_record(&mut self, record: &[u8], now_ms: u64) -> OwnRecord {
        self.reading.decoder.own_record(record, now_ms)
    }
}

/// Whether the fact names this conversation.
fn names(fact: &Fact, conversation: &str) -> bool {
    match fact {
        Fact::Native { id } => id == conversation,
        Fact::Transcript { path } => path.contains(conversation),
        Fact::Ready
        | Fact::Behind { .. }
        | Fact::Recalled { .. }
        | Fact::Opened { .. }
        | Fact::NotOpened { .. }
        | Fact::TurnStarted
        | Fact::Saying { .. }
        | Fact::Said { .. }
        | Fact::Thought { .. }
        | Fact::Model { .. }
        | Fact::ToolCalled { .. }
        | Fact::ToolReturned { .. }
        | Fact::Subagent(_)
        | Fact::Asked(_)
        | Fact::AskClosed { .. }
        | Fact::Background { .. }
        | Fact::Retrying(_)
        | Fact::Limited(_)
        | Fact::ReplyDue { .. }
        | Fact::TurnEnded(_)
        | Fact::Unknown { .. }
        | Fact::LineTooLong { .. } => false,
    }
}
