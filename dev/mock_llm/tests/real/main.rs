//! The pinned agents against the scripted model: that the server speaks to each as its maker's does, that scripts reach
//! it unharmed, and that the agents behave as the rest of the program takes for granted.
//!
//! Needs `cargo xtask agents`. Without it these tests say loudly that they were left out, and on a build machine
//! (`CI=true`) they fail.

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
