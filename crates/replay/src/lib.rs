//! Recordings of real agents, so that what was learned from one once is checked for ever, without its program, an account
//! or a network.
//!
//! * [`Recording`] is the file: everything that went in and out of an agent's processes, with the pauses in between, and
//!   what they wrote into their transcript. `cargo xtask record` writes it; nobody else does.
//! * [`main`] is the process that stands in for the agent: it reads where the agent read, prints what it printed, writes
//!   the transcript as late as it did, and ends as it ended. `ostler run replay:FILE` keeps it like any other agent.

#![forbid(unsafe_code)]

mod input;
mod options;
mod player;
mod recording;
mod substitution;
mod told;

pub use options::check_arguments;
pub use player::main;
pub use recording::{Deed, End, Recording, Run, Step, Text, Unreadable};
pub use told::{Cue, Told};

/// Where a recorded process worked, as recordings call it.
pub const WORK: &str = "/recorded/work";
