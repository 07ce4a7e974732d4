//! Transcripts of the real agents, damaged in every way, repaired by the whole program, and resumed: the model gets a
//! well-formed conversation with everything that survived. One binary, because linking takes longer than running.
//!
//! Needs `cargo xtask agents`. Without it these tests print that they were left out, and on a build machine
//! (`CI=true`) they fail.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that finds no value has failed")]

mod conversation;
mod cut_off_tools_are_told;
mod damaged_transcripts_resume_whole;
mod files_are_replaced_with_care;
#[path = "../agents/fixture.rs"]
#[expect(dead_code, reason = "shared with the tests of agents, which need all of it")]
mod fixture;
mod two_writers_become_one;
