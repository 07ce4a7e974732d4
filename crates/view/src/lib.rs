//! What is true of a session now, computed from its folder, the agent's own files and the kernel, without locks.
//!
//! * [`fold`]: the state of a session, from its files. [`look`]: its view, with what the kernel says. `helpers`: which
//!   processes keep it.
//! * [`overview`]: the views of many sessions, in little time. [`live_views`]: what a list found out about a session that
//!   runs, for the next list.
//! * [`last_line`]: the last line of a session, for lists. [`terminal`]: the screen of a terminal session.
//! * [`conversation`]: what was said, for `logs`; [`recorded`]: the same from the agent's own transcript.
//! * [`agent_feed`]: what the agent's output reports beyond what is in the journal.
//! * [`proof`]: whether a turn is in the agent's own transcript, or its [`database`]. [`delivery`]: whether the agent took
//!   a message.
//! * [`write_outcome`]: the outcome, from all of that, published once.
//! * [`statistics`]: what a session has used, and when.
//!
//! Raw bytes first, meaning second: a wrong decoder is repaired by decoding again.

pub mod agent_feed;
mod complaint;
pub mod conversation;
pub mod database;
pub mod delivery;
pub mod fold;
mod helpers;
pub mod last_line;
pub mod live_views;
pub mod look;
mod newer_messages;
pub mod overview;
pub mod proof;
pub mod recorded;
pub mod statistics;
pub mod terminal;
pub mod write_outcome;
