//! Recordings of real agents. With them, what was once learned from an agent is tested from then on, without its
//! program, an account or a network.
//!
//! * [`Recording`] is the file: everything that went in and out of an agent's processes, with the pauses in between,
//!   and what they wrote to their transcript. Only `cargo xtask record` writes it.
//! * [`main`] is the process that replaces the agent: it reads where the agent read, prints what the agent printed,
//!   writes the transcript as late as the agent did, and ends as the agent ended. `ostler run replay:FILE` keeps it
//!   like any other agent.

#![forbid(unsafe_code)]

mod input;
mod options;
mod player;
mod recording;
mod substitution;
mod told;

pub use options::check_arguments;
pub use player::main;
pub use recording::{Action, End, Recording, Run, Step, Text, Unreadable};
pub use told::{Cue, Told};

/// The folder in which a recorded process worked, as it is named in recordings.
pub const WORK: &str = "/recorded/work";
