//! Conversations that run outside ostler, with the processes that use them.

use super::{ConversationOwner, owners};
use crate::engine::Engine;
use crate::error::Result;
use crate::list::{Listed, list};
use ostler_core::SCHEMA;
use ostler_core::id::SessionId;
use ostler_core::view::View;
use serde::Serialize;

/// A process that ostler did not start, and the conversation that it uses.
#[derive(Clone, Debug, Serialize)]
pub struct Foreign {
    /// The version of this object's format.
    pub schema: u32,
    /// The process.
    #[serde(flatten)]
    pub owner: ConversationOwner,
    /// The session of this home whose conversation it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_by: Option<SessionId>,
    /// The same session, as it is now.
    #[serde(skip)]
    pub session: Option<View>,
}

impl Engine {
    /// Finds foreign processes. Nothing is changed.
    pub fn foreign(&self) -> Result<Vec<Foreign>> {
        let mut owners = owners(&self.home, &self.environment.lookup())?;
        owners.retain(|owner| !owner.ours);
        let views = if owners.iter().any(|owner| owner.native_id.is_some()) {
            list(self, true, |one| match one {
                Listed::Good(view) => Some(*view),
                Listed::Bad(_) => None,
            })?
        } else {
            Vec::new()
        };
        let views: Vec<View> = views.into_iter().flatten().collect();
        let keeps = |owner: &ConversationOwner| views.iter().find(|view| is_of(view, owner)).cloned();
        Ok(owners
            .into_iter()
            .map(|owner| {
                let session = keeps(&owner);
                Foreign { schema: SCHEMA, owner, kept_by: session.as_ref().map(|view| view.id), session }
            })
            .collect())
    }
}

fn is_of(view: &View, owner: &ConversationOwner) -> bool {
    view.native_id.is_some() && view.native_id == owner.native_id && view.conversation_agent() == owner.agent
}
