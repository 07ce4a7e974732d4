//! The server as its clients see it: every protocol over a plain socket, without any agent.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod behaviour;
mod chat;
mod client;
mod gemini;
mod messages;
mod responses;
