//! What a session is, without any I/O.
//!
//! * [`id`]: names of sessions, checked before they become part of a path.
//! * [`record`]: the contents of the files of a session folder.
//! * [`fact`]: what a decoder can find in an agent's output.
//! * [`event`]: what happens in the life of a session; the journal is a list of these.
//! * [`life`]: the pure function from events to state and effects. The keeper acts on the effects; a reader folds the
//!   same events through the same function, so the two cannot disagree.
//! * [`outcome`]: how a run ended, and how that is judged from the evidence.
//! * [`moment`]: at which events a person may want to be notified.
//! * [`rules`]: what a person has decided beforehand: restarts and limits.
//! * [`spending`]: what turns, runs and sessions have used.
//! * [`start_when`]: what a program waits for when it is not started at once.
//! * [`asking`], [`visible`]: how a question is shown, so that nothing in it is hidden.
//! * [`worktree`]: the git worktree that was made for a session.
//! * [`comparison`]: what members of a group are compared by.
//! * [`view`]: what `ls`, `show` and `wait` report about a session.

pub mod asking;
pub mod comparison;
pub mod event;
pub mod fact;
pub mod id;
pub mod life;
pub mod limits;
pub mod moment;
pub mod outcome;
mod plan;
pub mod record;
pub mod review;
pub mod rules;
pub mod spending;
pub mod start_when;
pub mod turns;
pub mod view;

pub mod visible;
pub mod worktree;

/// The version of every record's format. A higher one was written by a newer ostler.
pub const SCHEMA: u32 = 1;

/// The longest message that is accepted.
pub const MESSAGE_LIMIT: usize = 16 * 1024 * 1024;
