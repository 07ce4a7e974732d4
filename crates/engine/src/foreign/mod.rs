//! Every process that uses a conversation, with our processes distinguished from foreign ones. [`ostler_writers`] finds
//! the processes; which session of this home a process belongs to is added here. Also every conversation that the
//! agents keep, whether or not a process uses it ([`stored`]), with its content ([`about`]).

pub mod about;
pub mod in_database;
mod list;
mod ours;
pub mod stored;

pub use list::Foreign;

use ostler_store::home::Home;
pub use ostler_writers::{ConversationOwner, Evidence, Variable, conversation_in, processes, stale_records};
use std::io;

/// Every process that uses a conversation, the newest first. Those of sessions of this home are marked.
pub fn owners(home: &Home, variable: Variable<'_>) -> io::Result<Vec<ConversationOwner>> {
    let mut found = ostler_writers::everywhere(variable)?;
    ours::tell_apart(home, &mut found);
    found.sort_by(|a, b| b.since.cmp(&a.since).then(a.pid.cmp(&b.pid)));
    Ok(found)
}
