//! At a usage limit another agent may continue (`on_limit: agent`): the process exits, another session is started, and
//! this one ends.
//!
//! Three things happen, each noted once: the id of the other session is reserved (`handing_over`), the other session is
//! started (`handed_over`) or cannot be started (`not_handed_over`), and this one ends as failed, with a cause that
//! names the other.

use super::State;
use crate::id::SessionId;
use crate::rules::OnLimit;
use serde::{Deserialize, Serialize};

/// Another agent is to continue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handover {
    pub agent: String,
    /// The session in which that agent continues, once an id is reserved for it.
    pub id: Option<SessionId>,
    pub result: Option<Continues>,
}

/// The result of a handover.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Continues {
    Yes,
    No { why: String },
}

impl State {
    /// A turn has ended at a usage limit.
    pub(super) fn hand_over_at_limit(&mut self) {
        if let (Some(OnLimit::Agent { name }), None) = (&self.plan.rules.on_limit, &self.stop) {
            self.handover = Some(Handover { agent: name.clone(), id: None, result: None });
        }
    }

    pub(super) fn handover_is_reserved(&mut self, agent: &str, id: SessionId) {
        let handover = Handover { agent: agent.to_owned(), id: Some(id), result: None };
        self.handover.get_or_insert(handover).id.get_or_insert(id);
    }

    pub(super) fn handover_is_over(&mut self, result: Continues) {
        if let Some(handover) = &mut self.handover {
            handover.result.get_or_insert(result);
        }
    }

    /// Another agent is about to continue.
    #[must_use]
    pub fn hands_over(&self) -> bool {
        let pending = self.handover.as_ref().is_some_and(|handover| handover.result.is_none());
        pending && self.stop.is_none() && self.outcome.is_none()
    }

    /// Whether the handover needs a step now that the process is gone. A session whose id is reserved may already
    /// exist: that is found out even when this session is to stop.
    pub(in crate::life) fn wants_handover(&self) -> bool {
        let begun = |handover: &Handover| handover.result.is_none() && (self.stop.is_none() || handover.id.is_some());
        self.outcome.is_none() && self.handover.as_ref().is_some_and(begun)
    }

    /// What the outcome says about the handover.
    pub(crate) fn handover_in_words(&self) -> Option<String> {
        let Handover { agent, id, result } = self.handover.as_ref()?;
        match (result.as_ref()?, id) {
            (Continues::Yes, Some(id)) => Some(format!("{agent} continues in session {id}")),
            (Continues::Yes, None) => None,
            (Continues::No { why }, _) => Some(format!("{agent} could not continue: {why}")),
        }
    }
}
