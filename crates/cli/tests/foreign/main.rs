//! Conversations that foreign processes use on the same home. Each is listed with its process until the process exits,
//! and is distinguished from those that ostler keeps. The agents are the real ones, with a scripted model on loopback.
//!
//! Needs `cargo xtask agents`. Without it these tests print that they were left out, and on a build machine (`CI=true`)
//! they fail.

#![expect(clippy::unwrap_used, reason = "a test that finds no value has failed")]

mod claude;
mod one_home;
mod others;
mod sharing;
