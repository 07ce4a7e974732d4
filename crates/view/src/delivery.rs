//! Whether the agent took a message whose process ended before the turn did. Never guessed: it is decided by the
//! agent's output and by the place where the agent stores the conversation.

use crate::proof::{Kept, find_transcript, mark_of};
use ostler_agents::Agent;
use ostler_agents::output_facts::Reading;
use ostler_core::fact::Fact;
use ostler_core::life::{Given, Message, State};
use ostler_core::record::{Request, RequestKind, Session};
use ostler_store::folder::Folder;
use ostler_store::growing_file::Pieces;
use ostler_store::{RunRecord, StoreError, inbox};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Taken,
    /// The message is to be given again.
    NotTaken,
    /// Nothing shows it. A person decides.
    Unknown,
}

/// A message that was given to a process that has ended.
pub struct Ended<'a> {
    pub folder: &'a Folder,
    pub session: &'a Session,
    /// Of the run in which it was given.
    pub record: &'a RunRecord,
    pub state: &'a State,
    pub message: Message,
    pub given: &'a Given,
}

impl Ended<'_> {
    /// `holds` checks whether the conversation contains all these marks; it returns `None` when the conversation cannot
    /// be read now.
    pub fn fate<E: From<StoreError>>(
        &self,
        holds: impl Fn(&'static dyn Agent, &Kept, &[String]) -> Result<Option<bool>, E>,
    ) -> Result<Fate, E> {
        let agent = ostler_agents::keeps_conversation(self.session, self.record);
        let request = inbox::read_one(self.folder.dir(), self.message.at)?;
        let (Some(agent), Some(Request { kind: RequestKind::Message { text, .. }, .. })) = (agent, request) else {
            // There is nothing that could be given again.
            return Ok(Fate::Taken);
        };
        if self.record.plan.opens() {
            return self.behind_a_protocol(agent, agent.mark_of_words(&text), holds);
        }
        let marks: Vec<String> =
            mark_of(agent, self.folder, self.record.plan.mode(), self.message)?.into_iter().collect();
        let native_id = self.native_id();
        // The process may have ended before its file was looked for.
        let found =
            || Some(Kept::File { path: find_transcript(agent, native_id?, &self.session.cwd)?.into(), from: 0 });
        match Kept::of(self.record, self.state).or_else(found) {
            Some(kept) => Ok(match holds(agent, &kept, &marks)? {
                Some(true) => Fate::Taken,
                Some(false) => Fate::NotTaken,
                None => Fate::Unknown,
            }),
            // The conversation did not exist before this run, and does not exist now.
            None if self.record.begins => Ok(Fate::NotTaken),
            None => Ok(Fate::Unknown),
        }
    }

    fn native_id(&self) -> Option<&String> {
        self.state.native_id.as_ref().or(self.record.native_id.as_ref())
    }

    /// The protocol does not report that a message was taken. The stored conversation of the agent behind it shows
    /// that, where that agent is known. A tool that ran for the message must not run again unless a person decides so.
    fn behind_a_protocol<E: From<StoreError>>(
        &self,
        agent: &'static dyn Agent,
        mark: String,
        holds: impl Fn(&'static dyn Agent, &Kept, &[String]) -> Result<Option<bool>, E>,
    ) -> Result<Fate, E> {
        let places = self.places(agent);
        let marks = [mark];
        let mut unclear = false;
        for kept in &places {
            match holds(agent, kept, &marks)? {
                Some(true) => return Ok(Fate::Taken),
                Some(false) => {}
                None => unclear = true,
            }
        }
        let worked = self.has_worked()?;
        let known = agent.name() != ostler_agents::acp::NAME;
        Ok(match (known, worked) {
            (false, true) => Fate::Taken,
            (false, false) | (true, true) => Fate::Unknown,
            // A conversation that existed before cannot have vanished: then the result is unknown.
            (true, false) if unclear || (places.is_empty() && !self.record.begins) => Fate::Unknown,
            (true, false) => Fate::NotTaken,
        })
    }

    /// Where the message is if the agent has stored it.
    fn places(&self, agent: &'static dyn Agent) -> Vec<Kept> {
        let variable = |name: &str| std::env::var(name).ok();
        let Some(native_id) = self.native_id() else {
            return Vec::new();
        };
        if let Some(path) = agent.database(&variable) {
            let (path, native_id) = (path.into(), native_id.clone());
            return vec![Kept::Database { path, native_id, since_ms: self.given.at_ms }];
        }
        let before = self.given.written.as_ref();
        let newest = find_transcript(agent, native_id, &self.session.cwd);
        // An agent may continue in another file than the one that existed when the message was given.
        let newest = newest.filter(|path| before.is_none_or(|before| before.path != *path));
        let before = before.map(|before| Kept::File { path: before.path.clone().into(), from: before.size });
        before.into_iter().chain(newest.map(|path| Kept::File { path: path.into(), from: 0 })).collect()
    }

    /// Whether its output shows that it used a tool for the message, or asked whether it may. Text alone proves
    /// nothing: some agents print notices of their own.
    fn has_worked(&self) -> Result<bool, StoreError> {
        let plan = &self.record.plan;
        let run = self.folder.run(self.record.run)?;
        let agent = ostler_agents::find_for(&self.session.agent, plan);
        let Some((name, decoder)) = agent.and_then(|agent| ostler_agents::decoder::agent_feed(agent, plan.speaks()))
        else {
            return Ok(false);
        };
        let mut position = self.given.out;
        let mut reading = Reading::from(position, decoder);
        let Some(mut pieces) = Pieces::open(run.dir(), name, position)? else {
            return Ok(false);
        };
        let mut worked = false;
        while !worked && let Some(bytes) = pieces.next(&mut position)? {
            reading.feed(bytes, |_, fact| worked |= matches!(fact, Fact::ToolCalled { .. } | Fact::Asked(_)));
        }
        Ok(worked)
    }
}
