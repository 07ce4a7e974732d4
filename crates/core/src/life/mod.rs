//! The life of a session as one pure function: `step(state, entry) → (state, effects)`.
//!
//! * [`State`] is what is known. It changes only by entries of the journal.
//! * [`Effect`] is what the keeper should do now. Effects are derived from the state alone, so a keeper that was killed
//!   loses nothing: its replacement folds the journal and derives the same effects again. What must not happen twice is
//!   noted as an event before it is done, and is then no longer wanted.
//!
//! | process   | effects                                                                                           |
//! | --------- | ------------------------------------------------------------------------------------------------- |
//! | starting  | nothing                                                                                           |
//! | running   | deliver messages between turns; pass on interrupts; when it should exit: prove, ask, TERM, KILL   |
//! | exited    | end the processes that it left, collect its last output, prove, conclude                          |
//! | concluded | finish                                                                                            |

mod agent_facts;
mod effects;
#[cfg(test)]
mod every_order;
mod limits;
#[cfg(test)]
mod machine_shutdown;
mod state;
mod stop_steps;

pub use agent_facts::event_of;
pub use effects::{CONNECTION_LOST, Effect, OUTPUT_LOST, SYSTEM};
pub use limits::{BUDGET, BY, Reached};
pub use state::{
    AutomaticRuns, Continues, Conversation, EndSteps, Fed, Given, Handover, Held, Interrupt, Keepers, LongLine, Mail,
    Message, Output, Retrying, State, Stop, Typed, Unanswered, Until, Wait,
};

use crate::event::Entry;
use jiff::Timestamp;

/// Applies one entry and returns what is to be done now.
#[must_use]
pub fn step(mut state: State, entry: &Entry) -> (State, Vec<Effect>) {
    let (before, since) = (state.phase(), state.since);
    state.apply(entry);
    // An entry that a reader has decoded itself has no time; the time of the output says when it happened.
    state.since =
        if state.phase() == before { since } else { Some(entry.at).filter(|at| *at != Timestamp::UNIX_EPOCH) };
    let effects = state.effects(entry.ms);
    (state, effects)
}
