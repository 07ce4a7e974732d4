//! Conversations that somebody else runs on the same home: they are named with their process while it lives, and no
//! longer; and those that ostler keeps are told apart. The agents are the real ones, against a model on loopback.
//!
//! Needs `cargo xtask agents`. Without it these tests say loudly that they were left out, and on a build machine
//! (`CI=true`) they fail.

#![expect(clippy::unwrap_used, reason = "a test that finds no value has failed")]

mod claude;
mod one_home;
mod others;
mod sharing;
