//! The pinned agents against the scripted model: the server answers each agent as its maker's does, scripts reach the
//! server unchanged, and the agents behave as the rest of the program assumes.
//!
//! Needs `cargo xtask agents`. Without it these tests print that they were left out, and on a build machine (`CI=true`)
//! they fail.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod acp;
mod claude;
mod claude_control;
mod claude_disk;
mod codex;
mod fixture;
mod gemini;
mod opencode;
mod running;
mod terminal;
