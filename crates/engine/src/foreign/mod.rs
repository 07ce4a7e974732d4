//! Every process that holds a conversation, ours told apart from foreign processes. What is found is found by
//! [`ostler_writers`]; which session of this home it belongs to is added here. And every conversation that the agents keep,
//! whether or not anything runs ([`stored`]), with what is in it ([`about`]).

pub mod about;
pub mod in_database;
mod list;
mod ours;
pub mod stored;

pub use list::Foreign;

use ostler_store::home::Home;
pub use ostler_writers::{ConversationOwner, Evidence, Variable, conversation_in, processes, stale_records};
use std::io;

/// Every process that holds a conversation below this home, the newest first.
pub fn owners(home: &Home, variable: Variable<'_>) -> io::Result<Vec<ConversationOwner>> {
    let mut found = ostler_writers::everywhere(variable)?;
    ours::tell_apart(home, &mut found);
    found.sort_by(|a, b| b.since.cmp(&a.since).then(a.pid.cmp(&b.pid)));
    Ok(found)
}
