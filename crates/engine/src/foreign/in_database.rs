//! Which process uses a conversation in a database. Every process of the agent has the database open, which does not
//! show its conversation. The command line may name the conversation. Otherwise the rows decide: the process works in
//! the folder of the conversation and was alive when a row of it was written, while no other conversation of that
//! folder was written to.

use super::stored::Stored as Conversation;
use super::{ConversationOwner, Variable, owners};
use crate::error::{Error, Result};
use ostler_agents::Agent;
use ostler_store::home::Home;
use ostler_view::database::{self, Stored};

/// What is known of a process.
#[derive(Clone, Debug, PartialEq)]
pub enum At {
    /// It has this conversation open.
    This(ConversationOwner),
    /// It has this conversation open, or the other one.
    Perhaps(ConversationOwner, String),
}

/// Every foreign process that uses this conversation, as far as can be known. Empty when the conversation has a file of
/// its own.
pub fn at(home: &Home, conversation: &Conversation, variable: Variable<'_>) -> Result<Vec<At>> {
    let (Some(agent), Some(queries)) = (conversation.kept_by(), conversation.queries()) else {
        return Ok(Vec::new());
    };
    let all = database::conversations(queries, &conversation.file)
        .map_err(|error| Error::Unreadable { path: conversation.file.clone(), error: error.to_string() })?;
    let Some(this) = all.iter().find(|one| one.native_id == conversation.native_id) else {
        return Ok(Vec::new());
    };
    let foreign = owners(home, variable)?.into_iter().filter(|owner| owner.agent == agent.name() && !owner.ours);
    Ok(foreign.filter_map(|owner| judge(agent, owner, this, &all)).collect())
}

fn judge(agent: &dyn Agent, owner: ConversationOwner, this: &Stored, all: &[Stored]) -> Option<At> {
    if let Some((named, _)) = agent.named_conversation(&owner.command) {
        return (named == this.native_id).then_some(At::This(owner));
    }
    let since = owner.since.as_millisecond();
    let here = |one: &Stored| owner.cwd.as_deref() == Some(one.cwd.as_str()) && one.updated_ms >= since;
    if !here(this) {
        return None;
    }
    match all.iter().find(|other| other.native_id != this.native_id && here(other)) {
        Some(other) => Some(At::Perhaps(owner, other.native_id.clone())),
        None => Some(At::This(owner)),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::foreign::{Evidence, processes};
    use ostler_sys::process::Identity;

    fn agent() -> &'static dyn Agent {
        ostler_agents::find("opencode").unwrap()
    }

    fn stored(native_id: &str, cwd: &str, updated_ms: i64) -> Stored {
        Stored { native_id: native_id.to_owned(), cwd: cwd.to_owned(), updated_ms }
    }

    fn owner(command: &[&str]) -> (ConversationOwner, i64) {
        let process = processes::describe(&Identity::me().unwrap()).unwrap();
        let mut owner = ConversationOwner::new("opencode", None, Evidence::OpenFile, process);
        owner.command = command.iter().map(|word| (*word).to_owned()).collect();
        owner.cwd = Some("/w".to_owned());
        let since = owner.since.as_millisecond();
        (owner, since)
    }

    #[test]
    fn arguments_decide_and_else_what_was_written_in_its_folder_since_it_runs() {
        let (plain, since) = owner(&["opencode"]);
        let all =
            [stored("ses_a", "/w", since + 1), stored("ses_b", "/w", since - 1), stored("ses_c", "/x", since + 1)];
        let of = |owner: &ConversationOwner, place: usize| judge(agent(), owner.clone(), &all[place], &all);
        assert_eq!(of(&plain, 0), Some(At::This(plain.clone())));
        assert_eq!((of(&plain, 1), of(&plain, 2)), (None, None), "nothing was written, or elsewhere");
        let (with, _) = owner(&["opencode", "-s", "ses_b"]);
        assert_eq!((of(&with, 0), of(&with, 1)), (None, Some(At::This(with.clone()))));
        let both = [stored("ses_a", "/w", since + 1), stored("ses_b", "/w", since + 2)];
        assert_eq!(judge(agent(), plain.clone(), &both[0], &both), Some(At::Perhaps(plain, "ses_b".to_owned())));
    }
}
