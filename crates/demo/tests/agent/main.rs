//! The demo agent from the outside: a process, its pipes or its terminal, its exit code and its transcript.

#![expect(clippy::unwrap_used, reason = "a test that finds no value has failed")]

mod ending;
mod fixture;
mod interrupting;
mod permission;
mod saving;
mod screen;
mod turns;
