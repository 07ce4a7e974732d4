//! Which processes use a conversation, those of sessions and others.

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::foreign::{self, ConversationOwner, Evidence, processes};
use crate::list::{Listed, list};
use crate::owners::name_sessions;
use ostler_core::SCHEMA;
use ostler_core::id::SessionId;
use ostler_core::view::View;
use ostler_store::home::NotFound;
use ostler_sys::process_table;
use ostler_view::look;
use serde::Serialize;

/// Which processes use a conversation.
#[derive(Debug, Serialize)]
pub struct Users {
    /// The version of this format.
    pub schema: u32,
    /// The session, when the word names one.
    pub session: Option<SessionId>,
    /// The agent that keeps the conversation.
    pub agent: Option<String>,
    /// The agent's own id of the conversation.
    pub native_id: Option<String>,
    /// The processes that use it. In JSON the field has another name, which scripts read.
    #[serde(rename = "holders")]
    pub owners: Vec<ConversationOwner>,
}

impl Engine {
    /// Every process that uses the conversation of a session, or the conversation that has this id in an agent.
    pub fn who(&self, word: &str) -> Result<Users> {
        let environment = &self.environment;
        let owners = foreign::owners(&self.home, &environment.lookup())?;
        let Some(view) = self.session_of(word)? else {
            let running = owners.iter().filter_map(|owner| owner.native_id.as_deref());
            let id = meant(word, running)?.unwrap_or(word).to_owned();
            let mut owners: Vec<ConversationOwner> =
                owners.into_iter().filter(|owner| owner.native_id.as_ref() == Some(&id)).collect();
            for agent in ostler_agents::all() {
                name_sessions(environment, agent.name(), &id, &mut owners)?;
            }
            return about_conversation(&id, owners);
        };
        let mut users = about_session(&view, owners);
        if let Some(native_id) = &users.native_id {
            name_sessions(environment, view.conversation_agent(), native_id, &mut users.owners)?;
        }
        Ok(users)
    }

    /// The session that is meant: by its own id or name, or by the agent's id of its conversation.
    pub fn session_of(&self, word: &str) -> Result<Option<View>> {
        match self.home.select(word) {
            Ok(place) => Ok(Some(look::look(&place)?)),
            Err(NotFound::None(_)) => {
                let views: Vec<View> = list(self, true, |one| one)?
                    .into_iter()
                    .filter_map(|listed| match listed {
                        Listed::Good(view) => Some(*view),
                        Listed::Bad(_) => None,
                    })
                    .collect();
                let id = meant(word, views.iter().filter_map(|view| view.native_id.as_deref()))?.map(str::to_owned);
                Ok(views.into_iter().find(|view| id.is_some() && view.native_id == id))
            }
            Err(error @ (NotFound::Ambiguous { .. } | NotFound::Store(_))) => Err(error.into()),
        }
    }
}

/// A shorter word is not accepted as the beginning of a conversation's id: too many ids begin with it.
const SHORTEST_PREFIX: usize = 4;

/// The conversation that is meant by its id or by the beginning of its id.
fn meant<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Result<Option<&'a str>> {
    let mut found: Vec<&str> = known.filter(|id| id.starts_with(word)).collect();
    found.sort_unstable();
    found.dedup();
    if let Some(exact) = found.iter().find(|id| **id == word) {
        return Ok(Some(exact));
    }
    match found.as_slice() {
        _ if word.len() < SHORTEST_PREFIX => Ok(None),
        [] => Ok(None),
        [one] => Ok(Some(one)),
        [one, other, ..] => Err(Error::AmbiguousConversation {
            word: word.to_owned(),
            one: (*one).to_owned(),
            other: (*other).to_owned(),
        }),
    }
}

fn about_session(view: &View, found: Vec<ConversationOwner>) -> Users {
    let same = |owner: &ConversationOwner| match (&owner.native_id, &view.native_id) {
        (Some(one), Some(other)) => one == other,
        // A process that has all conversations of the agent open may be using this one.
        (None, Some(_)) => owner.agent == view.conversation_agent() && (!owner.ours || owner.session == Some(view.id)),
        (Some(_) | None, None) => owner.session == Some(view.id),
    };
    let mut owners: Vec<ConversationOwner> = found.into_iter().filter(same).collect();
    if let Some(pid) = view.pid
        && owners.iter().all(|owner| owner.pid != pid)
    {
        owners.extend(own_agent(view, pid));
    }
    Users {
        schema: SCHEMA,
        session: Some(view.id),
        agent: Some(view.agent.clone()),
        native_id: view.native_id.clone(),
        owners,
    }
}

/// The session's own process, which the agent's files do not show.
fn own_agent(view: &View, pid: i32) -> Option<ConversationOwner> {
    let process = processes::describe(&process_table::of_this_user(pid).ok()??)?;
    let mut owner =
        ConversationOwner::new(view.conversation_agent(), view.native_id.clone(), Evidence::Session, process);
    (owner.ours, owner.session) = (true, Some(view.id));
    Some(owner)
}

/// A conversation that no session of ours has.
fn about_conversation(word: &str, owners: Vec<ConversationOwner>) -> Result<Users> {
    if owners.is_empty() && !is_native_id(word) {
        return Err(Error::NoConversation { word: word.to_owned() });
    }
    let agent = owners.first().map(|owner| owner.agent.clone());
    Ok(Users { schema: SCHEMA, session: None, agent, native_id: Some(word.to_owned()), owners })
}

/// Most agents name conversations by UUIDs, others by texts of their own.
fn is_native_id(word: &str) -> bool {
    uuid::Uuid::try_parse(word).is_ok() || word.starts_with("ses_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_an_id_is_enough_when_only_one_conversation_has_it() {
        let known = ["01a1ddbd-408d", "01a1ddbd-408d", "01a1ffff-0000", "ses_7f2c"];
        let of = |word: &str| meant(word, known.into_iter()).map_err(|_| ());
        assert_eq!(of("01a1d"), Ok(Some("01a1ddbd-408d")));
        assert_eq!(of("01a1"), Err(()));
        assert_eq!(of("01a1ffff-0000"), Ok(Some("01a1ffff-0000")));
        assert_eq!((of("ses"), of("ses_"), of("nope1")), (Ok(None), Ok(Some("ses_7f2c")), Ok(None)));
    }

    #[test]
    fn a_word_that_no_agent_would_give_a_conversation_is_a_mistake_and_not_an_empty_answer() {
        assert!(about_conversation("01a1ddbd-408d-7262-88d9-97e7e2d532f0", Vec::new()).is_ok());
        assert!(about_conversation("ses_7f2c", Vec::new()).is_ok());
        let mistake = about_conversation("my-sesion", Vec::new()).map(|_| ()).map_err(|_| ());
        assert_eq!(mistake, Err(()));
    }
}
