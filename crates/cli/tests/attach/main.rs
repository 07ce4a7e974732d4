//! What a person sees and types at a session, driven through a real pseudo-terminal. One binary, because linking costs
//! more than running.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that finds no value has failed")]

mod adopting;
mod answering;
mod chat;
mod conversation;
mod dashboard;
mod keys_survive_keepers;
mod leaving_only_detaches;
mod lists;
mod notices;
mod one_screen_for_all;
mod opening;
mod person;
mod questions;
mod refusals;
mod resuming;
mod screens_are_restored;
mod tables;
mod untrusted_questions;

use ostler_testkit::Harness;

fn harness() -> Harness {
    Harness::new(env!("CARGO_BIN_EXE_ostler"))
}
